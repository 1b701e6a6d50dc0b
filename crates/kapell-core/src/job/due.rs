//! Which moments of a job are due: each once, over restarts, failovers and clock changes.
//!
//! What was dealt with is what the board says, so a clock that was put back repeats nothing. A clock that was put
//! forward makes moments late, as a long outage does: `catch_up` says what becomes of them.

use std::collections::BTreeMap;
use std::time::Duration;

use super::definition::{CatchUpPolicy, JobDefinition};
use super::record::{Again, Job, PassReason, Passed};
use super::request::{MOST_RUNS, NewRun};
use crate::run::{Run, RunId, RunState, Trigger};
use crate::schedule::{Moments, Occurrence};
use crate::seams::Timestamp;

/// How far ahead of its time a run is made.
pub const AHEAD: Duration = Duration::from_secs(10);
/// What is older than this when it is planned counts as missed.
pub const GRACE: Duration = Duration::from_secs(30);
/// So many moments one call looks at. What is behind them is for the next call.
pub const MOST_MOMENTS: usize = 1_000;
/// Moments of a job that schedules nothing are passed over together, so late.
const IDLE: Duration = Duration::from_secs(60);

/// The most that a host may be told to make runs ahead: whoever looks where a job stands allows for that much.
pub const MOST_AHEAD: Duration = Duration::from_secs(60);
/// A job that stands further ahead of the clock than this was led by one that was wrong.
pub const FAR: Duration = Duration::from_secs(60);

/// Whether a job stands where no clock that is right has been.
pub fn is_far_ahead(stands: Timestamp, now: Timestamp) -> bool {
    stands > now.after(MOST_AHEAD + FAR)
}

/// Whether a job is to go back: it stands far ahead, and has passed over moments that have yet to come.
pub fn is_to_go_back(job: &Job, stands: Timestamp, now: Timestamp) -> bool {
    let passed_over = || job.passed.iter().any(|passed| passed.comes_after_all(now));
    !job.removed && job.again.is_none() && is_far_ahead(stands, now) && passed_over()
}

/// What becomes of the moments that are due.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Planned {
    pub runs: Vec<NewRun>,
    pub passed: Vec<Passed>,
    /// Every moment up to this one is dealt with by these; where the job stands already if there are none.
    pub to: Timestamp,
    /// The next moment to plan for. One that is within reach already means: plan again at once.
    pub next: Option<Timestamp>,
}

/// Plans the moments of a job after `stands`, which were not dealt with yet, until `ahead` from now.
pub fn plan(
    job: &Job,
    stands: Timestamp,
    definition: &JobDefinition,
    moments: &impl Moments,
    now: Timestamp,
    ahead: Duration,
) -> Planned {
    let mut planned = Planned { runs: Vec::new(), passed: Vec::new(), to: stands, next: None };
    if job.removed {
        return planned;
    }
    if let Some(why) = idle(job, definition) {
        idle_through(&mut planned, moments, now, ahead, &why);
        return planned;
    }
    let rule = Rule::new(definition, moments, stands, now);
    let mut skips = job.skip_next;
    let mut looked = 0;
    loop {
        let Some(next) = moments.next_after(planned.to) else { return planned };
        planned.next = Some(next.at);
        let reach = now.after(ahead);
        let is_through = |again: &Again| again.until < next.at && again.until <= reach;
        if let Some(again) = job.again.filter(is_through) {
            planned.to = planned.to.max(again.until);
            return planned;
        }
        if next.at > reach || planned.runs.len() == MOST_RUNS {
            return planned;
        }
        if looked == MOST_MOMENTS {
            rule.leap(&mut planned, moments);
            return planned;
        }
        looked += 1;
        match rule.verdict(&next, moments.put_off(next.at)) {
            Err(why) => pass(&mut planned, next.at, 1, why),
            Ok(_) if skips > 0 => {
                skips -= 1;
                pass(&mut planned, next.at, 1, PassReason::SkippedByAction);
            }
            Ok(trigger) => {
                planned.to = next.at;
                planned.runs.push(NewRun {
                    run_id: RunId::scheduled(&job.job_id, next.at),
                    scheduled_at: next.at,
                    due_at: moments.put_off(next.at),
                    trigger,
                    parameters: BTreeMap::new(),
                });
            }
        }
    }
}

