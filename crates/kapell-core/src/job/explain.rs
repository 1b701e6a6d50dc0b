//! Why a job did or did not run: every decision with its reason.

mod passed;
mod run;

pub use run::{of_run, outcome};

use super::definition::JobDefinition;
use super::due::{GRACE, is_far_ahead};
use super::record::{Job, PassReason, Passed, PauseCause};
use super::when::show;
use crate::run::{Run, RunState};
use crate::schedule::{ClockChange, Moments, Occurrence};
use crate::seams::Timestamp;

/// All that is known of a job.
#[derive(Debug, Clone, Copy)]
pub struct JobFacts<'a> {
    pub job: &'a Job,
    pub definition: &'a JobDefinition,
    /// Up to where its moments were dealt with.
    pub stands: Timestamp,
    /// Its runs, the oldest moment first.
    pub runs: &'a [&'a Run],
}

/// An answer to "why?".
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explained {
    /// One sentence.
    pub summary: String,
    /// In order, each with its reason.
    pub decisions: Vec<Decision>,
    /// The next moment that becomes a run, as things stand.
    pub next: Option<Timestamp>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// When it was made, or what moment it is about.
    pub at: Timestamp,
    /// The attempt of a run that it is about.
    pub attempt: u32,
    pub about: About,
    pub text: String,
}

impl Decision {
    /// One that is about no attempt, or about the first.
    fn new(at: Timestamp, about: About, text: impl Into<String>) -> Self {
        Self { at, attempt: 0, about, text: text.into() }
    }
}

/// What a decision goes by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum About {
    Due,
    ClockChange,
    Calendar,
    Suspend,
    Jitter,
    Deadline,
    CatchUp,
    Skip,
    Overlap,
    Constraint,
    Action,
    State,
    Cancel,
    Adoption,
}

impl About {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Due => "due",
            Self::ClockChange => "clock change",
            Self::Calendar => "calendar",
            Self::Suspend => "suspend",
            Self::Jitter => "jitter",
            Self::Deadline => "deadline",
            Self::CatchUp => "catch-up",
            Self::Skip => "skip",
            Self::Overlap => "overlap",
            Self::Constraint => "constraint",
            Self::Action => "action",
            Self::State => "state",
            Self::Cancel => "cancel",
            Self::Adoption => "adoption",
        }
    }
}

/// Explains a job: what holds it back, what its last moments came to, and when it runs next.
pub fn job(facts: &JobFacts<'_>, moments: &impl Moments, now: Timestamp) -> Explained {
    let next = next_run(facts, moments, now);
    let mut decisions = passed::in_order(facts, moments);
    let ended = |run: &&Run| {
        let text = format!("run `{}` {}", run.run_id, outcome(run));
        Decision::new(run.scheduled_at, About::State, text)
    };
    decisions.extend(facts.runs.iter().map(ended));
    decisions.extend(ahead(facts, now));
    decisions.sort_by_key(|decision| decision.at);
    Explained { summary: summary(facts, next), decisions, next }
}

/// Whether a clock that was wrong has led it.
fn ahead(facts: &JobFacts<'_>, now: Timestamp) -> Option<Decision> {
    let zone = &facts.definition.timezone;
    let back = facts.job.again.filter(|again| is_far_ahead(again.resume, now));
    let text = if let Some(again) = back {
        format!(
            "a clock was ahead, and moments until {} were passed over: they come after all",
            show(again.until, zone)
        )
    } else if is_far_ahead(facts.stands, now) {
        format!(
            "its moments until {} were dealt with when a clock was ahead of what it says now: the next one is after that",
            show(facts.stands, zone)
        )
    } else {
        return None;
    };
    Some(Decision::new(now, About::ClockChange, text))
}

/// Explains a moment: the one at `at` or, if there is none, the first after it.
pub fn at(
    facts: &JobFacts<'_>,
    moments: &impl Moments,
    at: Timestamp,
    now: Timestamp,
) -> Explained {
    let next = next_run(facts, moments, now);
    let asked = Timestamp(at.0.div_euclid(1000) * 1000);
    let scheduled = moments.next_after(Timestamp(asked.0 - 1));
    let is_of_now = scheduled.as_ref().is_some_and(|moment| moment.at == asked);
    if !is_of_now && was_dealt_with(facts, asked) {
        return of_former(facts, asked, now, next);
    }
    if !is_of_now && let Some(range) = passed::former_range(facts, moments, asked) {
        let (about, why) = pass_reason(&range.why);
        let summary =
            format!("that time is within a range that the former schedule passed over: {why}");
        let decisions = vec![Decision::new(asked, about, why)];
        return Explained { summary, decisions, next };
    }
    let Some(moment) = scheduled else {
        let summary = format!("job `{}` has no moment at or after that", facts.job.job_id);
        return Explained { summary, decisions: Vec::new(), next };
    };
    let mut decisions = of_moment(&moment);
    if run_of(facts, moment.at).is_none() && passed::why(facts, moment.at).is_none() {
        decisions.extend(by_now(&moment, moments));
    }
    let summary = came_to(facts, &moment, now, &mut decisions);
    Explained { summary, decisions, next }
}

