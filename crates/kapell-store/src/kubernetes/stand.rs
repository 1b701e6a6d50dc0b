//! What a Lease holds of ours, and how it is written there.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;

use super::failure::Failure;
use crate::check;
use crate::model::{Generation, Key};

/// A label of all Leases of a store.
pub(super) const STORE: &str = "kapell/store";
const KEY: &str = "kapell/key";
const VALUE: &str = "kapell/value";
const TTL_MS: &str = "kapell/ttl-ms";
const GENERATION: &str = "kapell/generation";
/// How often it was written: a Lease that stays the same keeps its version, and a renewal would be seen by nobody.
const TURN: &str = "kapell/turn";
/// In the ledger, the highest generation of each key.
const OF_KEY: &str = "kapell/generation-";
/// So much of a value is shown to people.
const SHOWN: usize = 120;
/// With what stands before it, a key is part of the name of an annotation, which has at most 63 letters.
pub(super) const LONGEST_KEY: usize = 24;

/// What stands in a Lease.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Stand {
    pub(super) generation: Generation,
    pub(super) value: Option<Vec<u8>>,
    pub(super) ttl: Option<Duration>,
    pub(super) version: String,
}

fn annotation<'l>(lease: &'l Lease, name: &str) -> Option<&'l str> {
    lease.metadata.annotations.as_ref()?.get(name).map(String::as_str)
}

fn odd(lease: &Lease, what: &str) -> Failure {
    let name = lease.metadata.name.as_deref().unwrap_or_default();
    Failure::Odd(format!(
        "the Lease `{name}` is damaged: its annotation `{what}` is not what we wrote"
    ))
}

fn number(lease: &Lease, name: &str) -> Result<Option<u64>, Failure> {
    let parse = |text: &str| text.parse().map_err(|_| odd(lease, name));
    annotation(lease, name).map(parse).transpose()
}

impl Stand {
    pub(super) fn of(lease: &Lease) -> Result<Self, Failure> {
        let value = annotation(lease, VALUE);
        Ok(Self {
            generation: Generation(number(lease, GENERATION)?.unwrap_or_default()),
            value: value.map(|text| unhex(text).ok_or_else(|| odd(lease, VALUE))).transpose()?,
            ttl: number(lease, TTL_MS)?.map(Duration::from_millis),
            version: lease.metadata.resource_version.clone().unwrap_or_default(),
        })
    }

    /// Writes it into a Lease; what others have written there stays.
    pub(super) fn put(&self, lease: &mut Lease, store: &str, key: &Key) {
        let ttl_ms = self.ttl.map(|ttl| check::millis(ttl).to_string());
        let turn = annotation(lease, TURN).and_then(|text| text.parse::<u64>().ok());
        let turn = turn.unwrap_or_default().wrapping_add(1);
        let labels = lease.metadata.labels.get_or_insert_default();
        labels.insert(STORE.to_owned(), store.to_owned());
        let annotations = lease.metadata.annotations.get_or_insert_default();
        for (name, text) in [
            (KEY, Some(hex(key.as_bytes()))),
            (GENERATION, Some(self.generation.0.to_string())),
            (VALUE, self.value.as_deref().map(hex)),
            (TTL_MS, ttl_ms),
            (TURN, Some(turn.to_string())),
        ] {
            match text {
                Some(text) => drop(annotations.insert(name.to_owned(), text)),
                None => drop(annotations.remove(name)),
            }
        }
        let spec = lease.spec.get_or_insert_default();
        spec.holder_identity = self.value.as_deref().map(shown);
        let seconds = self.ttl.map(|ttl| i32::try_from(ttl.as_millis().div_ceil(1000)));
        spec.lease_duration_seconds = seconds.map(|it| it.unwrap_or(i32::MAX).max(1));
        spec.lease_transitions = i32::try_from(self.generation.0).ok();
    }
}

/// The key that a Lease is about; none if it is the ledger.
pub(super) fn key_of(lease: &Lease) -> Option<Key> {
    annotation(lease, KEY).and_then(unhex).map(Key::new)
}

/// What a ledger says of a key.
pub(super) fn in_ledger(ledger: &Lease, key: &Key) -> Result<Generation, Failure> {
    let name = format!("{OF_KEY}{}", hex(key.as_bytes()));
    Ok(Generation(number(ledger, &name)?.unwrap_or_default()))
}

/// All that a ledger knows.
pub(super) fn all_in_ledger(ledger: &Lease) -> Result<BTreeMap<Key, Generation>, Failure> {
    let names = ledger.metadata.annotations.iter().flatten().map(|(name, _)| name);
    let keys = names.filter_map(|name| unhex(name.strip_prefix(OF_KEY)?).map(Key::new));
    keys.map(|key| Ok((key.clone(), in_ledger(ledger, &key)?))).collect()
}

pub(super) fn put_in_ledger(ledger: &mut Lease, store: &str, key: &Key, floor: Generation) {
    let labels = ledger.metadata.labels.get_or_insert_default();
    labels.insert(STORE.to_owned(), store.to_owned());
    let name = format!("{OF_KEY}{}", hex(key.as_bytes()));
    let annotations = ledger.metadata.annotations.get_or_insert_default();
    annotations.insert(name, floor.0.to_string());
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|it| u8::try_from(it).ok());
    let pairs = text.as_bytes().chunks(2);
    pairs.map(|pair| Some(digit(*pair.first()?)? << 4 | digit(*pair.get(1)?)?)).collect()
}

/// What people see who list Leases.
fn shown(value: &[u8]) -> String {
    let text = String::from_utf8_lossy(value);
    let letters = text.chars().map(|letter| if letter.is_control() { '.' } else { letter });
    letters.take(SHOWN).collect()
}
