//! A directory that is filled from a stranger's archive.
//!
//! The kernel sees to it that nothing gets out: every way is resolved by `openat2` below the root,
//! as in a `chroot`, and the last part of a name is never followed if it is a link.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::Path;
use std::rc::Rc;

use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, OpenHow, ResolveFlag, open, openat, openat2};
use nix::sys::stat::{
    FchmodatFlags, FileStat, Mode, SFlag, UtimensatFlags, fchmod, fchmodat, fstatat, futimens,
    mkdirat, mknodat, utimensat,
};
use nix::sys::time::TimeSpec;
use nix::unistd::{
    Gid, Uid, UnlinkatFlags, fchown, fchownat, linkat, mkfifoat, symlinkat, syncfs, unlinkat,
};

use super::super::budget::{Budget, Spent};
use super::archive::{Entry, Kind};
use super::name::{DEEPEST, Name};
use super::xattr;

const NEW_DIR: Mode = Mode::from_bits_truncate(0o755);
const NEW_FILE: Mode = Mode::from_bits_truncate(0o600);

/// Why something cannot be made.
#[derive(Debug)]
pub(super) enum Obstacle {
    /// Of the archive's making.
    Bad(String),
    Spent(Spent),
    Io(io::Error),
}

impl From<Errno> for Obstacle {
    fn from(errno: Errno) -> Self {
        Self::Io(errno.into())
    }
}

impl From<io::Error> for Obstacle {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

fn bad<T>(why: &str) -> Result<T, Obstacle> {
    Err(Obstacle::Bad(why.to_owned()))
}

/// See the module.
#[derive(Debug)]
pub(super) struct Tree<'a> {
    root: Rc<OwnedFd>,
    budget: &'a Budget,
    made: u64,
    /// The directory used last and its name, if no link leads there. Archives go directory by
    /// directory, and no directory is ever removed or moved here.
    near: Option<(Vec<u8>, Rc<OwnedFd>)>,
    /// Set at the end: whatever is made in a directory changes its time.
    times: Vec<(Name, (i64, i64))>,
}

/// What stood in the place of a new entry; all but a directory is gone then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Before {
    Nothing,
    Whiteout,
    Dir,
}

impl<'a> Tree<'a> {
    pub(super) fn open(root: &Path, budget: &'a Budget) -> io::Result<Self> {
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        let root = Rc::new(open(root, flags, Mode::empty())?);
        Ok(Self { root, budget, made: 0, near: None, times: Vec::new() })
    }

    pub(super) fn file(&mut self, name: &Name) -> Result<File, Obstacle> {
        let (parent, last) = self.place(name)?;
        self.count()?;
        let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW;
        let made =
            replacing(&parent, last, || openat(&*parent, last, flags | OFlag::O_CLOEXEC, NEW_FILE));
        Ok(made?.into())
    }

    pub(super) fn dir(&mut self, name: &Name) -> Result<File, Obstacle> {
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        self.count()?;
        if name.split().is_none() {
            return Ok(openat(&*self.root, c".", flags, Mode::empty())?.into());
        }
        let (parent, last) = self.place(name)?;
        make_dir(&parent, last)?;
        Ok(openat(&*parent, last, flags, Mode::empty())?.into())
    }

    pub(super) fn symlink(&mut self, name: &Name, entry: &Entry) -> Result<(), Obstacle> {
        if entry.link.is_empty() || entry.link.contains(&0) {
            return bad("is a symbolic link to a name that cannot be");
        }
        let (parent, last) = self.place(name)?;
        self.count()?;
        replacing(&parent, last, || symlinkat(&*entry.link, &*parent, last))?;
        own(&parent, last, entry)
    }

