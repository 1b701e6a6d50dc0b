//! The directory of a container.
//!
//! `spec` is what to run, `tag` its owner's, `lock` is locked while its shim lives, `pid` holds
//! the numbers of shim and program, `exit` how it ended, `work` is where it runs. Only the owner of
//! the agent reads these; others may pass through to `work`.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _, chown};
use std::path::{Path, PathBuf};

use super::spec_file::Header;
use super::{exit_file, trouble};
use crate::containers::{Error, Exit};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Home(PathBuf);

/// What a new home holds.
#[derive(Debug)]
pub(super) struct Contents<'a> {
    pub(super) spec: &'a [u8],
    pub(super) tag: &'a [u8],
    pub(super) user: Option<(u32, u32)>,
}

impl Home {
    pub(super) fn new(dir: PathBuf) -> Self {
        Self(dir)
    }

    pub(super) fn dir(&self) -> &Path {
        &self.0
    }

    /// Makes it, locked by whoever has the returned file. Whatever fails leaves nothing behind.
    pub(super) fn make(&self, contents: &Contents<'_>) -> Result<File, Error> {
        DirBuilder::new().mode(0o700).create(&self.0).map_err(trouble::io("make", &self.0))?;
        self.fill(contents).inspect_err(|_| drop(self.remove()))
    }

    fn fill(&self, contents: &Contents<'_>) -> Result<File, Error> {
        let path = self.0.join("lock");
        let lock = create(&path)?;
        lock.try_lock().map_err(|error| trouble::io("lock", &path)(error.into()))?;
        let work = self.0.join("work");
        DirBuilder::new().mode(0o700).create(&work).map_err(trouble::io("make", &work))?;
        if let Some((uid, gid)) = contents.user {
            chown(&work, Some(uid), Some(gid)).map_err(trouble::io("give away", &work))?;
        }
        for (name, bytes) in [("tag", contents.tag), ("spec", contents.spec)] {
            let path = self.0.join(name);
            create(&path)?.write_all(bytes).map_err(trouble::io("write", &path))?;
        }
        open_to_pass(&self.0)?;
        Ok(lock)
    }

    /// None if it was never done.
    pub(super) fn header(&self) -> Result<Option<Header>, Error> {
        Ok(Header::parse(&self.read("spec")?))
    }

    pub(super) fn tag(&self) -> Result<Vec<u8>, Error> {
        self.read("tag")
    }

    /// None unless its shim has written it to its end.
    pub(super) fn exit(&self, header: &Header) -> Result<Option<Exit>, Error> {
        Ok(exit_file::parse(&self.read("exit")?, &self.0, header))
    }

    /// Whether its shim lives. Whoever has started a shim has locked this before.
    pub(super) fn is_locked(&self) -> Result<bool, Error> {
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
    pub(super) fn shim(&self) -> Result<Option<i32>, Error> {
        self.number(0)
    }

    /// The number of its program, unless it never ran.
    pub(super) fn program(&self) -> Result<Option<i32>, Error> {
        self.number(1)
    }

    fn number(&self, line: usize) -> Result<Option<i32>, Error> {
        let bytes = self.read("pid")?;
        let number = |text: &str| {
            let line = text.split_inclusive('\n').nth(line)?.strip_suffix('\n')?;
            line.parse().ok().filter(|pid| *pid > 1)
        };
        Ok(number(&String::from_utf8_lossy(&bytes)))
    }

    /// What is not there is empty. What cannot be read is an error: nothing is concluded from it.
    fn read(&self, name: &str) -> Result<Vec<u8>, Error> {
        let path = self.0.join(name);
        match fs::read(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            read => read.map_err(trouble::io("read", &path)),
        }
    }

    /// Removes all of it. If that is cut short, what is left looks like a home that was never done.
    pub(super) fn remove(&self) -> Result<(), Error> {
        let first = gone(fs::remove_file(self.0.join("spec")));
        first.map_err(trouble::io("remove", &self.0.join("spec")))?;
        if fs::remove_dir_all(&self.0).is_ok() {
            return Ok(());
        }
        // The program may have left directories that even their owner may not change.
        allow_removal(&self.0);
        gone(fs::remove_dir_all(&self.0)).map_err(trouble::io("remove", &self.0))
    }
}

/// Lets others walk through a directory, but not look into it.
pub(super) fn open_to_pass(dir: &Path) -> Result<(), Error> {
    fs::set_permissions(dir, Permissions::from_mode(0o711)).map_err(trouble::io("open", dir))
}

fn create(path: &Path) -> Result<File, Error> {
    let mut options = OpenOptions::new();
    let file = options.read(true).write(true).create_new(true).mode(0o600).open(path);
    file.map_err(trouble::io("make", path))
}

fn gone(removed: io::Result<()>) -> io::Result<()> {
    match removed {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

fn allow_removal(dir: &Path) {
    let _best_effort = fs::set_permissions(dir, Permissions::from_mode(0o700));
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            allow_removal(&entry.path());
        }
    }
}
