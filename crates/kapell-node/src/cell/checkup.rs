//! Whether an instance is well, and whether it is ready for those who want something from it.

use std::sync::Arc;
use std::time::Duration;

use kapell_core::recipe::{Health, Outcome, Readiness, Recipe, Verdict, Wait};
use kapell_core::seams::Moment;
use tokio::task::JoinSet;

use super::examination::Examination;
use super::tag::Tag;
use super::timers::LONG;
use super::tools::Tools;
use super::walk::{Part, Turn, Walk};

/// What a check is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum About {
    Health,
    Readiness,
}

/// What is found out of an instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Finding {
    Nothing,
    /// It is well for the first time.
    Healthy,
    /// It is to be ended.
    Unhealthy(String),
    Ready(bool),
}

/// One kind of check, done again and again.
#[derive(Debug)]
struct Round {
    by: Examination,
    wait: Wait,
    since: Moment,
    /// None while it is under way, and when it is not wanted yet or any more.
    due: Option<Moment>,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Checkup {
    tools: Arc<Tools>,
    tag: Arc<Tag>,
    health: Option<(Health, Round)>,
    readiness: Option<(Readiness, Round)>,
    /// Whether it is ready, once somebody knows.
    ready: Option<bool>,
    under_way: JoinSet<(About, Result<(), String>)>,
    /// Counts monitors: no two of a container have the same name.
    count: u64,
}

impl Checkup {
    /// Nothing is checked until it is asked for. Monitors are counted from `count`.
    pub(super) fn new(tools: Arc<Tools>, tag: Arc<Tag>) -> Self {
        let mut checkup = Self::resume(tools, tag, false, 0);
        checkup.ready = Some(checkup.readiness.is_none());
        checkup
    }

    /// One of a container that an earlier agent has left: whether it is ready is not known.
    pub(super) fn resume(tools: Arc<Tools>, tag: Arc<Tag>, was_healthy: bool, count: u64) -> Self {
        let round = |(by, wait)| Round { by, wait, since: Moment::ZERO, due: None };
        let settings = &tools.settings;
        let usual =
            Wait { first: settings.first_checks, then: settings.later_checks, ..Wait::USUAL };
        let health = Examination::of_health(&tag, usual).map(|it| {
            let round = round(it);
            (Health::resume(round.wait, was_healthy), round)
        });
        let readiness = Examination::of_readiness(&tag, usual).map(|it| {
            let round = round(it);
            (Readiness::begin(round.wait), round)
        });
        let ready = readiness.is_none().then_some(true);
        Self { tools, tag, health, readiness, ready, under_way: JoinSet::new(), count }
    }

    /// Whether somebody must find it well before it counts as running.
    pub(super) const fn is_awaited(&self) -> bool {
        self.health.is_some()
    }

    pub(super) const fn is_ready(&self) -> Option<bool> {
        self.ready
    }

    /// The action is under way.
    pub(super) fn begin_health(&mut self) {
        let now = self.tools.clock.now();
        if let Some((health, round)) = &mut self.health {
            round.begin(now, health.first_due());
        }
    }

    /// It runs.
    pub(super) fn begin_readiness(&mut self) {
        let now = self.tools.clock.now();
        if let Some((readiness, round)) = &mut self.readiness {
            round.begin(now, readiness.first_due());
        }
    }

    /// It is to end: nothing is checked any more.
    pub(super) fn end(&mut self) {
        self.health = None;
        self.readiness = None;
        self.under_way.abort_all();
    }

    /// Waits for the next thing to be found. May be given up and called again.
    pub(super) async fn turn(&mut self) -> Finding {
        self.begin_what_is_due();
        let now = self.tools.clock.now();
        let health = self.health.as_ref().and_then(|(_, round)| round.due);
        let readiness = self.readiness.as_ref().and_then(|(_, round)| round.due);
        let due = [health, readiness].into_iter().flatten().min();
        let rest = due.map_or(LONG, |due| due.since(now));
        tokio::select! {
            biased;
            Some(done) = self.under_way.join_next() => match done {
                Ok((About::Health, outcome)) => self.is_healthy(&outcome),
                Ok((About::Readiness, outcome)) => self.is_ready_now(outcome.is_ok()),
                Err(error) if error.is_cancelled() => Finding::Nothing,
                Err(error) => {
                    tracing::error!(%error, "a check of an instance broke down");
                    Finding::Unhealthy("the agent could not check it".to_owned())
                }
            },
            () = tokio::time::sleep(rest) => Finding::Nothing,
        }
    }

