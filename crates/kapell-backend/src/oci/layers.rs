//! Looks into the layers of an image as a container would see them, without ever leaving them.

use std::ffi::{CString, OsStr, OsString};
use std::fs::{File, Metadata};
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Component, Path, PathBuf};

use nix::fcntl::{OFlag, open, openat, readlinkat};
use nix::sys::stat::Mode;

use crate::own_file;

/// As the kernel follows them.
const MOST_LINKS: usize = 40;
const OPAQUE: &std::ffi::CStr = c"trusted.overlay.opaque";

/// Directories that lie over each other, the topmost first.
#[derive(Debug, Clone, Copy)]
pub(super) struct Layers<'a>(pub(super) &'a [PathBuf]);

/// Something in them.
#[derive(Debug)]
pub(super) struct Entry {
    /// Without any link in it, beginning with `/`.
    pub(super) path: PathBuf,
    pub(super) about: Metadata,
    file: File,
}

impl Layers<'_> {
    /// None if it is not there.
    pub(super) fn find(self, path: &Path) -> io::Result<Option<Entry>> {
        let mut left: Vec<OsString> = parts(path);
        left.reverse();
        let mut links = 0;
        let mut walk = vec![Merged::root(self.0)?];
        while let Some(name) = left.pop() {
            if name == ".." {
                if walk.len() > 1 {
                    walk.pop();
                }
                continue;
            }
            let here = walk.last().ok_or(io::ErrorKind::NotFound)?;
            let Some(next) = here.enter(&name)? else { return Ok(None) };
            if let Some(target) = &next.link {
                links += 1;
                if links > MOST_LINKS {
                    return Err(io::Error::from_raw_os_error(libc::ELOOP));
                }
                if target.is_absolute() {
                    walk.truncate(1);
                }
                left.extend(parts(target).into_iter().rev());
            } else {
                walk.push(next);
            }
        }
        let path = walk.iter().fold(PathBuf::new(), |path, each| path.join(&each.name));
        let last = walk.pop().and_then(|last| last.all.into_iter().next());
        let file = File::from(last.ok_or(io::ErrorKind::NotFound)?);
        Ok(Some(Entry { path, about: file.metadata()?, file }))
    }

    /// The first `limit` bytes of a plain file; nothing if it is not there.
    pub(super) fn read(self, path: &str, limit: u64) -> io::Result<Vec<u8>> {
        match self.find(Path::new(path))? {
            Some(entry) if entry.about.is_file() => own_file::first_bytes(&entry.file, limit),
            Some(_) | None => Ok(Vec::new()),
        }
    }
}

/// One entry as it is in all layers that have a part in it.
#[derive(Debug)]
struct Merged {
    name: OsString,
    all: Vec<OwnedFd>,
    link: Option<PathBuf>,
}

impl Merged {
    fn root(layers: &[PathBuf]) -> io::Result<Self> {
        let flags = OFlag::O_PATH | OFlag::O_CLOEXEC | OFlag::O_DIRECTORY;
        let open = |layer: &PathBuf| open(layer, flags, Mode::empty()).map_err(io::Error::from);
        let all = layers.iter().map(open).collect::<io::Result<_>>()?;
        Ok(Self { name: "/".into(), all, link: None })
    }

    /// What stands over others hides them, unless all of them are directories.
    fn enter(&self, name: &OsStr) -> io::Result<Option<Self>> {
        let mut next = Self { name: name.to_owned(), all: Vec::new(), link: None };
        for dir in &self.all {
            let flags = OFlag::O_PATH | OFlag::O_CLOEXEC | OFlag::O_NOFOLLOW;
            let found = match openat(dir, name, flags, Mode::empty()) {
                Ok(found) => File::from(found),
                Err(nix::Error::ENOENT | nix::Error::ENOTDIR) => continue,
                Err(error) => return Err(error.into()),
            };
            let about = found.metadata()?;
            if about.file_type().is_char_device() && about.rdev() == 0 {
                break;
            }
            if !about.is_dir() {
                if next.all.is_empty() {
                    if about.is_symlink() {
                        next.link = Some(readlinkat(dir, name)?.into());
                    }
                    next.all.push(found.into());
                }
                break;
            }
            let is_opaque = is_opaque(&found);
            next.all.push(found.into());
            if is_opaque {
                break;
            }
        }
        Ok((!next.all.is_empty()).then_some(next))
    }
}

