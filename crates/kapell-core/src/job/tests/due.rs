//! One plan: what becomes of each moment.

use super::world::*;
use crate::job::due::{AHEAD, MOST_MOMENTS, Planned, last_sign, left, plan};
use crate::job::{
    CatchUp, CatchUpPolicy, Job, JobDefinition, Length, MOST_RUNS, PassReason, Pause, PauseCause,
};
use crate::run::{Run, RunId, RunState, Trigger};
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

#[test]
fn what_was_put_off_is_not_missed_before_its_time_has_come() {
    let put_off = |off: u64| Every { off: seconds(off), ..MINUTE };
    let jitter = Some(Length::new(seconds(3_600)));
    for policy in CatchUpPolicy::ALL {
        let definition = JobDefinition { jitter, ..caught_up(policy, 3600) };
        let planned = plan(&job(), ago(241), &definition, &put_off(215), NOW, AHEAD);
        let late = runs(&planned).into_iter().filter(|(_, trigger)| *trigger == Trigger::CatchUp);
        assert_eq!(late.count(), 0, "{policy:?}: the first is due since 25 seconds");
        assert_eq!((planned.runs.len(), planned.passed.len()), (5, 0), "{policy:?}");
        let planned = plan(&job(), ago(241), &definition, &put_off(205), NOW, AHEAD);
        let first = runs(&planned)[0].clone();
        match policy {
            CatchUpPolicy::None => assert_eq!(passed(&planned)[0].3, not_caught_up("none")),
            CatchUpPolicy::Last | CatchUpPolicy::All => {
                assert_eq!(first, (240, Trigger::CatchUp), "{policy:?}: due since 35 seconds");
            }
        }
        let scheduled = runs(&planned).into_iter().filter(|(_, by)| *by == Trigger::Schedule);
        assert_eq!(scheduled.count(), 4, "{policy:?}");
    }
}

/// A day without a leader, and a moment every second that is put off by an hour.
#[test]
fn very_many_that_were_put_off_are_not_passed_over_before_their_time() {
    let every = Every { off: seconds(3_600), ..Every::new(1) };
    for policy in CatchUpPolicy::ALL {
        let jitter = Some(Length::new(seconds(3_601)));
        let definition = JobDefinition { jitter, ..caught_up(policy, 60) };
        let (mut stands, mut made) = (ago(86_400), 0);
        loop {
            let planned = plan(&job(), stands, &definition, &every, NOW, AHEAD);
            if planned.to == stands {
                break;
            }
            let on_time = planned.runs.iter().filter(|run| run.trigger == Trigger::Schedule);
            (stands, made) = (planned.to, made + on_time.count());
        }
        // Those of the last hour and the grace, and those that are made ahead.
        assert_eq!((stands, made), (NOW.after(AHEAD), 3_600 + 30 + 11), "{policy:?}");
    }
}

/// Runs that were made ahead for moments so many seconds ago, and nobody led since then.
fn made(seconds: &[u64]) -> Vec<Run> {
    let mut world = World::with(&definition());
    let ids = world.advance(1);
    let run = world.run(&ids[0]).clone();
    let of = |at: Timestamp| {
        let run_id = RunId::scheduled(&id(), at);
        Run { run_id, scheduled_at: at, due_at: at, ..run.clone() }
    };
    seconds.iter().map(|count| of(ago(*count))).collect()
}

fn judged(
    definition: &JobDefinition,
    made: &[Run],
    stands: Timestamp,
    led: Option<Timestamp>,
) -> Vec<(i64, Result<Trigger, PassReason>)> {
    let made: Vec<&Run> = made.iter().collect();
    let left = left(definition, &MINUTE, stands, &made, led, NOW);
    let ago = |run: &RunId| (NOW.0 - run.moment().unwrap().0) / 1000;
    left.into_iter().map(|(run, verdict)| (ago(&run), verdict)).collect()
}

#[test]
fn what_was_made_ahead_and_left_goes_by_catch_up_as_what_was_not_made() {
    let day = 86_400;
    let too_old = |window: u64| Err(PassReason::TooOld { window_ms: window * 1000 });
    let none = caught_up(CatchUpPolicy::None, day);
    let last = caught_up(CatchUpPolicy::Last, day);
    let all = caught_up(CatchUpPolicy::All, day);
    let two = made(&[6 * 3_600, 6 * 3_600 - 60]);
    let (one, other) = (6 * 3_600, 6 * 3_600 - 60);
    // All were made that are missed.
    let stands = ago(1);
    let skipped = |policy| Err(not_caught_up(policy));
    let goes = || Ok(Trigger::CatchUp);
    assert_eq!(
        judged(&none, &two, stands, None),
        [(one, skipped("none")), (other, skipped("none"))]
    );
    assert_eq!(judged(&last, &two, stands, None), [(one, skipped("last")), (other, goes())]);
    assert_eq!(judged(&all, &two, stands, None), [(one, goes()), (other, goes())]);
    let hour = caught_up(CatchUpPolicy::All, 3_600);
    assert_eq!(judged(&hour, &two, stands, None), [(one, too_old(3_600)), (other, too_old(3_600))]);
    // Of what was missed besides, one is the last; also after it was made.
    let stands = ago(6 * 3_600 - 60);
    assert_eq!(
        judged(&last, &two, stands, None),
        [(one, skipped("last")), (other, skipped("last"))]
    );
    let mut three = made(&[6 * 3_600, 6 * 3_600 - 60, 60]);
    (three[2].trigger, three[2].state) = (Trigger::CatchUp, RunState::Running);
    let found = judged(&last, &three, ago(1), None);
    assert_eq!(found, [(one, skipped("last")), (other, skipped("last"))]);
    let deadline = JobDefinition { starting_deadline: Some(Length::new(seconds(5))), ..all };
    let found = judged(&deadline, &made(&[60]), ago(1), None);
    assert!(matches!(&found[..], [(60, Err(PassReason::DeadlineMissed { .. }))]), "{found:?}");
}

#[test]
fn only_what_was_due_when_nobody_led_and_is_long_past_is_left() {
    let none = caught_up(CatchUpPolicy::None, 3_600);
    assert_eq!(judged(&none, &made(&[30]), ago(1), None), []);
    assert_eq!(judged(&none, &made(&[31]), ago(1), None).len(), 1);
    assert_eq!(judged(&none, &made(&[600]), ago(1), Some(ago(599))), [], "it waited for its turn");
    assert_eq!(judged(&none, &made(&[600]), ago(1), Some(ago(601))).len(), 1);
    let mut others = made(&[600, 540, 480]);
    others[0].trigger = Trigger::Manual { who: "ada".into() };
    others[1].state = RunState::Running;
    others[2].cancel = Some(crate::run::StopKind::Graceful);
    assert_eq!(judged(&none, &others, ago(1), None), []);
}

#[test]
fn whoever_made_or_ended_a_run_or_changed_a_job_led_then() {
    let mut run = made(&[600]).remove(0);
    (run.created_at, run.completed_at) = (ago(500), Some(ago(400)));
    let job = Job { updated_at: ago(450), ..job() };
    let sign = |since| last_sign([&job].into_iter(), [&run].into_iter(), since);
    assert_eq!(sign(NOW), Some(ago(400)));
    assert_eq!(
        sign(ago(400)),
        Some(ago(450)),
        "what this leader did says nothing of the one before"
    );
    assert_eq!(sign(ago(450)), Some(ago(500)));
    assert_eq!(sign(ago(500)), None);
}
