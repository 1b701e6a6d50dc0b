//! What a run does when it is told something, phase by phase.

use std::time::Duration;

use super::message::{ActionsDone, Ask, Checked, Evidence, Timer, WorkEnd};
use super::orchestrator::{After, Orchestrator, Waits};
use super::record::{Noted, StopKind};
use super::retry::delay;
use super::state::RunState;
use super::update::{RunUpdate, UpdateKind};
use crate::constraint::Verdict;
use crate::job::RetryOn;
use crate::seams::Timestamp;

/// Between a launch and the work that runs, where the job does not say.
const START_TIMEOUT: Duration = Duration::from_secs(300);
/// What an attempt fails with whose work nobody can account for.
pub const HOST_LOST: &str = "host lost";

/// Before the work.
impl Orchestrator {
    pub(super) fn rang(&mut self, timer: Timer, now: Timestamp) -> Vec<Ask> {
        match timer {
            Timer::Due if self.state == RunState::PreRun => self.due("its time has come", now),
            Timer::Retry if self.state == RunState::Retrying => {
                self.due("the next attempt is due", now)
            }
            Timer::Deadline if self.waits == Waits::Admission => self.too_late(now),
            Timer::StartTimeout if matches!(self.waits, Waits::Launch | Waits::Start) => {
                self.unstarted()
            }
            Timer::RunTime if self.waits == Waits::End => self.overran(),
            Timer::Due | Timer::Retry | Timer::Deadline | Timer::StartTimeout | Timer::RunTime => {
                vec![Ask::Ignored { what: format!("{timer:?}") }]
            }
        }
    }

    fn due(&mut self, why: &str, now: Timestamp) -> Vec<Ask> {
        let retries = self.state == RunState::Retrying;
        self.step(RunState::Pending, why, now);
        if retries {
            // Its place is its own until it ends.
            return self.admitted(now);
        }
        if self.is_too_late(now) {
            return self.too_late(now);
        }
        self.waits = Waits::Admission;
        vec![Ask::Admit]
    }

    fn deadline(&self) -> Option<Timestamp> {
        let deadline = self.plan.definition.starting_deadline?;
        Some(self.scheduled_at.after(deadline.get()))
    }

    fn is_too_late(&self, now: Timestamp) -> bool {
        self.deadline().is_some_and(|deadline| now > deadline)
    }

    fn too_late(&mut self, now: Timestamp) -> Vec<Ask> {
        let late = now.since(self.scheduled_at).as_secs_f64();
        self.skip(
            &format!("{late:.1}s after its moment it is too late to begin (starting_deadline)"),
            now,
        )
    }

    pub(super) fn queued(&mut self, why: String, now: Timestamp) -> Vec<Ask> {
        self.note(now, Noted::Waits { why });
        let ring = |deadline: Timestamp| Ask::Ring { timer: Timer::Deadline, at: deadline.next() };
        self.deadline().map(ring).into_iter().collect()
    }

    pub(super) fn admitted(&mut self, now: Timestamp) -> Vec<Ask> {
        if !self.plan.checks_before {
            return self.intend("no constraints to check", now);
        }
        self.step(RunState::ConditionPending, "constraints are to be checked", now);
        self.step(RunState::ConditionRunning, "checking constraints", now);
        self.waits = Waits::Check;
        vec![Ask::Quiet, Ask::Check { attempt: self.attempt }]
    }

    pub(super) fn checked(&mut self, checked: Checked, now: Timestamp) -> Vec<Ask> {
        self.count(checked.counts);
        self.note_all(now, checked.notes);
        if checked.acts {
            self.step(RunState::ActionPending, &checked.message, now);
            self.step(RunState::ActionRunning, "taking actions", now);
            self.waits = Waits::Actions;
            return vec![Ask::Act];
        }
        self.go_on(checked.verdict, &checked.message, now)
    }

    pub(super) fn acted(&mut self, done: ActionsDone, now: Timestamp) -> Vec<Ask> {
        self.count(done.counts);
        self.note_all(now, done.notes);
        self.go_on(done.verdict, &done.message, now)
    }

    fn go_on(&mut self, verdict: Verdict, message: &str, now: Timestamp) -> Vec<Ask> {
        match verdict {
            Verdict::Proceed => self.intend(message, now),
            Verdict::Skip => self.skip(message, now),
            Verdict::Fail => self.end(RunState::Failed, message, now),
            Verdict::Retry => self.retry_or_fail(message, now),
        }
    }