    pub(super) fn fifo(&mut self, name: &Name, entry: &Entry) -> Result<(), Obstacle> {
        let (parent, last) = self.place(name)?;
        self.count()?;
        replacing(&parent, last, || mkfifoat(&*parent, last, NEW_FILE))?;
        own(&parent, last, entry)?;
        let mode = Mode::from_bits_truncate(entry.mode);
        // It was made just now and is no link, so there is nothing to be followed.
        Ok(fchmodat(&*parent, last, mode, FchmodatFlags::FollowSymlink)?)
    }

    /// Gives a file of this layer another name.
    pub(super) fn hard_link(&mut self, name: &Name, target: &Name) -> Result<(), Obstacle> {
        let Some((dir, target)) = target.split() else { return bad("is a hard link to the root") };
        let absent = "is a hard link to something that is not in the layer before it";
        let from = match enter(&self.root, dir, IN_ROOT) {
            Ok(from) => from,
            Err(Errno::ENOENT | Errno::ENOTDIR | Errno::ELOOP | Errno::EXDEV) => {
                return bad(absent);
            }
            Err(errno) => return Err(errno.into()),
        };
        match look(&from, target)? {
            Some(found) if is_kind(&found, SFlag::S_IFCHR) => return bad(absent),
            Some(found) if is_kind(&found, SFlag::S_IFDIR) => {
                return bad("is a hard link to a directory");
            }
            Some(_) => {}
            None => return bad(absent),
        }
        let (parent, last) = self.place(name)?;
        self.count()?;
        let link = || linkat(&from, target, &*parent, last, AtFlags::empty());
        match replacing(&parent, last, link) {
            // To itself: what was replaced is gone.
            Err(Obstacle::Io(error)) if error.raw_os_error() == Some(libc::ENOENT) => bad(absent),
            done => done,
        }
    }

    /// Hides what lower layers have under this name.
    pub(super) fn whiteout(&mut self, dir: &Name, hidden: &[u8]) -> Result<(), Obstacle> {
        if matches!(hidden, b"" | b"." | b"..") {
            return bad("hides nothing that can be");
        }
        let parent = self.enter(dir.bytes())?;
        match look(&parent, hidden)? {
            None => {
                self.count()?;
                Ok(mknodat(&*parent, hidden, SFlag::S_IFCHR, Mode::empty(), 0)?)
            }
            // Both at once: of lower layers nothing is seen, of this one everything.
            Some(found) if is_kind(&found, SFlag::S_IFDIR) => {
                Ok(xattr::make_opaque(&readable_of(&enter(&parent, hidden, STRAIGHT)?)?)?)
            }
            Some(_) => Ok(()),
        }
    }

    /// Hides everything that lower layers have in this directory.
    pub(super) fn opaque(&mut self, dir: &Name) -> Result<(), Obstacle> {
        let parent = self.enter(dir.bytes())?;
        Ok(xattr::make_opaque(&readable_of(&parent)?)?)
    }

    /// Owner, mode, attributes and time of an open file or directory.
    pub(super) fn dress(
        &mut self,
        file: &File,
        name: &Name,
        entry: &Entry,
    ) -> Result<(), Obstacle> {
        fchown(file, Some(Uid::from_raw(entry.uid)), Some(Gid::from_raw(entry.gid)))?;
        // A change of owner takes these away, so they come after it.
        fchmod(file, Mode::from_bits_truncate(entry.mode))?;
        for each in entry.xattrs.iter().filter(|each| xattr::is_kept(&each.name)) {
            xattr::set(file, &each.name, &each.value)?;
        }
        match entry.kind {
            Kind::Dir => self.times.push((name.clone(), entry.mtime)),
            Kind::File | Kind::HardLink | Kind::Symlink | Kind::Char | Kind::Block | Kind::Fifo => {
                futimens(file, &TimeSpec::UTIME_OMIT, &time(entry.mtime))?;
            }
        }
        Ok(())
    }

