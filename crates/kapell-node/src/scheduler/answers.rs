//! What the scheduler answers to those who ask.

use std::collections::BTreeMap;
use std::sync::Arc;

use kapell_core::board::{JobId, Request};
use kapell_core::job::JobRequest;
use kapell_core::run::{Run, RunId, RunState};

use super::actor::Actor;
use super::inbox::{JobState, Message, RunView};
use super::stats::Now;
use super::step::log_beat;

impl Actor {
    pub(super) fn answer(&mut self, message: Message) {
        match message {
            Message::Happened { run_id, happened } => {
                if let Some(key) = self.slab.key(&run_id) {
                    self.tell(key, *happened);
                }
            }
            Message::Heartbeat { run_id } => self.beat(&run_id),
            Message::Cancel { run_id, kind, why, answer } => {
                let board = self.board.clone();
                self.asked.push(Box::pin(async move {
                    let request = JobRequest::Cancel { run_id, kind, why };
                    drop(answer.send(board.ask(Request::Job(request)).await.map(drop)));
                }));
            }
            Message::UpdateRun { run_id, revision, definition, answer } => {
                let plan = self.plan(revision, definition);
                let entry = self.slab.key(&run_id).and_then(|key| self.slab.get_mut(key));
                // Whoever asked may be gone.
                let _ = answer.send(entry.is_some_and(|entry| entry.update(plan)));
            }
            Message::State { run_id, answer } => {
                let key = self.slab.key(&run_id);
                let view = key.and_then(|key| {
                    let mut view = RunView::of(self.slab.get(key)?);
                    let on_its_way = self.syncer.noted(key);
                    view.noted = on_its_way.chain(view.noted).collect();
                    Some(view)
                });
                drop(answer.send(view));
            }
            Message::Active { answer } => {
                drop(answer.send(self.slab.iter().map(RunView::of).collect()));
            }
            Message::JobState { job_id, answer } => drop(answer.send(self.job_state(&job_id))),
            Message::JobHistory { job_id, most, answer } => {
                drop(answer.send(self.history(&job_id).take(most).collect()));
            }
        }
    }

    fn beat(&mut self, run_id: &RunId) {
        let now = self.clock.now();
        let Some(entry) = self.slab.key(run_id).and_then(|key| self.slab.get_mut(key)) else {
            return;
        };
        if entry.it.beat() {
            log_beat(&entry.it);
            if let Some(working) = &mut entry.working {
                working.last = now;
            }
        }
    }

    fn job_state(&self, job_id: &JobId) -> Option<JobState> {
        self.current(job_id)?;
        let active = self.board.look(job_id.as_str(), |records| {
            records.active_runs_of(job_id).map(|run| run.run_id.clone()).collect::<Vec<_>>()
        });
        let entries = active.iter().filter_map(|run_id| self.slab.get(self.slab.key(run_id)?));
        Some(JobState {
            active: entries.map(RunView::of).collect(),
            next: self.generator.next_of(job_id),
            last: self.history(job_id).next().map(Arc::new),
        })
    }

    /// The runs of a job that have ended, the newest first.
    fn history(&self, job_id: &JobId) -> impl Iterator<Item = Run> {
        let runs: Vec<Run> = self.board.look(job_id.as_str(), |records| {
            let ended = records.runs_of(job_id).rev().filter(|run| run.state.is_final());
            ended.cloned().collect()
        });
        runs.into_iter()
    }

    /// Makes the figures that others see.
    pub(super) fn show(&mut self) {
        let mut active: BTreeMap<RunState, usize> = BTreeMap::new();
        for entry in self.slab.iter() {
            *active.entry(entry.it.state()).or_default() += 1;
        }
        let now = Now {
            active,
            jobs: self.generator.len(),
            unstored: self.syncer.waiting() + self.begun.len(),
            timers: self.timers.len(),
        };
        self.shown.send_replace(Arc::new(self.stats.snapshot(&now)));
    }
}
