use std::collections::BTreeMap;
use std::time::Duration;

use kapell_core::board::{JobId, Record, RecordKey, Reply, Request};
use kapell_core::job::JobRequest;

use super::Check;
use super::book::{Book, job_of};
use crate::fleet::fact::Fact;
use crate::fleet::ledger::Change;
use crate::fleet::view::View;

/// No acknowledged wish about a job or a run is lost.
///
/// When a client is answered, a commit has written what the answer shows, or a later version of it, or what it is about
/// is gone since. A job goes only when somebody has asked for that, a run only when it has ended, and a definition
/// only while its job goes by another.
#[derive(Debug, Default)]
pub(super) struct JobsKept {
    book: Book,
    asked: Vec<(JobRequest, Duration)>,
    /// The highest version that commits have written since what stands there was made.
    written: BTreeMap<RecordKey, u64>,
    gone: BTreeMap<RecordKey, Duration>,
}

fn version(record: &Record) -> Option<u64> {
    match record {
        Record::Job(job) => Some(job.version),
        Record::Run(run) => Some(run.version),
        Record::Desired(_)
        | Record::Actual(_)
        | Record::Task(_)
        | Record::Domain(_)
        | Record::Definition(_)
        | Record::Message(_) => None,
    }
}

impl JobsKept {
    fn since(&self, request: &JobRequest, view: &View<'_>) -> Duration {
        let first = self.asked.iter().rfind(|(asked, _)| is_same(asked, request));
        first.map_or(view.now, |(_, at)| *at)
    }

    fn is_gone(&self, key: &RecordKey, since: Duration) -> bool {
        self.gone.get(key).is_some_and(|at| *at >= since)
    }

    fn acknowledged(
        &self,
        request: &JobRequest,
        reply: &Reply,
        view: &View<'_>,
    ) -> Result<(), String> {
        let since = self.since(request, view);
        let is_written = |key: &RecordKey, version: u64| {
            let written = self.written.get(key).is_some_and(|written| *written >= version);
            written || self.is_gone(key, since)
        };
        let done = match reply {
            Reply::Job { job, .. } => is_written(&RecordKey::Job(job.job_id.clone()), job.version),
            Reply::Run { run, .. } => is_written(&RecordKey::Run(run.run_id.clone()), run.version),
            Reply::Done => {
                if let JobRequest::Trigger { run, .. } = request {
                    is_written(&RecordKey::Run(run.run_id.clone()), 1)
                } else if let JobRequest::Remove { job_id, .. } = request {
                    let stands = view.records.jobs.get(job_id).is_some_and(|job| !job.removed);
                    !stands || self.is_gone(&RecordKey::Job(job_id.clone()), since)
                } else {
                    true
                }
            }
            Reply::Desired { .. } | Reply::Task { .. } | Reply::Domain(_) | Reply::Instance(_) => {
                true
            }
        };
        let spoiled = self.book.is_spoiled(&JobId::new(request.job_id()));
        if done || spoiled {
            return Ok(());
        }
        Err(format!("acknowledged and not committed: {request:?}"))
    }

    fn committed(&mut self, change: &Change, view: &View<'_>) -> Result<(), String> {
        let Change { key, before, after } = change;
        let Some(job) = job_of(key) else { return Ok(()) };
        match (before, after) {
            (None, None) => {}
            (Some(before), None) => {
                if !self.book.is_spoiled(&job) {
                    self.may_go(&job, before, view)?;
                }
                self.written.remove(key);
                self.gone.insert(key.clone(), view.now);
            }
            (_, Some(after)) => {
                if let Some(version) = version(after) {
                    self.written.insert(key.clone(), version);
                }
            }
        }
        Ok(())
    }
}

impl JobsKept {
    /// What happens in one commit is seen at its end only: a wish, and all that follows from it.
    fn may_go(&self, job: &JobId, before: &Record, view: &View<'_>) -> Result<(), String> {
        let removes = |(request, _): &(JobRequest, Duration)| matches!(request, JobRequest::Remove { job_id, .. } if job_id == job);
        let is_removed = self.asked.iter().any(removes);
        // It has ended and was forgotten at once: nothing is kept, or others that ended when it did.
        let others = view.records.runs_of(job).any(|run| run.state.is_final());
        let is_forgotten = self.book.keeps_none(job) || others;
        match before {
            Record::Job(_) if !is_removed => {
                Err(format!("job {job} goes, and nobody has asked for that"))
            }
            Record::Run(run) if !run.state.is_final() && !is_removed && !is_forgotten => {
                Err(format!("{} goes, and has not ended", run.run_id))
            }
            Record::Definition(of) => {
                let stands = view.records.jobs.get(job);
                match stands.filter(|job| job.revision == of.revision && !job.removed) {
                    None => Ok(()),
                    Some(_) => Err(format!("what job {job} does goes")),
                }
            }
            Record::Desired(_)
            | Record::Actual(_)
            | Record::Task(_)
            | Record::Domain(_)
            | Record::Job(_)
            | Record::Run(_)
            | Record::Message(_) => Ok(()),
        }
    }
}

/// When a run is due that is asked for, the host says that takes it.
fn is_same(one: &JobRequest, other: &JobRequest) -> bool {
    match (one, other) {
        (JobRequest::Trigger { run: one, .. }, JobRequest::Trigger { run: other, .. }) => {
            one.run_id == other.run_id
        }
        (one, other) => one == other,
    }
}

impl Check for JobsKept {
    fn name(&self) -> &'static str {
        "jobs kept"
    }

    fn saw(&mut self, fact: &Fact, view: &View<'_>) -> Result<(), String> {
        self.book.saw(fact);
        if let Fact::Asked { request: Request::Job(request) } = fact {
            self.asked.push((request.clone(), view.now));
        }
        if let Fact::Acknowledged { request: Request::Job(request), reply } = fact {
            return self.acknowledged(request, reply, view);
        }
        if let Fact::Committed { changes, .. } = fact {
            for change in changes {
                self.committed(change, view)?;
            }
        }
        Ok(())
    }

    fn at_end(&mut self, _view: &View<'_>) -> Result<(), String> {
        Ok(())
    }
}
