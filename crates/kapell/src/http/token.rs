//! The secret that hosts share with their clients, in a file that only its owner can read.

use std::ffi::OsString;
use std::fmt;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use kapell_node::system::user;
use subtle::ConstantTimeEq as _;
use tokio_rustls::rustls::SupportedCipherSuite;
use tokio_rustls::rustls::crypto::tls13::OkmBlock;

use super::tls;

use crate::summary::quoted;

/// As many as cannot be guessed.
const SECRET_BYTES: usize = 32;
/// What others may have made: at least as much as 128 bits in hexadecimal digits.
const TEXT_BYTES: std::ops::RangeInclusive<usize> = 32..=1024;

/// Why there is no token.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("there is no token at `{0}`: it is made when `kapell host` first starts")]
    Missing(PathBuf),
    #[error("others can read the token in `{path}` (mode {mode:04o}): run `chmod 600 {quoted}`", quoted = quoted(path))]
    Exposed { path: PathBuf, mode: u32 },
    #[error(
        "the token in `{path}` belongs to user {user}, who could know it: remove it, or run as that user"
    )]
    Foreign { path: PathBuf, user: u32 },
    #[error("`{0}` holds no token: remove it, and `kapell host` makes a new one")]
    Garbled(PathBuf),
    #[error("cannot read the token in `{path}`")]
    Unreadable {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("cannot make a token in `{path}`")]
    Unwritable {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
}

/// What a request must know to be let in.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Token(String);

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(secret)")
    }
}

impl Token {
    /// Reads the token that hosts use.
    pub(crate) fn load(path: &Path) -> Result<Self, Error> {
        let unreadable = |source: io::Error| {
            if source.kind() == io::ErrorKind::NotFound {
                return Error::Missing(path.to_owned());
            }
            Error::Unreadable { path: path.to_owned(), source }
        };
        // Opening a pipe would wait for somebody to write into it.
        if !fs::metadata(path).map_err(unreadable)?.is_file() {
            return Err(Error::Garbled(path.to_owned()));
        }
        let file = File::open(path).map_err(unreadable)?;
        let about = file.metadata().map_err(unreadable)?;
        judge(path, about.mode() & 0o7777, about.uid(), user())?;
        let mut bytes = Vec::new();
        let most = *TEXT_BYTES.end() as u64 + 2;
        file.take(most).read_to_end(&mut bytes).map_err(unreadable)?;
        Self::parse(&bytes).ok_or_else(|| Error::Garbled(path.to_owned()))
    }

    /// Reads the token, or makes one if there is none. All who do so at once get the same.
    pub(crate) fn load_or_create(path: &Path) -> Result<Self, Error> {
        match Self::load(path) {
            Err(Error::Missing(_)) => {}
            found => return found,
        }
        match Self::create(path) {
            Err(source) if source.kind() != io::ErrorKind::AlreadyExists => {
                Err(Error::Unwritable { path: path.to_owned(), source })
            }
            Ok(()) | Err(_) => Self::load(path),
        }
    }

    /// Puts a token into place, whole, unless something stands there.
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

    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let text = str::from_utf8(bytes).ok()?;
        let text = text.strip_suffix('\n').unwrap_or(text);
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~+/=".contains(&byte);
        (TEXT_BYTES.contains(&text.len()) && text.bytes().all(fits)).then(|| Self(text.to_owned()))
    }

    /// For the header of a request.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it is this one. How long that takes says nothing about it but its length.
    pub(super) fn is(&self, given: &str) -> bool {
        self.0.as_bytes().ct_eq(given.as_bytes()).into()
    }
}

/// How long a session lasts.
pub(super) const SESSION: Duration = Duration::from_secs(7 * 24 * 3600);
/// How far the clock of the host that gave a session may be ahead of ours.
const SKEW: Duration = Duration::from_secs(5 * 60);

/// A session that was given by somebody who knows the token, and is not too old.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Session {
    /// Half of its time is over.
    pub(super) is_aging: bool,
}

impl Token {
    /// What a browser is given instead: when that was, and a proof that we gave it. It opens the same door for a
    /// time, and the token cannot be read from it.
    pub(super) fn session(&self, now: SystemTime) -> Option<String> {
        let issued = now.duration_since(UNIX_EPOCH).ok()?.as_micros();
        Some(format!("{issued}.{}", self.mac(&issued.to_string())?))
    }

    /// Judges what [`Token::session`] gave.
    pub(super) fn judge_session(&self, given: &str, now: SystemTime) -> Option<Session> {
        let (issued, mac) = given.split_once('.')?;
        if !bool::from(self.mac(issued)?.as_bytes().ct_eq(mac.as_bytes())) {
            return None;
        }
        let issued = UNIX_EPOCH.checked_add(Duration::from_micros(issued.parse().ok()?))?;
        let age = match now.duration_since(issued) {
            Ok(age) => age,
            Err(ahead) if ahead.duration() <= SKEW => Duration::ZERO,
            Err(_) => return None,
        };
        (age < SESSION).then_some(Session { is_aging: age > SESSION / 2 })
    }

    /// A keyed hash of a text, with a key that only serves for this.
    fn mac(&self, text: &str) -> Option<String> {
        let provider = tls::provider();
        let suite = provider.cipher_suites.iter().find_map(|suite| match suite {
            SupportedCipherSuite::Tls13(suite) => Some(*suite),
            SupportedCipherSuite::Tls12(_) => None,
        })?;
        let mut hash = suite.common.hash_provider.start();
        hash.update(b"kapell page session 2\0");
        hash.update(self.0.as_bytes());
        let key = OkmBlock::new(hash.finish().as_ref());
        let tag = suite.hkdf_provider.hmac_sign(&key, text.as_bytes());
        Some(tag.as_ref().iter().map(|byte| format!("{byte:02x}")).collect())
    }
}

/// Whether a file of that mode and owner can hold a secret of `us`.
pub(super) fn judge(path: &Path, mode: u32, owner: u32, us: u32) -> Result<(), Error> {
    if mode & 0o077 != 0 {
        return Err(Error::Exposed { path: path.to_owned(), mode });
    }
    if ![0, us].contains(&owner) {
        return Err(Error::Foreign { path: path.to_owned(), user: owner });
    }
    Ok(())
}

fn write(path: &Path, text: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(format!("{text}\n").as_bytes())?;
    file.sync_all()
}

/// Text that nobody can guess.
fn draw() -> io::Result<String> {
    let mut bytes = [0; SECRET_BYTES];
    let random = tls::provider().secure_random;
    random.fill(&mut bytes).map_err(|_| io::Error::other("the system gave no random bytes"))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
