//! One step of one run: it is told something, and what it asks for is set going.

use std::hint;
use std::sync::Arc;

use kapell_core::board::JobId;
use kapell_core::job::admit::{Decision, Places, Terms};
use kapell_core::job::{Job, JobDefinition, JobRequest, PassReason, explain};
use kapell_core::planted::Flaw;
use kapell_core::run::{
    Ask, Entry as Note, Happened, Noted, Orchestrator, Run, RunId, RunState, RunUpdate, Sight,
    SkippedBy, StopKind, Timer, UpdateKind,
};
use kapell_core::seams::Timestamp;

use super::actor::Actor;
use super::backend::Attempt;
use super::entry::{Asks, Entry};
use super::insist::insist;
use super::lanes::{Deed, Discharge, Errand, let_go};
use super::slab::Key;
use super::stats::Ended;
use super::supplies::Backends;

/// So many runs that are due are looked at before the first of them begins.
const READ_AHEAD: usize = 64;

impl Actor {
    /// Takes up a run that the board has, new or left by another leader.
    pub(super) fn take_up(&mut self, run: &Run) {
        let Some(plan) = self.plan_of(run) else { return self.end_unled(run) };
        let (it, mut asks) = Orchestrator::begin(run, plan, self.wall());
        let unasked = self.board.settings().planted.has(Flaw::LaunchUnasked);
        for ask in &mut asks {
            if let (Ask::Find { attempt }, true) = (&*ask, unasked) {
                *ask = Ask::Launch { attempt: *attempt };
            }
        }
        let mut entry = Entry::new(it);
        entry.launched = run.attempt > 0 || run.state != RunState::PreRun;
        if run.trigger.makes_up() {
            entry.asks = Asks::InTurn;
        }
        if let Some(key) = self.slab.insert(entry) {
            for ask in asks {
                self.carry_out(key, ask);
            }
        }
    }

    pub(super) fn tell(&mut self, key: Key, happened: Happened) {
        self.todo.push_back((key, happened));
    }

    /// Tells runs all that is to be told to them, until they have nothing more to say to each other.
    pub(super) fn settle(&mut self) {
        while let Some((key, happened)) = self.todo.pop_front() {
            self.step(key, happened);
        }
        let_go(&mut self.todo);
        self.show_changed();
    }

    fn step(&mut self, key: Key, happened: Happened) {
        let now = self.wall();
        let Some(entry) = self.slab.get_mut(key) else { return };
        if happened == Happened::Rang(Timer::Due) && !entry.decided {
            self.stats.began(now.since(entry.it.due_at()));
        }
        let is_logged = tracing::enabled!(tracing::Level::ERROR);
        let mut told = if is_logged { entry.it.noted().len() } else { 0 };
        let asks = entry.it.handle(happened, now);
        if is_logged {
            for ask in &asks {
                match ask {
                    Ask::Store(update) => {
                        log(&entry.it, update.timeline.iter().skip(told));
                        told = 0;
                    }
                    Ask::Ignored { what } => log_ignored(&entry.it, what),
                    Ask::Ring { .. }
                    | Ask::Quiet
                    | Ask::Admit
                    | Ask::Check { .. }
                    | Ask::Act { .. }
                    | Ask::Launch { .. }
                    | Ask::Stop { .. }
                    | Ask::Find { .. }
                    | Ask::CheckPost { .. }
                    | Ask::Abandon
                    | Ask::Done => {}
                }
            }
            log(&entry.it, entry.it.noted().iter().skip(told));
        }
        if entry.shown || !entry.it.state().is_stored() {
            self.changed.push(key);
        }
        for ask in asks {
            self.carry_out(key, ask);
        }
    }

    /// Shows those that have come to rest in states that are not stored, until their records say more.
    fn show_changed(&mut self) {
        for key in std::mem::take(&mut self.changed) {
            let Some(entry) = self.slab.get_mut(key) else { continue };
            if !entry.it.state().is_stored() {
                entry.shown = true;
                self.board.show_run(entry.it.run_id(), &Sight::of(&entry.it));
            } else if entry.shown {
                entry.shown = self.board.is_still_shown(entry.it.run_id());
            }
        }
    }

