//! One run, from its creation to its end: what happened goes in, what is to be done comes out.
//!
//! No I/O and no clock. While a run waits for nothing but a timer it is this value and nothing else: no task.

use std::sync::Arc;

use super::id::RunId;
use super::message::{Ask, Counts, Happened, Timer, WorkEnd};
use super::progress::Progress;
use super::record::{Noted, Run};
use super::state::{IllegalStep, RunState};
use crate::job::JobDefinition;
use crate::seams::Timestamp;

/// What a run goes by: fixed from its due time on.
#[derive(Debug, Clone)]
pub struct Plan {
    pub definition: Arc<JobDefinition>,
    pub revision: u64,
    /// It has constraints to be checked before the work, and after it.
    pub checks_before: bool,
    pub checks_after: bool,
}

/// What it waits for besides its timer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Waits {
    /// Its due time, or that of its next attempt.
    Time,
    Admission,
    Check,
    Actions,
    /// The intent to launch.
    Intent,
    Launch,
    Start,
    End,
    Evidence,
    PostCheck(WorkEnd),
    /// The work to be gone; then it goes on as said.
    Gone(After),
    /// The end of the run on disk; work of this attempt is then to be ended, if there may be any.
    Disk {
        leftover: bool,
    },
    Leftover,
    Nothing,
}

/// What follows when the work is gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum After {
    Cancelled {
        why: String,
    },
    /// It did not start in time.
    Unstarted {
        why: String,
    },
    /// It ran too long.
    Overran {
        why: String,
    },
}

/// One run under way.
#[derive(Debug, Clone)]
pub struct Orchestrator {
    pub(super) run_id: RunId,
    pub(super) plan: Plan,
    pub(super) state: RunState,
    pub(super) previous: RunState,
    pub(super) attempt: u32,
    pub(super) due_at: Timestamp,
    pub(super) scheduled_at: Timestamp,
    pub(super) waits: Waits,
    /// Present from its due time on: most runs wait for that.
    pub(super) progress: Option<Box<Progress>>,
    pub(super) created_at: Timestamp,
}

impl Orchestrator {
    /// Takes up a run as the board has it: a new one, or one that another leader has left.
    pub fn begin(run: &Run, plan: Plan, now: Timestamp) -> (Self, Vec<Ask>) {
        let mut this = Self {
            run_id: run.run_id.clone(),
            plan,
            state: run.state,
            previous: run.previous_state.unwrap_or(run.state),
            attempt: run.attempt,
            due_at: run.due_at,
            scheduled_at: run.scheduled_at,
            waits: Waits::Time,
            progress: None,
            created_at: run.created_at,
        };
        let mut asks = Vec::new();
        match run.state {
            RunState::PreRun => asks.push(Ask::Ring { timer: Timer::Due, at: run.due_at }),
            RunState::Retrying => {
                this.progress_mut().resumed(run);
                let at = run.retry_at.unwrap_or(now);
                asks.push(Ask::Ring { timer: Timer::Retry, at });
            }
            RunState::ContainerCreating | RunState::Running => {
                this.progress_mut().resumed(run);
                this.waits = Waits::Evidence;
                asks.push(Ask::Find { attempt: run.attempt });
            }
            // Of these nothing is written, so a record that has them is none of ours: it begins anew.
            RunState::Pending
            | RunState::ConditionPending
            | RunState::ConditionRunning
            | RunState::ActionPending
            | RunState::ActionRunning
            | RunState::Terminating => {
                this.state = RunState::PreRun;
                asks.push(Ask::Ring { timer: Timer::Due, at: run.due_at });
            }
            RunState::Completed | RunState::Failed | RunState::Cancelled | RunState::Orphaned => {
                this.waits = Waits::Nothing;
                asks.push(Ask::Done);
            }
        }
        if let Some(kind) = run.cancel.filter(|_| !run.state.is_final()) {
            asks.extend(this.cancel(kind, run.reason.clone(), now));
        }
        (this, asks)
    }

    pub const fn state(&self) -> RunState {
        self.state
    }

    pub const fn run_id(&self) -> &RunId {
        &self.run_id
    }

    pub const fn attempt(&self) -> u32 {
        self.attempt
    }

    pub const fn plan(&self) -> &Plan {
        &self.plan
    }

    /// When its next attempt is due or it was to be done, in milliseconds since 1970.
    pub const fn due_at(&self) -> Timestamp {
        self.due_at
    }

