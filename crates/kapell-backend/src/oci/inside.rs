//! Files of a container, seen from outside. Nothing that a container does to its files leads out of them.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Component, Path, PathBuf};

use nix::fcntl::{OFlag, OpenHow, ResolveFlag, open, openat2};
use nix::sys::stat::Mode;

use super::slot::Ids;
use crate::own_file;

/// A directory in a container, whatever its name stands for by now.
#[derive(Debug)]
pub(super) struct Inside(OwnedFd);

impl Inside {
    /// `root` is what the container has as `/`.
    pub(super) fn open(root: &Path, dir: &str) -> io::Result<Self> {
        let root =
            open(root, OFlag::O_PATH | OFlag::O_CLOEXEC | OFlag::O_DIRECTORY, Mode::empty())?;
        let dir = dir.trim_start_matches('/');
        let dir = if dir.is_empty() { "." } else { dir };
        Ok(Self(below(&root, dir, OFlag::O_PATH | OFlag::O_DIRECTORY)?))
    }

    /// By a name that is ours alone.
    pub(super) fn path(&self) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.0.as_raw_fd()))
    }

    /// The first `limit` bytes of a plain file of one of the container's users.
    pub(super) fn read(&self, file: &str, ids: Ids, limit: u64) -> io::Result<Vec<u8>> {
        let is_below = |part| matches!(part, Component::Normal(_) | Component::CurDir);
        if !Path::new(file).components().all(is_below) {
            return Err(io::Error::other("it is not in the container's own directory"));
        }
        // To open a device or a pipe can do harm: it is looked at first.
        let found = File::from(below(&self.0, file, OFlag::O_PATH)?);
        let about = found.metadata()?;
        if !about.is_file() {
            return Err(io::Error::other("it is not a plain file"));
        }
        if !ids.has(about.uid()) {
            let text = format!("it belongs to user {}, who is not of the container", about.uid());
            return Err(io::Error::other(text));
        }
        own_file::first_bytes(&found, limit)
    }
}

fn below(dir: &OwnedFd, path: &str, flags: OFlag) -> io::Result<OwnedFd> {
    let resolve = ResolveFlag::RESOLVE_IN_ROOT
        | ResolveFlag::RESOLVE_NO_SYMLINKS
        | ResolveFlag::RESOLVE_NO_MAGICLINKS;
    let how = OpenHow::new().flags(flags | OFlag::O_CLOEXEC | OFlag::O_NOFOLLOW).resolve(resolve);
    Ok(openat2(dir, path, how)?)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn no_link_leads_out_and_nothing_of_others_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("root");
        fs::create_dir_all(root.join("work/below")).unwrap();
        fs::write(dir.path().join("secret"), "secret").unwrap();
        fs::write(root.join("work/below/file"), "0123456789").unwrap();
        symlink(dir.path(), root.join("out")).unwrap();
        symlink("below/file", root.join("work/link")).unwrap();
        symlink("../..", root.join("work/up")).unwrap();
        let own = Ids { base: fs::metadata(&root).unwrap().uid() };
        let work = Inside::open(&root, "/work").unwrap();
        assert_eq!(work.read("./below/file", own, 4).unwrap(), b"0123");
        let why = |file: &str| work.read(file, own, 9).unwrap_err().to_string();
        assert!(why("up/secret").contains("symbolic links"), "{}", why("up/secret"));
        for file in ["../secret", "/data/below/file"] {
            assert_eq!(why(file), "it is not in the container's own directory");
        }
        for file in ["below", "link"] {
            assert_eq!(why(file), "it is not a plain file");
        }
        assert!(why("absent").contains("No such file"));
        assert!(Inside::open(&root, "/out").is_err());
        assert!(Inside::open(&root, "/../..").is_ok(), "which is its own root");
        let other = Ids { base: own.base + 70_000 };
        let why = work.read("below/file", other, 9).unwrap_err().to_string();
        assert!(why.ends_with("who is not of the container"), "{why}");
    }
}