    fn carry_out(&mut self, key: Key, ask: Ask) {
        let Some(entry) = self.slab.get_mut(key) else { return };
        match ask {
            Ask::Ring { timer, at } => {
                let before = entry.set_ring(Some((at, timer)));
                self.call_off(key, before);
                self.timers.set(at, key);
            }
            Ask::Quiet => {
                let before = entry.set_ring(None);
                self.call_off(key, before);
            }
            Ask::Admit => self.admit(key),
            Ask::Check { attempt } => self.errand(key, attempt, Deed::Check),
            Ask::Act { attempt } => self.errand(key, attempt, Deed::Act),
            Ask::Launch { attempt } => self.errand(key, attempt, Deed::Launch),
            Ask::Find { attempt } => self.errand(key, attempt, Deed::Find),
            Ask::CheckPost { attempt, work } => self.errand(key, attempt, Deed::CheckPost { work }),
            Ask::Stop { attempt, kind } => self.stop(key, attempt, kind),
            Ask::Store(update) => self.store(key, update),
            Ask::Abandon => entry.abandon(),
            Ask::Ignored { .. } => {}
            Ask::Done => self.done(key),
        }
    }

    fn call_off(&mut self, key: Key, ring: Option<(Timestamp, Timer)>) {
        if let Some((at, _)) = ring {
            self.timers.call_off(at, key);
        }
    }

    fn admit(&mut self, key: Key) {
        let Some(entry) = self.slab.get(key) else { return };
        let (run_id, due_at) = (entry.it.run_id().clone(), entry.it.due_at());
        if let Some(why) = self.rests(&run_id) {
            // Nobody has to make way for it.
            return self.tell(key, Happened::TurnedAway { why });
        }
        if self.places.takes_at_once(&run_id) {
            return self.tell(key, Happened::Admitted);
        }
        let ask = match entry.asks {
            Asks::AsOverlapSays => Places::ask,
            Asks::InTurn => Places::ask_in_turn,
        };
        let mut decisions = ask(&mut self.places, &run_id, due_at);
        if decisions.is_empty() {
            // Its job is not there any more: it goes by what it knows of it itself.
            let terms = Terms::of(&entry.it.plan().definition);
            decisions = self.places.update(&run_id.job_id(), terms);
            decisions.extend(ask(&mut self.places, &run_id, due_at));
        }
        for decision in decisions {
            let Some((run, happened)) = self.outcome(decision) else { continue };
            let key = if run == run_id { Some(key) } else { self.slab.key(&run) };
            if let Some(key) = key {
                self.tell(key, happened);
            }
        }
    }

    /// Has something done for a run; whatever was under way for it is let go of.
    pub(super) fn errand(&mut self, key: Key, attempt: u32, deed: Deed) {
        let Some(entry) = self.slab.get_mut(key) else { return };
        entry.abandon();
        entry.launched |= matches!(deed, Deed::Launch | Deed::Find);
        self.lanes.add(Errand { key, ticket: entry.ticket, attempt, deed });
    }

    /// A launch that is under way is waited for: what is stopped before it has begun would begin afterwards.
    fn stop(&mut self, key: Key, attempt: u32, kind: StopKind) {
        match self.slab.get_mut(key) {
            Some(entry) if entry.launching => entry.stop_then = entry.stop_then.max(Some(kind)),
            Some(_) => self.errand(key, attempt, Deed::Stop { kind }),
            None => {}
        }
    }

    fn store(&mut self, key: Key, mut stored: Arc<RunUpdate>) {
        let Some(entry) = self.slab.get_mut(key) else { return };
        let update = Arc::make_mut(&mut stored);
        let backend = Backends::number_for(&entry.it.plan().definition);
        let backend = backend.map(|number| self.backends.get(number));
        if let (UpdateKind::Intent, Some(backend)) = (update.kind, backend) {
            update.place = backend.place_of(&entry.it.plan().definition);
        }
        // Work of this host writes here; what tasks wrote is fetched to here when they are over.
        if entry.launched || update.kind == UpdateKind::Intent {
            let keeps = self.backends.keeps().filter(|_| update.kind != UpdateKind::Started);
            update.log_host = keeps.map(|keeps| keeps.address.clone()).unwrap_or_default();
        }
        if matches!(update.kind, UpdateKind::Retry | UpdateKind::Ended) {
            let name = Attempt { run_id: entry.it.run_id().clone(), number: update.attempt };
            // Counted while its backend knows it: what is released is forgotten.
            entry.calls += backend.map_or(0, |backend| backend.calls(&name));
        }
        if let Some(metrics) = &mut update.metrics {
            metrics.kubernetes_api_calls = entry.calls;
            let ended = Ended {
                state: update.state,
                skipped: update.skipped,
                launched: entry.launched,
                started: update.started_at.is_some(),
                metrics,
            };
            self.stats.ended(entry.it.run_id().job_id(), &ended);
        }
        let (kind, attempt) = (update.kind, update.attempt);
        let now = self.clock.now();
        self.syncer.offer((key, entry.it.run_id()), stored, now);
        let hasty = self.board.settings().planted.has(Flaw::LaunchBeforeIntent);
        if hasty && kind == UpdateKind::Intent {
            self.tell(key, Happened::Stored { kind, attempt });
        }
    }

