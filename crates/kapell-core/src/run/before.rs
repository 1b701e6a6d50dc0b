//! What a run does before its work: its time, its place, its constraints.

use std::borrow::Cow;
use std::sync::Arc;

use super::message::{ActionsDone, Ask, Checked, Timer};
use super::orchestrator::{Orchestrator, Plan, Waits};
use super::record::{Noted, SkippedBy};
use super::state::RunState;
use super::update::{RunUpdate, UpdateKind};
use crate::constraint::Verdict;
use crate::schedule::{Moments as _, Occurrence, Schedule};
use crate::seams::Timestamp;

impl Orchestrator {
    pub(super) fn rang(&mut self, timer: Timer, now: Timestamp) -> Option<Vec<Ask>> {
        let asks = match timer {
            Timer::Due if self.state == RunState::PreRun => self.due(now),
            Timer::Retry if self.state == RunState::Retrying => self.due_again(now),
            Timer::Deadline if self.waits == Waits::Admission => self.too_late(now),
            Timer::StartTimeout if matches!(self.waits, Waits::Launch | Waits::Start) => {
                self.unstarted()
            }
            Timer::RunTime if self.waits == Waits::End => self.overran(),
            Timer::Due | Timer::Retry | Timer::Deadline | Timer::StartTimeout | Timer::RunTime => {
                return None;
            }
        };
        Some(asks)
    }

    fn due(&mut self, now: Timestamp) -> Vec<Ask> {
        self.note_revision(now);
        self.step(RunState::Pending, "its time has come", now);
        if let Some(why) = self.withdrawn() {
            return self.skip(SkippedBy::Schedule, &why, now);
        }
        if self.is_too_late(now) {
            return self.too_late(now);
        }
        self.waits = Waits::Admission;
        vec![Ask::Admit]
    }

    /// Whether all that it asks for when its time has come is a place.
    pub fn is_plainly_due(&self, now: Timestamp) -> bool {
        self.state == RunState::PreRun
            && self.waits == Waits::Time
            && !self.revised
            && !self.plan.checks_before
            && !self.is_too_late(now)
    }

    /// Of one that is plainly due and has its place: goes on to where a timer and then the word that it may go lead, in one
    /// go, for very many are due at once. What is returned is to be stored.
    pub fn begin_at_once(&mut self, now: Timestamp) -> Arc<RunUpdate> {
        self.step(RunState::Pending, "its time has come", now);
        self.step(RunState::ContainerCreating, "no constraints to check", now);
        self.waits = Waits::Intent;
        self.told(UpdateKind::Intent, now)
    }

    /// Why its moment is none any more: its job changed after it was made, and before its time came.
    fn withdrawn(&self) -> Option<String> {
        let Plan { definition, revision, .. } = &self.plan;
        if !self.revised || self.run_id.is_asked_for() {
            return None;
        }
        let schedule = Schedule::of(definition).ok()?;
        let before = Timestamp(self.scheduled_at.0.saturating_sub(1));
        match schedule.next_after(before).filter(|next| next.at == self.scheduled_at) {
            None => Some(format!(
                "the schedule of its job does not have its moment any more (revision {revision})"
            )),
            Some(Occurrence { excluded: Some(calendar), .. }) => Some(format!(
                "calendar `{calendar}` of its job excludes its moment now (revision {revision})"
            )),
            Some(Occurrence { excluded: None, .. }) => None,
        }
    }

    /// Its place is its own until it ends, so it asks for none.
    fn due_again(&mut self, now: Timestamp) -> Vec<Ask> {
        self.step(RunState::Pending, "the next attempt is due", now);
        self.go(now)
    }

    fn deadline(&self) -> Option<Timestamp> {
        let deadline = self.plan.definition.starting_deadline.filter(|_| !self.unhurried)?;
        Some(self.moment().after(deadline.get()))
    }

    /// When it was to begin: what is made up for later was not to begin at the moment that it stands for.
    fn moment(&self) -> Timestamp {
        if self.run_id.is_asked_for() { self.due_at } else { self.scheduled_at }
    }

    fn is_too_late(&self, now: Timestamp) -> bool {
        self.deadline().is_some_and(|deadline| now > deadline)
    }

