//! What a run does about its work: launch, start, end, what is found of it, another attempt.

use std::borrow::Cow;
use std::time::Duration;

use super::message::{ActionsDone, Ask, Evidence, Timer, WorkEnd};
use super::orchestrator::{After, Orchestrator, Waits};
use super::record::{Noted, StopKind};
use super::retry::delay;
use super::state::RunState;
use super::update::UpdateKind;
use crate::constraint::Verdict;
use crate::job::{Length, RetryOn};
use crate::seams::Timestamp;

/// Between a launch and the work that runs, where neither the job nor the settings say.
pub const START_TIMEOUT: Duration = Duration::from_secs(300);
/// What an attempt fails with whose work nobody can account for.
pub const HOST_LOST: &str = "host lost";

impl Orchestrator {
    pub(super) fn launch(&mut self, now: Timestamp) -> Vec<Ask> {
        self.waits = Waits::Launch;
        vec![self.start_timer(now), Ask::Launch { attempt: self.attempt }]
    }

    fn start_timeout(&self) -> Length {
        let usual = || Length::new(Duration::from_secs(self.plan.start_timeout_s.into()));
        self.plan.definition.start_timeout.unwrap_or_else(usual)
    }

    fn start_timer(&self, now: Timestamp) -> Ask {
        Ask::Ring { timer: Timer::StartTimeout, at: now.after(self.start_timeout().get()) }
    }

    fn run_timer(&self, started_at: Timestamp) -> Ask {
        let most = self.plan.definition.max_allowed_run_time;
        let ring =
            |most: Length| Ask::Ring { timer: Timer::RunTime, at: started_at.after(most.get()) };
        most.map_or(Ask::Quiet, ring)
    }

    /// Short work has started or ended before its launch is answered: that is no news then.
    pub(super) fn launched(&mut self) -> Option<Vec<Ask>> {
        match &self.waits {
            Waits::Launch => {
                self.waits = Waits::Start;
                Some(Vec::new())
            }
            Waits::End | Waits::PostCheck(_) | Waits::Disk { .. } => Some(Vec::new()),
            Waits::Time
            | Waits::Admission
            | Waits::Check
            | Waits::Actions
            | Waits::Intent
            | Waits::Start
            | Waits::Evidence
            | Waits::Gone(_)
            | Waits::Leftover
            | Waits::Nothing => None,
        }
    }

    /// Whether anything was launched may be unknown: what there is of it is ended before anything else is done.
    pub(super) fn launch_failed(&mut self, why: String) -> Option<Vec<Ask>> {
        (self.waits == Waits::Launch)
            .then(|| self.give_up(After::Unstarted { why }, StopKind::AtOnce))
    }

    pub(super) fn unstartable(&mut self, why: String) -> Option<Vec<Ask>> {
        let begins = matches!(self.waits, Waits::Launch | Waits::Start | Waits::Evidence);
        begins.then(|| self.give_up(After::Unstarted { why }, StopKind::AtOnce))
    }

    /// The last word of it is what it fails with, should it not start in time.
    pub(super) fn hindered(&mut self, why: String) -> Option<Vec<Ask>> {
        let begins = matches!(self.waits, Waits::Launch | Waits::Start | Waits::Evidence);
        begins.then(|| {
            self.progress_mut().more_mut().hindrance = Some(why.into());
            Vec::new()
        })
    }

    pub(super) fn unstarted(&mut self) -> Vec<Ask> {
        let mut why = format!("it did not start within {} (start_timeout)", self.start_timeout());
        if let Some(hindrance) = self.progress_mut().take_hindrance() {
            why.push_str(&format!(": {hindrance}"));
        }
        self.give_up(After::Unstarted { why }, StopKind::AtOnce)
    }

    pub(super) fn overran(&mut self) -> Vec<Ask> {
        let most = self.plan.definition.max_allowed_run_time.unwrap_or_default();
        let why = format!("it ran longer than {most} (maxAllowedRunTime) and was stopped");
        self.give_up(After::Overran { why }, StopKind::Graceful)
    }

    /// Ends its work.
    pub(super) fn give_up(&mut self, after: After, kind: StopKind) -> Vec<Ask> {
        self.waits = Waits::Gone(Box::new(after));
        vec![Ask::Quiet, Ask::Abandon, Ask::Stop { attempt: self.attempt, kind }]
    }

