//! How the board lies in a store.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::actual::{ActualLrp, LrpKey};
use super::desired::DesiredLrp;
use super::domain::Freshness;
use super::ids::{Domain, JobId, Names, ProcessGuid, TaskGuid};
use super::row::Row;
use super::task::Task;
use crate::constraint::Outgoing;
use crate::job::{ActionId, Definition, Job, JobDefinition};
use crate::run::{self, Run, RunId};

/// The format of all records that are objects with names for their fields.
const OBJECT: u8 = 1;
/// The format of instances: there are many, so their fields have places instead of names, and what the key says is not
/// said again. Runs were written so once.
const ROW: u8 = 2;
/// The format of runs: numbers and texts as few bytes.
const PACKED: u8 = 3;
/// Rows with what version 2 did not know. Written only where there is something of it to say: all else can be read
/// by hosts of either version while they are being upgraded.
const ROW_THAT_SAYS_MORE: u8 = 3;

/// What a record is about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RecordKey {
    Desired(ProcessGuid),
    Instance(LrpKey),
    Evacuating(LrpKey),
    Task(TaskGuid),
    Domain(Domain),
    Job(JobId),
    /// What a job is by one of its revisions.
    Definition(JobId, u64),
    Run(RunId),
    /// A message of a run of a job.
    Message(JobId, ActionId),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Record {
    Desired(Box<DesiredLrp>),
    /// An instance or, if it says so, its evacuating twin.
    Actual(Box<ActualLrp>),
    Task(Box<Task>),
    Domain(Freshness),
    Job(Box<Job>),
    Definition(Definition),
    /// Shared: a run is changed often, and each of its changes is seen by many.
    Run(Arc<Run>),
    Message(Box<Outgoing>),
}

/// Why bytes of a store are no record.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Corrupt {
    #[error("it has no kind and version")]
    Short,
    #[error("it is of kind {kind}, version {version}, which this program does not know")]
    Unknown { kind: u8, version: u8 },
    /// Not for this program to judge: to the one that wrote it, it is a good record.
    #[error("it is of version {version}: a newer version of kapell wrote it")]
    Newer { version: u8 },
    #[error("{0}")]
    Garbled(String),
    #[error("its key is another one")]
    Misplaced,
    #[error("it belongs to another shard")]
    Astray,
    #[error("its fields do not fit its state")]
    Inconsistent,
}

// The one registry of prefixes in a shard.

/// What was set aside; see [`super::aside`].
pub(super) const ASIDE: u8 = b'!';
const DESIRED: u8 = b'd';
const INSTANCE: u8 = b'a';
const EVACUATING: u8 = b'e';
const TASK: u8 = b't';
const DOMAIN: u8 = b'o';
const JOB: u8 = b'j';
const DEFINITION: u8 = b'v';
const RUN: u8 = b'r';
const MESSAGE: u8 = b'm';

