//! Directories that programs run in, each for one program at a time.
//!
//! One in which nothing was left is as good as new. One in which something was is left to whoever started us.

use std::ffi::{CStr, CString, OsStr};
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};

use crate::number;

const MODE: u32 = 0o700;
const HOME: &[u8] = b"HOME=";
/// So many are kept for later.
const MOST: usize = 64;

/// A directory, and what its program is told of it.
pub(super) struct Dir {
    pub(super) number: u64,
    inode: u64,
    /// `HOME=` and its path.
    pub(super) home: CString,
}

impl Dir {
    pub(super) fn path(&self) -> &CStr {
        // Behind `HOME=` the same text goes on to the same end.
        CStr::from_bytes_with_nul(&self.home.as_bytes_with_nul()[HOME.len()..]).unwrap_or_default()
    }

    fn is_as_new(&self) -> bool {
        let path = OsStr::from_bytes(self.path().to_bytes());
        let about = fs::symlink_metadata(path);
        about.is_ok_and(|it| it.ino() == self.inode && it.mode() & 0o7777 == MODE)
            && fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none())
    }
}

pub(super) struct Dirs {
    /// Where they are, whole and with a slash behind it.
    base: Vec<u8>,
    next: u64,
    free: Vec<Dir>,
}

impl Dirs {
    pub(super) fn new(base: &[u8]) -> Self {
        Self { base: [base, b"/dirs/"].concat(), next: 1, free: Vec::new() }
    }

    pub(super) fn take(&mut self) -> io::Result<Dir> {
        if let Some(dir) = self.free.pop() {
            return Ok(dir);
        }
        let number = self.next;
        self.next += 1;
        let mut home = [HOME, self.base.as_slice()].concat();
        number::push(&mut home, number, 0);
        let path = OsStr::from_bytes(&home[HOME.len()..]);
        DirBuilder::new().mode(MODE).create(path)?;
        let inode = fs::symlink_metadata(path)?.ino();
        Ok(Dir { number, inode, home: CString::new(home)? })
    }

    /// Its program has ended. Tells its number if somebody else has to remove it.
    pub(super) fn give_back(&mut self, dir: Dir, is_used: bool) -> Option<u64> {
        if is_used || !dir.is_as_new() {
            return Some(dir.number);
        }
        if self.free.len() < MOST {
            self.free.push(dir);
        } else {
            let _best_effort = fs::remove_dir(OsStr::from_bytes(dir.path().to_bytes()));
        }
        None
    }
}
