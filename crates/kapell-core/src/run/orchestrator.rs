//! One run, from its creation to its end: what happened goes in, what is to be done comes out.
//!
//! No I/O and no clock. While a run waits for nothing but a timer it is this value and nothing else: no task.

use std::borrow::Cow;
use std::sync::Arc;

use super::id::RunId;
use super::message::{Ask, Counts, Happened, Timer, WorkEnd};
use super::progress::Progress;
use super::record::{Noted, Run, Trigger};
use super::retry::delay;
use super::state::{IllegalStep, RunState};
use super::timeline::Timeline;
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
    /// Between a launch and the work that runs, where the job does not say.
    pub start_timeout_s: u32,
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
    PostCheck(Box<WorkEnd>),
    /// The work to be gone; then it goes on as said.
    Gone(Box<After>),
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
    /// It could not be launched, or did not start in time.
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
    pub(super) due_at: Timestamp,
    pub(super) scheduled_at: Timestamp,
    pub(super) created_at: Timestamp,
    pub(super) waits: Waits,
    /// Present from its due time on: most runs wait for that.
    pub(super) progress: Option<Box<Progress>>,
    pub(super) attempt: u32,
    pub(super) heartbeats: u32,
    pub(super) state: RunState,
    pub(super) previous: RunState,
    /// Of a backfill, whose runs are due at once and wait for their turn however long that takes.
    pub(super) unhurried: bool,
    /// It goes by another revision than that by which it was made. They only grow, so it never goes by that one again.
    pub(super) revised: bool,
}

