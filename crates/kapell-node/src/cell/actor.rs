//! Turns what happens into decisions of the rep, and those into deeds.

use std::collections::VecDeque;
use std::mem;
use std::sync::Arc;
use std::time::Duration;

use kapell_api::v1::{ReportAnswer, Welcome};
use kapell_backend::containers::Error;
use kapell_core::board::request::Report;
use kapell_core::causes::chain;
use kapell_core::rep::container::RunResult;
use kapell_core::seams::Moment;
use tokio::task::{JoinSet, spawn_blocking};

use super::evacuation::Evacuation;
use super::job::Done;
use super::lead::Lead;
use super::leaders::Leaders;
use super::rep::{Effect, Read, Rep, Told};
use super::self_test::SelfTest;
use super::timers::{LONG, PollTimer, PresenceTimer, Standing};
use super::{End, Shared};
use crate::link::{CELL_ID_IN_USE, LinkError};

/// The one that acts for a cell.
#[derive(Debug)]
pub(super) struct Actor {
    pub(super) shared: Arc<Shared>,
    pub(super) jobs: JoinSet<Done>,
    pub(super) leaders: Leaders,
    waiting: VecDeque<Told>,
    calls: usize,
    pub(super) polling: bool,
    pub(super) poll: PollTimer,
    presence: PresenceTimer,
    prune_due: Moment,
    /// The driver is removing what is too much.
    tidying: bool,
    pub(super) evacuation: Evacuation,
    pub(super) self_test: SelfTest,
    /// Until when to wait for what is under way.
    end_by: Option<Moment>,
}

impl Actor {
    pub(super) fn new(shared: Arc<Shared>, found: Vec<Lead>) -> Self {
        let now = shared.clock.now();
        let settings = &shared.settings;
        Self {
            leaders: Leaders::new(found),
            poll: PollTimer::new(now, settings),
            presence: PresenceTimer::new(now, settings),
            prune_due: now,
            tidying: false,
            shared,
            jobs: JoinSet::new(),
            waiting: VecDeque::new(),
            calls: 0,
            polling: false,
            evacuation: Evacuation::default(),
            self_test: SelfTest::new(now),
            end_by: None,
        }
    }

    pub(super) async fn run(mut self) {
        let shared = Arc::clone(&self.shared);
        self.lead_found();
        loop {
            self.act();
            if self.is_over() {
                break;
            }
            let rest = self.next_due().since(shared.clock.now());
            tokio::select! {
                biased;
                Some((guid, news)) = self.leaders.next() => {
                    self.hear(&guid, news);
                    self.hear_all();
                }
                Some(done) = self.jobs.join_next() => {
                    self.hear_all();
                    self.done(done);
                    // What is ready together is reported together.
                    while let Some(done) = self.jobs.try_join_next() {
                        self.hear_all();
                        self.done(done);
                    }
                }
                () = shared.wake.notified() => {}
                () = tokio::time::sleep(rest) => {}
            }
        }
        self.say_goodbye().await;
    }

    /// Does all that is due.
    fn act(&mut self) {
        let now = self.shared.clock.now();
        self.begin_to_end(now);
        let shared = Arc::clone(&self.shared);
        let mut rep = shared.rep();
        rep.expire();
        rep.end_overdue();
        self.evacuate(&mut rep, now);
        loop {
            let effects = rep.take_effects();
            if effects.is_empty() {
                break;
            }
            for effect in effects {
                self.perform(effect);
            }
        }
        self.send_reports();
        self.poll_if_due(&mut rep, now);
        self.test_if_due(&mut rep, now);
        self.present_if_due(&rep, now);
        self.prune_if_due(&rep, now);
    }

