//! Reads and writes files in the directory of work, for an agent that may do more than the work.

use std::ffi::{OsStr, OsString};
use std::fs::{File, Permissions};
use std::io::{self, Read as _};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, fchown};
use std::path::{Component, Path};
use std::sync::atomic::{AtomicU64, Ordering};

use nix::fcntl::{AtFlags, OFlag, open, openat, renameat};
use nix::sys::stat::{Mode, mkdirat};
use nix::unistd::{Gid, Uid, UnlinkatFlags, fchownat, unlinkat};

/// The first `limit` bytes of a plain file below `dir`. No link is followed on the way to it, and if
/// there is an `owner`, it must be theirs.
pub fn read(dir: &Path, file: &str, owner: Option<u32>, limit: u64) -> io::Result<Vec<u8>> {
    let found = find(dir, Path::new(file))?;
    let about = found.metadata()?;
    if about.is_symlink() {
        return Err(io::Error::other("it is a symbolic link, and none is followed"));
    }
    if !about.is_file() {
        return Err(io::Error::other("it is not a plain file"));
    }
    if let Some(owner) = owner
        && about.uid() != owner
    {
        let text = format!("it belongs to user {}, not to the task's user {owner}", about.uid());
        return Err(io::Error::other(text));
    }
    first_bytes(&found, limit)
}