/// The same for a job that may be going back through moments of which some have runs: these are dealt with.
pub fn plan_around(
    job: &Job,
    stands: Timestamp,
    definition: &JobDefinition,
    moments: &impl Moments,
    (now, ahead): (Timestamp, Duration),
    has_run: impl Fn(Timestamp) -> bool,
) -> Planned {
    if job.again.is_none() {
        return plan(job, stands, definition, moments, now, ahead);
    }
    let moments = Without { moments, is_left_out: has_run };
    plan(job, stands, definition, &moments, now, ahead)
}

/// Moments of a schedule but for some.
struct Without<'m, M, F> {
    moments: &'m M,
    is_left_out: F,
}

impl<M: Moments, F: Fn(Timestamp) -> bool> Moments for Without<'_, M, F> {
    fn next_after(&self, after: Timestamp) -> Option<Occurrence> {
        let mut next = self.moments.next_after(after)?;
        while (self.is_left_out)(next.at) {
            next = self.moments.next_after(next.at)?;
        }
        Some(next)
    }

    fn put_off(&self, at: Timestamp) -> Timestamp {
        self.moments.put_off(at)
    }
}

/// Why nothing of a job is scheduled at all.
fn idle(job: &Job, definition: &JobDefinition) -> Option<PassReason> {
    if definition.suspend {
        return Some(PassReason::Suspended { note: definition.suspend_note.clone() });
    }
    job.paused.as_ref().map(|pause| PassReason::Paused { note: pause.note.clone() })
}

fn idle_through(
    planned: &mut Planned,
    moments: &impl Moments,
    now: Timestamp,
    ahead: Duration,
    why: &PassReason,
) {
    let Some(first) = moments.next_after(planned.to) else { return };
    planned.next = Some(first.at.after(IDLE + ahead));
    if first.at.after(IDLE) > now {
        return;
    }
    for _ in 0..MOST_MOMENTS {
        let Some(next) = moments.next_after(planned.to) else {
            planned.next = None;
            return;
        };
        planned.next = Some(next.at.after(IDLE + ahead));
        if next.at > now {
            return;
        }
        pass(planned, next.at, 1, why.clone());
    }
    // Those that are left are as many as like, and all alike.
    pass(planned, now, 0, why.clone());
    planned.next = moments.next_after(now).map(|next| next.at.after(IDLE + ahead));
}

fn pass(planned: &mut Planned, at: Timestamp, count: u32, why: PassReason) {
    let next = Passed::new(at, at, count, why);
    match planned.passed.last_mut() {
        Some(last)
            if last.joins(&next)
                && planned.runs.last().is_none_or(|run| run.scheduled_at < last.from) =>
        {
            last.join(&next);
        }
        Some(_) | None => planned.passed.push(next),
    }
    planned.to = at;
}

/// The latest sign before `since` that somebody led: a run was made or has ended, or a job was changed.
pub fn last_sign<'r>(
    jobs: impl Iterator<Item = &'r Job>,
    runs: impl Iterator<Item = &'r Run>,
    since: Timestamp,
) -> Option<Timestamp> {
    let of_runs = runs.flat_map(|run| [Some(run.created_at), run.completed_at]).flatten();
    jobs.map(|job| job.updated_at).chain(of_runs).filter(|at| *at < since).max()
}

/// Whether the time of a run that was made ahead came when nobody led, as far as `led` says, and is long past.
pub fn is_left(run: &Run, led: Option<Timestamp>, now: Timestamp) -> bool {
    run.state == RunState::PreRun
        && run.trigger == Trigger::Schedule
        && run.cancel.is_none()
        && led.is_none_or(|led| led < run.due_at)
        && now.since(run.due_at) > GRACE
}

/// What becomes of those runs of a job that were left like this: the same as of moments that have no runs. `runs` are all
/// of the job, for of these and of what was missed besides only one may be the last.
pub fn left(
    definition: &JobDefinition,
    moments: &impl Moments,
    stands: Timestamp,
    runs: &[&Run],
    led: Option<Timestamp>,
    now: Timestamp,
) -> Vec<(RunId, Result<Trigger, PassReason>)> {
    let mut rule = Rule::new(definition, moments, stands, now);
    let counts = |run: &&&Run| is_left(run, led, now) || run.trigger == Trigger::CatchUp;
    let newest = runs.iter().filter(counts).map(|run| run.scheduled_at).max();
    rule.last = rule.last.max(newest);
    let judged = |run: &&Run| {
        let moment = Occurrence { at: run.scheduled_at, excluded: None, change: None };
        (run.run_id.clone(), rule.verdict(&moment, run.due_at))
    };
    runs.iter().filter(|run| is_left(run, led, now)).map(judged).collect()
}

/// What a moment is judged by.
struct Rule<'a> {
    definition: &'a JobDefinition,
    now: Timestamp,
    /// Of the moments that were missed, the last one that could have been a run.
    last: Option<Timestamp>,
}