    /// Ends it well without its work, by way of the states in which that is decided.
    pub(super) fn skip(&mut self, why: &str, now: Timestamp) -> Vec<Ask> {
        let way = [
            RunState::ConditionPending,
            RunState::ConditionRunning,
            RunState::ActionPending,
            RunState::ActionRunning,
        ];
        let here = way.iter().position(|state| *state == self.state);
        for state in &way[here.map_or(0, |here| here + 1)..] {
            self.step(*state, why, now);
        }
        self.progress_mut().skipped = true;
        self.end(RunState::Completed, why, now)
    }

    /// Stores what it is about to do before it does it.
    fn intend(&mut self, why: &str, now: Timestamp) -> Vec<Ask> {
        self.step(RunState::ContainerCreating, why, now);
        self.waits = Waits::Intent;
        vec![Ask::Quiet, self.store(UpdateKind::Intent, now)]
    }
}

/// The work.
impl Orchestrator {
    pub(super) fn stored(&mut self, kind: UpdateKind, attempt: u32, now: Timestamp) -> Vec<Ask> {
        match (kind, &self.waits) {
            (UpdateKind::Intent, Waits::Intent) if attempt == self.attempt => self.launch(now),
            (UpdateKind::Ended, Waits::Disk { leftover: false }) => {
                self.waits = Waits::Nothing;
                vec![Ask::Done]
            }
            (UpdateKind::Ended, Waits::Disk { leftover: true }) => {
                self.waits = Waits::Leftover;
                vec![Ask::Stop { attempt: self.attempt, kind: StopKind::AtOnce }]
            }
            _ => Vec::new(),
        }
    }

    fn launch(&mut self, now: Timestamp) -> Vec<Ask> {
        self.waits = Waits::Launch;
        vec![self.start_timer(now), Ask::Launch { attempt: self.attempt }]
    }

    fn start_timer(&self, now: Timestamp) -> Ask {
        let timeout =
            self.plan.definition.start_timeout.map_or(START_TIMEOUT, |timeout| timeout.get());
        Ask::Ring { timer: Timer::StartTimeout, at: now.after(timeout) }
    }

    pub(super) fn unlaunched(&mut self, why: &str, now: Timestamp) -> Vec<Ask> {
        let retry = &self.plan.definition.retry;
        if retry.as_ref().is_some_and(|retry| retry.on.contains(&RetryOn::Launch)) {
            self.step(RunState::Terminating, why, now);
            return self.retry_or_fail(why, now);
        }
        self.end(RunState::Failed, why, now)
    }

    fn unstarted(&mut self) -> Vec<Ask> {
        let timeout =
            self.plan.definition.start_timeout.map_or(START_TIMEOUT, |timeout| timeout.get());
        let why = format!("it did not start within {}s (start_timeout)", timeout.as_secs_f64());
        self.waits = Waits::Gone(After::Unstarted { why });
        vec![Ask::Quiet, Ask::Abandon, Ask::Stop { attempt: self.attempt, kind: StopKind::AtOnce }]
    }

    fn overran(&mut self) -> Vec<Ask> {
        let most = self
            .plan
            .definition
            .max_allowed_run_time
            .map_or_else(String::new, |most| most.to_string());
        let why = format!("it ran longer than {most} (maxAllowedRunTime) and was stopped");
        self.waits = Waits::Gone(After::Overran { why });
        vec![Ask::Quiet, Ask::Stop { attempt: self.attempt, kind: StopKind::Graceful }]
    }

    pub(super) fn started(&mut self, attempt: u32, at: Timestamp, now: Timestamp) -> Vec<Ask> {
        let begins = matches!(self.waits, Waits::Launch | Waits::Start);
        if attempt != self.attempt || !begins {
            return vec![Ask::Ignored { what: format!("a start of attempt {attempt}") }];
        }
        self.progress_mut().started_at = Some(at);
        self.step(RunState::Running, "the work runs", now);
        self.waits = Waits::End;
        let mut asks = vec![self.store(UpdateKind::Started, now)];
        asks.push(self.run_timer(at));
        asks
    }

    fn run_timer(&self, started_at: Timestamp) -> Ask {
        let most = self.plan.definition.max_allowed_run_time;
        most.map_or(Ask::Quiet, |most| Ask::Ring {
            timer: Timer::RunTime,
            at: started_at.after(most.get()),
        })
    }

    pub(super) fn ended(&mut self, attempt: u32, work: WorkEnd, now: Timestamp) -> Vec<Ask> {
        if attempt != self.attempt {
            return vec![Ask::Ignored { what: format!("an end of attempt {attempt}") }];
        }
        match &self.waits {
            Waits::Launch | Waits::Start => {
                // So short was it that its start was not noticed.
                let mut asks = self.started(attempt, work.at, now);
                asks.extend(self.over(work, now));
                asks
            }
            Waits::End => self.over(work, now),
            Waits::Gone(_) => {
                self.progress_mut().exit_code = work.exit_code;
                Vec::new()
            }
            Waits::Time
            | Waits::Admission
            | Waits::Check
            | Waits::Actions
            | Waits::Intent
            | Waits::Evidence
            | Waits::PostCheck(_)
            | Waits::Disk { .. }
            | Waits::Leftover
            | Waits::Nothing => vec![Ask::Ignored { what: "an end of the work".to_owned() }],
        }
    }