    /// Sets what had to wait, and makes all of it outlast a loss of power.
    pub(super) fn finish(self) -> io::Result<u64> {
        for (name, mtime) in self.times.iter().rev() {
            // A link on the way that was replaced since is the archive's own doing.
            if let Ok(dir) = enter(&self.root, name.bytes(), IN_ROOT) {
                futimens(&readable_of(&dir)?, &TimeSpec::UTIME_OMIT, &time(*mtime))?;
            }
        }
        syncfs(&*self.root)?;
        Ok(self.made)
    }

    fn count(&mut self) -> Result<(), Obstacle> {
        self.budget.take_entries(1).map_err(Obstacle::Spent)?;
        self.made += 1;
        Ok(())
    }

    /// The directory that an entry goes to, and its name there.
    fn place<'n>(&mut self, name: &'n Name) -> Result<(Rc<OwnedFd>, &'n [u8]), Obstacle> {
        let Some((dir, last)) = name.split() else { return bad("is to replace the root") };
        Ok((self.enter(dir)?, last))
    }

    /// Opens a directory; makes it if it is not there.
    fn enter(&mut self, dir: &[u8]) -> Result<Rc<OwnedFd>, Obstacle> {
        if dir.is_empty() {
            return Ok(Rc::clone(&self.root));
        }
        if let Some((name, near)) = &self.near
            && name == dir
        {
            return Ok(Rc::clone(near));
        }
        match enter(&self.root, dir, STRAIGHT) {
            Ok(found) => {
                let found = Rc::new(found);
                self.near = Some((dir.to_vec(), Rc::clone(&found)));
                Ok(found)
            }
            Err(_) => self.walk(dir).map(Rc::new),
        }
    }

    /// Part by part, through links too, but only to what is below the root.
    fn walk(&mut self, dir: &[u8]) -> Result<OwnedFd, Obstacle> {
        let mut at = self.root.try_clone()?;
        let mut gone = 0;
        let mut by_link = false;
        for part in dir.split(|byte| *byte == b'/') {
            gone += part.len() + 1;
            let next = enter(&at, part, STRAIGHT);
            at = match next {
                Ok(next) => next,
                Err(Errno::ELOOP) => {
                    by_link = true;
                    self.follow(&dir[..gone - 1])?
                }
                Err(Errno::ENOENT) => {
                    self.count()?;
                    mkdirat(&at, part, NEW_DIR)?;
                    enter(&at, part, STRAIGHT)?
                }
                Err(Errno::ENOTDIR) => {
                    match look(&at, part)? {
                        Some(found) if is_whiteout(&found) => make_dir(&at, part)?,
                        Some(_) | None => {
                            return bad("is below something that is no directory");
                        }
                    }
                    enter(&at, part, STRAIGHT)?
                }
                Err(errno) => return Err(errno.into()),
            };
        }
        // By links a tree could grow deeper than any name.
        if by_link && depth(&at)? > depth(&self.root)? + DEEPEST {
            return bad("is too deep");
        }
        Ok(at)
    }

    fn follow(&self, dir: &[u8]) -> Result<OwnedFd, Obstacle> {
        match enter(&self.root, dir, IN_ROOT) {
            Ok(found) => Ok(found),
            Err(Errno::ENOENT | Errno::ENOTDIR | Errno::ELOOP | Errno::EXDEV) => {
                bad("is below a symbolic link that leads to no directory of the layer")
            }
            Err(errno) => Err(errno.into()),
        }
    }
}

/// No link at all on the way.
const STRAIGHT: ResolveFlag = ResolveFlag::from_bits_retain(
    libc::RESOLVE_BENEATH | libc::RESOLVE_NO_SYMLINKS | libc::RESOLVE_NO_XDEV,
);
/// Links lead to what they would in a container of this layer alone.
const IN_ROOT: ResolveFlag = ResolveFlag::from_bits_retain(
    libc::RESOLVE_IN_ROOT | libc::RESOLVE_NO_MAGICLINKS | libc::RESOLVE_NO_XDEV,
);