fn run_of<'a>(facts: &JobFacts<'a>, at: Timestamp) -> Option<&'a Run> {
    let is_of = |run: &&&Run| run.trigger.is_of_schedule() && run.scheduled_at == at;
    facts.runs.iter().find(is_of).copied()
}

/// What a moment came to.
fn came_to(
    facts: &JobFacts<'_>,
    moment: &Occurrence,
    now: Timestamp,
    decisions: &mut Vec<Decision>,
) -> String {
    if let Some(run) = run_of(facts, moment.at) {
        // What another revision says of deadlines and places was not so for it.
        let by = (run.revision == facts.job.revision).then_some(facts.definition);
        decisions.extend(of_run(run, by));
        return format!("run `{}` of that moment {}", run.run_id, outcome(run));
    }
    let (decision, summary) = without_run(facts, moment, now);
    decisions.extend(decision);
    summary
}

/// Whether it is known that a moment was one, whatever the schedule says now.
fn was_dealt_with(facts: &JobFacts<'_>, at: Timestamp) -> bool {
    let is_one = |passed: &Passed| passed.count > 0 && (passed.from == at || passed.to == at);
    run_of(facts, at).is_some() || facts.job.passed.iter().any(is_one)
}

/// Explains a moment that the schedule had and has not any more.
fn of_former(
    facts: &JobFacts<'_>,
    at: Timestamp,
    now: Timestamp,
    next: Option<Timestamp>,
) -> Explained {
    let text = "a moment of its schedule as it was then: it has been changed since";
    let mut decisions = vec![Decision::new(at, About::Due, text)];
    let moment = Occurrence { at, excluded: None, change: None };
    let summary = came_to(facts, &moment, now, &mut decisions);
    Explained { summary, decisions, next }
}

/// Why a moment has no run.
fn without_run(
    facts: &JobFacts<'_>,
    moment: &Occurrence,
    now: Timestamp,
) -> (Option<Decision>, String) {
    let at = moment.at;
    // What was decided then counts, whatever the calendars say by now.
    if let Some(why) = passed::why(facts, at) {
        let (about, why) = pass_reason(why);
        let summary = format!("that moment came to nothing: {why}");
        return (Some(Decision::new(at, about, why)), summary);
    }
    if let Some(calendar) = &moment.excluded {
        return (None, format!("that moment is excluded by calendar `{calendar}`"));
    }
    if at < facts.job.created_at {
        return (None, "that moment was before the job was there".to_owned());
    }
    if at > facts.stands {
        let text = match hold(facts) {
            Some((_, why)) => {
                format!("that moment is still to come, and nothing is scheduled: {why}")
            }
            None if at < now.before(GRACE) => {
                "that moment was missed, and what becomes of it is not decided yet".to_owned()
            }
            None => "that moment is still to come: its run is made shortly before it".to_owned(),
        };
        return (None, text);
    }
    let text =
        "that moment was dealt with, and its run or its reason is not kept any more (history)";
    (None, text.to_owned())
}

fn of_moment(moment: &Occurrence) -> Vec<Decision> {
    let decision = |about, text: &str| Decision::new(moment.at, about, text);
    let mut found = vec![decision(About::Due, "a moment of its schedule")];
    if let Some(change) = moment.change {
        found.push(decision(About::ClockChange, clock_change(change)));
    }
    found
}

/// What the job as it is now does to a moment of which nothing is known.
fn by_now(moment: &Occurrence, moments: &impl Moments) -> Vec<Decision> {
    let at = moment.at;
    let decision = |about, text: &str| Decision::new(at, about, text);
    let mut found = Vec::new();
    if let Some(calendar) = &moment.excluded {
        found.push(decision(About::Calendar, &format!("excluded by calendar `{calendar}`")));
    }
    let off = moments.put_off(at).since(at);
    if !off.is_zero() {
        found.push(decision(
            About::Jitter,
            &format!("put off by {:.1} s (jitter)", off.as_secs_f64()),
        ));
    }
    found
}

/// What the clock of a zone does to a moment.
pub const fn clock_change(change: ClockChange) -> &'static str {
    match change {
        ClockChange::Gap => {
            "its local time does not exist that day: it is at the first instant after the gap"
        }
        ClockChange::FoldOnce => "its local time exists twice that day: it is at the first of both",
        ClockChange::FoldFirst => {
            "its local time exists twice that day: this is the first, and it runs at each"
        }
        ClockChange::FoldSecond => {
            "its local time exists twice that day: this is the second, and it runs at each"
        }
    }
}

