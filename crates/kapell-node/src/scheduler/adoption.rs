//! What a new leader finds: runs to be led on, and work that nobody needs.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use kapell_core::board::{JobId, Request};
use kapell_core::job::admit::Terms;
use kapell_core::job::{Job, JobDefinition, JobRequest, PassReason, due, explain};
use kapell_core::run::{Happened, Plan, Run, RunId, RunState, SkippedBy, Trigger};
use kapell_core::schedule::Schedule;
use kapell_core::seams::Timestamp;

use super::actor::{Actor, Found};
use super::backend::{Attempt, Leftover};
use super::entry::Asks;
use super::lanes::{Deed, Discharge};
use super::step;

/// Until a backend that could not say what it has is asked again.
const AGAIN: Duration = Duration::from_secs(10);
/// How many runs without news their backends are asked about in a minute: all in turn.
const LOOKED_AFTER: usize = 500;

impl Actor {
    /// Takes up everything that the board has.
    pub(super) fn adopt(&mut self) {
        let mut jobs: Vec<(JobId, Terms, bool)> = Vec::new();
        let mut skipping: Vec<JobId> = Vec::new();
        self.board.look_at_all(|records| {
            let skips = records.jobs.values().filter(|job| !job.skips.is_empty());
            skipping.extend(skips.map(|job| job.job_id.clone()));
            let known = records.jobs.keys().filter_map(|job_id| records.job(job_id));
            jobs.extend(known.map(|(job, definition): (&Job, &Arc<JobDefinition>)| {
                (job.job_id.clone(), Terms::of(definition), step::rests(job, definition))
            }));
        });
        for (job_id, terms, rests) in jobs {
            let decisions = self.places.update(&job_id, terms);
            self.decided(decisions);
            self.resting.extend(rests.then_some(job_id));
        }
        let now = self.wall();
        self.generator.load(&self.board, now);
        let mut runs: Vec<Run> = Vec::new();
        let board = self.board.clone();
        board.look_at_all(|records| runs.extend(records.active_runs().cloned()));
        // Who holds a place is known before anybody asks for one.
        for run in &runs {
            self.take_up(run);
            let entry = self.slab.key(&run.run_id).and_then(|key| self.slab.get(key));
            if let Some(entry) = entry.filter(|entry| entry.it.holds_place()) {
                self.places.hold(&run.run_id, &Terms::of(&entry.it.plan().definition));
                if run.cancel.is_some() {
                    self.places.leaves(&run.run_id);
                }
            }
        }
        self.judge_left(&runs, now);
        for job_id in skipping {
            self.pass_over(&job_id);
        }
        self.search_all();
        tracing::info!(runs = self.slab.len(), "the scheduler has taken over what is under way");
    }

    /// Runs that were made ahead, and whose time came when nobody led, go by `catch_up` as moments do that have none.
    fn judge_left(&mut self, runs: &[Run], now: Timestamp) {
        let any = |led| runs.iter().any(|run| due::is_left(run, led, now));
        if !any(None) {
            return;
        }
        let mut led: Option<Timestamp> = None;
        self.board.look_at_all(|records| {
            let runs = records.runs.values().map(AsRef::as_ref);
            led = led.max(due::last_sign(records.jobs.values(), runs, self.since));
        });
        let left = runs.iter().filter(|run| due::is_left(run, led, now));
        let jobs: BTreeSet<JobId> = left.map(|run| run.run_id.job_id()).collect();
        for job_id in jobs {
            let judged = self.board.look(job_id.as_str(), |records| {
                let (job, definition) = records.job(&job_id)?;
                let schedule = Schedule::of(definition).ok().filter(|_| !job.removed)?;
                let runs: Vec<&Run> = records.runs_of(&job_id).collect();
                Some(due::left(definition, &schedule, records.stands(job), &runs, led, now))
            });
            for (run_id, verdict) in judged.into_iter().flatten() {
                self.judged(&run_id, verdict);
            }
        }
    }

    fn judged(&mut self, run_id: &RunId, verdict: Result<Trigger, PassReason>) {
        let Some(key) = self.slab.key(run_id) else { return };
        // Whoever may have been waiting for its turn was not missed.
        if self.places.may_have_waited(run_id) {
            return;
        }
        match verdict {
            Ok(trigger) if trigger.makes_up() => {
                let now = self.wall();
                if let Some(entry) = self.slab.get_mut(key) {
                    entry.asks = Asks::InTurn;
                    entry.it.made_up(now);
                }
            }
            Ok(_) => {}
            Err(why) => {
                let is_too_late = matches!(why, PassReason::DeadlineMissed { .. });
                let by = if is_too_late { SkippedBy::Deadline } else { SkippedBy::CatchUp };
                let (_, why) = explain::pass_reason(&why);
                self.tell(key, Happened::PassedOver { by, why });
            }
        }
    }

    /// By which revision a run goes: the newest while it waits for its time, and then the one that it began with.
    pub(super) fn plan_of(&self, run: &Run) -> Option<Plan> {
        let job_id = run.run_id.job_id();
        let (not_begun, waits) = (run.state == RunState::PreRun, run.due_at > self.wall());
        let found = self.board.look(job_id.as_str(), |records| {
            let job = records.jobs.get(&job_id).filter(|job| not_begun && !job.removed);
            let reached = job.map(|job| if waits { job.revision } else { job.revision_of(run) });
            let by = |revision| {
                records.definition(&job_id, revision).map(|it| (revision, Arc::clone(it)))
            };
            reached.and_then(by).or_else(|| by(run.revision))
        });
        let Some((revision, definition)) = found else {
            let run_id = &run.run_id;
            tracing::error!(%run_id, %job_id, "a run has no definition any more: it ends as orphaned, and what is left of its work is ended");
            return None;
        };
        Some(self.plan(revision, definition))
    }