    fn too_late(&mut self, now: Timestamp) -> Vec<Ask> {
        let late = now.since(self.moment()).as_secs_f64();
        let why =
            format!("{late:.1}s after its moment it is too late to begin (starting_deadline)");
        self.skip(SkippedBy::Deadline, &why, now)
    }

    pub(super) fn queued(&mut self, why: String, now: Timestamp) -> Option<Vec<Ask>> {
        if self.waits != Waits::Admission {
            return None;
        }
        self.note(now, Noted::Waits { why });
        // Of all runs under way most may be waiting.
        self.progress_mut().unsaid.shrink_to_fit();
        let ring = |deadline: Timestamp| Ask::Ring { timer: Timer::Deadline, at: deadline.next() };
        Some(self.deadline().map(ring).into_iter().collect())
    }

    pub(super) fn turned_away(&mut self, why: &str, now: Timestamp) -> Option<Vec<Ask>> {
        (self.waits == Waits::Admission).then(|| self.skip(SkippedBy::Overlap, why, now))
    }

    /// One that waits for its time or its place has not begun.
    pub(super) fn passed_over(
        &mut self,
        by: SkippedBy,
        why: &str,
        now: Timestamp,
    ) -> Option<Vec<Ask>> {
        if self.state == RunState::PreRun {
            self.note_revision(now);
            self.step(RunState::Pending, "it is not to begin", now);
        } else if self.waits != Waits::Admission {
            return None;
        }
        Some(self.skip(by, why, now))
    }

    pub(super) fn admitted(&mut self, now: Timestamp) -> Option<Vec<Ask>> {
        (self.waits == Waits::Admission).then(|| self.go(now))
    }

    fn go(&mut self, now: Timestamp) -> Vec<Ask> {
        if !self.plan.checks_before {
            return self.intend("no constraints to check", now);
        }
        self.step(RunState::ConditionPending, "constraints are to be checked", now);
        self.step(RunState::ConditionRunning, "checking constraints", now);
        self.waits = Waits::Check;
        vec![Ask::Quiet, Ask::Check { attempt: self.attempt }]
    }

    pub(super) fn checked(&mut self, checked: Checked, now: Timestamp) -> Option<Vec<Ask>> {
        if self.waits != Waits::Check {
            return None;
        }
        self.count(checked.counts);
        self.note_all(now, checked.notes);
        if checked.acts {
            self.step(RunState::ActionPending, checked.message, now);
            self.step(RunState::ActionRunning, "taking actions", now);
            self.waits = Waits::Actions;
            return Some(vec![Ask::Act { attempt: self.attempt }]);
        }
        Some(self.go_on(checked.verdict, &checked.message, now))
    }

    pub(super) fn acted(&mut self, done: ActionsDone, now: Timestamp) -> Option<Vec<Ask>> {
        if self.waits != Waits::Actions {
            return None;
        }
        self.count(done.counts);
        self.note_all(now, done.notes);
        Some(self.go_on(done.verdict, &done.message, now))
    }

    fn go_on(&mut self, verdict: Verdict, message: &str, now: Timestamp) -> Vec<Ask> {
        match verdict {
            Verdict::Proceed => self.intend(message.to_owned(), now),
            Verdict::Skip => self.skip(SkippedBy::Constraint, message, now),
            Verdict::Fail => self.end(RunState::Failed, message, now),
            Verdict::Retry => self.retry_or_fail(message, now),
        }
    }

    /// Ends it well without its work, by way of the states in which that is decided.
    fn skip(&mut self, by: SkippedBy, why: &str, now: Timestamp) -> Vec<Ask> {
        self.note(now, Noted::Skipped { by, why: why.to_owned() });
        let way = [
            RunState::ConditionPending,
            RunState::ConditionRunning,
            RunState::ActionPending,
            RunState::ActionRunning,
        ];
        let here = way.iter().position(|state| *state == self.state);
        for state in &way[here.map_or(0, |here| here + 1)..] {
            self.step(*state, why.to_owned(), now);
        }
        self.progress_mut().more_mut().skipped = true;
        self.end(RunState::Completed, why, now)
    }

    /// Stores what it is about to do before it does it.
    fn intend(&mut self, why: impl Into<Cow<'static, str>>, now: Timestamp) -> Vec<Ask> {
        self.step(RunState::ContainerCreating, why, now);
        self.waits = Waits::Intent;
        vec![Ask::Quiet, self.store(UpdateKind::Intent, now)]
    }
}