    pub(super) fn started(&mut self, at: Timestamp, now: Timestamp) -> Option<Vec<Ask>> {
        match &self.waits {
            Waits::Launch | Waits::Start => Some(self.runs(at, now)),
            // News may overtake the evidence.
            Waits::Evidence => self.found(Evidence::Running { since: at }, now),
            Waits::Time
            | Waits::Admission
            | Waits::Check
            | Waits::Actions
            | Waits::Intent
            | Waits::End
            | Waits::PostCheck(_)
            | Waits::Gone(_)
            | Waits::Disk { .. }
            | Waits::Leftover
            | Waits::Nothing => None,
        }
    }

    fn runs(&mut self, at: Timestamp, now: Timestamp) -> Vec<Ask> {
        // By a clock that was set meanwhile it may not have begun yet: it would run on until it has.
        let at = at.min(now);
        self.progress_mut().started_at = Some(at);
        self.step(RunState::Running, "the work runs", at);
        self.waits = Waits::End;
        vec![self.store(UpdateKind::Started, now), self.run_timer(at)]
    }

    pub(super) fn ended(&mut self, work: WorkEnd, now: Timestamp) -> Option<Vec<Ask>> {
        match &self.waits {
            // So short was it that its start was not noticed.
            Waits::Launch | Waits::Start => {
                let mut asks = self.runs(work.began.unwrap_or(work.at), now);
                asks.extend(self.over(work, now));
                Some(asks)
            }
            Waits::End => Some(self.over(work, now)),
            Waits::Evidence => self.found(Evidence::Ended(work), now),
            Waits::Gone(_) => {
                let progress = self.progress_mut();
                progress.more_mut().exit_code = work.exit_code;
                progress.exited(work.at, now);
                Some(Vec::new())
            }
            Waits::Time
            | Waits::Admission
            | Waits::Check
            | Waits::Actions
            | Waits::Intent
            | Waits::PostCheck(_)
            | Waits::Disk { .. }
            | Waits::Leftover
            | Waits::Nothing => None,
        }
    }

    /// The work has ended.
    pub(super) fn over(&mut self, work: WorkEnd, now: Timestamp) -> Vec<Ask> {
        let progress = self.progress_mut();
        progress.more_mut().exit_code = work.exit_code;
        progress.exited(work.at, now);
        let why = work.failure.clone().map_or("the work has ended".into(), Cow::from);
        self.step(RunState::Terminating, why, now);
        if self.plan.checks_after {
            self.waits = Waits::PostCheck(Box::new(work.clone()));
            return vec![Ask::Quiet, Ask::CheckPost { attempt: self.attempt, work }];
        }
        let mut asks = vec![Ask::Quiet];
        asks.extend(self.conclude(&work, now));
        asks
    }

    pub(super) fn post_checked(&mut self, done: ActionsDone, now: Timestamp) -> Option<Vec<Ask>> {
        let Waits::PostCheck(work) = &self.waits else { return None };
        let work = work.clone();
        self.count(done.counts);
        self.note_all(now, done.notes);
        Some(match done.verdict {
            Verdict::Proceed | Verdict::Skip => self.conclude(&work, now),
            Verdict::Fail => self.end(RunState::Failed, &done.message, now),
            Verdict::Retry => self.retry_or_fail(&done.message, now),
        })
    }

    fn conclude(&mut self, work: &WorkEnd, now: Timestamp) -> Vec<Ask> {
        match &work.failure {
            None => self.end(RunState::Completed, "", now),
            Some(why) => self.retry_or_fail(why, now),
        }
    }

    /// Nothing of it was launched, or nothing is left.
    pub(super) fn unlaunched(&mut self, why: &str, now: Timestamp) -> Vec<Ask> {
        let retry = self.plan.definition.retry.as_ref();
        let again = retry.is_some_and(|retry| retry.on.contains(&RetryOn::Launch));
        if again { self.attempt_failed(why, now) } else { self.end(RunState::Failed, why, now) }
    }

    /// An attempt that never ran has failed, or one of which nobody knows.
    fn attempt_failed(&mut self, why: &str, now: Timestamp) -> Vec<Ask> {
        if self.may_retry() {
            self.step(RunState::Terminating, why.to_owned(), now);
        }
        self.retry_or_fail(why, now)
    }

    fn may_retry(&self) -> bool {
        let retry = self.plan.definition.retry.as_ref();
        retry.is_some_and(|retry| self.attempt < retry.max_retries)
    }

