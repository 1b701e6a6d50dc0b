//! The directory of a process of a container.
//!
//! `spec` is what to run, `lock` is locked while its shim lives, `pid` holds the numbers of shim and program,
//! `exit` how it ended.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::home::{create, gone, read};
use super::spec_file::Header;
use super::{exit_file, trouble};
use crate::containers::{Error, Exit};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RunHome(PathBuf);

impl RunHome {
    pub(crate) fn new(dir: PathBuf) -> Self {
        Self(dir)
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.0
    }

    /// Makes it, locked by whoever has the returned file. Whatever fails leaves nothing behind.
    pub(crate) fn make(&self, spec: &[u8]) -> Result<File, Error> {
        DirBuilder::new().mode(0o700).create(&self.0).map_err(trouble::io("make", &self.0))?;
        self.fill(spec).inspect_err(|_| drop(self.remove()))
    }

    fn fill(&self, spec: &[u8]) -> Result<File, Error> {
        let path = self.0.join("lock");
        let lock = create(&path)?;
        lock.try_lock().map_err(|error| trouble::io("lock", &path)(error.into()))?;
        let path = self.0.join("spec");
        create(&path)?.write_all(spec).map_err(trouble::io("write", &path))?;
        Ok(lock)
    }

    /// When its shim began, and when that wrote last to where it says how its program ended.
    pub(crate) fn times(&self) -> [Option<SystemTime>; 2] {
        ["pid", "exit"].map(|name| self.0.join(name).metadata().and_then(|it| it.modified()).ok())
    }

    /// None if it was never done.
    pub(crate) fn header(&self) -> Result<Option<Header>, Error> {
        Ok(Header::parse(&read(&self.0.join("spec"))?))
    }

    /// None unless its shim has written it to its end.
    pub(crate) fn exit(&self, header: &Header) -> Result<Option<Exit>, Error> {
        Ok(exit_file::parse(&read(&self.0.join("exit"))?, &self.0, header))
    }

    /// Whether its shim lives. Whoever has started a shim has locked this before.
    pub(crate) fn is_locked(&self) -> Result<bool, Error> {
        let path = self.0.join("lock");
        let locked = match File::open(&path) {
            Ok(lock) => match lock.try_lock() {
                Ok(()) => Ok(false),
                Err(fs::TryLockError::WouldBlock) => Ok(true),
                Err(fs::TryLockError::Error(error)) => Err(error),
            },
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        };
        locked.map_err(trouble::io("try the lock", &path))
    }

    /// The number of its shim, once that has come so far.
    pub(crate) fn shim(&self) -> Result<Option<i32>, Error> {
        self.number(0)
    }

    /// The number of its program, unless it never ran.
    pub(crate) fn program(&self) -> Result<Option<i32>, Error> {
        self.number(1)
    }

    fn number(&self, line: usize) -> Result<Option<i32>, Error> {
        let bytes = read(&self.0.join("pid"))?;
        let number = |text: &str| {
            let line = text.split_inclusive('\n').nth(line)?.strip_suffix('\n')?;
            line.parse().ok().filter(|pid| *pid > 1)
        };
        Ok(number(&String::from_utf8_lossy(&bytes)))
    }

    /// Removes all of it. If that is cut short, what is left looks like one that was never done.
    pub(crate) fn remove(&self) -> Result<(), Error> {
        let spec = self.0.join("spec");
        gone(fs::remove_file(&spec)).map_err(trouble::io("remove", &spec))?;
        gone(fs::remove_dir_all(&self.0)).map_err(trouble::io("remove", &self.0))
    }
}
