//! Jobs that kick each other off: nobody closes a circle, not two at once either.

use std::collections::BTreeMap;

use kapell_core::board::{JobId, Refusal, Reply, Request};
use kapell_core::constraint::kicks;
use kapell_core::job::{JobRequest, cycles};
use tokio::sync::Mutex;

use super::handle::{Board, Declined};

/// Jobs whose changes were asked for and are not known to be decided. Whoever looks for a circle holds it until its own
/// change is committed.
pub(super) type Pending = Mutex<BTreeMap<JobId, Change>>;

/// A change that may come.
#[derive(Debug)]
pub(super) struct Change {
    /// The revision that it would replace: what changes a job later is decided later, so another one tells that this was.
    replaces: Option<u64>,
    kicked: Vec<JobId>,
}

/// The job that a request changes so that it kicks off others, and those.
pub(super) fn kicking(request: &Request) -> Option<(JobId, Vec<JobId>)> {
    let Request::Job(JobRequest::Apply { definition }) = request else { return None };
    if definition.constraints.is_empty() {
        return None;
    }
    let kicks = kicks(definition);
    (!kicks.is_empty()).then(|| (definition.job_id.clone(), kicks))
}

impl Board {
    /// Jobs lie in several shards, each with a keeper of its own: so one change after the other is looked at and committed.
    pub(super) async fn ask_without_circle(
        &self,
        (job, kicked): (JobId, Vec<JobId>),
        request: Request,
    ) -> Result<Reply, Declined> {
        let mut pending = self.pending_kicks().lock().await;
        pending.retain(|job, change| self.revision_of(job) == change.replaces);
        let may_kick = |of: &JobId| {
            if *of == job {
                return kicked.clone();
            }
            let mut all = self.kicks_of(of);
            all.extend(pending.get(of).into_iter().flat_map(|change| change.kicked.clone()));
            all
        };
        if let Some(circle) = cycles::cycle(&job, may_kick) {
            return Err(Refusal::Invalid { problems: vec![cycles::tell(&circle)] }.into());
        }
        // Whoever asks may leave before the answer.
        pending.insert(job.clone(), Change { replaces: self.revision_of(&job), kicked });
        let answer = self.ask_at_once(request).await;
        match &answer {
            Ok(_) | Err(Declined::Refused(_) | Declined::Busy | Declined::ReadOnly(_)) => {
                pending.remove(&job);
            }
            Err(Declined::Unsettled(_) | Declined::NotLeading) => {}
        }
        answer
    }

    fn revision_of(&self, job: &JobId) -> Option<u64> {
        self.look(job.as_str(), |records| records.jobs.get(job).map(|job| job.revision))
    }

    fn kicks_of(&self, job: &JobId) -> Vec<JobId> {
        self.look(job.as_str(), |records| {
            let there = records.job(job).filter(|(_, it)| !it.constraints.is_empty());
            there.map(|(_, definition)| kicks(definition)).unwrap_or_default()
        })
    }
}