    pub(super) fn retry_or_fail(&mut self, why: &str, now: Timestamp) -> Vec<Ask> {
        let retry = self.plan.definition.retry.as_ref().filter(|_| self.may_retry());
        let Some(retry) = retry else { return self.end(RunState::Failed, why, now) };
        let at = now.after(delay(retry, &self.run_id, self.attempt));
        self.step(RunState::Retrying, why.to_owned(), now);
        let progress = self.progress_mut();
        progress.started_at = None;
        let more = progress.more_mut();
        more.retry_at = Some(at);
        more.hindrance = None;
        why.clone_into(&mut more.reason);
        let store = self.store(UpdateKind::Retry, now);
        self.progress_mut().more_mut().exit_code = None;
        self.attempt += 1;
        self.waits = Waits::Time;
        vec![store, Ask::Ring { timer: Timer::Retry, at }]
    }

    /// What is known of the work of the attempt that another leader had begun, or of which no news came for long.
    pub(super) fn found(&mut self, evidence: Evidence, now: Timestamp) -> Option<Vec<Ask>> {
        match &self.waits {
            Waits::Evidence => {}
            Waits::Start | Waits::End => return self.looked_after(evidence, now),
            Waits::Time
            | Waits::Admission
            | Waits::Check
            | Waits::Actions
            | Waits::Intent
            | Waits::Launch
            | Waits::PostCheck(_)
            | Waits::Gone(_)
            | Waits::Disk { .. }
            | Waits::Leftover
            | Waits::Nothing => return None,
        }
        self.note(now, Noted::Adopted { evidence: words(&evidence) });
        let ran = self.state == RunState::Running;
        self.waits = if ran { Waits::End } else { Waits::Start };
        Some(match evidence {
            Evidence::Absent if ran => self.lost("its work is gone", now),
            Evidence::Absent => self.launch(now),
            Evidence::Unknown { why } => self.lost(&why, now),
            // By a clock that was set meanwhile it may not have begun yet.
            Evidence::Launched if ran => {
                vec![self.run_timer(self.started_at().unwrap_or(now).min(now))]
            }
            Evidence::Launched => vec![self.start_timer(now)],
            Evidence::Running { since } if ran => {
                vec![self.run_timer(self.started_at().unwrap_or(since).min(now))]
            }
            Evidence::Running { since } => self.runs(since, now),
            Evidence::Ended(work) => return self.ended(self.timed(work, now), now),
        })
    }

    /// Work that ended when nobody led may have run longer than it was allowed to: nobody was there to stop it.
    fn timed(&self, mut work: WorkEnd, now: Timestamp) -> WorkEnd {
        let most = self.plan.definition.max_allowed_run_time;
        let took = self.started_at().or(work.began).map(|began| work.at.min(now).since(began));
        if let Some((most, took)) = most.zip(took)
            && took > most.get()
            && work.failure.is_none()
        {
            work.failure = Some(format!("it ran longer than {most} (maxAllowedRunTime)"));
        }
        work
    }

    /// News that did not come are made up for; what is as expected is no news.
    fn looked_after(&mut self, evidence: Evidence, now: Timestamp) -> Option<Vec<Ask>> {
        Some(match evidence {
            Evidence::Absent => self.lost("its work is gone", now),
            Evidence::Unknown { why } => self.lost(&why, now),
            Evidence::Running { since } if self.waits == Waits::Start => self.runs(since, now),
            Evidence::Launched | Evidence::Running { .. } => Vec::new(),
            Evidence::Ended(work) => return self.ended(work, now),
        })
    }

    /// Nobody can account for the work: the attempt has failed.
    fn lost(&mut self, why: &str, now: Timestamp) -> Vec<Ask> {
        let why = format!("{HOST_LOST}: {why}");
        if self.state == RunState::Running {
            // It ran, so what is to be checked after the work is.
            let (began, failure) = (self.started_at(), Some(why));
            return self.over(WorkEnd { began, at: now, exit_code: None, failure }, now);
        }
        let mut asks = vec![Ask::Quiet];
        asks.extend(self.attempt_failed(&why, now));
        asks
    }
}

fn words(evidence: &Evidence) -> String {
    match evidence {
        Evidence::Absent => "its work was never launched".to_owned(),
        Evidence::Unknown { why } => format!("of its work nothing is known: {why}"),
        Evidence::Launched => "its work was launched".to_owned(),
        Evidence::Running { .. } => "its work runs".to_owned(),
        Evidence::Ended(_) => "its work has ended".to_owned(),
    }
}