    /// Its outcome is stored and nothing of it runs: others may have its place.
    fn done(&mut self, key: Key) {
        let Some(entry) = self.slab.remove(key) else { return };
        self.call_off(key, entry.ring());
        let run_id = entry.it.run_id();
        if entry.shown {
            self.board.hide_run(run_id);
        }
        if entry.launched
            && let Some(backend) = Backends::number_for(&entry.it.plan().definition)
        {
            let name = |number| Attempt { run_id: run_id.clone(), number };
            let attempts = (0..=entry.it.attempt()).map(name).collect();
            self.lanes.discharge(Discharge { backend, attempts, stop: false });
        }
        self.checker.forget(run_id);
        if self.board.settings().planted.has(Flaw::PlaceKept) {
            return;
        }
        let decisions = self.places.ended(run_id);
        self.decided(decisions);
    }

    /// Why a run of the schedule does not begin although it may: its job was put to rest after the run was made.
    fn rests(&self, run_id: &RunId) -> Option<String> {
        let knows = self.caught_up && !self.resting.contains(run_id.job());
        if knows || run_id.is_asked_for() {
            return None;
        }
        let job_id = run_id.job_id();
        self.board.look(job_id.as_str(), |records| {
            let (job, definition) = records.job(&job_id)?;
            let said = |what: &str, note: &str| match note {
                "" => format!("its job is {what}"),
                note => format!("its job is {what}: {note}"),
            };
            let paused = job.paused.as_ref().map(|pause| said("paused", &pause.note));
            paused
                .or_else(|| definition.suspend.then(|| said("suspended", &definition.suspend_note)))
        })
    }

    /// What becomes of those that want places.
    pub(super) fn decided(&mut self, decisions: Vec<Decision>) {
        for decision in decisions {
            let Some((run, happened)) = self.outcome(decision) else { continue };
            if let Some(key) = self.slab.key(&run) {
                self.tell(key, happened);
            }
        }
    }

    /// What a run is told; none if the board is asked instead.
    fn outcome(&self, decision: Decision) -> Option<(RunId, Happened)> {
        Some(match decision {
            Decision::Admit { run } => match self.rests(&run) {
                None => (run, Happened::Admitted),
                Some(why) => (run, Happened::TurnedAway { why }),
            },
            Decision::Wait { run, why, .. } => (run, Happened::Queued { why }),
            Decision::TurnAway { run, why, .. } => (run, Happened::TurnedAway { why }),
            Decision::Stop { run, kind, why } => {
                self.cancel_for_another(run, kind, why);
                return None;
            }
        })
    }

    /// Has a run end whose place another one is to have: noted as any other cancel, so that it outlives a change of leader.
    fn cancel_for_another(&self, run_id: RunId, kind: StopKind, why: String) {
        let board = self.board.clone();
        self.asked.push(Box::pin(async move {
            // One that is refused has ended by itself.
            drop(insist(&board, JobRequest::Cancel { run_id, kind, why }).await);
        }));
    }

    /// Notes whether a job is at rest, so that of most runs that need not be found out.
    pub(super) fn note_rest(&mut self, job_id: &JobId) {
        let rests = self.board.look(job_id.as_str(), |records| {
            records.job(job_id).is_some_and(|(job, definition)| rests(job, definition))
        });
        if rests {
            self.resting.insert(job_id.clone());
        } else {
            self.resting.remove(job_id);
        }
    }