impl RecordKey {
    /// Kind, then names; an index is big-endian, so that instances lie in order. Of a run, the name of its job is said once.
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
            Self::Job(job) => named(JOB, job.as_str()),
            Self::Definition(job, revision) => {
                [&[DEFINITION], job.as_str().as_bytes(), &[0], &revision.to_be_bytes()].concat()
            }
            Self::Run(run) => [&[RUN], run.job().as_bytes(), &[0], run.rest().as_bytes()].concat(),
            Self::Message(job, id) => {
                [&[MESSAGE], job.as_str().as_bytes(), &[0], &id.0.to_be_bytes()].concat()
            }
        }
    }

    /// What a key is about, if it is one of ours.
    pub fn decode(key: &[u8]) -> Option<Self> {
        let (kind, rest) = key.split_first()?;
        let name = || std::str::from_utf8(rest).ok();
        match *kind {
            DESIRED => name().map(|name| Self::Desired(name.into())),
            INSTANCE => indexed(rest, &mut Names::default()).map(Self::Instance),
            EVACUATING => indexed(rest, &mut Names::default()).map(Self::Evacuating),
            TASK => name().map(|name| Self::Task(name.into())),
            DOMAIN => name().map(|name| Self::Domain(name.into())),
            JOB => name().map(|name| Self::Job(name.into())),
            DEFINITION => {
                revised(rest).map(|(job, revision)| Self::Definition(job.into(), revision))
            }
            RUN => run_at(rest).map(Self::Run),
            MESSAGE => message_at(rest).map(|(job, id)| Self::Message(job.into(), id)),
            _ => None,
        }
    }

    /// The name whose hash says in which shard it lies: all that must change together shares one.
    pub fn partition(&self) -> &str {
        match self {
            Self::Desired(guid) => guid.as_str(),
            Self::Instance(key) | Self::Evacuating(key) => key.process_guid.as_str(),
            Self::Task(guid) => guid.as_str(),
            Self::Domain(domain) => domain.as_str(),
            Self::Job(job) | Self::Definition(job, _) | Self::Message(job, _) => job.as_str(),
            Self::Run(run) => run.job(),
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
            Self::Job(job) => RecordKey::Job(job.job_id.clone()),
            Self::Definition(of) => {
                RecordKey::Definition(of.definition.job_id.clone(), of.revision)
            }
            Self::Run(run) => RecordKey::Run(run.run_id.clone()),
            Self::Message(message) => RecordKey::Message(message.job_id.clone(), message.id),
        }
    }

    /// The name whose hash says in which shard it lies.
    pub fn partition(&self) -> &str {
        match self {
            Self::Desired(lrp) => lrp.process_guid.as_str(),
            Self::Actual(lrp) => lrp.process_guid.as_str(),
            Self::Task(task) => task.guid().as_str(),
            Self::Domain(freshness) => freshness.domain.as_str(),
            Self::Job(job) => job.job_id.as_str(),
            Self::Definition(of) => of.definition.job_id.as_str(),
            Self::Run(run) => run.run_id.job(),
            Self::Message(message) => message.job_id.as_str(),
        }
    }

    pub fn encode(&self) -> Vec<u8> {
        match self {
            Self::Desired(lrp) => bytes(DESIRED, OBJECT, lrp),
            Self::Actual(lrp) => {
                let kind = if lrp.evacuating { EVACUATING } else { INSTANCE };
                let row = Row::of(lrp);
                bytes(kind, if row.says_more() { ROW_THAT_SAYS_MORE } else { ROW }, &row)
            }
            Self::Task(task) => bytes(TASK, OBJECT, task),
            Self::Domain(freshness) => bytes(DOMAIN, OBJECT, freshness),
            Self::Job(job) => bytes(JOB, OBJECT, job),
            // Its revision is in its key.
            Self::Definition(of) => bytes(DEFINITION, OBJECT, of.definition.as_ref()),
            Self::Run(run) => packed(run),
            Self::Message(message) => bytes(MESSAGE, OBJECT, message),
        }
    }

    /// Reads what stands at `key`.
    pub fn decode(key: &[u8], value: &[u8]) -> Result<Self, Corrupt> {
        Self::decode_sharing(key, value, &mut Names::default())
    }

    /// The same for one of many, which share their names.
    pub fn decode_sharing(key: &[u8], value: &[u8], names: &mut Names) -> Result<Self, Corrupt> {
        let [kind, version, body @ ..] = value else { return Err(Corrupt::Short) };
        let record = match (*kind, *version) {
            (INSTANCE | EVACUATING, ROW | ROW_THAT_SAYS_MORE) => {
                let (at, rest) = key.split_first().ok_or(Corrupt::Misplaced)?;
                let place = indexed(rest, names).filter(|_| at == kind);
                let place = place.ok_or(Corrupt::Misplaced)?;
                let row: Row<'_> = parse(body)?;
                return whole(Self::Actual(Box::new(row.at(place, *kind == EVACUATING, names))));
            }
            (DESIRED, OBJECT) => Self::Desired(parse(body)?),
            (INSTANCE | EVACUATING, OBJECT) => {
                Self::Actual(Box::new(parse::<ActualLrp>(body)?.settled()))
            }
            (TASK, OBJECT) => Self::Task(parse(body)?),
            (DOMAIN, OBJECT) => Self::Domain(parse(body)?),
            (JOB, OBJECT) => Self::Job(parse(body)?),
            (DEFINITION, OBJECT) => {
                let at =
                    key.strip_prefix(&[DEFINITION]).and_then(revised).ok_or(Corrupt::Misplaced)?;
                Self::Definition(Definition {
                    revision: at.1,
                    definition: Arc::new(parse::<JobDefinition>(body)?),
                })
            }
            (RUN, PACKED) => {
                let at = key.strip_prefix(&[RUN]).and_then(run_at).ok_or(Corrupt::Misplaced)?;
                let run = run::packed::read(at, body);
                Self::Run(Arc::new(run.ok_or_else(|| Corrupt::Garbled("it is no run".to_owned()))?))
            }
            (RUN, ROW) => {
                let at = key.strip_prefix(&[RUN]).and_then(run_at).ok_or(Corrupt::Misplaced)?;
                let row: run::row::Row<'_> = parse(body)?;
                Self::Run(Arc::new(row.at(at).map_err(Corrupt::Garbled)?))
            }
            (RUN, OBJECT) => Self::Run(Arc::new(parse(body)?)),
            (MESSAGE, OBJECT) => Self::Message(parse(body)?),
            (kind, version) => return Err(unknown(key, kind, version)),
        };
        if record.key().encode() != key {
            return Err(Corrupt::Misplaced);
        }
        whole(record.sharing(names))
    }

    fn sharing(mut self, names: &mut Names) -> Self {
        match &mut self {
            Self::Desired(lrp) => {
                lrp.process_guid = names.share(lrp.process_guid.as_str()).into();
                lrp.domain = names.share(lrp.domain.as_str()).into();
            }
            Self::Actual(lrp) => {
                lrp.process_guid = names.share(lrp.process_guid.as_str()).into();
                lrp.domain = names.share(lrp.domain.as_str()).into();
                lrp.cell_id = lrp.cell_id.take().map(|cell| names.share(cell.as_str()).into());
            }
            Self::Task(task) => {
                let domain = names.share(task.definition.domain.as_str());
                task.definition.domain = domain.into();
                task.cell_id = task.cell_id.take().map(|cell| names.share(cell.as_str()).into());
            }
            Self::Domain(fresh) => fresh.domain = names.share(fresh.domain.as_str()).into(),
            Self::Job(job) => {
                job.job_id = names.share(job.job_id.as_str()).into();
                job.domain = names.share(job.domain.as_str()).into();
            }
            Self::Definition(_) => {}
            Self::Run(run) => {
                Arc::make_mut(run).domain = names.share(run.domain.as_str()).into();
            }
            Self::Message(message) => {
                message.domain = names.share(message.domain.as_str()).into();
            }
        }
        self
    }
}