/// The first `limit` bytes of the very file that was looked at, whatever its name stands for by now.
pub(crate) fn first_bytes(found: &File, limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(format!("/proc/self/fd/{}", found.as_raw_fd()))?
        .take(limit)
        .read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Copies `from` to a file below `dir`, as `owner`'s own, in place of what has this name now. Directories on the way
/// are made; no link is followed.
pub fn put(from: &Path, dir: &Path, to: &str, owner: Option<(u32, u32)>) -> io::Result<()> {
    let mut source = File::open(from)?;
    let about = source.metadata()?;
    if !about.is_file() {
        return Err(io::Error::other("it is not a plain file"));
    }
    let mut parts = parts(Path::new(to))?;
    let name = parts.pop().ok_or_else(|| io::Error::other("it has no name there"))?;
    let flags = OFlag::O_PATH | OFlag::O_CLOEXEC | OFlag::O_DIRECTORY;
    let mut at: OwnedFd = open(dir, flags, Mode::empty())?;
    for part in parts {
        at = enter(&at, part, flags | OFlag::O_NOFOLLOW, owner)?;
    }
    // Under another name until it is whole, so that nobody sees half of it.
    let draft = OsString::from(format!(".kapell-put-{}-{}", std::process::id(), next_number()));
    let flags =
        OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    let mut file =
        File::from(openat(&at, draft.as_os_str(), flags, Mode::S_IRUSR | Mode::S_IWUSR)?);
    let written = io::copy(&mut source, &mut file).and_then(|_| {
        give(&file, owner)?;
        let mode = if about.mode() & 0o111 == 0 { 0o644 } else { 0o755 };
        file.set_permissions(Permissions::from_mode(mode))?;
        Ok(renameat(&at, draft.as_os_str(), &at, name)?)
    });
    if written.is_err() {
        let _gone = unlinkat(&at, draft.as_os_str(), UnlinkatFlags::NoRemoveDir);
    }
    written
}

/// Goes one directory down, and makes it if it is not there.
fn enter(
    at: &OwnedFd,
    name: &OsStr,
    flags: OFlag,
    owner: Option<(u32, u32)>,
) -> io::Result<OwnedFd> {
    match openat(at, name, flags, Mode::empty()) {
        Err(nix::Error::ENOENT) => {}
        entered => return Ok(entered?),
    }
    let is_new = match mkdirat(at, name, Mode::from_bits_truncate(0o755)) {
        Err(nix::Error::EEXIST) => false,
        made => made.map(|()| true)?,
    };
    let entered = openat(at, name, flags, Mode::empty())?;
    if is_new && let Some((uid, gid)) = owner {
        let (uid, gid) = (Uid::from_raw(uid), Gid::from_raw(gid));
        // The very directory, not whatever has its name by now.
        fchownat(&entered, "", Some(uid), Some(gid), AtFlags::AT_EMPTY_PATH)?;
    }
    Ok(entered)
}

fn give(file: &File, owner: Option<(u32, u32)>) -> io::Result<()> {
    owner.map_or(Ok(()), |(uid, gid)| fchown(file, Some(uid), Some(gid)))
}

fn next_number() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// The names on the way. None of them leads up or elsewhere.
fn parts(file: &Path) -> io::Result<Vec<&OsStr>> {
    let parts = file.components().filter(|part| *part != Component::CurDir);
    let name = |part| match part {
        Component::Normal(name) => Ok(name),
        Component::Prefix(_) | Component::RootDir | Component::CurDir | Component::ParentDir => {
            Err(io::Error::other("it is not in the task's own directory"))
        }
    };
    parts.map(name).collect()
}

/// Walks there without opening anything: to open a device can do harm.
fn find(dir: &Path, file: &Path) -> io::Result<File> {
    let flags = OFlag::O_PATH | OFlag::O_CLOEXEC;
    let mut at: OwnedFd = open(dir, flags | OFlag::O_DIRECTORY, Mode::empty())?;
    let parts = parts(file)?;
    let Some(last) = parts.len().checked_sub(1) else {
        return Err(io::Error::other("it is not a plain file"));
    };
    for (index, name) in parts.into_iter().enumerate() {
        let kind = if index < last { OFlag::O_DIRECTORY } else { OFlag::empty() };
        at = openat(&at, name, flags | OFlag::O_NOFOLLOW | kind, Mode::empty())?;
    }
    Ok(File::from(at))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{chown, symlink};

    use super::*;

    fn why_not(dir: &Path, file: &str, owner: Option<u32>) -> String {
        read(dir, file, owner, 10).unwrap_err().to_string()
    }

    #[test]
    fn a_plain_file_below_the_directory_is_read_up_to_the_limit() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("below")).unwrap();
        fs::write(dir.path().join("below/file"), "0123456789abc").unwrap();
        let own = fs::metadata(dir.path()).unwrap().uid();
        for file in ["below/file", "./below/./file"] {
            assert_eq!(read(dir.path(), file, Some(own), 10).unwrap(), b"0123456789");
        }
        let link = dir.path().join("link");
        symlink(dir.path().join("below"), &link).unwrap();
        assert_eq!(read(&link, "file", None, 3).unwrap(), b"012", "the directory may be a link");
    }

    #[test]
    fn nothing_else_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::create_dir(at("below")).unwrap();
        fs::write(at("file"), "x").unwrap();
        symlink("file", at("link")).unwrap();
        symlink("..", at("below/up")).unwrap();
        nix::unistd::mkfifo(&at("pipe"), Mode::S_IRUSR).unwrap();
        assert!(why_not(dir.path(), "link", None).contains("symbolic link"));
        assert!(why_not(dir.path(), "below/up/file", None).contains("Not a directory"));
        let outside = "it is not in the task's own directory";
        assert_eq!(why_not(dir.path(), "../file", None), outside);
        assert_eq!(why_not(&at("below"), at("file").to_str().unwrap(), None), outside);
        for file in ["pipe", "below", "."] {
            assert_eq!(why_not(dir.path(), file, None), "it is not a plain file", "{file}");
        }
        assert!(why_not(dir.path(), "absent", None).contains("No such file"));
    }

    #[test]
    fn what_belongs_to_somebody_else_is_not_read() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        fs::write(&file, "x").unwrap();
        let own = fs::metadata(&file).unwrap().uid();
        let why = why_not(dir.path(), "file", Some(own + 300_001));
        assert_eq!(
            why,
            format!("it belongs to user {own}, not to the task's user {}", own + 300_001)
        );
        if own == 0 {
            assert!(
                why_not(Path::new("/etc"), "shadow", Some(300_001)).contains("belongs to user")
            );
            chown(&file, Some(300_001), None).unwrap();
            assert_eq!(read(dir.path(), "file", Some(300_001), 10).unwrap(), b"x");
        }
    }
}