    fn perform(&mut self, effect: Effect) {
        let containers = Arc::clone(&self.shared.containers);
        match effect {
            Effect::Start(tag) => self.lead(tag),
            Effect::Stop(guid) => self.leaders.stop(&guid),
            Effect::Delete(guid) => {
                let tools = Arc::clone(&self.shared.tools);
                self.jobs.spawn(async move {
                    let outcome = containers.delete(guid.as_str()).await;
                    if matches!(outcome, Ok(()) | Err(Error::Unknown(_))) {
                        tools.notes.remove(&guid);
                    }
                    Done::Deleted(guid, outcome)
                });
            }
            Effect::Kill(guid) => {
                self.jobs.spawn(async move {
                    let outcome = containers.delete(guid.as_str()).await;
                    Done::Killed(guid, outcome)
                });
            }
            Effect::Report(told) => self.waiting.push_back(told),
            Effect::Prune(key, there) => {
                let shared = Arc::clone(&self.shared);
                self.tidy_up(move || shared.logs.prune_key(&key, &there, &shared.settings));
            }
        }
    }

    fn tidy_up(&mut self, work: impl FnOnce() + Send + 'static) {
        if !self.shared.logs.are_kept() {
            return;
        }
        self.jobs.spawn(async move {
            if let Err(error) = spawn_blocking(work).await {
                tracing::error!(%error, "cannot tidy up logs");
            }
            Done::Pruned
        });
    }

    /// Whatever waits goes in as few calls as it can.
    fn send_reports(&mut self) {
        if !self.presence.is_welcome() {
            return;
        }
        let settings = &self.shared.settings;
        while !self.waiting.is_empty() && self.calls < settings.report_calls.max(1) {
            let many = self.waiting.len().min(settings.report_batch.max(1));
            let told: Vec<Told> = self.waiting.drain(..many).collect();
            self.calls += 1;
            let (board, id) = (Arc::clone(&self.shared.board), self.shared.id.clone());
            self.jobs.spawn(async move {
                let reports: Vec<Report> = told.iter().map(|told| told.report.clone()).collect();
                let answers = board.reports(&id, &reports).await;
                Done::Reported(told, answers)
            });
        }
    }

    fn poll_if_due(&mut self, rep: &mut Rep, now: Moment) {
        if rep.read == Read::Sooner {
            rep.read = Read::InTurn;
            // Asking no more often than it says that it is there, a cell adds little to what a host has too much of.
            self.poll.retry(now, self.presence.pace());
        }
        let due = rep.read == Read::Now || now >= self.poll.due();
        let silent = self.evacuation.is_gone() || !self.presence.is_welcome();
        if self.polling || !due || silent {
            return;
        }
        let settings = &self.shared.settings;
        let every =
            if rep.evacuating { settings.evacuating_poll_every } else { settings.poll_every };
        self.poll.begun(now, every);
        self.polling = true;
        rep.read = Read::InTurn;
        let (wanted, snapshot) = rep.wanted();
        let (board, id) = (Arc::clone(&self.shared.board), self.shared.id.clone());
        self.jobs.spawn(async move {
            let records = board.records(&id, &wanted).await;
            Done::Polled(snapshot, records)
        });
    }

    fn present_if_due(&mut self, rep: &Rep, now: Moment) {
        let over = self.evacuation.is_leaving() || rep.end == Some(End::LeaveRunning);
        let evacuating = rep.evacuating || rep.end.is_some();
        let due = now >= self.presence.due || evacuating != self.presence.evacuating;
        if self.presence.under_way || over || !due {
            return;
        }
        self.presence.under_way = true;
        self.presence.evacuating = evacuating;
        let mut presence = self.shared.presence.clone();
        presence.evacuating = evacuating;
        let board = Arc::clone(&self.shared.board);
        self.jobs.spawn(async move {
            let welcome = board.present(&presence).await;
            Done::Presented(now, welcome)
        });
    }

