//! The one secret that all hosts of a cluster share. Everything else is derived from it, each for one use only.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use kapell_core::access::{Claims, Invalid};
use kapell_core::seams::Timestamp;
use ring::{hkdf, hmac};

/// What signed tokens begin with: no other token has a dot behind its second letter.
const PREFIX: &str = "k1.";
/// No token of ours is longer.
const LONGEST: usize = 4096;
/// Fewer letters could be guessed.
const SHORTEST_KEY: usize = 32;

/// The text is no key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("it is too short for a key")]
pub struct BadKey;

/// The key of a cluster. Cheap to clone, and never shown.
#[derive(Clone)]
pub struct ClusterKey {
    root: hkdf::Prk,
    tokens: hmac::Key,
}

impl fmt::Debug for ClusterKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClusterKey(secret)")
    }
}

impl ClusterKey {
    /// Takes the text of the key's file.
    pub fn new(text: &str) -> Result<Self, BadKey> {
        if text.len() < SHORTEST_KEY {
            return Err(BadKey);
        }
        let root = hkdf::Salt::new(hkdf::HKDF_SHA256, b"kapell cluster 1").extract(text.as_bytes());
        let tokens = hmac::Key::new(hmac::HMAC_SHA256, &derive(&root, "tokens").ok_or(BadKey)?);
        Ok(Self { root, tokens })
    }

    /// Tells keys apart, and the key cannot be had from it.
    pub fn fingerprint(&self) -> String {
        let bytes = derive(&self.root, "fingerprint").unwrap_or_default();
        bytes.iter().take(16).map(|byte| format!("{byte:02x}")).collect()
    }

    /// A secret for one use, which does not give away the key.
    pub(super) fn derive(&self, purpose: &str) -> Option<[u8; 32]> {
        derive(&self.root, purpose)
    }

    /// Whether a text is meant as a token of ours.
    pub fn is_signed(text: &str) -> bool {
        text.starts_with(PREFIX)
    }

    /// The token that says this.
    pub fn sign(&self, claims: &Claims) -> String {
        // Claims have text keys only, so this cannot fail.
        let text = BASE64.encode(serde_json::to_vec(claims).unwrap_or_default());
        let tag = hmac::sign(&self.tokens, text.as_bytes());
        format!("{PREFIX}{text}.{}", BASE64.encode(tag))
    }

    /// What a token says, if we signed it and it is in time. How long that takes tells nothing of the signature.
    pub fn verify(&self, token: &str, now: Timestamp) -> Result<Claims, Invalid> {
        let claims = self.signed(token).ok_or(Invalid::Forged)?;
        claims.in_time(now)?;
        Ok(claims)
    }

    fn signed(&self, token: &str) -> Option<Claims> {
        let token = Some(token).filter(|it| it.len() <= LONGEST)?;
        let (text, tag) = token.strip_prefix(PREFIX)?.split_once('.')?;
        hmac::verify(&self.tokens, text.as_bytes(), &BASE64.decode(tag).ok()?).ok()?;
        serde_json::from_slice(&BASE64.decode(text).ok()?).ok()
    }
}

/// A key for one use.
fn derive(root: &hkdf::Prk, purpose: &str) -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    let info = [purpose.as_bytes()];
    root.expand(&info, hkdf::HKDF_SHA256).ok()?.fill(&mut bytes).ok()?;
    Some(bytes)
}
