//! What nobody but the work that refers to it is to know.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use zeroize::Zeroizing;

use crate::board::{Domain, SecretName, validate};

/// The largest value: the environment of a process takes no longer text than twice of it.
pub const LARGEST: usize = 64 << 10;

/// A value that is never shown, and wiped from memory when it is dropped.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Zeroizing<String>);

impl Secret {
    pub fn new(value: impl Into<String>) -> Self {
        Self(Zeroizing::new(value.into()))
    }

    /// The value itself, for whoever hands it on.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(***)")
    }
}

impl Serialize for Secret {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from).map(Self::new)
    }
}

/// Everything that is wrong with a secret; nothing if it may be set. What it is, is not repeated.
pub fn faults(domain: &Domain, name: &SecretName, value: &Secret) -> Vec<String> {
    let mut found = validate::domain(domain);
    found.extend(validate::secret_name(name));
    let value = value.reveal();
    if value.is_empty() {
        found.push("value: must not be empty".to_owned());
    }
    if value.len() > LARGEST {
        let (most, bytes) = (LARGEST / 1024, value.len());
        found.push(format!("value: must be at most {most} KiB, not {bytes} bytes"));
    }
    if value.contains('\0') {
        found.push("value: must not contain a NUL byte".to_owned());
    }
    found
}

/// Why work does not start that refers to a secret which is not there, and what to do.
pub fn not_set(domain: &Domain, name: &SecretName) -> String {
    format!(
        "secret \"{name}\" of domain \"{domain}\" is not set: kapell secret set {name} --domain {domain}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_not_shown() {
        let secret = Secret::new("hunter2");
        assert_eq!(
            format!("{secret:?} {:#?}", Some(&secret)),
            "Secret(***) Some(\n    Secret(***),\n)"
        );
        assert_eq!(secret.reveal(), "hunter2");
    }

    #[test]
    fn what_cannot_be_a_secret_is_told_without_repeating_it() {
        let bad = |domain: &str, name: &str, value: &str| {
            faults(&domain.into(), &name.into(), &Secret::new(value))
        };
        assert_eq!(bad("shop", "db-password", &"x".repeat(LARGEST)), [""; 0]);
        let faults = bad("a/b", "a b", "hun\0ter2");
        let begins: Vec<&str> = faults.iter().filter_map(|it| it.split(':').next()).collect();
        assert_eq!(begins, ["domain", "name", "value"]);
        assert!(faults.iter().all(|text| !text.contains("ter2")), "{faults:?}");
        assert_eq!(bad("shop", "a", ""), ["value: must not be empty"]);
        let long = bad("shop", "a", &"x".repeat(LARGEST + 1));
        assert_eq!(long, ["value: must be at most 64 KiB, not 65537 bytes"]);
    }

    #[test]
    fn who_misses_a_secret_is_told_how_to_set_it() {
        let text = not_set(&"shop".into(), &"db-password".into());
        let right = "secret \"db-password\" of domain \"shop\" is not set: kapell secret set db-password --domain shop";
        assert_eq!(text, right);
    }
}
