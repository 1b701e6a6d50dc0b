use std::fmt;

use ring::digest::{Context, SHA256};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

const PREFIX: &str = "sha256:";
const HEX: usize = 64;

/// The SHA-256 of some bytes, written `sha256:<hex>`. No other kind is taken.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Digest(String);

/// The text is no digest that we know.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no digest: write sha256: and 64 digits of 0-9a-f")]
pub struct BadDigest(pub String);

impl Digest {
    pub fn parse(text: &str) -> Result<Self, BadDigest> {
        let is_hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        match text.strip_prefix(PREFIX) {
            Some(hex) if hex.len() == HEX && hex.bytes().all(is_hex) => Ok(Self(text.to_owned())),
            Some(_) | None => Err(BadDigest(text.to_owned())),
        }
    }

    pub fn of(bytes: &[u8]) -> Self {
        let mut hash = Hash::new();
        hash.update(bytes);
        hash.finish()
    }

    pub fn hex(&self) -> &str {
        &self.0[PREFIX.len()..]
    }

    /// How it stands in file names.
    pub(super) fn file_name(&self) -> String {
        format!("sha256-{}", self.hex())
    }

    pub(super) fn from_file_name(name: &str) -> Option<Self> {
        Self::parse(&format!("{PREFIX}{}", name.strip_prefix("sha256-")?)).ok()
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::parse(&String::deserialize(deserializer)?).map_err(de::Error::custom)
    }
}

/// A digest in the making.
pub(super) struct Hash(Context);

impl Hash {
    pub(super) fn new() -> Self {
        Self(Context::new(&SHA256))
    }

    pub(super) fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    pub(super) fn finish(self) -> Digest {
        let hex: String =
            self.0.finish().as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        Digest(format!("{PREFIX}{hex}"))
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hash")
    }
}
