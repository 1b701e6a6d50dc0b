//! The life of one container.

use crate::seams::Moment;

/// How far a container is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum State {
    /// Room is kept for it; there is nothing of it yet.
    Reserved,
    Initializing,
    /// It is there and being started.
    Created,
    Running,
    Completed,
}

impl State {
    pub const ALL: [Self; 5] =
        [Self::Reserved, Self::Initializing, Self::Created, Self::Running, Self::Completed];

    /// Every step a container may take. It can be deleted in any state.
    pub const fn next(self) -> &'static [Self] {
        match self {
            Self::Reserved => &[Self::Initializing],
            Self::Initializing => &[Self::Created, Self::Completed],
            Self::Created => &[Self::Running, Self::Completed],
            Self::Running => &[Self::Completed],
            Self::Completed => &[],
        }
    }

    /// Whether something of it may run.
    pub const fn is_live(self) -> bool {
        match self {
            Self::Initializing | Self::Created | Self::Running => true,
            Self::Reserved | Self::Completed => false,
        }
    }

    /// Whether it is on its way to running.
    pub const fn is_starting(self) -> bool {
        match self {
            Self::Reserved | Self::Initializing | Self::Created => true,
            Self::Running | Self::Completed => false,
        }
    }

    pub const fn name(self) -> &'static str {
        match self {
            Self::Reserved => "RESERVED",
            Self::Initializing => "INITIALIZING",
            Self::Created => "CREATED",
            Self::Running => "RUNNING",
            Self::Completed => "COMPLETED",
        }
    }
}

/// What kind of end a container had: of failed and stopped it is never both.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Ending {
    /// It was done.
    #[default]
    Done,
    /// Why it failed.
    Failed(String),
    /// It was told to stop, which is no failure.
    Stopped,
}

/// How a container ended.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RunResult {
    pub ending: Ending,
    /// What its program returned, if it ended by itself.
    pub exit_code: Option<i32>,
    /// What a task leaves behind.
    pub result: String,
}

impl RunResult {
    pub fn failed(reason: impl Into<String>) -> Self {
        Self { ending: Ending::Failed(reason.into()), ..Self::default() }
    }

    pub fn stopped() -> Self {
        Self { ending: Ending::Stopped, ..Self::default() }
    }

    pub const fn is_failed(&self) -> bool {
        match self.ending {
            Ending::Failed(_) => true,
            Ending::Done | Ending::Stopped => false,
        }
    }

    pub const fn is_stopped(&self) -> bool {
        match self.ending {
            Ending::Stopped => true,
            Ending::Done | Ending::Failed(_) => false,
        }
    }

    /// Empty unless it failed.
    pub fn failure_reason(&self) -> &str {
        match &self.ending {
            Ending::Failed(reason) => reason,
            Ending::Done | Ending::Stopped => "",
        }
    }
}

/// Where a container stands and since when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Life {
    state: State,
    since: Moment,
    result: Option<RunResult>,
}

/// A step that [`State::next`] does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a container does not go from {} to {}", from.name(), to.name())]
pub struct IllegalStep {
    pub from: State,
    pub to: State,
}

impl Life {
    pub const fn reserved(at: Moment) -> Self {
        Self { state: State::Reserved, since: at, result: None }
    }

    /// A container from before its cell was started; with a `result`, it has ended.
    pub const fn found(result: Option<RunResult>, at: Moment) -> Self {
        let state = if result.is_some() { State::Completed } else { State::Running };
        Self { state, since: at, result }
    }

    pub const fn state(&self) -> State {
        self.state
    }

    pub const fn since(&self) -> Moment {
        self.since
    }

    /// How it ended, once it has.
    pub const fn result(&self) -> Option<&RunResult> {
        self.result.as_ref()
    }

    /// Goes one step; to COMPLETED only by [`Life::complete`].
    pub fn advance(&mut self, to: State, at: Moment) -> Result<(), IllegalStep> {
        let legal = to != State::Completed && self.state.next().contains(&to);
        if !legal {
            return Err(IllegalStep { from: self.state, to });
        }
        (self.state, self.since) = (to, at);
        Ok(())
    }

    pub fn complete(&mut self, result: RunResult, at: Moment) -> Result<(), IllegalStep> {
        if !self.state.next().contains(&State::Completed) {
            return Err(IllegalStep { from: self.state, to: State::Completed });
        }
        (self.state, self.since, self.result) = (State::Completed, at, Some(result));
        Ok(())
    }
}

#[cfg(test)]
mod tests;
