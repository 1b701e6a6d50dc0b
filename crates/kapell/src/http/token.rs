//! The secret that hosts share with their clients.

use std::fmt;
use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use subtle::ConstantTimeEq as _;
use tokio_rustls::rustls::SupportedCipherSuite;
use tokio_rustls::rustls::crypto::tls13::OkmBlock;

use super::secret::{self, Error};
use super::tls;

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
        secret::load(secret::TOKEN, path).map(Self)
    }

    /// Reads the token, or makes one if there is none. All who do so at once get the same.
    pub(crate) fn load_or_create(path: &Path) -> Result<Self, Error> {
        secret::load_or_create(secret::TOKEN, path).map(Self)
    }

    /// One that nobody knows.
    pub(crate) fn drawn() -> io::Result<Self> {
        secret::draw().map(Self)
    }

    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        secret::parse(bytes).map(|text| Self(text.to_owned()))
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
