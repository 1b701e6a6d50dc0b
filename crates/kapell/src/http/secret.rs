//! Secrets in files that only their owner can read, made if they are missing.

use std::ffi::OsString;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use kapell_node::system::user;

use super::tls;
use crate::summary::quoted;

/// As many as cannot be guessed.
const SECRET_BYTES: usize = 32;
/// What others may have made: at least as much as 128 bits in hexadecimal digits.
const TEXT_BYTES: std::ops::RangeInclusive<usize> = 32..=1024;

/// What a secret is called in messages.
pub(super) const TOKEN: &str = "token";
pub(crate) const CLUSTER_KEY: &str = "cluster key";

/// Why there is no such secret.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("there is no {what} at `{path}`: it is made when `kapell host` first starts")]
    Missing { what: &'static str, path: PathBuf },
    #[error(
        "others can read the {what} in `{path}` (mode {mode:04o}): run `chmod 600 {quoted}`",
        quoted = quoted(path)
    )]
    Exposed { what: &'static str, path: PathBuf, mode: u32 },
    #[error(
        "the {what} in `{path}` belongs to user {user}, who could know it: remove it, or run as that user"
    )]
    Foreign { what: &'static str, path: PathBuf, user: u32 },
    #[error("`{path}` holds no {what}: remove it, and `kapell host` makes a new one")]
    Garbled { what: &'static str, path: PathBuf },
    #[error("cannot read the {what} in `{path}`")]
    Unreadable {
        what: &'static str,
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("cannot make a {what} in `{path}`")]
    Unwritable {
        what: &'static str,
        path: PathBuf,
        #[source]
        source: io::Error,
    },
}

/// Reads a secret.
pub(crate) fn load(what: &'static str, path: &Path) -> Result<String, Error> {
    let unreadable = |source: io::Error| {
        let path = path.to_owned();
        if source.kind() == io::ErrorKind::NotFound {
            return Error::Missing { what, path };
        }
        Error::Unreadable { what, path, source }
    };
    let garbled = || Error::Garbled { what, path: path.to_owned() };
    // Opening a pipe would wait for somebody to write into it.
    if !fs::metadata(path).map_err(unreadable)?.is_file() {
        return Err(garbled());
    }
    let file = File::open(path).map_err(unreadable)?;
    let about = file.metadata().map_err(unreadable)?;
    judge(what, path, about.mode() & 0o7777, about.uid(), user())?;
    let mut bytes = Vec::new();
    let most = *TEXT_BYTES.end() as u64 + 2;
    file.take(most).read_to_end(&mut bytes).map_err(unreadable)?;
    parse(&bytes).map(str::to_owned).ok_or_else(garbled)
}

/// Reads a secret, or makes one if there is none. All who do so at once get the same.
pub(crate) fn load_or_create(what: &'static str, path: &Path) -> Result<String, Error> {
    match load(what, path) {
        Err(Error::Missing { .. }) => {}
        found => return found,
    }
    match create(path) {
        Err(source) if source.kind() != io::ErrorKind::AlreadyExists => {
            Err(Error::Unwritable { what, path: path.to_owned(), source })
        }
        Ok(()) | Err(_) => load(what, path),
    }
}

/// Puts a secret into place, whole, unless something stands there.
fn create(path: &Path) -> io::Result<()> {
    let dir = match path.parent() {
        Some(dir) if dir != Path::new("") => dir,
        Some(_) | None => Path::new("."),
    };
    DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    let mut aside = OsString::from(".");
    aside.push(path.file_name().ok_or(io::ErrorKind::InvalidInput)?);
    aside.push(format!(".{}", &draw()?[..16]));
    let aside = dir.join(aside);
    let made = write(&aside, &draw()?).and_then(|()| fs::hard_link(&aside, path));
    let _gone = fs::remove_file(&aside);
    made?;
    File::open(dir)?.sync_all()
}

/// The text of a secret that a request can bear.
pub(super) fn parse(bytes: &[u8]) -> Option<&str> {
    let text = str::from_utf8(bytes).ok()?;
    let text = text.strip_suffix('\n').unwrap_or(text);
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~+/=".contains(&byte);
    (TEXT_BYTES.contains(&text.len()) && text.bytes().all(fits)).then_some(text)
}

/// Whether a file of that mode and owner can hold a secret of `us`.
pub(super) fn judge(
    what: &'static str,
    path: &Path,
    mode: u32,
    owner: u32,
    us: u32,
) -> Result<(), Error> {
    let path = path.to_owned();
    if mode & 0o077 != 0 {
        return Err(Error::Exposed { what, path, mode });
    }
    if ![0, us].contains(&owner) {
        return Err(Error::Foreign { what, path, user: owner });
    }
    Ok(())
}

fn write(path: &Path, text: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(format!("{text}\n").as_bytes())?;
    file.sync_all()
}

/// Text that nobody can guess.
pub(super) fn draw() -> io::Result<String> {
    let mut bytes = [0; SECRET_BYTES];
    let random = tls::provider().secure_random;
    random.fill(&mut bytes).map_err(|_| io::Error::other("the system gave no random bytes"))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