impl Orchestrator {
    /// Takes up a run as the board has it: a new one, or one that another leader has left.
    pub fn begin(run: &Run, plan: Plan, now: Timestamp) -> (Self, Vec<Ask>) {
        let mut this = Self {
            run_id: run.run_id.clone(),
            revised: plan.revision != run.revision,
            plan,
            state: run.state,
            previous: run.previous_state.unwrap_or(run.state),
            attempt: run.attempt,
            heartbeats: 0,
            due_at: run.due_at,
            scheduled_at: run.scheduled_at,
            waits: Waits::Time,
            progress: None,
            created_at: run.created_at,
            unhurried: matches!(run.trigger, Trigger::Backfill { .. }),
        };
        let mut asks = Vec::new();
        match run.state {
            RunState::PreRun => asks.push(Ask::Ring { timer: Timer::Due, at: run.due_at }),
            RunState::Retrying => {
                this.progress_mut().resumed(run);
                let at = this.retry_at(run, now);
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

    /// When the next attempt is due. Whoever stored that may have had a clock that was ahead: it does not wait for longer
    /// than a wait that begins now.
    fn retry_at(&self, run: &Run, now: Timestamp) -> Timestamp {
        let retry = self.plan.definition.retry.as_ref();
        let failed = run.attempt.saturating_sub(1);
        let most = retry.map_or(now, |retry| now.after(delay(retry, &run.run_id, failed)));
        run.retry_at.map_or(now, |at| at.min(most))
    }

    pub const fn state(&self) -> RunState {
        self.state
    }

    pub const fn previous_state(&self) -> RunState {
        self.previous
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

    /// With jitter.
    pub const fn due_at(&self) -> Timestamp {
        self.due_at
    }

    /// The moment by the schedule, or when it was asked for.
    pub const fn scheduled_at(&self) -> Timestamp {
        self.scheduled_at
    }

    /// When it came into its state.
    pub fn since(&self) -> Timestamp {
        self.progress.as_ref().map_or(self.created_at, |progress| progress.since)
    }

    /// When the work of this attempt began to run.
    pub fn started_at(&self) -> Option<Timestamp> {
        self.progress.as_ref().and_then(|progress| progress.started_at)
    }

    /// What was noted of it and is not stored yet.
    pub fn noted(&self) -> &Timeline {
        static NOTHING: Timeline = Timeline::new();
        self.progress.as_ref().map_or(&NOTHING, |progress| &progress.unsaid)
    }

    pub const fn heartbeats(&self) -> u32 {
        self.heartbeats
    }

    /// Whether its work is under way, and only its backend has news of it.
    pub const fn awaits_news(&self) -> bool {
        matches!(self.waits, Waits::Start | Waits::End)
    }

    /// Whether it holds one of the places that its job and its group have.
    pub fn holds_place(&self) -> bool {
        match self.state {
            RunState::Pending => self.waits != Waits::Admission,
            RunState::ConditionPending
            | RunState::ConditionRunning
            | RunState::ActionPending
            | RunState::ActionRunning
            | RunState::ContainerCreating
            | RunState::Running
            | RunState::Terminating
            | RunState::Retrying => true,
            RunState::PreRun
            | RunState::Completed
            | RunState::Failed
            | RunState::Cancelled
            | RunState::Orphaned => false,
        }
    }

    /// Another revision of its job: it counts only while the run waits for its time.
    pub fn update(&mut self, plan: Plan) -> bool {
        if self.state != RunState::PreRun {
            return false;
        }
        self.revised |= plan.revision != self.plan.revision;
        self.plan = plan;
        true
    }

    /// Its time came when nobody led, and it begins all the same: whoever reads its timeline is told.
    pub fn made_up(&mut self, now: Timestamp) {
        if self.state == RunState::PreRun {
            let evidence =
                "its time came when nobody led, and it is made up for (catch_up)".to_owned();
            self.note(now, Noted::Adopted { evidence });
        }
    }

    /// Counts a beat of its heart, and says whether it has one: what has ended does not.
    pub const fn beat(&mut self) -> bool {
        if self.state.is_final() {
            return false;
        }
        self.heartbeats = self.heartbeats.saturating_add(1);
        true
    }

    /// Takes in what happened.
    pub fn handle(&mut self, happened: Happened, now: Timestamp) -> Vec<Ask> {
        let name = happened.name();
        let taken = match happened {
            Happened::Cancel { kind, why } => return self.cancel(kind, why, now),
            Happened::Silent => return self.orphan(now),
            Happened::Rang(timer) => self.rang(timer, now),
            Happened::Admitted => self.admitted(now),
            Happened::Queued { why } => self.queued(why, now),
            Happened::TurnedAway { why } => self.turned_away(&why, now),
            Happened::PassedOver { by, why } => self.passed_over(by, &why, now),
            Happened::Stored { kind, attempt } => self.stored(kind, attempt, now),
            Happened::IntentRefused { attempt, why } => {
                self.of(attempt).and_then(|this| this.intent_refused(&why, now))
            }
            Happened::Checked { attempt, checked } => {
                self.of(attempt).and_then(|this| this.checked(checked, now))
            }
            Happened::ActionsDone { attempt, done } => {
                self.of(attempt).and_then(|this| this.acted(done, now))
            }
            Happened::Launched { attempt } => self.of(attempt).and_then(Self::launched),
            Happened::LaunchFailed { attempt, why } => {
                self.of(attempt).and_then(|this| this.launch_failed(why))
            }
            Happened::Unstartable { attempt, why } => {
                self.of(attempt).and_then(|this| this.unstartable(why))
            }
            Happened::Hindered { attempt, why } => {
                self.of(attempt).and_then(|this| this.hindered(why))
            }
            Happened::Started { attempt, at } => {
                self.of(attempt).and_then(|this| this.started(at, now))
            }
            Happened::Ended { attempt, work } => {
                self.of(attempt).and_then(|this| this.ended(work, now))
            }
            Happened::Stopped { attempt, left } => {
                self.of(attempt).and_then(|this| this.stopped(left.as_deref(), now))
            }
            Happened::PostChecked { attempt, done } => {
                self.of(attempt).and_then(|this| this.post_checked(done, now))
            }
            Happened::Found { attempt, evidence } => {
                self.of(attempt).and_then(|this| this.found(evidence, now))
            }
        };
        taken.unwrap_or_else(|| vec![Ask::Ignored { what: name.to_owned() }])
    }

    /// What is about another attempt is not about this one.
    fn of(&mut self, attempt: u32) -> Option<&mut Self> {
        (attempt == self.attempt).then_some(self)
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

    /// Says by which revision it goes, if it is not the one by which it was made.
    pub(super) fn note_revision(&mut self, at: Timestamp) {
        let revision = self.plan.revision;
        if self.revised {
            self.note(at, Noted::Revision { revision });
        }
    }

    pub(super) fn count(&mut self, counts: Counts) {
        self.progress_mut().count(counts);
    }

    /// A step of ours is legal, or it is a mistake of this module: then the run stays where it is, which its timeline says.
    pub(super) fn step(&mut self, to: RunState, why: impl Into<Cow<'static, str>>, now: Timestamp) {
        if let Err(illegal) = self.advance(to, why.into(), now) {
            debug_assert!(false, "{illegal}");
            self.note(now, Noted::Ignored { what: illegal.to_string() });
        }
    }

    /// The only way to change the state.
    fn advance(
        &mut self,
        to: RunState,
        why: Cow<'static, str>,
        at: Timestamp,
    ) -> Result<(), IllegalStep> {
        if !self.state.next().contains(&to) {
            return Err(IllegalStep { from: self.state, to });
        }
        (self.previous, self.state) = (self.state, to);
        self.note(at, Noted::State { to, why });
        self.progress_mut().entered(to, at);
        Ok(())
    }
}
