//! The directory of a store: what lies in it, and the few things that are ever done to it.

use std::fmt;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use crate::error::Error;

const LOCK: &str = "lock";
const HOLDER: &str = "holder.json";
const LOG: &str = "log.";
const SNAPSHOT: &str = "snap.";
const TORN: &str = "torn-";
const TEMPORARY: &str = ".tmp";

#[cfg(test)]
type Step = Box<dyn Fn() + Send + Sync>;

/// A directory that holds a store or is to hold one.
///
/// A file appears in it under its own name only when it is complete and on disk.
pub(super) struct Dir {
    path: PathBuf,
    handle: File,
    #[cfg(test)]
    pub(super) on_step: Option<Step>,
}

impl fmt::Debug for Dir {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.path.fmt(f)
    }
}

/// What lies in a directory.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Listing {
    /// By number.
    pub(super) segments: Vec<u64>,
    /// By number.
    pub(super) snapshots: Vec<u64>,
    /// Never finished.
    pub(super) temporary: Vec<PathBuf>,
    /// Someone opened a store here, or left something aside.
    pub(super) was_a_store: bool,
    /// Something that is not ours.
    pub(super) foreign: bool,
}

impl Listing {
    pub(super) fn is_store(&self) -> bool {
        !self.segments.is_empty() || !self.snapshots.is_empty()
    }

    /// Looks into a directory; nothing if there is none.
    pub(super) fn of(path: &Path) -> Result<Option<Self>, Error> {
        let failed = |source| failed(path, "open", source);
        let entries = match fs::read_dir(path) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed(error)),
        };
        let mut found = Self::default();
        for entry in entries {
            let entry = entry.map_err(failed)?;
            let name = entry.file_name();
            let name = name.to_str().unwrap_or_default();
            if let Some(number) = numbered(name, LOG) {
                found.segments.push(number);
            } else if let Some(number) = numbered(name, SNAPSHOT) {
                found.snapshots.push(number);
            } else if is_temporary(name) {
                found.temporary.push(entry.path());
            } else if name == HOLDER || name.starts_with(TORN) {
                found.was_a_store = true;
            } else if name != LOCK {
                found.foreign = true;
            }
        }
        found.segments.sort_unstable();
        found.snapshots.sort_unstable();
        Ok(Some(found))
    }
}

fn numbered(name: &str, prefix: &str) -> Option<u64> {
    let number = name.strip_prefix(prefix)?.parse().ok()?;
    (name == format!("{prefix}{number:06}")).then_some(number)
}

fn is_temporary(name: &str) -> bool {
    let Some(name) = name.strip_suffix(TEMPORARY) else { return false };
    name == HOLDER
        || name.starts_with(TORN)
        || numbered(name, LOG).or_else(|| numbered(name, SNAPSHOT)).is_some()
}

pub(super) fn failed(path: &Path, call: &'static str, source: io::Error) -> Error {
    let store = format!("`{}`", path.display());
    Error::Failed { store, call, source: source.into() }
}

impl Dir {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        Ok(Self {
            path: path.to_owned(),
            handle: File::open(path)?,
            #[cfg(test)]
            on_step: None,
        })
    }

    /// Makes the directory, for its owner only.
    pub(super) fn create(path: &Path) -> io::Result<()> {
        DirBuilder::new().recursive(true).mode(0o700).create(path)?;
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        File::open(parent.unwrap_or(Path::new(".")))?.sync_all()
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn lock(path: &Path) -> PathBuf {
        path.join(LOCK)
    }

    pub(super) fn holder(path: &Path) -> PathBuf {
        path.join(HOLDER)
    }

    pub(super) fn segment(&self, number: u64) -> PathBuf {
        self.path.join(format!("{LOG}{number:06}"))
    }

    pub(super) fn snapshot(&self, number: u64) -> PathBuf {
        self.path.join(format!("{SNAPSHOT}{number:06}"))
    }

    /// Where to keep what was cut off there; a name that is not taken.
    pub(super) fn torn(&self, segment: u64, offset: usize) -> PathBuf {
        let name = |turn: u32| self.path.join(format!("{TORN}{segment:06}-{offset:08}-{turn}"));
        (1..u32::MAX).map(name).find(|path| !path.exists()).unwrap_or_else(|| name(0))
    }

    /// Begins a file that will appear under `path` once it is [published](Self::publish).
    pub(super) fn begin(&self, path: &Path) -> io::Result<File> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(true).mode(0o600);
        let file = options.open(temporary(path))?;
        self.step();
        Ok(file)
    }

    /// Forgets a file that was begun.
    pub(super) fn abandon(path: &Path) {
        // What cannot be removed now is removed when the store is opened next.
        drop(fs::remove_file(temporary(path)));
    }

    /// Lets a file that is on disk appear under its name. An error says that it may have.
    pub(super) fn publish(&self, path: &Path) -> io::Result<()> {
        self.step();
        fs::rename(temporary(path), path)?;
        self.step();
        self.handle.sync_all()
    }

    /// Replaces a small file as a whole.
    pub(super) fn replace(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let mut file = self.begin(path)?;
        file.write_all(bytes)
            .and_then(|()| file.sync_all())
            .inspect_err(|_| Self::abandon(path))?;
        self.publish(path)
    }

    pub(super) fn remove(&self, path: &Path) -> io::Result<()> {
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
        self.step();
        Ok(())
    }

    pub(super) fn sync(&self) -> io::Result<()> {
        self.handle.sync_all()
    }

    /// Where a test may look at what a crash would leave.
    #[cfg_attr(not(test), expect(clippy::unused_self, reason = "only tests look"))]
    pub(super) fn step(&self) {
        #[cfg(test)]
        if let Some(on_step) = &self.on_step {
            on_step();
        }
    }
}

fn temporary(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(TEMPORARY);
    name.into()
}
