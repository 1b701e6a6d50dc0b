//! What changed, for those who watch.

use std::ops::Deref;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::actual::ActualLrp;
use super::desired::DesiredLrp;
use super::domain::Freshness;
use super::ids::{CellId, InstanceGuid, ProcessGuid};
use super::record::{Record, RecordKey};
use super::request::{Report, Request};
use super::task::Task;
use crate::job::Job;
use crate::run::Run;

/// Something that happened on the board, told after it was committed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Event {
    DesiredLrp(Change<Box<DesiredLrp>>),
    ActualLrp(Change<Box<ActualLrp>>),
    /// An instance crashed. What became of its record is told before.
    ActualLrpCrashed(Box<Crash>),
    Task(Change<Box<Task>>),
    Domain(Change<Box<Freshness>>),
    Job(Change<Box<Job>>),
    #[serde(with = "shared")]
    Run(Change<Arc<Run>>),
    /// A cell came, changed what it says of itself, or went.
    Cell {
        cell_id: CellId,
        present: bool,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change<P> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<P>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<P>,
}

impl<P: Deref> Change<P> {
    /// As it is, or was until it went.
    pub fn latest(&self) -> Option<&P::Target> {
        self.after.as_deref().or(self.before.as_deref())
    }
}

/// Changes of what is shared, written as what it is.
mod shared {
    use std::sync::Arc;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::Change;

    pub(super) fn serialize<T: Serialize, S: Serializer>(
        change: &Change<Arc<T>>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        let (before, after) = (change.before.as_deref(), change.after.as_deref());
        Change { before, after }.serialize(to)
    }

    pub(super) fn deserialize<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Change<Arc<T>>, D::Error> {
        let Change { before, after } = Change::<T>::deserialize(from)?;
        Ok(Change { before: before.map(Arc::new), after: after.map(Arc::new) })
    }
}

/// One crash of an instance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Crash {
    pub process_guid: ProcessGuid,
    pub index: u32,
    /// The container that crashed, and where.
    pub instance_guid: InstanceGuid,
    pub cell_id: CellId,
    /// With this one, since crashes were last forgotten.
    pub crash_count: u32,
    pub reason: String,
}

impl Crash {
    /// The crash that a request reports, if that has changed the record of the instance.
    pub fn of(request: &Request, changes: &[(RecordKey, Option<Record>)]) -> Option<Self> {
        let Request::Report { cell_id, report } = request else { return None };
        let Report::Crashed { key, instance_guid, .. } = report else { return None };
        let instance = RecordKey::Instance(key.clone());
        let (_, after) = changes.iter().find(|(key, _)| *key == instance)?;
        match after.as_ref()? {
            Record::Actual(lrp) => Some(Self {
                process_guid: key.process_guid.clone(),
                index: key.index,
                instance_guid: instance_guid.clone(),
                cell_id: cell_id.clone(),
                crash_count: lrp.crash_count,
                reason: lrp.crash_reason.clone().unwrap_or_default(),
            }),
            Record::Desired(_)
            | Record::Task(_)
            | Record::Domain(_)
            | Record::Job(_)
            | Record::Definition(_)
            | Record::Run(_)
            | Record::Message(_) => None,
        }
    }
}

impl Event {
    /// What a committed change means to those who watch; nothing if nothing stood there and nothing does.
    ///
    /// A desired LRP goes when somebody deletes it, although it stands until its instances are gone.
    pub fn of(before: Option<Record>, after: Option<Record>) -> Option<Self> {
        let (before, after) = (before.filter(is_visible), after.filter(is_visible));
        let changed = |before: Option<Record>, after: Option<Record>| match (before, after) {
            // With a definition, its job changes; messages are those of their sender.
            (None, None | Some(Record::Definition(_) | Record::Message(_)))
            | (Some(Record::Definition(_) | Record::Message(_)), _) => None,
            // What the board notes for itself is nobody's news.
            (Some(Record::Desired(one)), Some(Record::Desired(other)))
                if one.version == other.version && one.incarnation == other.incarnation =>
            {
                None
            }
            (Some(Record::Desired(before)), after) => Some(Self::DesiredLrp(Change {
                before: Some(before),
                after: after.and_then(Record::into_desired),
            })),
            (None, Some(Record::Desired(after))) => {
                Some(Self::DesiredLrp(Change { before: None, after: Some(after) }))
            }
            (Some(Record::Actual(before)), after) => Some(Self::ActualLrp(Change {
                before: Some(before),
                after: after.and_then(Record::into_actual),
            })),
            (None, Some(Record::Actual(after))) => {
                Some(Self::ActualLrp(Change { before: None, after: Some(after) }))
            }
            (Some(Record::Task(before)), after) => Some(Self::Task(Change {
                before: Some(before),
                after: after.and_then(Record::into_task),
            })),
            (None, Some(Record::Task(after))) => {
                Some(Self::Task(Change { before: None, after: Some(after) }))
            }
            (Some(Record::Domain(before)), after) => Some(Self::Domain(Change {
                before: Some(Box::new(before)),
                after: after.and_then(Record::into_domain).map(Box::new),
            })),
            (None, Some(Record::Domain(after))) => {
                Some(Self::Domain(Change { before: None, after: Some(Box::new(after)) }))
            }
            (Some(Record::Job(before)), after) => Some(Self::Job(Change {
                before: Some(before),
                after: after.and_then(Record::into_job),
            })),
            (None, Some(Record::Job(after))) => {
                Some(Self::Job(Change { before: None, after: Some(after) }))
            }
            (Some(Record::Run(before)), after) => Some(Self::Run(Change {
                before: Some(before),
                after: after.and_then(Record::into_run),
            })),
            (None, Some(Record::Run(after))) => {
                Some(Self::Run(Change { before: None, after: Some(after) }))
            }
        };
        changed(before, after)
    }

    /// Its name in a stream: what it is about and what happened.
    pub const fn name(&self) -> &'static str {
        const fn pick<P>(change: &Change<P>, names: [&'static str; 3]) -> &'static str {
            match (&change.before, &change.after) {
                (None, _) => names[0],
                (Some(_), Some(_)) => names[1],
                (Some(_), None) => names[2],
            }
        }
        match self {
            Self::DesiredLrp(change) => {
                pick(change, ["desired_lrp_created", "desired_lrp_changed", "desired_lrp_removed"])
            }
            Self::ActualLrp(change) => {
                pick(change, ["actual_lrp_created", "actual_lrp_changed", "actual_lrp_removed"])
            }
            Self::ActualLrpCrashed(_) => "actual_lrp_crashed",
            Self::Task(change) => pick(change, ["task_created", "task_changed", "task_removed"]),
            Self::Domain(change) => {
                pick(change, ["domain_created", "domain_changed", "domain_removed"])
            }
            Self::Job(change) => pick(change, ["job_created", "job_changed", "job_removed"]),
            Self::Run(change) => pick(change, ["run_created", "run_changed", "run_removed"]),
            Self::Cell { present: true, .. } => "cell_present",
            Self::Cell { present: false, .. } => "cell_gone",
        }
    }
}

fn is_visible(record: &Record) -> bool {
    match record {
        Record::Desired(lrp) => !lrp.removing,
        Record::Actual(_)
        | Record::Task(_)
        | Record::Domain(_)
        | Record::Job(_)
        | Record::Run(_) => true,
        Record::Definition(_) | Record::Message(_) => false,
    }
}