    pub(super) fn plan(&self, revision: u64, definition: Arc<JobDefinition>) -> Plan {
        let wants = self.checker.wants(&definition);
        let start_timeout_s = self.settings.start_timeout.as_secs().try_into();
        Plan {
            definition,
            revision,
            checks_before: wants.before,
            checks_after: wants.after,
            start_timeout_s: start_timeout_s.unwrap_or(u32::MAX),
        }
    }

    /// What a job is now.
    pub(super) fn current(&self, job_id: &JobId) -> Option<(u64, Arc<JobDefinition>)> {
        self.board.look(job_id.as_str(), |records| {
            let (job, definition) = records.job(job_id)?;
            Some((job.revision, Arc::clone(definition)))
        })
    }

    /// Looks for work that nobody needs, unless that is being done: what could not be ended is found again next time.
    pub(super) fn search_all(&mut self) {
        if self.searches.is_empty() {
            for backend in 0..self.backends.len() {
                self.search(backend, Duration::ZERO);
            }
        }
    }

    /// Asks a backend for everything it has.
    fn search(&mut self, backend: usize, after: Duration) {
        let it = Arc::clone(self.backends.get(backend));
        self.searches.spawn(async move {
            tokio::time::sleep(after).await;
            Found { backend, attempts: it.known().await }
        });
    }

    /// Ends and forgets what no run under way needs.
    pub(super) fn searched(&mut self, found: Found) {
        let Found { backend, attempts } = found;
        let attempts = match attempts {
            Ok(attempts) => attempts,
            Err(why) => {
                let name = self.backends.get(backend).name();
                tracing::warn!(
                    backend = name,
                    why,
                    "a backend cannot say what it has: asked again"
                );
                return self.search(backend, AGAIN);
            }
        };
        let unneeded: Vec<Attempt> =
            attempts.into_iter().filter(|attempt| !self.needs(attempt)).collect();
        let (ended, unknown): (Vec<Attempt>, Vec<Attempt>) =
            unneeded.into_iter().partition(|attempt| self.is_on_record(attempt));
        let gone = |(of, attempt): &(usize, Attempt)| *of == backend && !unknown.contains(attempt);
        self.leftovers.retain(|told| !gone(told));
        let left = unknown.into_iter().filter(|attempt| !self.stays(backend, attempt));
        let ending: Vec<Attempt> = ended.into_iter().chain(left).collect();
        if !ending.is_empty() {
            tracing::info!(count = ending.len(), "ending work that no run needs");
        }
        for attempt in ending {
            self.lanes.discharge(Discharge { backend, attempts: vec![attempt], stop: true });
        }
    }

    /// Whether its run is known to have ended: then it is merely late to go.
    fn is_on_record(&self, attempt: &Attempt) -> bool {
        let run_id = &attempt.run_id;
        self.board.look(run_id.job(), |records| records.runs.contains_key(run_id))
    }

    /// Tells once of work that no run knows, and whether it is to stay where it is.
    fn stays(&mut self, backend: usize, attempt: &Attempt) -> bool {
        let Leftover { place, stays } = self.backends.get(backend).leftover(attempt);
        if self.leftovers.insert((backend, attempt.clone())) {
            self.stats.leftovers += 1;
            let (run_id, attempt) = (&attempt.run_id, attempt.number);
            tracing::warn!(%run_id, attempt, place, stays, "work was found that no run knows");
        }
        stays
    }

    fn needs(&self, attempt: &Attempt) -> bool {
        let entry = self.slab.key(&attempt.run_id).and_then(|key| self.slab.get(key));
        entry.is_some_and(|entry| entry.it.attempt() <= attempt.number)
    }

    /// News may get lost where work is far away: those of whom none came are asked about in turn.
    pub(super) fn look_after(&mut self) {
        let mut keys = Vec::new();
        for (key, entry) in self.slab.iter_mut() {
            if entry.it.awaits_news() && entry.working.is_none() {
                keys.push((key, entry.it.attempt()));
            }
        }
        let (count, from) = (keys.len(), self.looked_after);
        self.looked_after = if count == 0 { 0 } else { (from + LOOKED_AFTER.min(count)) % count };
        for (key, attempt) in keys.into_iter().cycle().skip(from).take(LOOKED_AFTER.min(count)) {
            self.errand(key, attempt, Deed::Find);
        }
    }

    /// Runs that their job keeps for a time only are forgotten when it is over.
    pub(super) fn clear_histories(&mut self) {
        let mut jobs: Vec<JobId> = Vec::new();
        self.board.look_at_all(|records| {
            let known = records.jobs.keys().filter_map(|job_id| records.job(job_id));
            let aged = known.filter(|(_, definition)| definition.history.max_age.is_some());
            jobs.extend(aged.map(|(job, _)| job.job_id.clone()));
        });
        for job_id in jobs {
            let board = self.board.clone();
            self.asked.push(Box::pin(async move {
                let settled = board.ask(Request::Job(JobRequest::Settle { job_id })).await;
                if let Err(why) = settled {
                    tracing::debug!(%why, "old runs were not forgotten: tried again later");
                }
            }));
        }
    }
}
