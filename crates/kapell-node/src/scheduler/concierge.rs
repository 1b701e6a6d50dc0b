//! Answers what constraints and actions ask about other jobs, and has done what they wish.

use std::collections::BTreeMap;

use kapell_core::board::{JobId, Refusal, Request};
use kapell_core::constraint::{JobState, PastRun};
use kapell_core::job::{JobRequest, NewRun};
use kapell_core::run::{Run, RunId, RunState, StopKind, Trigger};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::inbox::Scheduler;
use crate::board::{Board, Declined};
use crate::constraint::{Message, Which};

/// Serves until nobody asks any more. No question waits for the answer to another.
pub(super) async fn serve(
    board: Board,
    scheduler: Scheduler,
    mut messages: mpsc::Receiver<Message>,
) {
    let mut answers = JoinSet::new();
    while let Some(message) = messages.recv().await {
        while answers.try_join_next().is_some() {}
        let desk = Desk { board: board.clone(), scheduler: scheduler.clone() };
        answers.spawn(desk.answer(message));
    }
}

struct Desk {
    board: Board,
    scheduler: Scheduler,
}

impl Desk {
    /// Whoever does not wait for an answer any more needs none.
    async fn answer(self, message: Message) {
        match message {
            Message::JobState { job, reply } => drop(reply.send(self.job_state(&job).await)),
            Message::JobHistory { job, most, reply } => {
                drop(reply.send(self.history(&job, most)));
            }
            Message::Trigger { run_id, of, parameters, reply } => {
                drop(reply.send(self.trigger(run_id, of, parameters).await));
            }
            Message::CancelRuns { job, which, except, kind, why, reply } => {
                let done = match self.may_reach(&except, &job) {
                    Ok(()) => {
                        let runs = self.active(&job, which, &except).await;
                        self.cancel(runs, kind, why).await
                    }
                    Err(refused) => Err(refused),
                };
                drop(reply.send(done));
            }
            Message::SkipNext { job, of, count, reply } => {
                let done = match self.may_reach(&of, &job) {
                    Ok(()) => self.ask(JobRequest::SkipNext { job_id: job, count }).await,
                    Err(refused) => Err(refused),
                };
                drop(reply.send(done));
            }
            Message::SetMetric { job, metric, kind, value } => {
                self.scheduler.set_metric(job, metric, kind, value);
            }
            Message::Acting { run_id, action, constraint, at } => {
                let job_id = run_id.job();
                tracing::info!(%run_id, job_id, action, constraint, "an action is being taken");
                let what = format!("action `{action}` of `{constraint}`");
                self.board.show_doing(&run_id, what, at);
            }
            Message::Checking { run_id, constraints, at } => {
                let names: Vec<String> = constraints.iter().map(|it| format!("`{it}`")).collect();
                self.board.show_doing(&run_id, names.join(", "), at);
            }
        }
    }

    /// An action does nothing to jobs of other domains: whoever wrote it may have nothing to say there.
    fn may_reach(&self, of: &RunId, job: &JobId) -> Result<(), String> {
        let domain = |job: &JobId| {
            self.board
                .look(job.as_str(), |records| records.job(job).map(|(job, _)| job.domain.clone()))
        };
        let Some(theirs) = domain(job) else { return Err(format!("there is no job `{job}`")) };
        match domain(&of.job_id()) {
            Some(ours) if ours == theirs => Ok(()),
            Some(_) | None => Err(format!(
                "job `{job}` is of another domain: actions reach jobs of their own domain only"
            )),
        }
    }

    async fn ask(&self, request: JobRequest) -> Result<(), String> {
        let asked = self.board.ask(Request::Job(request)).await;
        asked.map(drop).map_err(|declined| declined.to_string())
    }

    async fn job_state(&self, job: &JobId) -> Option<JobState> {
        let stands = self.scheduler.job_state(job.clone()).await?;
        let is_under_way = |state: RunState| state != RunState::PreRun;
        let running = stands.active.iter().filter(|run| is_under_way(run.state)).count();
        let waits = stands.active.iter().filter(|run| !is_under_way(run.state));
        let next_at = waits.map(|run| run.due_at).chain(stands.next).min();
        Some(JobState { running: u32::try_from(running).unwrap_or(u32::MAX), next_at })
    }

    fn history(&self, job: &JobId, most: u32) -> Option<Vec<PastRun>> {
        self.board.look(job.as_str(), |records| {
            records.job(job)?;
            let past = |run: &Run| {
                let completed_at = run.completed_at?;
                let (run_id, state, skipped) = (run.run_id.clone(), run.state, run.skipped);
                Some(PastRun { run_id, state, skipped, completed_at })
            };
            let mut ended: Vec<PastRun> = records.runs_of(job).filter_map(past).collect();
            ended.sort_by_key(|run| std::cmp::Reverse(run.completed_at));
            ended.truncate(usize::try_from(most).unwrap_or(usize::MAX));
            Some(ended)
        })
    }

    /// One that is there is as good as a new one: the action was taken before, by a host that is gone.
    async fn trigger(
        &self,
        run_id: RunId,
        of: RunId,
        parameters: BTreeMap<String, String>,
    ) -> Result<(), String> {
        self.may_reach(&of, &run_id.job_id())?;
        let now = self.board.now();
        let (job_id, trigger) = (run_id.job_id(), Trigger::Action { of });
        let run = NewRun { run_id, scheduled_at: now, due_at: now, trigger, parameters };
        match self.board.ask(Request::Job(JobRequest::Trigger { job_id, run })).await {
            Ok(_) | Err(Declined::Refused(Refusal::Exists { .. })) => Ok(()),
            Err(declined) => Err(declined.to_string()),
        }
    }

    /// Runs whose time has come and that have not ended: one that waits for its time is no instance yet.
    async fn active(&self, job: &JobId, which: Which, except: &RunId) -> Vec<RunId> {
        let stands = self.scheduler.job_state(job.clone()).await;
        let mut runs = stands.map(|stands| stands.active).unwrap_or_default();
        runs.retain(|run| run.state != RunState::PreRun && run.run_id != *except);
        runs.sort_by_key(|run| run.due_at);
        let ids = runs.into_iter().map(|run| run.run_id);
        match which {
            Which::All => ids.collect(),
            Which::Latest => ids.last().into_iter().collect(),
        }
    }

    async fn cancel(&self, runs: Vec<RunId>, kind: StopKind, why: String) -> Result<u32, String> {
        let mut count = 0;
        for run_id in runs {
            let request = JobRequest::Cancel { run_id, kind, why: why.clone() };
            match self.board.ask(Request::Job(request)).await {
                Ok(_) => count += 1,
                // It has ended meanwhile.
                Err(Declined::Refused(_)) => {}
                Err(declined) => return Err(declined.to_string()),
            }
        }
        Ok(count)
    }
}
