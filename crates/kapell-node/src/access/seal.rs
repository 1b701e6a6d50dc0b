//! Values that only hosts with the cluster's key can read.

use std::fmt;

use kapell_core::board::{Domain, SecretName};
use kapell_core::secret::Secret;
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::rand::{SecureRandom as _, SystemRandom};

use super::key::ClusterKey;

/// Nothing was sealed or opened: no randomness, or another key or place than it was sealed with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("it does not fit the cluster's key")]
pub(super) struct Unsealable;

/// What is sealed belongs there, and is of no use elsewhere.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place<'a> {
    pub(super) domain: &'a Domain,
    pub(super) name: &'a SecretName,
    pub(super) version: u64,
}

impl Place<'_> {
    /// Neither a domain nor a name has a line end.
    fn bytes(&self) -> Vec<u8> {
        format!("{}\n{}\n{}", self.domain, self.name, self.version).into_bytes()
    }
}

/// Seals and opens. Never shown.
pub(super) struct Seal(LessSafeKey);

impl fmt::Debug for Seal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Seal(secret)")
    }
}

impl Seal {
    pub(super) fn new(key: &ClusterKey) -> Result<Self, Unsealable> {
        let bytes = key.derive("secrets").ok_or(Unsealable)?;
        let key = UnboundKey::new(&CHACHA20_POLY1305, &bytes).map_err(|_| Unsealable)?;
        Ok(Self(LessSafeKey::new(key)))
    }

    /// A nonce that was drawn, then what is sealed with it.
    pub(super) fn close(&self, place: Place<'_>, value: &Secret) -> Result<Vec<u8>, Unsealable> {
        let mut nonce = [0; NONCE_LEN];
        SystemRandom::new().fill(&mut nonce).map_err(|_| Unsealable)?;
        let mut sealed = nonce.to_vec();
        let mut text = value.reveal().as_bytes().to_vec();
        let (nonce, about) = (Nonce::assume_unique_for_key(nonce), Aad::from(place.bytes()));
        self.0.seal_in_place_append_tag(nonce, about, &mut text).map_err(|_| Unsealable)?;
        sealed.extend_from_slice(&text);
        Ok(sealed)
    }

    pub(super) fn open(&self, place: Place<'_>, sealed: &[u8]) -> Result<Secret, Unsealable> {
        let (nonce, sealed) = sealed.split_at_checked(NONCE_LEN).ok_or(Unsealable)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| Unsealable)?;
        let mut bytes = sealed.to_vec();
        let opened = self.0.open_in_place(nonce, Aad::from(place.bytes()), &mut bytes);
        let length = opened.map_err(|_| Unsealable)?.len();
        bytes.truncate(length);
        String::from_utf8(bytes).map(Secret::new).map_err(|_| Unsealable)
    }
}