impl<'a> Rule<'a> {
    fn new(
        definition: &'a JobDefinition,
        moments: &impl Moments,
        stands: Timestamp,
        now: Timestamp,
    ) -> Self {
        let last = match definition.catch_up.policy {
            CatchUpPolicy::None | CatchUpPolicy::All => None,
            CatchUpPolicy::Last => {
                let put_off = definition.jitter.unwrap_or_default().get();
                let window = now.before(definition.catch_up.window.get()).before(put_off);
                // A moment that is as old as the window is not older.
                last_missed(moments, stands.max(Timestamp(window.0.saturating_sub(1))), now)
            }
        };
        Self { definition, now, last }
    }

    /// What a moment becomes whose run is due at `due_at`: a run, or nothing. The deadline counts from the moment, but what
    /// was put off is not missed before its time has come.
    fn verdict(&self, moment: &Occurrence, due_at: Timestamp) -> Result<Trigger, PassReason> {
        if let Some(calendar) = &moment.excluded {
            return Err(PassReason::Excluded { calendar: calendar.clone() });
        }
        let late = self.now.since(moment.at);
        let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        if let Some(deadline) =
            self.definition.starting_deadline.filter(|deadline| late > deadline.get())
        {
            return Err(PassReason::DeadlineMissed {
                late_ms: millis(late),
                deadline_ms: millis(deadline.get()),
            });
        }
        let late = self.now.since(due_at);
        if late <= GRACE {
            return Ok(Trigger::Schedule);
        }
        let window = self.definition.catch_up.window.get();
        let not_caught_up =
            |policy: &str| Err(PassReason::NotCaughtUp { policy: policy.to_owned() });
        match self.definition.catch_up.policy {
            CatchUpPolicy::None => not_caught_up("none"),
            CatchUpPolicy::Last | CatchUpPolicy::All if late > window => {
                Err(PassReason::TooOld { window_ms: millis(window) })
            }
            CatchUpPolicy::Last if self.last != Some(moment.at) => not_caught_up("last"),
            CatchUpPolicy::Last | CatchUpPolicy::All => Ok(Trigger::CatchUp),
        }
    }

    /// Passes over all that comes to nothing anyhow, however much it is, without counting it.
    fn leap(&self, planned: &mut Planned, moments: &impl Moments) {
        let not_caught_up = |policy: &str| PassReason::NotCaughtUp { policy: policy.to_owned() };
        let window = self.definition.catch_up.window.get();
        // Before this one all were due, however far they were put off.
        let put_off = self.definition.jitter.unwrap_or_default().get();
        let edge = self.now.before(GRACE).before(put_off);
        let (mut until, why) = match self.definition.catch_up.policy {
            CatchUpPolicy::None => (edge, not_caught_up("none")),
            CatchUpPolicy::Last => {
                (self.last.map_or(edge, |last| last.min(edge)), not_caught_up("last"))
            }
            CatchUpPolicy::All => {
                let window_ms = u64::try_from(window.as_millis()).unwrap_or(u64::MAX);
                let old = self.now.before(window).before(put_off);
                (old.min(edge), PassReason::TooOld { window_ms })
            }
        };
        if let Some(deadline) = self.definition.starting_deadline {
            until = until.max(self.now.before(deadline.get()));
        }
        let to = Timestamp(until.0.saturating_sub(1));
        if planned.to < to {
            planned.passed.push(Passed::new(planned.to.next(), to, 0, why));
            planned.to = to;
            planned.next = moments.next_after(to).map(|next| next.at);
        }
    }
}

/// The last moment after `after` that counts as missed and is not excluded. It is looked for from the end, for there
/// may be very many.
fn last_missed(moments: &impl Moments, after: Timestamp, now: Timestamp) -> Option<Timestamp> {
    let edge = now.before(GRACE);
    let mut end = edge;
    let mut reach = 1_000;
    let mut left = 10 * MOST_MOMENTS;
    while after < end && left > 0 {
        let from = Timestamp(end.0.saturating_sub(reach)).max(after);
        let mut found = None;
        let mut at = from;
        while let Some(next) = moments.next_after(at).filter(|next| next.at < end) {
            at = next.at;
            if next.excluded.is_none() && moments.put_off(at) < edge {
                found = Some(at);
            }
            left = left.saturating_sub(1);
        }
        if found.is_some() {
            return found;
        }
        left = left.saturating_sub(1);
        end = from.next();
        reach = reach.saturating_mul(2);
    }
    None
}