    /// Timers that have gone off: what is due at one instant is decided in one go, unless there is very much to store.
    pub(super) fn ring(&mut self, now: Timestamp) {
        let mut due = Vec::with_capacity(READ_AHEAD);
        while !self.syncer.is_full() {
            due.extend(std::iter::from_fn(|| self.timers.take_due(now)).take(READ_AHEAD));
            self.read_ahead(&due);
            for (at, key) in due.drain(..) {
                // What was put off or called off meanwhile does not ring.
                let rang = |entry: &mut Entry| {
                    let rings = entry.ring().is_some_and(|(set, _)| set == at);
                    if rings { entry.set_ring(None) } else { None }
                };
                match self.slab.get_mut(key).and_then(rang) {
                    Some((_, Timer::Due)) if self.begins_at_once(key) => {}
                    Some((_, timer)) => {
                        if matches!(timer, Timer::StartTimeout | Timer::RunTime) {
                            // It may have started, or ended, in time: that is heard first.
                            self.hear_held();
                        }
                        // Nobody who is due later asks for a place before it.
                        self.tell(key, Happened::Rang(timer));
                        self.settle();
                    }
                    None => {}
                }
            }
            if self.timers.next().is_none_or(|next| next > now) {
                return;
            }
        }
    }

    /// Looks at all that runs need which are due. What lies far apart in memory comes sooner if much of it is asked for
    /// before the first of it is waited for.
    fn read_ahead(&self, due: &[(Timestamp, Key)]) {
        let entries = || due.iter().filter_map(|(_, key)| self.slab.get(*key));
        let of_job = |entry: &Entry| {
            let definition = &entry.it.plan().definition;
            let backend = Backends::number_for(definition).unwrap_or(0);
            backend + usize::from(definition.starting_deadline.is_some())
        };
        hint::black_box(entries().map(of_job).sum::<usize>());
        let beside = |entry: &Entry| self.places.beside(entry.it.run_id());
        hint::black_box(entries().map(beside).sum::<usize>());
    }

    /// Decides that a run begins whose time has come, if there is nothing to ask and nobody in its way.
    fn begins_at_once(&mut self, key: Key) -> bool {
        let now = self.wall();
        let Some(entry) = self.slab.get(key) else { return false };
        let run_id = entry.it.run_id();
        let begins = self.is_plainly_due(entry, now) && self.places.takes_at_once(run_id);
        if begins && let Some(entry) = self.slab.get_mut(key) {
            self.stats.began(now.since(entry.it.due_at()));
            entry.decided = true;
            self.begun.push_back((now, key));
        }
        begins
    }

    fn is_plainly_due(&self, entry: &Entry, at: Timestamp) -> bool {
        entry.it.is_plainly_due(at) && self.rests(entry.it.run_id()).is_none()
    }

    /// Has those begin of which that is decided, as many as can be stored now. An intent costs much more than to know that
    /// there is to be one, and very many are due at once.
    pub(super) fn begin_decided(&mut self) {
        while self.syncer.has_room() && !self.syncer.is_full() {
            let Some((at, key)) = self.begun.pop_front() else { return let_go(&mut self.begun) };
            let Some(entry) = self.slab.get(key) else { continue };
            if self.is_plainly_due(entry, at) {
                self.intend(key, at);
            } else if entry.it.state() == RunState::PreRun {
                // Its job was put to rest since.
                self.tell(key, Happened::Rang(Timer::Due));
            }
        }
    }

    fn intend(&mut self, key: Key, at: Timestamp) {
        let Some(entry) = self.slab.get_mut(key) else { return };
        let intent = entry.it.begin_at_once(at);
        if tracing::enabled!(tracing::Level::ERROR) {
            log(&entry.it, intent.timeline.iter());
        }
        self.store(key, intent);
    }

    /// The clock was set: what waits for a length of time goes on waiting for it, what waits for a time of day does not.
    pub(super) fn clock_set(&mut self, by_ms: i64) {
        self.stats.jumps += 1;
        tracing::warn!(
            by_ms,
            "the clock was set: runs that wait for a time of day go by the new one"
        );
        for (_, entry) in self.slab.iter_mut() {
            if let Some((at, timer)) = entry.ring() {
                match timer {
                    Timer::Due | Timer::Deadline => {}
                    Timer::StartTimeout | Timer::RunTime | Timer::Retry => {
                        entry.set_ring(Some((Timestamp(at.0.saturating_add(by_ms)), timer)));
                    }
                }
            }
        }
        let rings =
            self.slab.iter_mut().filter_map(|(key, entry)| entry.ring().map(|(at, _)| (at, key)));
        self.timers.replace(rings);
        self.generator.look_at_all();
    }