fn unknown(key: &[u8], kind: u8, version: u8) -> Corrupt {
    let newest = match kind {
        INSTANCE | EVACUATING => Some(ROW_THAT_SAYS_MORE),
        RUN => Some(PACKED),
        DESIRED | TASK | DOMAIN | JOB | DEFINITION | MESSAGE => Some(OBJECT),
        _ => None,
    };
    let in_place = key.first() == Some(&kind);
    if in_place && newest.is_some_and(|newest| version > newest) {
        Corrupt::Newer { version }
    } else {
        Corrupt::Unknown { kind, version }
    }
}

/// What could be read may still say what cannot be.
fn whole(record: Record) -> Result<Record, Corrupt> {
    let is_whole = match &record {
        Record::Actual(lrp) => lrp.is_consistent(),
        Record::Task(task) => task.is_consistent(),
        Record::Run(run) => run.is_consistent(),
        Record::Desired(_)
        | Record::Domain(_)
        | Record::Job(_)
        | Record::Definition(_)
        | Record::Message(_) => true,
    };
    if is_whole { Ok(record) } else { Err(Corrupt::Inconsistent) }
}

/// A name, a zero and an index.
fn indexed(key: &[u8], names: &mut Names) -> Option<LrpKey> {
    let (rest, index) = key.split_last_chunk::<4>()?;
    let (zero, name) = rest.split_last()?;
    let name = std::str::from_utf8(name).ok().filter(|_| *zero == 0)?;
    let process_guid = names.share(name).into();
    Some(LrpKey { process_guid, index: u32::from_be_bytes(*index) })
}

/// A name, a zero and a revision.
fn revised(key: &[u8]) -> Option<(&str, u64)> {
    let (rest, revision) = key.split_last_chunk::<8>()?;
    let (zero, name) = rest.split_last()?;
    let name = std::str::from_utf8(name).ok().filter(|_| *zero == 0)?;
    Some((name, u64::from_be_bytes(*revision)))
}

/// The name of a job, a zero and the id of a message.
fn message_at(key: &[u8]) -> Option<(&str, ActionId)> {
    let (rest, id) = key.split_last_chunk::<16>()?;
    let (zero, name) = rest.split_last()?;
    let name = std::str::from_utf8(name).ok().filter(|_| *zero == 0)?;
    Some((name, ActionId(u128::from_be_bytes(*id))))
}

/// The name of a job, a zero and what the id of a run says behind it.
fn run_at(key: &[u8]) -> Option<RunId> {
    let (job, rest) = std::str::from_utf8(key).ok()?.split_once('\0')?;
    RunId::of_job(job, rest)
}

fn bytes(kind: u8, version: u8, body: &impl Serialize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(256);
    bytes.extend([kind, version]);
    // Writing to memory what has only text for keys cannot fail.
    let written = serde_json::to_writer(&mut bytes, body);
    debug_assert!(written.is_ok(), "{written:?}");
    bytes
}

fn packed(run: &Run) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(128);
    bytes.extend([RUN, PACKED]);
    run::packed::write(run, &mut bytes);
    bytes
}

fn parse<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T, Corrupt> {
    serde_json::from_slice(body).map_err(|why| Corrupt::Garbled(why.to_string()))
}

/// In which of `shards` a name lies. Fixed for ever: stores are laid out by it (FNV-1a).
pub fn shard_of(partition: &str, shards: u16) -> u16 {
    let hash = partition.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    u16::try_from(hash % u64::from(shards.max(1))).unwrap_or(0)
}
