//! Jobs that kick each other off: nobody closes a circle, not two at once either.

use std::collections::BTreeMap;

use kapell_core::board::{JobId, Refusal, Reply, Request};
use kapell_core::constraint::kicks;
use kapell_core::job::{JobRequest, cycles};
use tokio::sync::Mutex;

use super::handle::{Board, Declined};

/// Jobs whose changes were asked for and are not known to be decided, and which jobs they would kick off. Whoever looks for a
/// circle holds it until its own change is committed.
pub(super) type Pending = Mutex<BTreeMap<JobId, Vec<JobId>>>;

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
        pending.retain(|job, kicked| self.kicks_of(job) != *kicked);
        let may_kick = |of: &JobId| {
            if *of == job {
                return kicked.clone();
            }
            let mut all = self.kicks_of(of);
            all.extend(pending.get(of).into_iter().flatten().cloned());
            all
        };
        if let Some(circle) = cycles::cycle(&job, may_kick) {
            return Err(Refusal::Invalid { problems: vec![cycles::tell(&circle)] }.into());
        }
        // Whoever asks may leave before the answer.
        pending.insert(job.clone(), kicked);
        let answer = self.ask_at_once(request).await;
        match &answer {
            Ok(_) | Err(Declined::Refused(_) | Declined::Busy | Declined::ReadOnly(_)) => {
                pending.remove(&job);
            }
            Err(Declined::Unsettled(_) | Declined::NotLeading) => {}
        }
        answer
    }

    fn kicks_of(&self, job: &JobId) -> Vec<JobId> {
        self.look(job.as_str(), |records| {
            let there = records.job(job).filter(|(_, it)| !it.constraints.is_empty());
            there.map(|(_, definition)| kicks(definition)).unwrap_or_default()
        })
    }
}
