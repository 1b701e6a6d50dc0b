//! Records that are none: kept, but out of the way.

use std::sync::Arc;

use super::desired::DesiredLrp;
use super::ids::Names;
use super::record::{ASIDE, Corrupt, Record, RecordKey, shard_of};
use super::task::Task;
use crate::run::{Run, is_of_run};

/// Where something lies that was set aside: behind a prefix of its own, then which commit did it,
/// so that nothing is ever put in the place of something else, then the key that it had.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Aside<'a> {
    pub epoch: u64,
    pub seq: u64,
    pub key: &'a [u8],
}

impl<'a> Aside<'a> {
    pub fn encode(&self) -> Vec<u8> {
        [&[ASIDE], &self.epoch.to_be_bytes()[..], &self.seq.to_be_bytes(), self.key].concat()
    }

    /// What a key says, if it is one of something that was set aside.
    pub fn decode(key: &'a [u8]) -> Option<Self> {
        let rest = key.strip_prefix(&[ASIDE])?;
        let (epoch, rest) = rest.split_first_chunk::<8>()?;
        let (seq, key) = rest.split_first_chunk::<8>()?;
        Some(Self { epoch: u64::from_be_bytes(*epoch), seq: u64::from_be_bytes(*seq), key })
    }
}

/// Reads what stands at `key` of a shard. What belongs elsewhere is none of its records.
pub fn admit(
    key: &[u8],
    value: &[u8],
    (shard, shards): (u16, u16),
    names: &mut Names,
) -> Result<Record, Corrupt> {
    let record = Record::decode_sharing(key, value, names)?;
    let home = shard_of(record.partition(), shards);
    if home == shard { Ok(record) } else { Err(Corrupt::Astray) }
}

/// What stands from now on in the place of what is set aside, if anything.
pub fn replacement(key: &[u8], (shard, shards): (u16, u16)) -> Option<Record> {
    let key = RecordKey::decode(key).filter(|key| shard_of(key.partition(), shards) == shard)?;
    match key {
        RecordKey::Desired(guid) => Some(Record::Desired(Box::new(DesiredLrp::forgotten(guid)))),
        // Its moment is not to be taken for one that nobody dealt with.
        RecordKey::Run(run) if run.moment().is_some() => {
            Some(Record::Run(Arc::new(Run::unreadable(run))))
        }
        // A run whose task is not there would take it for one that was never launched.
        RecordKey::Task(guid) if is_of_run(&guid) => {
            Some(Record::Task(Box::new(Task::unreadable(guid))))
        }
        RecordKey::Instance(_)
        | RecordKey::Evacuating(_)
        | RecordKey::Task(_)
        | RecordKey::Domain(_)
        | RecordKey::Job(_)
        | RecordKey::Definition(..)
        | RecordKey::Run(_)
        | RecordKey::Message(..) => None,
    }
}