    /// The work has ended by itself.
    fn over(&mut self, work: WorkEnd, now: Timestamp) -> Vec<Ask> {
        let progress = self.progress_mut();
        progress.exit_code = work.exit_code;
        progress.ended_at = Some(work.at);
        let why = work.failure.clone().unwrap_or_else(|| "the work has ended".to_owned());
        self.step(RunState::Terminating, &why, now);
        if self.plan.checks_after {
            self.waits = Waits::PostCheck(work.clone());
            return vec![Ask::Quiet, Ask::CheckPost { work }];
        }
        let mut asks = vec![Ask::Quiet];
        asks.extend(self.conclude(&work, now));
        asks
    }

    pub(super) fn post_checked(&mut self, done: ActionsDone, now: Timestamp) -> Vec<Ask> {
        let Waits::PostCheck(work) = std::mem::replace(&mut self.waits, Waits::Nothing) else {
            return Vec::new();
        };
        self.count(done.counts);
        self.note_all(now, done.notes);
        match done.verdict {
            Verdict::Proceed | Verdict::Skip => self.conclude(&work, now),
            Verdict::Fail => self.end(RunState::Failed, &done.message, now),
            Verdict::Retry => self.retry_or_fail(&done.message, now),
        }
    }

    fn conclude(&mut self, work: &WorkEnd, now: Timestamp) -> Vec<Ask> {
        match &work.failure {
            None => self.end(RunState::Completed, "", now),
            Some(why) => self.retry_or_fail(why, now),
        }
    }

    pub(super) fn retry_or_fail(&mut self, why: &str, now: Timestamp) -> Vec<Ask> {
        let retry =
            self.plan.definition.retry.clone().filter(|retry| self.attempt < retry.max_retries);
        let Some(retry) = retry else { return self.end(RunState::Failed, why, now) };
        let at = now.after(delay(&retry, self.attempt));
        self.step(RunState::Retrying, why, now);
        self.progress_mut().retry_at = Some(at);
        self.progress_mut().reason = why.to_owned();
        let store = self.store(UpdateKind::Retry, now);
        self.attempt += 1;
        self.progress_mut().next_attempt();
        self.waits = Waits::Time;
        vec![store, Ask::Ring { timer: Timer::Retry, at }]
    }
}

/// Its end, and what others want of it.
impl Orchestrator {
    pub(super) fn cancel(&mut self, kind: StopKind, why: String, now: Timestamp) -> Vec<Ask> {
        if self.state.is_final() {
            return vec![Ask::Ignored { what: "a cancel after its end".to_owned() }];
        }
        self.note(now, Noted::Cancel { why: why.clone() });
        match &self.waits {
            Waits::Time | Waits::Admission => self.end(RunState::Cancelled, &why, now),
            Waits::Check | Waits::Actions | Waits::PostCheck(_) => {
                let mut asks = vec![Ask::Abandon];
                asks.extend(self.end(RunState::Cancelled, &why, now));
                asks
            }
            // An intent on its way may be on disk; nothing was launched.
            Waits::Intent => self.end(RunState::Cancelled, &why, now),
            Waits::Launch | Waits::Start | Waits::End | Waits::Evidence => {
                self.waits = Waits::Gone(After::Cancelled { why });
                vec![Ask::Quiet, Ask::Abandon, Ask::Stop { attempt: self.attempt, kind }]
            }
            // It is being stopped already: what it ends as is what came last, and it may be told to hurry.
            Waits::Gone(_) => {
                self.waits = Waits::Gone(After::Cancelled { why });
                match kind {
                    StopKind::AtOnce => vec![Ask::Stop { attempt: self.attempt, kind }],
                    StopKind::Graceful => Vec::new(),
                }
            }
            Waits::Disk { .. } | Waits::Leftover | Waits::Nothing => Vec::new(),
        }
    }

