//! The seam between a workflow and the place where its commands run.

use std::ffi::OsString;
use std::fmt;
use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;

/// One command to run.
#[derive(Debug, Clone, Default)]
pub struct Job {
    pub program: OsString,
    pub args: Vec<OsString>,
    /// What to run instead if the program cannot be executed as it stands.
    pub otherwise: Option<(OsString, Vec<OsString>)>,
    pub dir: Option<PathBuf>,
    /// Variables besides those that the executor's own environment has.
    pub env: Vec<(OsString, OsString)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    Stdout,
    Stderr,
}

/// Takes what a command writes, as it comes.
pub trait Output: fmt::Debug + Send + Sync {
    fn take(&self, stream: Stream, chunk: &[u8]);

    /// Takes what the executor itself has to say while the command runs: one line for people.
    fn remark(&self, text: &str);
}

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    Code(i32),
    Signal(i32),
}

/// A future without a type of its own.
pub type Later<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// What the end of a command leaves.
pub struct Ended {
    pub exit: Exit,
    /// Goes on taking output from processes that the command left behind. Whoever drops it closes
    /// their pipes.
    pub lingering: Option<Later<()>>,
}

impl fmt::Debug for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ended").field("exit", &self.exit).finish_non_exhaustive()
    }
}

/// Asks a running command to end.
pub trait Control: fmt::Debug + Send + Sync {
    /// Asks all its processes to end, or ends them.
    fn signal(&self, hard: bool);
}

/// A command that was started.
pub struct Started {
    pub control: Arc<dyn Control>,
    /// Resolves when the command has ended and its output was taken.
    pub ended: Later<Result<Ended, Error>>,
    /// Removes what is left of the command elsewhere. To be awaited once its end is on record:
    /// until then whoever comes later can still learn how it ended.
    pub settle: Option<Later<()>>,
}

impl fmt::Debug for Started {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Started").field("control", &self.control).finish_non_exhaustive()
    }
}

/// Why a command did not run, or was lost sight of.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    #[error("`{program}`: no such program{}", .hint)]
    NotFound { program: String, hint: &'static str },
    #[error("`{program}` may not be executed")]
    NotExecutable { program: String },
    #[error("directory `{dir}` does not exist or may not be entered")]
    BadDirectory { dir: String },
    #[error("arguments and environment of `{program}` are too large; pass large values in a file")]
    TooLarge { program: String },
    #[error("`{program}` could not be started: {reason}")]
    NotStarted { program: String, reason: String },
    /// It was somewhere else, and there it did not come to an end of its own.
    #[error("{reason}")]
    Elsewhere { reason: String },
    #[error("lost sight of a process: {reason}")]
    Lost { reason: String },
}

/// A place where commands run.
pub trait Executor: fmt::Debug + Send + Sync {
    fn start(&self, job: &Job, output: Arc<dyn Output>) -> Result<Started, Error>;
}
