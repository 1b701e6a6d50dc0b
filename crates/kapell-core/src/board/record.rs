//! How the board lies in a store.

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::actual::{ActualLrp, LrpKey};
use super::desired::DesiredLrp;
use super::domain::Freshness;
use super::ids::{Domain, ProcessGuid, TaskGuid};
use super::task::Task;

/// The format of all records so far.
const VERSION: u8 = 1;

/// What a record is about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RecordKey {
    Desired(ProcessGuid),
    Instance(LrpKey),
    Evacuating(LrpKey),
    Task(TaskGuid),
    Domain(Domain),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Record {
    Desired(Box<DesiredLrp>),
    /// An instance or, if it says so, its evacuating twin.
    Actual(Box<ActualLrp>),
    Task(Box<Task>),
    Domain(Freshness),
}

/// Why bytes of a store are no record.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Corrupt {
    #[error("it has no kind and version")]
    Short,
    #[error("it is of kind {kind}, version {version}, which this program does not know")]
    Unknown { kind: u8, version: u8 },
    #[error("{0}")]
    Garbled(String),
    #[error("its key is another one")]
    Misplaced,
}

const DESIRED: u8 = b'd';
const INSTANCE: u8 = b'a';
const EVACUATING: u8 = b'e';
const TASK: u8 = b't';
const DOMAIN: u8 = b'o';

impl RecordKey {
    /// Kind, then names; an index is big-endian, so that instances lie in order.
    pub fn encode(&self) -> Vec<u8> {
        let named = |kind: u8, name: &str| [&[kind], name.as_bytes()].concat();
        let indexed = |kind: u8, key: &LrpKey| {
            let name = key.process_guid.as_str().as_bytes();
            [&[kind], name, &[0], &key.index.to_be_bytes()].concat()
        };
        match self {
            Self::Desired(guid) => named(DESIRED, guid.as_str()),
            Self::Instance(key) => indexed(INSTANCE, key),
            Self::Evacuating(key) => indexed(EVACUATING, key),
            Self::Task(guid) => named(TASK, guid.as_str()),
            Self::Domain(domain) => named(DOMAIN, domain.as_str()),
        }
    }

    /// The name whose hash says in which shard it lies: all that must change together shares one.
    pub fn partition(&self) -> &str {
        match self {
            Self::Desired(guid) => guid.as_str(),
            Self::Instance(key) | Self::Evacuating(key) => key.process_guid.as_str(),
            Self::Task(guid) => guid.as_str(),
            Self::Domain(domain) => domain.as_str(),
        }
    }
}

impl Record {
    pub fn key(&self) -> RecordKey {
        match self {
            Self::Desired(lrp) => RecordKey::Desired(lrp.process_guid.clone()),
            Self::Actual(lrp) if lrp.evacuating => RecordKey::Evacuating(lrp.key()),
            Self::Actual(lrp) => RecordKey::Instance(lrp.key()),
            Self::Task(task) => RecordKey::Task(task.guid().clone()),
            Self::Domain(freshness) => RecordKey::Domain(freshness.domain.clone()),
        }
    }

    pub fn encode(&self) -> Vec<u8> {
        match self {
            Self::Desired(lrp) => bytes(DESIRED, lrp),
            Self::Actual(lrp) if lrp.evacuating => bytes(EVACUATING, lrp),
            Self::Actual(lrp) => bytes(INSTANCE, lrp),
            Self::Task(task) => bytes(TASK, task),
            Self::Domain(freshness) => bytes(DOMAIN, freshness),
        }
    }

    /// Reads what stands at `key`.
    pub fn decode(key: &[u8], value: &[u8]) -> Result<Self, Corrupt> {
        let [kind, version, body @ ..] = value else { return Err(Corrupt::Short) };
        let record = match (*kind, *version) {
            (DESIRED, VERSION) => Self::Desired(parse(body)?),
            (INSTANCE | EVACUATING, VERSION) => Self::Actual(parse(body)?),
            (TASK, VERSION) => Self::Task(parse(body)?),
            (DOMAIN, VERSION) => Self::Domain(parse(body)?),
            (kind, version) => return Err(Corrupt::Unknown { kind, version }),
        };
        if record.key().encode() == key { Ok(record) } else { Err(Corrupt::Misplaced) }
    }
}

fn bytes(kind: u8, body: &impl Serialize) -> Vec<u8> {
    let mut bytes = vec![kind, VERSION];
    // Writing to memory what has only text for keys cannot fail.
    let written = serde_json::to_writer(&mut bytes, body);
    debug_assert!(written.is_ok(), "{written:?}");
    bytes
}

fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, Corrupt> {
    serde_json::from_slice(body).map_err(|why| Corrupt::Garbled(why.to_string()))
}

/// In which of `shards` a name lies. Fixed for ever: stores are laid out by it (FNV-1a).
pub fn shard_of(partition: &str, shards: u16) -> u16 {
    let hash = partition.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    u16::try_from(hash % u64::from(shards.max(1))).unwrap_or(0)
}
