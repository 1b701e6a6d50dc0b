//! Containers: processes and what they write, kept apart from the agent that started them.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::time::Duration;

use async_trait::async_trait;
use kapell_core::exec::Size;
use kapell_core::secret::Secret;
use tokio::io::{AsyncRead, AsyncWrite};

/// A container to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spec {
    /// Names the container among all there ever were: letters, digits, `-` and `_`.
    pub guid: String,
    /// Whatever its owner wants to find again after a restart.
    pub tag: Vec<u8>,
    /// What it sees as `/`, a URL of one of [`Containers::rootfs_schemes`]; without it, the machine's own files.
    pub rootfs: Option<String>,
    /// Whom its processes run as, unless they say otherwise.
    pub user: User,
    pub limits: Limits,
    /// What it listens on, and where others reach that on this machine.
    pub ports: Vec<Port>,
    /// Where output is kept; made if it is not there, left alone when the container is deleted.
    pub logs: PathBuf,
    /// Of its output, the last so many bytes are kept.
    pub log_bytes: u64,
    /// So many bytes of output a second are kept; of the rest it is only told that it was dropped.
    pub log_rate: Option<u64>,
    /// There will never be more than one process.
    pub sole: bool,
}

/// What a container may use at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Limits {
    pub memory_mb: Option<u32>,
    /// Thousandths of a processor.
    pub cpu_millis: Option<u32>,
    pub pids: Option<u32>,
}

/// Which limits a driver can enforce on this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Enforced {
    pub memory: bool,
    pub cpu: bool,
    pub pids: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Port {
    /// As the container sees it.
    pub container: u16,
    pub host: u16,
}

/// Whom a process runs as.
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
    /// As `user`, `uid`, `user:group` or any mix of them, by the names that the container's own root knows.
    Named(String),
}

/// A container that can be made at any time, of which nothing comes from elsewhere, and a program that ends well in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trial {
    pub rootfs: Option<String>,
    pub sole: bool,
    pub path: String,
    pub args: Vec<String>,
}

/// A program to run in a container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// Names it among all that its container ever had: letters, digits, `-` and `_`.
    pub name: String,
    /// The program: a path, or a name to be found in the `PATH` of `env`.
    pub path: String,
    pub args: Vec<String>,
    pub env: Vec<(String, String)>,
    /// Variables beside `env` whose values are in no file and no argument, and are replaced by `***` in its output.
    pub secrets: Vec<(String, Secret)>,
    /// Where it runs; without it, in the directory of its container.
    pub dir: Option<PathBuf>,
    /// Without it, its container's.
    pub user: Option<User>,
    /// Between SIGTERM and SIGKILL.
    pub stop_grace: Duration,
    pub output: Output,
}

/// A program that somebody wants to run beside those of a container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exec {
    /// A path, or a name to be found in the `PATH` of the container's process.
    pub path: String,
    pub args: Vec<String>,
    /// Besides the environment of the container's process.
    pub env: Vec<(String, String)>,
    /// It is to have a terminal that is so large.
    pub terminal: Option<Size>,
}

/// How a program ends that runs beside those of a container.
pub type Ended = Pin<Box<dyn Future<Output = Result<Exit, Error>> + Send>>;

/// A program that runs beside those of a container.
pub struct Session {
    pub stdin: Box<dyn AsyncWrite + Send + Unpin>,
    pub stdout: Box<dyn AsyncRead + Send + Unpin>,
    /// Nothing comes of it if it has a terminal.
    pub stderr: Box<dyn AsyncRead + Send + Unpin>,
    /// Says how large its terminal is, if it has one.
    pub resize: Option<Box<dyn Fn(Size) + Send + Sync>>,
    /// How it ends. Whoever drops this kills it.
    pub ended: Ended,
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Session")
    }
}

/// What becomes of what a process writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Output {
    /// It goes to the logs of its container.
    Kept,
    /// Only its last words are.
    Dropped,
}

