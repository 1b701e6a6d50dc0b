//! One plan: what becomes of each moment.

use super::world::*;
use crate::job::due::{AHEAD, MOST_MOMENTS, Planned, plan};
use crate::job::{
    CatchUp, CatchUpPolicy, Job, JobDefinition, Length, MOST_RUNS, PassReason, Pause, PauseCause,
};
use crate::run::{RunId, Trigger};
use crate::seams::Timestamp;

const MINUTE: Every = Every::new(60);

fn job() -> Job {
    World::with(&definition()).job().clone()
}

fn ago(count: u64) -> Timestamp {
    NOW.before(seconds(count))
}

fn caught_up(policy: CatchUpPolicy, window: u64) -> JobDefinition {
    JobDefinition {
        catch_up: CatchUp { policy, window: Length::new(seconds(window)) },
        ..definition()
    }
}

fn planned(definition: &JobDefinition, stands: Timestamp) -> Planned {
    plan(&job(), stands, definition, &MINUTE, NOW, AHEAD)
}

/// Each run with how long ago its moment was, and how it came about.
fn runs(planned: &Planned) -> Vec<(i64, Trigger)> {
    planned
        .runs
        .iter()
        .map(|run| ((NOW.0 - run.scheduled_at.0) / 1000, run.trigger.clone()))
        .collect()
}

fn passed(planned: &Planned) -> Vec<(i64, i64, u32, PassReason)> {
    let ago = |at: Timestamp| (NOW.0 - at.0) / 1000;
    planned.passed.iter().map(|it| (ago(it.from), ago(it.to), it.count, it.why.clone())).collect()
}

fn not_caught_up(policy: &str) -> PassReason {
    PassReason::NotCaughtUp { policy: policy.to_owned() }
}

#[test]
fn a_moment_becomes_a_run_ahead_of_its_time() {
    let early = plan(&job(), ago(1), &definition(), &Every::new(60), ago(11), AHEAD);
    assert_eq!((early.runs.len(), early.to, early.next), (0, ago(1), Some(NOW.after(seconds(0)))));
    let due = plan(&job(), ago(1), &definition(), &Every::new(60), ago(10), AHEAD);
    assert_eq!(due.runs[0].run_id, RunId::scheduled(&id(), NOW));
    assert_eq!((due.to, due.next), (NOW, Some(NOW.after(seconds(60)))));
}

#[test]
fn jitter_puts_off_the_run_and_not_its_moment() {
    let moments = Every { off: seconds(7), ..MINUTE };
    let due = plan(&job(), ago(1), &definition(), &moments, NOW, AHEAD);
    assert_eq!((due.runs[0].scheduled_at, due.runs[0].due_at), (NOW, NOW.after(seconds(7))));
}

#[test]
fn what_was_missed_follows_catch_up() {
    let table = [
        (CatchUpPolicy::None, 3600, vec![], vec![(240, 60, 4, not_caught_up("none"))]),
        (CatchUpPolicy::Last, 3600, vec![60], vec![(240, 120, 3, not_caught_up("last"))]),
        (CatchUpPolicy::All, 3600, vec![240, 180, 120, 60], vec![]),
        (
            CatchUpPolicy::All,
            120,
            vec![120, 60],
            vec![(240, 180, 2, PassReason::TooOld { window_ms: 120_000 })],
        ),
        (
            CatchUpPolicy::Last,
            50,
            vec![],
            vec![(240, 60, 4, PassReason::TooOld { window_ms: 50_000 })],
        ),
    ];
    for (policy, window, late, lost) in table {
        let planned = planned(&caught_up(policy, window), ago(241));
        let late = late.into_iter().map(|ago| (ago, Trigger::CatchUp));
        let all: Vec<_> = late.chain([(0, Trigger::Schedule)]).collect();
        assert_eq!(runs(&planned), all, "{policy:?} {window}");
        assert_eq!(passed(&planned), lost, "{policy:?} {window}");
        assert_eq!((planned.to, planned.next), (NOW, Some(NOW.after(seconds(60)))));
    }
}

#[test]
fn up_to_the_grace_nothing_is_missed() {
    let definition = caught_up(CatchUpPolicy::None, 3600);
    for (late, trigger) in [(30, Some(Trigger::Schedule)), (31, None)] {
        let planned = plan(&job(), ago(1), &definition, &MINUTE, NOW.after(seconds(late)), AHEAD);
        assert_eq!(planned.runs.first().map(|run| run.trigger.clone()), trigger, "{late}");
    }
}

#[test]
fn the_last_that_was_missed_is_one_that_no_calendar_excludes() {
    let number = NOW.0 / 60_000 - 1;
    let moments = Every { excluded: number, ..MINUTE };
    let planned = plan(&job(), ago(241), &definition(), &moments, NOW, AHEAD);
    assert_eq!(runs(&planned), [(120, Trigger::CatchUp), (0, Trigger::Schedule)]);
    let excluded = PassReason::Excluded { calendar: "days off".to_owned() };
    assert_eq!(passed(&planned), [(240, 180, 2, not_caught_up("last")), (60, 60, 1, excluded)]);
}

