//! Reads what work has left in its directory, for an agent that may read more than the work.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Component, Path};

use nix::fcntl::{OFlag, open, openat};
use nix::sys::stat::Mode;

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
    let mut bytes = Vec::new();
    // The very file that was looked at, whatever its name stands for by now.
    File::open(format!("/proc/self/fd/{}", found.as_raw_fd()))?
        .take(limit)
        .read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Walks there without opening anything: to open a device can do harm.
fn find(dir: &Path, file: &Path) -> io::Result<File> {
    let flags = OFlag::O_PATH | OFlag::O_CLOEXEC;
    let mut at: OwnedFd = open(dir, flags | OFlag::O_DIRECTORY, Mode::empty())?;
    let mut parts = file.components().filter(|part| *part != Component::CurDir).peekable();
    if parts.peek().is_none() {
        return Err(io::Error::other("it is not a plain file"));
    }
    while let Some(part) = parts.next() {
        let Component::Normal(name) = part else {
            return Err(io::Error::other("it is not in the task's own directory"));
        };
        let kind = if parts.peek().is_some() { OFlag::O_DIRECTORY } else { OFlag::empty() };
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