    /// Its work is gone, or what could not be ended is named.
    pub(super) fn stopped(&mut self, left: Option<String>, now: Timestamp) -> Vec<Ask> {
        let after = match std::mem::replace(&mut self.waits, Waits::Nothing) {
            Waits::Gone(after) => after,
            Waits::Leftover => return vec![Ask::Done],
            waits => {
                self.waits = waits;
                return vec![Ask::Ignored { what: "an end of a stop".to_owned() }];
            }
        };
        let said = |why: String| match &left {
            None => why,
            Some(left) => format!("{why}; {left}"),
        };
        match after {
            After::Cancelled { why } => self.end(RunState::Cancelled, &said(why), now),
            After::Unstarted { why } => self.unlaunched(&said(why), now),
            After::Overran { why } => {
                let why = said(why);
                let exit_code = self.progress_mut().exit_code;
                self.over(WorkEnd { at: now, exit_code, failure: Some(why) }, now)
            }
        }
    }

    pub(super) fn orphan(&mut self, now: Timestamp) -> Vec<Ask> {
        if self.state.is_final() {
            return vec![Ask::Ignored { what: "silence after its end".to_owned() }];
        }
        let leftover = matches!(self.state, RunState::ContainerCreating | RunState::Running)
            && self.waits != Waits::Intent;
        let mut asks = vec![Ask::Abandon];
        asks.extend(self.end(RunState::Orphaned, "it gave no sign of life for too long", now));
        self.waits = Waits::Disk { leftover };
        asks
    }

    /// What is known of the work of the attempt that another leader had begun.
    pub(super) fn found(&mut self, evidence: Evidence, now: Timestamp) -> Vec<Ask> {
        let about = match &evidence {
            Evidence::Absent => "its work was never launched".to_owned(),
            Evidence::Unknown { why } => format!("of its work nothing is known: {why}"),
            Evidence::Launched => "its work was launched".to_owned(),
            Evidence::Running { .. } => "its work runs".to_owned(),
            Evidence::Ended(_) => "its work has ended".to_owned(),
        };
        self.note(now, Noted::Adopted { evidence: about });
        let ran = self.state == RunState::Running;
        match evidence {
            Evidence::Absent if !ran => self.launch(now),
            Evidence::Absent => self.lost("its work is gone", now),
            Evidence::Unknown { why } => self.lost(&why, now),
            Evidence::Launched if !ran => {
                self.waits = Waits::Start;
                vec![self.start_timer(now)]
            }
            Evidence::Launched => {
                self.waits = Waits::End;
                let started_at = self.progress_mut().started_at;
                vec![self.run_timer(started_at.unwrap_or(now))]
            }
            Evidence::Running { since } if !ran => {
                self.waits = Waits::Start;
                let attempt = self.attempt;
                self.started(attempt, since, now)
            }
            Evidence::Running { since } => {
                self.waits = Waits::End;
                vec![self.run_timer(since)]
            }
            Evidence::Ended(work) => {
                self.waits = if ran { Waits::End } else { Waits::Start };
                let attempt = self.attempt;
                self.ended(attempt, work, now)
            }
        }
    }

    /// Nobody can account for the work: the attempt has failed.
    fn lost(&mut self, why: &str, now: Timestamp) -> Vec<Ask> {
        let why = format!("{HOST_LOST}: {why}");
        self.step(RunState::Terminating, &why, now);
        self.retry_or_fail(&why, now)
    }

    pub(super) fn end(&mut self, to: RunState, why: &str, now: Timestamp) -> Vec<Ask> {
        self.step(to, why, now);
        why.clone_into(&mut self.progress_mut().reason);
        self.waits = Waits::Disk { leftover: false };
        vec![Ask::Quiet, self.store(UpdateKind::Ended, now)]
    }

    /// A step of ours is legal, or it is a mistake of this file: then the run stays where it is, which its timeline says.
    fn step(&mut self, to: RunState, why: &str, now: Timestamp) {
        if let Err(illegal) = self.advance(to, why, now) {
            debug_assert!(false, "{illegal}");
            self.note(now, Noted::Ignored { what: illegal.to_string() });
        }
    }

    fn store(&mut self, kind: UpdateKind, now: Timestamp) -> Ask {
        let (state, previous_state, attempt) = (self.state, self.previous, self.attempt);
        let revision = self.plan.revision;
        let max_retries = self.plan.definition.retry.as_ref().map_or(0, |retry| retry.max_retries);
        let progress = self.progress_mut();
        let completed_at = state.is_final().then_some(now);
        let metrics =
            completed_at.map(|at| Box::new(progress.figures(at, attempt, max_retries, state)));
        Ask::Store(Box::new(RunUpdate {
            kind,
            attempt,
            at: now,
            state,
            previous_state,
            revision,
            place: String::new(),
            started_at: progress.started_at,
            retry_at: progress.retry_at.filter(|_| kind == UpdateKind::Retry),
            completed_at,
            exit_code: progress.exit_code,
            reason: progress.reason.clone(),
            skipped: progress.skipped,
            timeline: std::mem::take(&mut progress.unsaid),
            metrics,
        }))
    }
}
