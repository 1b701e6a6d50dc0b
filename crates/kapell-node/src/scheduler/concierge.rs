//! Answers what constraints and actions ask about other jobs, and has done what they wish.

use std::collections::BTreeMap;

use kapell_core::board::{JobId, Refusal};
use kapell_core::constraint::{JobState, PastRun};
use kapell_core::job::explain::{JobFacts, next_due};
use kapell_core::job::{JobRequest, NewRun};
use kapell_core::run::{Run, RunId, RunState, StopKind, Trigger};
use kapell_core::schedule::Schedule;
use kapell_core::seams::Timestamp;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::inbox::Scheduler;
use super::insist::insist;
use crate::board::Board;
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
            Message::JobState { job, of, reply } => {
                let found = match self.may_reach(&of, &job) {
                    Ok(()) => self.job_state(&job).await,
                    Err(_) => None,
                };
                drop(reply.send(found));
            }
            Message::JobHistory { job, of, most, reply } => {
                let found = self.may_reach(&of, &job).ok().and_then(|()| self.history(&job, most));
                drop(reply.send(found));
            }
            Message::Trigger { run_id, of, parameters, reply } => {
                drop(reply.send(self.trigger(run_id, of, parameters).await));
            }
            Message::CancelRuns { job, which, except, kind, why, reply } => {
                let done = match self.may_reach(&except, &job) {
                    Ok(()) => {
                        let runs = self.active(&job, which, &except).await;
                        Ok(self.cancel(runs, kind, &why).await)
                    }
                    Err(refused) => Err(refused),
                };
                drop(reply.send(done));
            }
            Message::SkipNext { job, of, action, count, reply } => {
                let done = match self.may_reach(&of, &job) {
                    Ok(()) => self.ask(JobRequest::SkipNext { job_id: job, action, count }).await,
                    Err(refused) => Err(refused),
                };
                drop(reply.send(done));
            }
            Message::SetMetric { of, action, metric, figure, reply } => {
                let job_id = of.job_id();
                let request = JobRequest::Figure { job_id, action, metric, figure };
                drop(reply.send(self.ask(request).await));
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

    /// Jobs of other domains are as good as not there: whoever wrote a constraint or an action may know nothing of them.
    fn may_reach(&self, of: &RunId, job: &JobId) -> Result<(), String> {
        let domain = |job: &JobId| {
            self.board
                .look(job.as_str(), |records| records.job(job).map(|(job, _)| job.domain.clone()))
        };
        let ours = domain(&of.job_id()).ok_or("its own job is not there any more")?;
        match domain(job) {
            Some(theirs) if ours == theirs => Ok(()),
            Some(_) | None => Err(format!(
                "there is no job `{job}` in domain `{ours}`: constraints and actions reach jobs of their own domain only"
            )),
        }
    }

    /// Whoever asks names what is done, so that it is done once however often the board is asked.
    async fn ask(&self, request: JobRequest) -> Result<(), String> {
        insist(&self.board, request).await.map(drop).map_err(|refused| refused.to_string())
    }

    async fn job_state(&self, job: &JobId) -> Option<JobState> {
        let stands = self.scheduler.job_state(job.clone()).await?;
        // One that waits for its turn does nothing yet, and may wait for the very run that asks.
        let running = stands.active.iter().filter(|run| run.holds_place).count();
        let waits = stands.active.iter().filter(|run| run.state == RunState::PreRun);
        let asked_for = waits.filter(|run| run.run_id.is_asked_for()).map(|run| run.due_at);
        let next_at = asked_for.chain(self.next_of(job)).min();
        Some(JobState { running: u32::try_from(running).unwrap_or(u32::MAX), next_at })
    }

    /// When the next run of its schedule begins: none of one that rests, and no moment that is excluded or passed over.
    fn next_of(&self, job: &JobId) -> Option<Timestamp> {
        let now = self.board.wall();
        self.board.look(job.as_str(), |records| {
            let (job, definition) = records.job(job)?;
            let moments = Schedule::of(definition).ok()?;
            let runs: Vec<&Run> = records.active_runs_of(&job.job_id).collect();
            let stands = records.stands(job);
            let facts = JobFacts { job, definition, stands, runs: &runs };
            next_due(&facts, &moments, now)
        })
    }

    fn history(&self, job: &JobId, most: u32) -> Option<Vec<PastRun>> {
        self.board.look(job.as_str(), |records| {
            records.job(job)?;
            let past = |run: &Run| {
                let completed_at = run.completed_at?;
                let (run_id, state, skipped) = (run.run_id.clone(), run.state, run.skipped);
                Some(PastRun { run_id, state, skipped, completed_at })
            };
            Some(PastRun::newest(records.runs_of(job).filter_map(past), most))
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
        let now = self.board.wall();
        let by = self
            .board
            .look(of.job(), |records| records.runs.get(&of).map(|run| run.trigger.clone()));
        let by = by.ok_or_else(|| format!("run `{of}` is not there any more"))?;
        let (job_id, trigger) = (run_id.job_id(), Trigger::kicked_off(of, &by));
        let run = NewRun { run_id, scheduled_at: now, due_at: now, trigger, parameters };
        match insist(&self.board, JobRequest::Trigger { job_id, run }).await {
            Ok(_) | Err(Refusal::Exists { .. }) => Ok(()),
            Err(refused) => Err(refused.to_string()),
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

    /// Cancels all of them, however long the board takes.
    async fn cancel(&self, runs: Vec<RunId>, kind: StopKind, why: &str) -> u32 {
        let mut count = 0;
        for run_id in runs {
            let request = JobRequest::Cancel { run_id, kind, why: why.to_owned() };
            // One that is refused has ended meanwhile.
            count += u32::from(insist(&self.board, request).await.is_ok());
        }
        count
    }
}
