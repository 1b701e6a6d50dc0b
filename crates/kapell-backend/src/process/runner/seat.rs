//! Where a runner is, how it is started, and the way to it.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::containers::{Error, Limits};
use crate::process::groups::Groups;
use crate::process::{home, shim, trouble};

/// A runner is there in less; one that is ending is gone in less.
const PATIENCE: Duration = Duration::from_secs(20);
const PAUSE: Duration = Duration::from_millis(2);
/// The control group of the runner, and so of all that it runs.
const GROUP: &str = "runner";

/// What a runner is made of.
#[derive(Debug, Clone)]
pub(crate) struct Seat {
    pub(crate) dir: PathBuf,
    pub(crate) shim: PathBuf,
    pub(crate) boot: String,
    pub(crate) descriptors: Option<u64>,
}

impl Seat {
    /// Where programs run, each in a directory of its own.
    pub(super) fn dirs(&self) -> PathBuf {
        self.dir.join("dirs")
    }

    pub(super) fn journal(&self) -> PathBuf {
        self.dir.join("journal")
    }

    /// Whether somebody has left something here that is to be found.
    pub(super) fn is_used(&self) -> bool {
        fs::metadata(self.journal()).is_ok_and(|about| about.len() > 0)
    }

    /// The way to the runner, which is started if there is none. Blocks.
    pub(super) fn connect(&self) -> Result<UnixStream, Error> {
        make(&self.dir)?;
        let lock = self.dir.join("lock");
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&lock)
            .map_err(trouble::io("open", &lock))?;
        let start = Instant::now();
        let mut file = Some(file);
        loop {
            if let Some(held) = &file {
                match held.try_lock() {
                    // Nobody lives there; from its birth the lock is the runner's.
                    Ok(()) => {
                        self.start(held)?;
                        file = None;
                    }
                    Err(TryLockError::WouldBlock) => {}
                    Err(TryLockError::Error(error)) => {
                        return Err(trouble::io("lock", &lock)(error));
                    }
                }
            }
            match self.knock() {
                Ok(stream) => return Ok(stream),
                // It is about to listen, or is ending.
                Err(error) if start.elapsed() > PATIENCE => {
                    return Err(trouble::io("reach the runner at", &self.dir)(error));
                }
                Err(_) => std::thread::sleep(PAUSE),
            }
            if file.is_none() && start.elapsed() > PATIENCE / 2 {
                let what = format!("the runner in `{}` does not answer", self.dir.display());
                return Err(Error::Io { what, source: io::ErrorKind::TimedOut.into() });
            }
        }
    }

    /// By a short name, whatever the directory is called: that of a socket has its limit.
    fn knock(&self) -> io::Result<UnixStream> {
        let dir = File::open(&self.dir)?;
        UnixStream::connect(format!("/proc/self/fd/{}/socket", dir.as_raw_fd()))
    }

    /// No other runner lives: whatever its programs have left is ended with their control group, or by the new runner.
    fn start(&self, lock: &File) -> Result<(), Error> {
        let groups = Groups::open(&self.dir);
        groups.remove(GROUP)?;
        remove(&self.dirs());
        let gone = home::gone(fs::remove_file(self.dir.join("socket")));
        gone.map_err(trouble::io("remove", &self.dir.join("socket")))?;
        make(&self.dirs())?;
        groups.make(GROUP, &Limits::default())?;
        let joins = groups.membership(GROUP, &Limits::default()).joins;
        shim::spawn_runner(&self.shim, &self.dir, lock, &self.boot, &joins)
    }
}

fn make(dir: &Path) -> Result<(), Error> {
    let mut maker = DirBuilder::new();
    maker.recursive(true).mode(0o700).create(dir).map_err(trouble::io("make", dir))
}

/// What a program has left. What cannot be removed is tried again by the next host. Blocks.
pub(super) fn remove(dir: &Path) {
    if fs::remove_dir_all(dir).is_err() {
        home::allow_removal(dir);
        let _next_time = fs::remove_dir_all(dir);
    }
}
