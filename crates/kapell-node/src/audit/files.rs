//! Files of bounded size and number.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const END: &str = ".jsonl";

/// How much is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// A file that has as much is followed by another.
    pub file_bytes: u64,
    /// The oldest are deleted.
    pub files: usize,
}

/// How bytes get to a disk: a seam, so that tests can fill one.
pub trait Disk: std::fmt::Debug + Send {
    fn append(&mut self, file: &mut File, bytes: &[u8]) -> io::Result<()>;
    fn sync(&mut self, file: &File) -> io::Result<()>;
}

/// The disk that there is.
#[derive(Debug)]
pub struct Real;

impl Disk for Real {
    fn append(&mut self, file: &mut File, bytes: &[u8]) -> io::Result<()> {
        file.write_all(bytes)
    }

    fn sync(&mut self, file: &File) -> io::Result<()> {
        file.sync_data()
    }
}

/// The file that is written to, and those before it. Hosts that share a directory each have a file of their own.
#[derive(Debug)]
pub(super) struct Files {
    dir: PathBuf,
    limits: Limits,
    disk: Box<dyn Disk>,
    open: Option<Open>,
    /// What was last written to cannot be trusted to take more.
    spoilt: bool,
    /// The number of the file that is written to.
    current: Arc<AtomicU64>,
}

#[derive(Debug)]
struct Open {
    /// Locked for as long as it is open, so that nobody else writes to it or deletes it.
    file: File,
    length: u64,
}

impl Files {
    pub(super) fn new(dir: PathBuf, limits: Limits, disk: Box<dyn Disk>) -> Self {
        let current = Arc::default();
        Self { dir, limits, disk, open: None, spoilt: false, current }
    }

    pub(super) fn current(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.current)
    }

    /// Appends whole lines, all or none of them.
    pub(super) fn append(&mut self, lines: &[u8]) -> io::Result<()> {
        if self.open.as_ref().is_some_and(|open| open.length >= self.limits.file_bytes) {
            self.sync()?;
            self.open = None;
        }
        let mut open = match self.open.take() {
            Some(open) => open,
            None => self.begin()?,
        };
        match self.disk.append(&mut open.file, lines) {
            Ok(()) => {
                open.length += lines.len() as u64;
                self.open = Some(open);
                Ok(())
            }
            Err(error) => {
                // What got there of it is taken back, or else is left behind as the torn end of its file.
                if open.file.set_len(open.length).is_ok() {
                    self.open = Some(open);
                } else {
                    self.spoilt = true;
                }
                Err(error)
            }
        }
    }

    /// All that was appended is on disk when this returns.
    pub(super) fn sync(&mut self) -> io::Result<()> {
        let Some(open) = &self.open else { return Ok(()) };
        self.disk.sync(&open.file).inspect_err(|_| {
            // What a second sync says after one that failed means nothing.
            self.open = None;
            self.spoilt = true;
        })
    }

    fn begin(&mut self) -> io::Result<Open> {
        if !self.dir.is_dir() {
            DirBuilder::new().recursive(true).mode(0o700).create(&self.dir)?;
            // A directory that is not there after a power cut would take its files along.
            if let Some(above) = self.dir.parent() {
                File::open(above)?.sync_all()?;
            }
        }
        let last = list(&self.dir)?.last().copied();
        let usable = last.filter(|_| !self.spoilt);
        let open = match usable.map(|number| self.go_on(number)).transpose()?.flatten() {
            Some(open) => open,
            None => self.create(last.map_or(1, |last| last + 1))?,
        };
        self.spoilt = false;
        // Too many are no reason to refuse a change.
        if let Err(error) = self.delete_oldest() {
            tracing::warn!(%error, "an old audit file cannot be deleted");
        }
        Ok(open)
    }

    /// Goes on with a file that nobody else writes to and that has room.
    fn go_on(&self, number: u64) -> io::Result<Option<Open>> {
        let path = path(&self.dir, number);
        let mut file = OpenOptions::new().read(true).append(true).open(path)?;
        let length = file.metadata()?.len();
        if file.try_lock().is_err() || length >= self.limits.file_bytes {
            return Ok(None);
        }
        // The last line may be torn: what follows is not to become a part of it.
        let mut last = [b'\n'];
        if length > 0 {
            file.seek(SeekFrom::End(-1))?;
            file.read_exact(&mut last)?;
        }
        if last != [b'\n'] {
            return Ok(None);
        }
        self.current.store(number, Ordering::Relaxed);
        Ok(Some(Open { file, length }))
    }

    fn create(&self, mut number: u64) -> io::Result<Open> {
        loop {
            let path = path(&self.dir, number);
            let mut options = OpenOptions::new();
            match options.append(true).create_new(true).mode(0o600).open(path) {
                Ok(file) => {
                    file.try_lock()?;
                    File::open(&self.dir)?.sync_all()?;
                    self.current.store(number, Ordering::Relaxed);
                    return Ok(Open { file, length: 0 });
                }
                // Another host of this directory was faster.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
                Err(error) => return Err(error),
            }
        }
    }

    fn delete_oldest(&self) -> io::Result<()> {
        let numbers = list(&self.dir)?;
        let many = numbers.len().saturating_sub(self.limits.files);
        for number in numbers.into_iter().take(many) {
            let path = path(&self.dir, number);
            // What is locked is being written to by another host.
            if File::open(&path)?.try_lock().is_ok() {
                fs::remove_file(&path)?;
            }
        }
        Ok(())
    }
}

/// The numbers of the files, the oldest first.
pub(super) fn list(dir: &Path) -> io::Result<Vec<u64>> {
    let mut numbers = Vec::new();
    for entry in fs::read_dir(dir)? {
        let name = entry?.file_name();
        numbers.extend(name.to_str().and_then(|name| name.strip_suffix(END)?.parse::<u64>().ok()));
    }
    numbers.sort_unstable();
    Ok(numbers)
}

pub(super) fn path(dir: &Path, number: u64) -> PathBuf {
    dir.join(format!("{number:010}{END}"))
}
