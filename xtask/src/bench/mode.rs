/// What a step runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// A program that every runner can start without a shell, and ninja with one.
    Plain,
    /// A line that nobody can run without a shell.
    Shell,
}

impl Mode {
    pub(crate) fn parse(name: &str) -> Option<Self> {
        [Self::Plain, Self::Shell].into_iter().find(|mode| mode.name() == name)
    }

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Shell => "sh",
        }
    }

    pub(crate) const fn command(self) -> &'static str {
        match self {
            Self::Plain => "/bin/true",
            Self::Shell => ": && /bin/true",
        }
    }
}
