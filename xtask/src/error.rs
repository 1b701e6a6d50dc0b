use std::fmt;
use std::io;

pub(crate) type Result<T> = std::result::Result<T, Error>;

/// Why a task ended early; decides the exit code.
#[derive(Debug)]
pub(crate) enum Error {
    /// The command line is wrong: exit 2, with the usage.
    Usage(String),
    /// The task could not do its work: exit 1.
    Failed(String),
    /// The task did its work, and has already said what it found wrong: exit 1.
    Reported,
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage(text) | Self::Failed(text) => out.write_str(text),
            Self::Reported => out.write_str("see above"),
        }
    }
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        Self::Failed(error.to_string())
    }
}

/// Shorthand for a failure with a composed message.
pub(crate) fn failed(text: impl Into<String>) -> Error {
    Error::Failed(text.into())
}