    fn prune_if_due(&mut self, rep: &Rep, now: Moment) {
        if now < self.prune_due {
            return;
        }
        self.prune_due = now.after(self.shared.settings.prune_every);
        let shared = Arc::clone(&self.shared);
        let there = rep.executor.guids();
        let wall = self.shared.clock.wall();
        self.tidy_up(move || shared.logs.prune_all(&there, wall, &shared.settings));
        if !mem::replace(&mut self.tidying, true) {
            let containers = Arc::clone(&self.shared.containers);
            self.jobs.spawn(async move { Done::Tidied(containers.tidy().await) });
        }
    }

    fn tidied(&mut self, outcome: Result<u64, Error>) {
        self.tidying = false;
        match outcome {
            Ok(0) => {}
            Ok(bytes) => tracing::info!(bytes, "what was kept for containers to come was too much"),
            Err(error) => {
                let reason = chain(&error);
                tracing::warn!(
                    reason,
                    "what is kept for containers to come stays too much, will try again"
                );
            }
        }
    }

    fn done(&mut self, done: Result<Done, tokio::task::JoinError>) {
        let shared = Arc::clone(&self.shared);
        let mut rep = shared.rep();
        match done {
            Ok(Done::Ended(guid, result)) => {
                self.leaders.ended(&guid);
                rep.ended(&guid, result);
            }
            Ok(Done::Pruned) => {}
            Ok(Done::Tidied(outcome)) => self.tidied(outcome),
            Ok(Done::SelfTested(port, outcome)) => self.self_tested(&mut rep, port, &outcome),
            Ok(Done::Deleted(guid, outcome)) => {
                if outcome.is_ok() {
                    // Whoever leads it finds nothing to lead any more.
                    self.leaders.stop(&guid);
                }
                rep.deleted(&guid, outcome);
            }
            Ok(Done::Killed(guid, outcome)) => rep.was_killed(&guid, &outcome),
            Ok(Done::Reported(told, answers)) => self.reported(&mut rep, &told, answers),
            Ok(Done::Polled(asked, records)) => {
                self.polling = false;
                let is_old = records.as_ref().is_ok_and(|records| records.epoch < rep.epoch);
                match records {
                    Ok(records) if !is_old => {
                        rep.epoch = records.epoch;
                        let in_line = rep.harmonize(&records, &asked);
                        if in_line {
                            self.poll.went_well();
                        }
                        let is_empty = asked.is_empty() && rep.executor.is_empty();
                        if in_line && rep.evacuating && is_empty {
                            self.evacuation.is_swept();
                        }
                    }
                    Ok(_) => rep.ask(Read::Sooner),
                    Err(error) => {
                        tracing::warn!(%error, "cannot read the records of this cell, will try again");
                        rep.ask(Read::Sooner);
                    }
                }
            }
            Ok(Done::Presented(sent, welcome)) => self.presented(&mut rep, sent, welcome),
            Ok(Done::Left(outcome)) => {
                if let Err(error) = &outcome {
                    tracing::warn!(%error, "cannot tell the board that this cell is gone");
                }
                self.evacuation.has_left(outcome.is_ok(), self.shared.clock.now(), &self.shared);
            }
            Err(error) => {
                tracing::error!(%error, "a job of the cell broke down");
                if let Some(guid) = self.leaders.broke_down(error.id()) {
                    rep.ended(&guid, RunResult::failed("the agent could not go on with it"));
                }
            }
        }
    }

    fn reported(
        &mut self,
        rep: &mut Rep,
        told: &[Told],
        answers: Result<Vec<ReportAnswer>, LinkError>,
    ) {
        self.calls -= 1;
        let answers = answers.unwrap_or_else(|error| {
            tracing::warn!(%error, reports = told.len(), "cannot report to the board, will try again");
            Vec::new()
        });
        let done = |answer: &ReportAnswer| matches!(answer, ReportAnswer::Done(_));
        if answers.len() == told.len() && answers.iter().all(done) {
            self.poll.went_well();
        }
        let answers = answers.into_iter().map(Some).chain(std::iter::repeat(None));
        for (told, answer) in told.iter().zip(answers) {
            rep.answered(told, answer);
        }
    }

