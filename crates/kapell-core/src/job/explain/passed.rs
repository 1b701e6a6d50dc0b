//! Moments that came to nothing, told where they belong: between the runs of others.

use super::{Decision, JobFacts, pass_reason};
use crate::job::record::{PassReason, Passed};
use crate::schedule::Moments;
use crate::seams::Timestamp;

/// So many moments of one reason are gone through to find their places.
const MOST: usize = 1_000;

/// What was passed over, in order. What is kept joins moments of one reason also over runs between them: the schedule
/// tells which they were.
pub(super) fn in_order(facts: &JobFacts<'_>, moments: &impl Moments) -> Vec<Decision> {
    facts.job.passed.iter().flat_map(|passed| of(passed, facts, moments)).collect()
}

/// Why the moment at `at` came to nothing, if that is known.
pub(super) fn why<'a>(facts: &JobFacts<'a>, at: Timestamp) -> Option<&'a PassReason> {
    let is_of = |passed: &&Passed| passed.from <= at && at <= passed.to;
    facts.job.passed.iter().rev().find(is_of).map(|passed| &passed.why)
}

/// What was passed over around a time that is no moment now, if its schedule has been changed since: nobody can say which
/// moments it had.
pub(super) fn former_range<'a>(
    facts: &JobFacts<'a>,
    moments: &impl Moments,
    at: Timestamp,
) -> Option<&'a Passed> {
    let is_changed = facts.job.revised.last().is_some_and(|last| at < last.at);
    let is_one = |at: Timestamp| {
        moments.next_after(Timestamp(at.0 - 1)).is_some_and(|moment| moment.at == at)
    };
    let is_of_now = |passed: &Passed| passed.count > 0 && is_one(passed.from) && is_one(passed.to);
    let is_of = |passed: &&Passed| passed.from <= at && at <= passed.to;
    facts.job.passed.iter().rev().find(is_of).filter(|found| is_changed && !is_of_now(found))
}

fn of(passed: &Passed, facts: &JobFacts<'_>, moments: &impl Moments) -> Vec<Decision> {
    let had_run = |at: Timestamp| {
        facts.runs.iter().any(|run| run.trigger.is_of_schedule() && run.scheduled_at == at)
    };
    let has_between =
        facts.runs.iter().any(|run| passed.from < run.scheduled_at && run.scheduled_at < passed.to);
    if !has_between {
        return vec![told(passed, passed.from, passed.to, passed.count)];
    }
    // Those in a row are told together.
    let mut rows: Vec<(Timestamp, Timestamp, u32)> = Vec::new();
    let (mut at, mut joined, mut count) = (Timestamp(passed.from.0 - 1), false, 0);
    for _ in 0..MOST {
        let Some(next) = moments.next_after(at).filter(|next| next.at <= passed.to) else { break };
        at = next.at;
        if had_run(at) {
            joined = false;
            continue;
        }
        count += 1;
        match rows.last_mut().filter(|_| joined) {
            Some((_, to, several)) => (*to, *several) = (at, *several + 1),
            None => rows.push((at, at, 1)),
        }
        joined = true;
    }
    // Its schedule is another by now, or runs were forgotten: then nobody can say which they were.
    if count != passed.count {
        let mut whole = told(passed, passed.from, passed.to, passed.count);
        whole.text.push_str(" (with runs between them)");
        return vec![whole];
    }
    rows.into_iter().map(|(from, to, count)| told(passed, from, to, count)).collect()
}

fn told(passed: &Passed, from: Timestamp, to: Timestamp, count: u32) -> Decision {
    let (about, why) = pass_reason(&passed.why);
    let many = if count > 1 {
        format!("{count} moments within {}: ", length(from, to))
    } else {
        String::new()
    };
    Decision::new(from, about, format!("{many}{why}"))
}

fn length(from: Timestamp, to: Timestamp) -> String {
    let seconds = to.since(from).as_secs();
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7_200 => format!("{} min", seconds / 60),
        7_200..172_800 => format!("{} h", seconds / 3_600),
        _ => format!("{} days", seconds / 86_400),
    }
}