    /// Runs of a job that were made ahead of their time and that an action has passed over do not begin.
    pub(super) fn pass_over(&mut self, job_id: &JobId) {
        let runs: Vec<RunId> = self.board.look(job_id.as_str(), |records| {
            let Some(job) = records.jobs.get(job_id) else { return Vec::new() };
            let waits = |at: &Timestamp| {
                let run = records.runs.get(&RunId::scheduled(job_id, *at))?;
                (run.state == RunState::PreRun).then(|| run.run_id.clone())
            };
            job.skips.iter().filter_map(waits).collect()
        });
        for key in runs.iter().filter_map(|run_id| self.slab.key(run_id)).collect::<Vec<_>>() {
            let (_, why) = explain::pass_reason(&PassReason::SkippedByAction);
            self.tell(key, Happened::PassedOver { by: SkippedBy::Action, why });
        }
    }

    /// A job has another revision: it reaches runs that wait for their time.
    pub(super) fn hand_on(&mut self, job_id: &JobId) {
        let runs = self.board.look(job_id.as_str(), |records| {
            let waits = |run: &&Run| run.state == RunState::PreRun;
            records
                .active_runs_of(job_id)
                .filter(waits)
                .map(|run| run.run_id.clone())
                .collect::<Vec<RunId>>()
        });
        let current = self.current(job_id);
        for run_id in runs {
            let Some((revision, definition)) = &current else { return };
            let plan = self.plan(*revision, Arc::clone(definition));
            if let Some(entry) = self.slab.key(&run_id).and_then(|key| self.slab.get_mut(key)) {
                entry.update(plan);
            }
        }
    }
}

/// Whether nothing of its schedule is to begin.
pub(super) const fn rests(job: &Job, definition: &JobDefinition) -> bool {
    job.paused.is_some() || definition.suspend
}

fn log_ignored(it: &Orchestrator, what: &str) {
    let (run_id, state) = (it.run_id(), it.state().name());
    tracing::debug!(%run_id, job_id = run_id.job(), scheduled_at = it.scheduled_at().0, state, attempt = it.attempt(), what, "a run was told what it cannot use");
}

pub(super) fn log_beat(it: &Orchestrator) {
    let (run_id, scheduled_at) = (it.run_id(), it.scheduled_at().0);
    let (state, attempt) = (it.state().name(), it.attempt());
    tracing::debug!(%run_id, job_id = run_id.job(), scheduled_at, state, attempt, "a heartbeat");
}

/// Steps are for information, violated constraints are warnings, failures are errors.
fn log(it: &Orchestrator, notes: impl Iterator<Item = Note>) {
    let (run_id, scheduled_at) = (it.run_id(), it.scheduled_at().0);
    let job_id = run_id.job();
    for Note { attempt, noted, .. } in notes {
        let state = it.state().name();
        match &noted {
            Noted::State { to: to @ (RunState::Failed | RunState::Orphaned), why } => {
                tracing::error!(%run_id, job_id, scheduled_at, state = to.name(), attempt, why = &**why, "a run has failed");
            }
            Noted::State { to, why } => {
                tracing::info!(%run_id, job_id, scheduled_at, state = to.name(), attempt, why = &**why, "a run has changed");
            }
            Noted::Constraint { name, met: false, message } => {
                tracing::warn!(%run_id, job_id, scheduled_at, state, attempt, constraint = name, said = message, "a constraint is violated");
            }
            Noted::ConstraintError { name, message } => {
                tracing::error!(%run_id, job_id, scheduled_at, state, attempt, constraint = name, said = message, "a constraint could not be checked");
            }
            Noted::Action { name, ok: true, message } => {
                tracing::info!(%run_id, job_id, scheduled_at, state, attempt, action = name, said = message, "an action was taken");
            }
            Noted::Action { name, ok: false, message } => {
                tracing::error!(%run_id, job_id, scheduled_at, state, attempt, action = name, said = message, "an action failed");
            }
            // A mistake of ours: the run stays where it is.
            Noted::Ignored { what } => {
                tracing::error!(%run_id, job_id, scheduled_at, state, attempt, what, "a step of a run is not legal");
            }
            Noted::Constraint { met: true, .. }
            | Noted::Revision { .. }
            | Noted::Waits { .. }
            | Noted::Skipped { .. }
            | Noted::Adopted { .. }
            | Noted::Cancel { .. } => {
                tracing::debug!(%run_id, job_id, scheduled_at, state, attempt, ?noted, "noted of a run");
            }
        }
    }
}