fn enter(at: &OwnedFd, dir: &[u8], resolve: ResolveFlag) -> nix::Result<OwnedFd> {
    let dir = if dir.is_empty() { b".".as_slice() } else { dir };
    let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
    openat2(at, dir, OpenHow::new().flags(flags).resolve(resolve))
}

/// The same directory, opened so that its attributes can be changed.
fn readable_of(dir: &OwnedFd) -> nix::Result<File> {
    let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
    openat(dir, c".", flags, Mode::empty()).map(File::from)
}

/// Makes something; if its place is taken, once more after it was cleared.
fn replacing<T>(
    parent: &OwnedFd,
    name: &[u8],
    make: impl Fn() -> nix::Result<T>,
) -> Result<T, Obstacle> {
    match make() {
        Ok(done) => Ok(done),
        Err(Errno::EEXIST) => match clear(parent, name)? {
            Before::Dir => bad("is to replace a directory of the same layer"),
            Before::Nothing | Before::Whiteout => Ok(make()?),
        },
        Err(errno) => Err(errno.into()),
    }
}

fn make_dir(parent: &OwnedFd, name: &[u8]) -> Result<(), Obstacle> {
    match mkdirat(parent, name, NEW_DIR) {
        Ok(()) => return Ok(()),
        Err(Errno::EEXIST) => {}
        Err(errno) => return Err(errno.into()),
    }
    match clear(parent, name)? {
        Before::Dir => Ok(()),
        Before::Nothing => Ok(mkdirat(parent, name, NEW_DIR)?),
        Before::Whiteout => {
            mkdirat(parent, name, NEW_DIR)?;
            Ok(xattr::make_opaque(&readable_of(&enter(parent, name, STRAIGHT)?)?)?)
        }
    }
}

fn clear(parent: &OwnedFd, name: &[u8]) -> nix::Result<Before> {
    let before = match look(parent, name)? {
        None => return Ok(Before::Nothing),
        Some(found) if is_kind(&found, SFlag::S_IFDIR) => return Ok(Before::Dir),
        Some(found) if is_whiteout(&found) => Before::Whiteout,
        Some(_) => Before::Nothing,
    };
    unlinkat(parent, name, UnlinkatFlags::NoRemoveDir)?;
    Ok(before)
}

fn look(parent: &OwnedFd, name: &[u8]) -> nix::Result<Option<FileStat>> {
    match fstatat(parent, name, AtFlags::AT_SYMLINK_NOFOLLOW) {
        Ok(found) => Ok(Some(found)),
        Err(Errno::ENOENT) => Ok(None),
        Err(errno) => Err(errno),
    }
}

fn is_kind(found: &FileStat, kind: SFlag) -> bool {
    found.st_mode & SFlag::S_IFMT.bits() == kind.bits()
}

fn is_whiteout(found: &FileStat) -> bool {
    is_kind(found, SFlag::S_IFCHR) && found.st_rdev == 0
}

/// Owner and time of what cannot be opened.
fn own(parent: &OwnedFd, name: &[u8], entry: &Entry) -> Result<(), Obstacle> {
    let owner = (Some(Uid::from_raw(entry.uid)), Some(Gid::from_raw(entry.gid)));
    fchownat(parent, name, owner.0, owner.1, AtFlags::AT_SYMLINK_NOFOLLOW)?;
    let (atime, mtime) = (TimeSpec::UTIME_OMIT, time(entry.mtime));
    Ok(utimensat(parent, name, &atime, &mtime, UtimensatFlags::NoFollowSymlink)?)
}

fn depth(dir: &OwnedFd) -> io::Result<usize> {
    let path = std::fs::read_link(format!("/proc/self/fd/{}", dir.as_raw_fd()))?;
    Ok(path.components().count())
}

const fn time((seconds, nanos): (i64, i64)) -> TimeSpec {
    TimeSpec::new(seconds, nanos)
}