    fn begin_what_is_due(&mut self) {
        let now = self.tools.clock.now();
        let health = self.health.as_mut().map(|(_, round)| (About::Health, round));
        let readiness = self.readiness.as_mut().map(|(_, round)| (About::Readiness, round));
        for (about, round) in [health, readiness].into_iter().flatten() {
            if round.due.take_if(|due| *due <= now).is_none() {
                continue;
            }
            let limit = round.limit(now, &self.tools);
            self.count += 1;
            let of = (Arc::clone(&self.tools), Arc::clone(&self.tag));
            let check = check(of.0, of.1, round.by.clone(), limit, self.count);
            self.under_way.spawn(async move { (about, check.await) });
        }
    }

    fn is_healthy(&mut self, outcome: &Result<(), String>) -> Finding {
        let now = self.tools.clock.now();
        let Some((health, round)) = &mut self.health else { return Finding::Nothing };
        let outcome = match outcome {
            Ok(()) => Ok(()),
            Err(why) => Err(why.as_str()),
        };
        match health.checked(outcome, now.since(round.since)) {
            Verdict::Again(at) => {
                round.due = Some(round.since.after(at));
                Finding::Nothing
            }
            Verdict::Healthy(at) => {
                round.due = Some(round.since.after(at));
                Finding::Healthy
            }
            Verdict::Failed(reason) => Finding::Unhealthy(reason),
        }
    }

    fn is_ready_now(&mut self, ready: bool) -> Finding {
        let now = self.tools.clock.now();
        let Some((readiness, round)) = &mut self.readiness else { return Finding::Nothing };
        let news = readiness.checked(ready, now.since(round.since));
        round.due = Some(round.since.after(news.next));
        let first = self.ready.replace(ready).is_none();
        match news.changed.or(first.then_some(ready)) {
            Some(ready) => Finding::Ready(ready),
            None => Finding::Nothing,
        }
    }
}

impl Round {
    fn begin(&mut self, now: Moment, first: Duration) {
        self.since = now;
        self.due = Some(now.after(first));
    }

    /// How long the next check may take: one that hangs must not outlast the time to start.
    fn limit(&self, now: Moment, tools: &Tools) -> Duration {
        let limit = self.by.limit(&tools.settings);
        let passed = now.since(self.since);
        match self.wait.start_timeout {
            Some(timeout) if passed < timeout => limit.min(timeout.saturating_sub(passed)),
            Some(_) | None => limit,
        }
    }
}

/// Checks once, when it is its turn.
async fn check(
    tools: Arc<Tools>,
    tag: Arc<Tag>,
    by: Examination,
    limit: Duration,
    count: u64,
) -> Result<(), String> {
    if let Examination::Monitor(action) = &by {
        tools.vault.learn(&tag, action, &tools.settings).await;
    }
    // The semaphore is never closed.
    let _turn = tools.pools.checks.acquire().await;
    let late = || Err(format!("the check took longer than {limit:?}"));
    match by {
        Examination::Tcp { port, .. } => {
            let asked = tokio::time::timeout(limit, tools.probes.tcp(port)).await;
            asked.unwrap_or_else(|_| late())
        }
        Examination::Http { port, path, .. } => {
            let asked = tokio::time::timeout(limit, tools.probes.http(port, &path)).await;
            asked.unwrap_or_else(|_| late())
        }
        Examination::Unreachable(reason) => Err(reason),
        Examination::Monitor(action) => {
            let recipe = Recipe { setup: None, action };
            let part = Part::Monitor(count);
            let mut walk = Walk::begin(Arc::clone(&tools), tag, part, recipe);
            let outcome = tokio::time::timeout(limit, over(&mut walk)).await;
            match outcome {
                Ok(Outcome { failure: None, .. }) => Ok(()),
                Ok(Outcome { failure: Some(why), .. }) => Err(why),
                Err(_) => {
                    walk.stop();
                    // Nothing of it may be left when the next one begins.
                    over(&mut walk).await;
                    late()
                }
            }
        }
    }
}

async fn over(walk: &mut Walk) -> Outcome {
    loop {
        match walk.turn().await {
            Turn::Begun | Turn::Going => {}
            Turn::Over(outcome) => return outcome,
        }
    }
}