    /// Whether it holds one of the places that its job and its group have.
    pub fn holds_place(&self) -> bool {
        match self.state {
            RunState::PreRun => false,
            RunState::Pending => self.waits != Waits::Admission,
            RunState::ConditionPending
            | RunState::ConditionRunning
            | RunState::ActionPending
            | RunState::ActionRunning
            | RunState::ContainerCreating
            | RunState::Running
            | RunState::Terminating
            | RunState::Retrying => true,
            RunState::Completed | RunState::Failed | RunState::Cancelled | RunState::Orphaned => {
                false
            }
        }
    }

    /// Another revision of its job: it counts only while the run waits for its time.
    pub fn update(&mut self, plan: Plan) -> bool {
        if self.state != RunState::PreRun {
            return false;
        }
        self.plan = plan;
        true
    }

    /// Counts a beat of its heart, and says whether it has one: what has ended does not.
    pub fn beat(&mut self) -> bool {
        if self.state.is_final() {
            return false;
        }
        if let Some(progress) = &mut self.progress {
            progress.metrics.heartbeats_sent += 1;
        }
        true
    }

    /// Takes in what happened.
    pub fn handle(&mut self, happened: Happened, now: Timestamp) -> Vec<Ask> {
        match happened {
            Happened::Cancel { kind, why } => self.cancel(kind, why, now),
            Happened::Silent => self.orphan(now),
            Happened::Rang(timer) => self.rang(timer, now),
            Happened::Stored { kind, attempt } => self.stored(kind, attempt, now),
            Happened::Started { attempt, at } => self.started(attempt, at, now),
            Happened::Ended { attempt, work } => self.ended(attempt, work, now),
            Happened::Stopped { left } => self.stopped(left, now),
            answer @ (Happened::Admitted
            | Happened::Queued { .. }
            | Happened::TurnedAway { .. }
            | Happened::Checked(_)
            | Happened::ActionsDone(_)
            | Happened::Launched
            | Happened::LaunchFailed { .. }
            | Happened::PostChecked(_)
            | Happened::Found(_)) => self.answered(answer, now),
        }
    }

    /// An answer to what it asked for; to anything else it does not listen.
    fn answered(&mut self, answer: Happened, now: Timestamp) -> Vec<Ask> {
        match (&self.waits, answer) {
            (Waits::Admission, Happened::Admitted) => self.admitted(now),
            (Waits::Admission, Happened::Queued { why }) => self.queued(why, now),
            (Waits::Admission, Happened::TurnedAway { why }) => self.skip(&why, now),
            (Waits::Check, Happened::Checked(checked)) => self.checked(checked, now),
            (Waits::Actions, Happened::ActionsDone(done)) => self.acted(done, now),
            (Waits::Launch, Happened::Launched) => {
                self.waits = Waits::Start;
                Vec::new()
            }
            (Waits::Launch, Happened::LaunchFailed { why }) => self.unlaunched(&why, now),
            (Waits::PostCheck(_), Happened::PostChecked(done)) => self.post_checked(done, now),
            (Waits::Evidence, Happened::Found(evidence)) => self.found(evidence, now),
            (_, answer) => vec![Ask::Ignored { what: format!("{answer:?}") }],
        }
    }

    pub(super) fn progress_mut(&mut self) -> &mut Progress {
        let created_at = self.created_at;
        self.progress.get_or_insert_with(|| Box::new(Progress::new(created_at)))
    }

    pub(super) fn note(&mut self, at: Timestamp, noted: Noted) {
        let attempt = self.attempt;
        self.progress_mut().note(at, attempt, noted);
    }

    pub(super) fn note_all(&mut self, at: Timestamp, notes: Vec<Noted>) {
        for noted in notes {
            self.note(at, noted);
        }
    }

    pub(super) fn count(&mut self, counts: Counts) {
        self.progress_mut().count(counts);
    }

    /// The only way to change the state.
    pub(super) fn advance(
        &mut self,
        to: RunState,
        why: &str,
        at: Timestamp,
    ) -> Result<(), IllegalStep> {
        if !self.state.next().contains(&to) {
            return Err(IllegalStep { from: self.state, to });
        }
        (self.previous, self.state) = (self.state, to);
        self.note(at, Noted::State { to, why: why.to_owned() });
        self.progress_mut().entered(to, at);
        Ok(())
    }
}
