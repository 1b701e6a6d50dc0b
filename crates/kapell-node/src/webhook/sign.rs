//! Signatures as Standard Webhooks has them: `v1`, HMAC with SHA-256.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kapell_core::secret::Secret;
use ring::hmac;
use zeroize::Zeroizing;

const PREFIX: &str = "whsec_";
/// As the standard has it, in bytes.
const LENGTHS: std::ops::RangeInclusive<usize> = 24..=64;

/// The secret cannot be a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the secret is no key for webhooks: it must be `whsec_` and 24 to 64 bytes in base64")]
pub struct BadKey;

/// Signs messages with one key.
#[derive(Debug)]
pub struct Signer(hmac::Key);

impl Signer {
    pub fn new(secret: &Secret) -> Result<Self, BadKey> {
        let text = secret.reveal().trim();
        let coded = text.strip_prefix(PREFIX).ok_or(BadKey)?;
        let bytes = Zeroizing::new(STANDARD.decode(coded).map_err(|_| BadKey)?);
        if !LENGTHS.contains(&bytes.len()) {
            return Err(BadKey);
        }
        Ok(Self(hmac::Key::new(hmac::HMAC_SHA256, &bytes)))
    }

    /// The value of `webhook-signature`.
    pub fn sign(&self, id: &str, seconds: i64, body: &[u8]) -> String {
        let mut context = hmac::Context::with_key(&self.0);
        context.update(format!("{id}.{seconds}.").as_bytes());
        context.update(body);
        format!("v1,{}", STANDARD.encode(context.sign().as_ref()))
    }
}
