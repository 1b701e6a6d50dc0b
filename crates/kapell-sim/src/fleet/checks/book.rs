use std::collections::{BTreeMap, BTreeSet};

use kapell_core::board::{JobId, Record, RecordKey, TaskGuid};
use kapell_core::job::JobDefinition;
use kapell_core::run::{Run, RunState, is_of_run, task_guid};
use kapell_node::scheduler::backend::Attempt;

use crate::fleet::fact::{Fact, Process, Unit};

/// What commits have said of jobs, for the rules that need it.
#[derive(Debug, Default)]
pub(super) struct Book {
    definitions: BTreeMap<(JobId, u64), JobDefinition>,
    /// Whose work a task is.
    names: BTreeMap<TaskGuid, Attempt>,
    /// Of these jobs something was overwritten with garbage: what they are is not certain.
    spoiled: BTreeSet<JobId>,
}

impl Book {
    pub(super) fn saw(&mut self, fact: &Fact) {
        if let Fact::Corrupted { key } = fact {
            self.spoiled.extend(job_of(key));
        }
        let Fact::Committed { changes, .. } = fact else { return };
        for after in changes.iter().filter_map(|change| change.after.as_ref()) {
            match after {
                Record::Definition(of) => {
                    let key = (of.definition.job_id.clone(), of.revision);
                    self.definitions.insert(key, (*of.definition).clone());
                }
                Record::Run(run) => {
                    if let Some(attempt) = intended(run) {
                        self.names.insert(task_guid(&attempt.run_id, attempt.number), attempt);
                    }
                }
                Record::Desired(_)
                | Record::Actual(_)
                | Record::Task(_)
                | Record::Domain(_)
                | Record::Job(_)
                | Record::Message(_) => {}
            }
        }
    }

    /// What a job was by one of its revisions.
    pub(super) fn definition(&self, job: &JobId, revision: u64) -> Option<&JobDefinition> {
        self.definitions.get(&(job.clone(), revision))
    }

    /// Whether a job may have forgotten runs as they ended.
    pub(super) fn keeps_none(&self, job: &JobId) -> bool {
        let own = self.definitions.range((job.clone(), 0)..=(job.clone(), u64::MAX));
        own.into_iter().any(|(_, it)| it.history.succeeded == 0 || it.history.failed == 0)
    }

    pub(super) fn is_spoiled(&self, job: &JobId) -> bool {
        self.spoiled.contains(job)
    }

    /// The attempt whose work a process on a cell is; none if no commit has told of it.
    pub(super) fn attempt(&self, guid: &TaskGuid) -> Option<&Attempt> {
        self.names.get(guid)
    }
}

/// The attempt that is about to be launched, as a commit says.
pub(super) fn intended(run: &Run) -> Option<Attempt> {
    let is = run.state == RunState::ContainerCreating;
    is.then(|| Attempt { run_id: run.run_id.clone(), number: run.attempt })
}

/// The task of a run that a process on a cell is.
pub(super) fn task_of_run(process: &Process) -> Option<&TaskGuid> {
    match &process.unit {
        Unit::Lrp(_) => None,
        Unit::Task(guid) => is_of_run(guid).then_some(guid),
    }
}

/// The job that a record is about.
pub(super) fn job_of(key: &RecordKey) -> Option<JobId> {
    match key {
        RecordKey::Job(job) | RecordKey::Definition(job, _) | RecordKey::Message(job, _) => {
            Some(job.clone())
        }
        RecordKey::Run(run) => Some(run.job_id()),
        RecordKey::Desired(_)
        | RecordKey::Instance(_)
        | RecordKey::Evacuating(_)
        | RecordKey::Task(_)
        | RecordKey::Domain(_) => None,
    }
}