    fn presented(&mut self, rep: &mut Rep, sent: Moment, welcome: Result<Welcome, LinkError>) {
        self.presence.under_way = false;
        match welcome {
            Ok(welcome) => {
                rep.epoch = rep.epoch.max(welcome.epoch);
                rep.welcome = true;
                let standing = self.presence.welcomed(sent, welcome.epoch, welcome.ttl_ms);
                if standing == Standing::New {
                    tracing::info!(cell = %self.shared.id, epoch = welcome.epoch.0, "present");
                    rep.ask(Read::Now);
                }
            }
            Err(LinkError::Refused(problem)) if problem.code == CELL_ID_IN_USE => {
                tracing::error!(cell = %self.shared.id, "{}", problem.message);
                self.waiting.clear();
                rep.end = Some(End::LeaveRunning);
                self.shared.refused.send_replace(Some(problem));
            }
            Err(error) => {
                tracing::warn!(%error, "cannot tell the board that this cell is here, will try again");
                self.presence.failed(self.shared.clock.now());
            }
        }
    }

    /// Whether everything that was decided was also said.
    pub(super) fn is_quiet(&self) -> bool {
        self.waiting.is_empty() && self.calls == 0
    }

    fn begin_to_end(&mut self, now: Moment) {
        let shared = Arc::clone(&self.shared);
        let mut rep = shared.rep();
        let Some(end) = rep.end else { return };
        if self.end_by.is_some() {
            return;
        }
        let patience = match end {
            End::LeaveRunning => self.shared.settings.ending,
            End::StopWork => {
                rep.stop_all();
                self.shared.settings.ending.max(rep.executor.longest_grace() + OVERDUE)
            }
        };
        self.end_by = Some(now.after(patience));
    }

    fn is_over(&self) -> bool {
        let Some(end_by) = self.end_by else { return false };
        let rep = self.shared.rep();
        let settled = self.is_quiet()
            && match rep.end {
                Some(End::StopWork) => rep.executor.is_empty(),
                Some(End::LeaveRunning) | None => self.leaders.have_begun(),
            };
        settled || self.shared.clock.now() >= end_by
    }

    /// A cell that has stopped all its work need not be waited for.
    async fn say_goodbye(self) {
        let gone = {
            let rep = self.shared.rep();
            rep.end == Some(End::StopWork) && rep.executor.is_empty()
        };
        if gone {
            // There is nothing left to evacuate.
            self.shared.mark.clear();
        }
        if gone && self.presence.is_welcome() && !self.evacuation.is_gone() {
            let left = tokio::time::timeout(LITTLE, self.shared.board.leave(&self.shared.id)).await;
            if !matches!(left, Ok(Ok(()))) {
                tracing::info!("the board was not told that this cell is gone");
            }
        }
    }

    fn next_due(&self) -> Moment {
        let now = self.shared.clock.now();
        let rep = self.shared.rep();
        let mute = self.evacuation.is_gone() || !self.presence.is_welcome();
        let poll = (!self.polling && !mute).then(|| self.poll.due());
        let silent = self.presence.under_way || self.evacuation.is_leaving();
        let presence = (!silent).then_some(self.presence.due);
        let evacuation = self.evacuation.due(&rep);
        let work = [rep.executor.next_expiry(), rep.next_overdue()];
        let test = self.self_test.due().filter(|_| rep.end.is_none());
        [poll, presence, evacuation, test, Some(self.prune_due), self.end_by]
            .into_iter()
            .chain(work)
            .flatten()
            .min()
            .unwrap_or_else(|| now.after(LONG))
    }
}

const LITTLE: Duration = Duration::from_secs(5);
/// How long after its grace time everything is gone, also what must be ended by force.
const OVERDUE: Duration = Duration::from_secs(25);