#[test]
fn a_deadline_counts_for_what_is_made_up_for_too() {
    let starting_deadline = Some(Length::new(seconds(100)));
    let planned = planned(
        &JobDefinition { starting_deadline, ..caught_up(CatchUpPolicy::All, 3600) },
        ago(241),
    );
    assert_eq!(runs(&planned), [(60, Trigger::CatchUp), (0, Trigger::Schedule)]);
    let missed = PassReason::DeadlineMissed { late_ms: 240_000, deadline_ms: 100_000 };
    assert_eq!(passed(&planned), [(240, 120, 3, missed)]);
}

#[test]
fn an_action_has_moments_passed_over_that_would_have_been_runs() {
    let job = Job { skip_next: 2, ..job() };
    let planned = plan(&job, ago(241), &caught_up(CatchUpPolicy::All, 120), &MINUTE, NOW, AHEAD);
    assert_eq!(runs(&planned), [(0, Trigger::Schedule)]);
    let too_old = PassReason::TooOld { window_ms: 120_000 };
    assert_eq!(
        passed(&planned),
        [(240, 180, 2, too_old), (120, 60, 2, PassReason::SkippedByAction)]
    );
}

#[test]
fn while_it_is_paused_or_suspended_moments_come_to_nothing_and_are_noted_together() {
    let note = "holidays".to_owned();
    let pause =
        Pause { at: NOW, cause: PauseCause::Person { who: "ada".to_owned() }, note: note.clone() };
    let paused = Job { paused: Some(pause), ..job() };
    let suspended = JobDefinition { suspend: true, suspend_note: note.clone(), ..definition() };
    let cases = [
        (paused, definition(), PassReason::Paused { note: note.clone() }),
        (job(), suspended, PassReason::Suspended { note }),
    ];
    for (job, definition, why) in cases {
        let soon = plan(&job, ago(1), &definition, &MINUTE, NOW.after(seconds(59)), AHEAD);
        assert_eq!((soon.runs.len(), soon.passed.len(), soon.to), (0, 0, ago(1)));
        let later = plan(&job, ago(241), &definition, &MINUTE, NOW, AHEAD);
        assert_eq!(passed(&later), [(240, 0, 5, why)]);
        assert_eq!((later.runs.len(), later.to), (0, NOW));
        let again = plan(&job, later.to, &definition, &MINUTE, NOW, AHEAD);
        assert_eq!((again.passed.len(), again.to), (0, NOW));
    }
}

#[test]
fn a_removed_job_has_nothing_due() {
    let planned =
        plan(&Job { removed: true, ..job() }, ago(241), &definition(), &MINUTE, NOW, AHEAD);
    assert_eq!((planned.runs.len(), planned.passed.len(), planned.next), (0, 0, None));
}

#[test]
fn a_clock_that_was_put_back_repeats_nothing() {
    let stands = NOW.after(seconds(3600));
    let planned = planned(&definition(), stands);
    assert_eq!((planned.runs.len(), planned.passed.len(), planned.to), (0, 0, stands));
    assert_eq!(planned.next, Some(NOW.after(seconds(3660))));
}

#[test]
fn one_call_makes_few_runs_and_the_next_one_goes_on() {
    let definition = caught_up(CatchUpPolicy::All, 86_400);
    let first = planned(&definition, ago(60 * 100 + 1));
    assert_eq!(first.runs.len(), MOST_RUNS);
    assert_eq!(first.to, ago(60 * 87));
    assert!(first.next.unwrap() <= NOW);
    let second = planned(&definition, first.to);
    assert_eq!(runs(&second)[0].0, 60 * 86);
}

/// A year without a leader, and a moment every second.
#[test]
fn very_many_missed_moments_take_few_calls() {
    let every = Every::new(1);
    for (policy, all) in
        [(CatchUpPolicy::None, 41), (CatchUpPolicy::Last, 42), (CatchUpPolicy::All, 71)]
    {
        let definition = caught_up(policy, 60);
        let (mut stands, mut made, mut calls) = (ago(365 * 86_400), 0, 0);
        loop {
            let planned = plan(&job(), stands, &definition, &every, NOW, AHEAD);
            assert!(
                planned
                    .passed
                    .iter()
                    .all(|passed| passed.count <= u32::try_from(MOST_MOMENTS).unwrap())
            );
            if planned.to == stands {
                break;
            }
            (stands, made, calls) = (planned.to, made + planned.runs.len(), calls + 1);
        }
        assert_eq!((stands, made), (NOW.after(AHEAD), all), "{policy:?}");
        assert!(calls < 10, "{policy:?}: {calls} calls");
    }
}