/// Why a moment came to nothing.
pub fn pass_reason(why: &PassReason) -> (About, String) {
    let seconds = |millis: u64| std::time::Duration::from_millis(millis).as_secs_f64();
    let noted = |what: &str, note: &str| {
        if note.is_empty() { what.to_owned() } else { format!("{what}: {note}") }
    };
    match why {
        PassReason::Suspended { note } => (About::Suspend, noted("the job was suspended", note)),
        PassReason::Paused { note } => (About::Suspend, noted("the job was paused", note)),
        PassReason::Excluded { calendar } => {
            (About::Calendar, format!("excluded by calendar `{calendar}`"))
        }
        PassReason::NotCaughtUp { policy } => {
            (About::CatchUp, format!("it was missed, and not made up for (catch_up: {policy})"))
        }
        PassReason::TooOld { window_ms } => {
            let window = seconds(*window_ms);
            (
                About::CatchUp,
                format!(
                    "it was missed longer ago than the {window:.0} s that are made up for (catch_up)"
                ),
            )
        }
        PassReason::DeadlineMissed { late_ms, deadline_ms } => {
            let (late, deadline) = (seconds(*late_ms), seconds(*deadline_ms));
            (
                About::Deadline,
                format!("{late:.1} s late, and {deadline:.1} s are allowed (starting_deadline)"),
            )
        }
        PassReason::SkippedByAction => {
            (About::Skip, "passed over by an action (skipNextInstance)".to_owned())
        }
        PassReason::SameInstant => (
            About::ClockChange,
            "a clock change maps it to the instant of another moment".to_owned(),
        ),
    }
}

/// What keeps moments of a job from becoming runs, all of them or the first.
pub fn held(facts: &JobFacts<'_>) -> Option<String> {
    let skips = u64::from(facts.job.skip_next) + facts.job.skips.len() as u64;
    let skipped = match skips {
        0 => None,
        1 => Some("the next moment is passed over by an action (skipNextInstance)".to_owned()),
        many => {
            Some(format!("the next {many} moments are passed over by actions (skipNextInstance)"))
        }
    };
    let held = hold(facts).map(|(_, why)| format!("nothing is scheduled: {why}"));
    held.or(skipped)
}

/// What keeps all of a job's moments from becoming runs.
fn hold(facts: &JobFacts<'_>) -> Option<(About, String)> {
    if facts.job.removed {
        return Some((About::Suspend, "the job is deleted".to_owned()));
    }
    if facts.definition.suspend {
        let note = &facts.definition.suspend_note;
        return Some(pass_reason(&PassReason::Suspended { note: note.clone() }));
    }
    let pause = facts.job.paused.as_ref()?;
    let by = match &pause.cause {
        PauseCause::Person { who } => format!("paused by {who}"),
        PauseCause::Failures { run_id } => {
            format!("paused after run `{run_id}` failed (pause_after_failures)")
        }
    };
    let text = if pause.note.is_empty() { by } else { format!("{by}: {}", pause.note) };
    Some((About::Suspend, text))
}

/// When the run of the next moment is due: that of a moment which is past, if it was put off and is still to come.
pub fn next_due(facts: &JobFacts<'_>, moments: &impl Moments, now: Timestamp) -> Option<Timestamp> {
    let next = next_run(facts, moments, now).map(|at| moments.put_off(at));
    let is_put_off = |run: &&&Run| {
        let is_made = run.trigger.is_of_schedule() && run.state == RunState::PreRun;
        is_made && now <= run.due_at && !facts.job.skips(run)
    };
    let put_off = facts.runs.iter().filter(is_put_off).map(|run| run.due_at);
    put_off.filter(|_| hold(facts).is_none()).chain(next).min()
}

/// The first moment to come that no calendar excludes and no action passes over.
pub fn next_run(facts: &JobFacts<'_>, moments: &impl Moments, now: Timestamp) -> Option<Timestamp> {
    const FAR: usize = 10_000;
    if hold(facts).is_some() {
        return None;
    }
    let waits = facts
        .runs
        .iter()
        .filter(|run| run.trigger.is_of_schedule() && run.state == RunState::PreRun)
        .filter(|run| !facts.job.skips(run));
    if let Some(first) = waits.map(|run| run.scheduled_at).find(|at| *at >= now) {
        return Some(first);
    }
    let mut skips = facts.job.skip_next;
    let mut at = facts.stands.max(now);
    for _ in 0..FAR {
        let next = moments.next_after(at)?;
        at = next.at;
        match next.excluded {
            Some(_) => {}
            None if skips > 0 => skips -= 1,
            None => return Some(at),
        }
    }
    None
}

fn summary(facts: &JobFacts<'_>, next: Option<Timestamp>) -> String {
    let job_id = &facts.job.job_id;
    let active = facts.runs.iter().filter(|run| !run.state.is_final()).count();
    let runs = match active {
        0 => String::new(),
        1 => "; one run is under way".to_owned(),
        many => format!("; {many} runs are under way"),
    };
    let what = match (hold(facts), next) {
        (Some((_, why)), _) => format!("nothing is scheduled: {why}"),
        (None, Some(_)) => "it is scheduled".to_owned(),
        (None, None) if facts.definition.schedule.is_empty() => {
            "it has no schedule: it runs when it is triggered".to_owned()
        }
        (None, None) => "its schedule has no moment to come".to_owned(),
    };
    format!("job `{job_id}`: {what}{runs}")
}
