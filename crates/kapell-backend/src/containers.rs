//! Containers: a process and what it writes, kept apart from the agent that started it.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use async_trait::async_trait;

/// What to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spec {
    /// Names the container among all there ever were: letters, digits, `-` and `_`.
    pub guid: String,
    /// Whatever its owner wants to find again after a restart.
    pub tag: Vec<u8>,
    /// The program: a path, or a name to be found in the `PATH` of `env`.
    pub path: String,
    pub args: Vec<String>,
    pub env: Vec<(String, String)>,
    /// Where it runs; without it, in an empty directory of its own.
    pub dir: Option<PathBuf>,
    pub user: User,
    /// Between SIGTERM and SIGKILL.
    pub stop_grace: Duration,
    /// Where its output is kept; made if it is not there, left alone when the container is deleted.
    pub logs: PathBuf,
    /// Of its output, the last so many bytes are kept.
    pub log_bytes: u64,
}

/// Whom a container runs as.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum User {
    /// As the agent.
    Same,
    /// A user and group by number, in no other group, without any privilege.
    Id {
        uid: u32,
        gid: u32,
        /// Nobody else is this user: whatever runs as it ends with the container.
        own: bool,
    },
}

/// A container that an earlier agent has left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    pub guid: String,
    pub tag: Vec<u8>,
    /// None while it runs.
    pub exit: Option<Exit>,
}

/// How a container ended.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Exit {
    /// What the program returned, if it ended by itself.
    pub code: Option<i32>,
    /// What ended it otherwise.
    pub signal: Option<i32>,
    /// It was told to stop.
    pub stopped: bool,
    /// Neither: the program could not be started, or whoever watched it was killed.
    pub trouble: Option<String>,
    /// The end of what it wrote last to standard error, else to standard output; one line, valid text.
    pub last_words: String,
}

/// Why a container is not there.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It never ran: no such program, not executable, no such directory, no such user.
    #[error("{0}")]
    Unstartable(String),
    #[error("{what}")]
    Io {
        what: String,
        #[source]
        source: io::Error,
    },
    #[error("there is no container `{0}`")]
    Unknown(String),
}

/// Makes containers. Nothing here decides when, or what follows.
#[async_trait]
pub trait Containers: fmt::Debug + Send + Sync {
    /// What earlier agents have left, whether it runs or has ended. Called once, before all else.
    ///
    /// What ran when the machine was started anew is cleared away and not found; what had ended
    /// before is.
    async fn recover(&self) -> Result<Vec<Found>, Error>;

    /// Starts a container. Returns when its program runs, or when it is certain that it never will.
    async fn run(&self, spec: Spec) -> Result<(), Error>;

    /// Waits until it has ended. May be called at any time after `run` or `recover`, also again.
    async fn ended(&self, guid: &str) -> Result<Exit, Error>;

    /// Asks it to stop: SIGTERM to all of it, SIGKILL after the grace time, agent or no agent.
    async fn stop(&self, guid: &str) -> Result<(), Error>;

    /// Kills whatever runs of it and forgets it. Its logs stay.
    async fn delete(&self, guid: &str) -> Result<(), Error>;

    /// The first `limit` bytes of a file that it left in the directory where it ran. Links are not
    /// followed, and what does not belong to its user is not read.
    async fn read_own(&self, guid: &str, file: &str, limit: u64) -> Result<Vec<u8>, Error>;

    /// The directory of its own, where it runs unless its spec says otherwise.
    fn dir(&self, guid: &str) -> PathBuf;
}