fn is_opaque(dir: &File) -> bool {
    let path = CString::new(own(dir)).unwrap_or_default();
    let mut value = [0_u8; 1];
    #[expect(unsafe_code, reason = "texts that end with NUL, and one byte of room as is said")]
    let length = unsafe {
        libc::getxattr(path.as_ptr(), OPAQUE.as_ptr(), value.as_mut_ptr().cast(), value.len())
    };
    length == 1 && value == *b"y"
}

fn own(file: &File) -> String {
    format!("/proc/self/fd/{}", file.as_raw_fd())
}

fn parts(path: &Path) -> Vec<OsString> {
    let part = |part| match part {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    };
    path.components().filter_map(part).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    fn tree(name: &str, dir: &Path) -> PathBuf {
        let tree = dir.join(name);
        fs::create_dir_all(tree.join("etc")).unwrap();
        tree
    }

    #[test]
    fn the_topmost_counts_and_nothing_outside_is_found() {
        let dir = tempfile::tempdir().unwrap();
        let (top, bottom) = (tree("top", dir.path()), tree("bottom", dir.path()));
        fs::write(dir.path().join("secret"), "secret").unwrap();
        fs::write(bottom.join("etc/passwd"), "bottom").unwrap();
        fs::write(bottom.join("etc/group"), "group").unwrap();
        fs::write(top.join("etc/passwd"), "top").unwrap();
        symlink("../../secret", top.join("etc/up")).unwrap();
        symlink(dir.path().join("secret"), top.join("etc/far")).unwrap();
        symlink("/etc/../etc/group", top.join("link")).unwrap();
        symlink("loop", top.join("loop")).unwrap();
        // A directory over a link to elsewhere hides it.
        fs::create_dir(top.join("srv")).unwrap();
        symlink(dir.path(), bottom.join("srv")).unwrap();
        let layers = [top, bottom];
        let layers = Layers(&layers);
        assert_eq!(layers.read("/etc/passwd", 9).unwrap(), b"top");
        assert_eq!(layers.read("etc/group", 3).unwrap(), b"gro");
        assert_eq!(layers.read("/link", 9).unwrap(), b"group", "by way of a link");
        for path in ["/etc/up", "/etc/far", "/srv/secret", "/../secret", "/etc", "/absent/x"] {
            assert_eq!(layers.read(path, 9).unwrap(), b"", "{path}");
        }
        let looped = layers.read("/loop", 9).unwrap_err();
        assert_eq!(looped.raw_os_error(), Some(libc::ELOOP));
        assert_eq!(layers.find(Path::new("link")).unwrap().unwrap().path, Path::new("/etc/group"));
    }

    #[test]
    fn what_was_removed_in_a_layer_is_not_found_below_it() {
        if !nix::unistd::geteuid().is_root() {
            return crate::testing::skip("oci::layers", "needs root");
        }
        let dir = tempfile::tempdir().unwrap();
        let (top, bottom) = (tree("top", dir.path()), tree("bottom", dir.path()));
        fs::write(bottom.join("etc/passwd"), "bottom").unwrap();
        fs::write(bottom.join("gone"), "bottom").unwrap();
        let made = std::process::Command::new("mknod")
            .arg(top.join("gone"))
            .args(["c", "0", "0"])
            .status();
        assert!(made.unwrap().success());
        let etc = CString::new(top.join("etc").to_str().unwrap()).unwrap();
        #[expect(unsafe_code, reason = "texts that end with NUL, and one byte")]
        let set =
            unsafe { libc::setxattr(etc.as_ptr(), OPAQUE.as_ptr(), b"y".as_ptr().cast(), 1, 0) };
        assert_eq!(set, 0);
        let layers = [top, bottom];
        assert_eq!(Layers(&layers).read("/gone", 9).unwrap(), b"");
        assert_eq!(Layers(&layers).read("/etc/passwd", 9).unwrap(), b"");
    }
}