/// A container that an earlier agent has left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    pub guid: String,
    pub tag: Vec<u8>,
    pub processes: Vec<FoundProcess>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundProcess {
    pub name: String,
    /// None while it runs.
    pub exit: Option<Exit>,
}

/// How a process ended.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Exit {
    /// What the program returned, if it ended by itself.
    pub code: Option<i32>,
    /// What ended it otherwise.
    pub signal: Option<i32>,
    /// It was told to stop.
    pub stopped: bool,
    /// Its container had no memory left, and the kernel ended something of it.
    pub out_of_memory: bool,
    /// Neither: the program could not be started, or whoever watched it was killed.
    pub trouble: Option<String>,
    /// The end of what it wrote last to standard error, else to standard output; one line, valid text.
    pub last_words: String,
}

/// Why a container or a process is not there.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A program that somebody wants beside others never ran: it is not there.
    #[error("{0}")]
    Absent(String),
    /// It never ran: no such program, not executable, no such directory, no such user, no such image.
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
    /// Which URLs of a [`Spec::rootfs`] it can run: `dir`, `oci`, `docker`.
    fn rootfs_schemes(&self) -> Vec<String>;

    fn enforced(&self) -> Enforced;

    /// Whether containers with this root have a network of their own: they listen on the ports that they ask for, and
    /// host ports lead there. All others must listen on the host ports.
    fn has_own_network(&self, _rootfs: Option<&str>) -> bool {
        false
    }

    /// What shows that containers can be made here: all of these must go well.
    fn trials(&self) -> Vec<Trial> {
        let path = "true".to_owned();
        vec![Trial { rootfs: None, sole: true, path, args: Vec::new() }]
    }

    /// What earlier agents have left, whether it runs or has ended. Called once, before all else.
    ///
    /// What ran when the machine was started anew is cleared away and not found; what had ended
    /// before is.
    async fn recover(&self) -> Result<Vec<Found>, Error>;

    /// Makes a container in which nothing runs yet. Whatever fails leaves nothing behind.
    async fn create(&self, spec: Spec) -> Result<(), Error>;

    /// Starts a process. Returns when its program runs, or when it is certain that it never will.
    async fn run(&self, guid: &str, process: Process) -> Result<(), Error>;

    /// Starts a program as the user, in the directory, the control groups and with the environment of the first process
    /// of a container that runs and whose output is kept. It ends with the container, and with the agent.
    async fn exec(&self, guid: &str, exec: Exec) -> Result<Session, Error> {
        let path = exec.path;
        let text = format!("cannot run `{path}` in container `{guid}`: its driver cannot do that");
        Err(Error::Unstartable(text))
    }

    /// Waits until a process has ended. May be called at any time after `run` or `recover`, also again.
    async fn ended(&self, guid: &str, process: &str) -> Result<Exit, Error>;

    /// Asks a process to stop: SIGTERM to all of it, SIGKILL after the grace time, agent or no agent.
    async fn stop(&self, guid: &str, process: &str) -> Result<(), Error>;

    /// Kills whatever runs of a container and forgets it. Its logs stay.
    async fn delete(&self, guid: &str) -> Result<(), Error>;

    /// Removes what was kept for containers to come and is too much by now; says how many bytes that were. Nothing that
    /// a container uses is touched.
    async fn tidy(&self) -> Result<u64, Error> {
        Ok(0)
    }

    /// Gives back what it has of the machine besides containers, if there are none. Called last: whoever still holds it
    /// asks nothing of it any more.
    async fn close(&self) {}

    /// The first `limit` bytes of a file that it left, relative to its directory or, from `/` on, as its processes see
    /// it. Links are not followed, and what does not belong to its user is not read.
    async fn read_own(&self, guid: &str, file: &str, limit: u64) -> Result<Vec<u8>, Error>;

    /// Puts a file of the agent into a container, at a path relative to its directory, as its user's own.
    /// Directories on the way are made; links are not followed.
    async fn put(&self, guid: &str, from: &Path, to: &str) -> Result<(), Error>;

    /// The directory of its own as its processes see it, where they run unless they say otherwise.
    fn dir(&self, guid: &str) -> PathBuf;
}
