//! An append-only log of lines: one write a line, flushed to disk in the background.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::fcntl::{Flock, FlockArg};

use crate::syncer::Syncer;

/// How long a line may wait before it is flushed.
pub const FLUSH_INTERVAL: Duration = Duration::from_millis(100);

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    #[error("cannot create `{path}`")]
    Create {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("cannot write to `{path}`")]
    Write {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
}

/// A log that one process writes. It holds a lock on the file for as long as it lives, so others
/// can tell a log that is being written from one whose writer is gone.
#[derive(Debug)]
pub struct LineLog {
    path: PathBuf,
    file: Flock<File>,
    syncer: Syncer,
}

impl LineLog {
    /// Creates the log; only its owner may read it. Fails if it exists.
    pub fn create(path: &Path) -> Result<Self, Error> {
        let failed = |source| Error::Create { path: path.to_owned(), source };
        let file = OpenOptions::new()
            .append(true)
            .create_new(true)
            .mode(0o600)
            .open(path)
            .map_err(failed)?;
        let twin = file.try_clone().map_err(failed)?;
        let file = Flock::lock(file, FlockArg::LockExclusiveNonblock)
            .map_err(|(_, errno)| failed(errno.into()))?;
        Ok(Self { path: path.to_owned(), file, syncer: Syncer::new(twin) })
    }

    /// Appends lines, the last of which must end with a newline too, in one write.
    pub fn append(&mut self, lines: &[u8]) -> Result<(), Error> {
        debug_assert!(lines.ends_with(b"\n"), "a line ends with a newline");
        self.file
            .write_all(lines)
            .map_err(|source| Error::Write { path: self.path.clone(), source })?;
        self.syncer.dirty(FLUSH_INTERVAL);
        Ok(())
    }

    /// Flushes everything to disk.
    pub fn close(mut self) -> Result<(), Error> {
        self.syncer.close().map_err(|source| Error::Write { path: self.path.clone(), source })
    }
}

/// Whether some process is still writing this log.
pub fn is_being_written(path: &Path) -> io::Result<bool> {
    let file = File::open(path)?;
    match Flock::lock(file, FlockArg::LockSharedNonblock) {
        Ok(_) => Ok(false),
        Err((_, nix::errno::Errno::EWOULDBLOCK)) => Ok(true),
        Err((_, errno)) => Err(errno.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_appended_is_there_at_once() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let mut log = LineLog::create(&path).unwrap();
        log.append(b"one\n").unwrap();
        log.append(b"two\n").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "one\ntwo\n");
        log.close().unwrap();
    }

    #[test]
    fn others_see_whether_it_is_being_written() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let log = LineLog::create(&path).unwrap();
        assert!(is_being_written(&path).unwrap());
        log.close().unwrap();
        assert!(!is_being_written(&path).unwrap());
    }

    #[test]
    fn an_existing_log_is_never_overwritten() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        std::fs::write(&path, "old").unwrap();
        assert!(matches!(LineLog::create(&path), Err(Error::Create { .. })));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "old");
    }

    #[test]
    fn only_the_owner_may_read_it() {
        use std::os::unix::fs::PermissionsExt as _;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        drop(LineLog::create(&path).unwrap());
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }
}
