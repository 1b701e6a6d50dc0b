//! Another schedule reaches what was made ahead.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;

use super::world::*;
use crate::job::due::{AHEAD, MOST_AHEAD, Planned, is_far_ahead, plan_around};
use crate::job::{ActionId, Calendar, JobDefinition, JobRequest, PauseCause, SchedulerNews};
use crate::run::{Ask, Happened, Orchestrator, Plan, RunId, RunState, Timer, UpdateKind};
use crate::schedule::{Moments as _, Schedule};
use crate::seams::Timestamp;

fn by(lines: &[&str]) -> JobDefinition {
    let schedule = lines.iter().map(|line| (*line).to_owned()).collect();
    JobDefinition { schedule, ..definition() }
}

/// Plans as the scheduler does, until nothing is left.
fn plan_all(world: &mut World) {
    plan_ahead(world, AHEAD);
}

fn plan_ahead(world: &mut World, ahead: Duration) {
    loop {
        let (stands, job) = (world.stands(), world.job().clone());
        let definition = world.records.job(&id()).unwrap().1.clone();
        let schedule = Schedule::of(&definition).unwrap();
        let has_run = |at| world.records.runs.contains_key(&RunId::scheduled(&id(), at));
        let times = (world.now, ahead);
        let planned = plan_around(&job, stands, &definition, &schedule, times, has_run);
        let Planned { runs, passed, to, .. } = planned;
        if to == stands {
            return;
        }
        world.ask(JobRequest::Advance { job_id: id(), from: stands, to, runs, passed }).unwrap();
    }
}

/// Leads a run whose time has come; whether it asks for a place, and why it does not.
fn begin(world: &World, run_id: &RunId) -> Result<(), String> {
    let run = world.run(run_id);
    let revision = world.job().revision_of(run);
    let definition = Arc::clone(world.records.definition(&id(), revision).unwrap());
    let (checks_before, checks_after, start_timeout_s) = (false, false, 300);
    let plan = Plan { definition, revision, checks_before, checks_after, start_timeout_s };
    let (mut it, _) = Orchestrator::begin(run, plan, world.now);
    let asks = it.handle(Happened::Rang(Timer::Due), world.now);
    let last = asks.last().unwrap();
    if let Ask::Store(update) = last {
        assert_eq!((update.kind, update.state), (UpdateKind::Ended, RunState::Completed));
        assert!(update.skipped, "{update:?}");
        return Err(update.reason.clone());
    }
    assert_eq!(last, &Ask::Admit);
    Ok(())
}

/// However far ahead a host plans and however dense the new schedule is, no moment is lost: what does not fit into the
/// change itself is planned after it.
#[test]
fn a_dense_schedule_gets_all_the_moments_that_were_planned_ahead() {
    for ahead in [AHEAD, Duration::from_secs(20), MOST_AHEAD] {
        let mut world = World::with(&by(&["*/5 * * * * *"]));
        plan_ahead(&mut world, ahead);
        let until = world.stands();
        assert!(!is_far_ahead(until, world.now), "its own plan is no clock that was wrong");
        world.apply(&by(&["* * * * * *"])).unwrap();
        plan_ahead(&mut world, ahead);
        let count = i64::try_from(ahead.as_secs()).unwrap();
        for second in 1..=count {
            assert!(world.records.runs.contains_key(&run_at(second)), "{ahead:?}: {second}");
        }
        // Behind them, so that what was planned by the former schedule is refused.
        assert_eq!((world.stands(), world.job().again), (at(count).next(), None));
    }
}

fn at(second: i64) -> Timestamp {
    Timestamp(NOW.0 + second * 1000)
}

fn run_at(second: i64) -> RunId {
    RunId::scheduled(&id(), at(second))
}

#[test]
fn moments_of_another_schedule_within_reach_get_their_runs_and_those_of_the_former_do_not_begin() {
    let mut world = World::with(&by(&["* * * * *"]));
    world.now = at(52);
    plan_all(&mut world);
    assert!(world.has(&crate::board::RecordKey::Run(run_at(60))));
    world.told();
    world.apply(&by(&["55,58 * * * * *", "2 1 * * * *"])).unwrap();
    let mut made = Vec::new();
    for news in world.told() {
        if let SchedulerNews::Made { run_id } = news {
            made.push(run_id);
        }
    }
    assert_eq!(made, [run_at(55), run_at(58)]);
    plan_all(&mut world);
    assert!(!world.has(&crate::board::RecordKey::Run(run_at(62))), "it is minute 14");
    assert_eq!(begin(&world, &run_at(55)), Ok(()));
    let why = "the schedule of its job does not have its moment any more (revision 2)";
    assert_eq!(begin(&world, &run_at(60)), Err(why.to_owned()));
    // And back again before its time.
    world.apply(&by(&["* * * * *"])).unwrap();
    assert_eq!(begin(&world, &run_at(60)), Ok(()));
    assert!(begin(&world, &run_at(55)).is_err());
}

#[test]
fn another_calendar_reaches_what_was_made_ahead_and_another_zone_too() {
    let mut world = World::with(&definition());
    world.now = at(55);
    plan_all(&mut world);
    let night = Calendar {
        name: "always".to_owned(),
        hours: Some("00:00-24:00".to_owned()),
        ..Calendar::default()
    };
    world.apply(&JobDefinition { exclude: vec![night], ..definition() }).unwrap();
    let why = "calendar `always` of its job excludes its moment now (revision 2)";
    assert_eq!(begin(&world, &run_at(60)), Err(why.to_owned()));
    world.apply(&definition()).unwrap();
    assert_eq!(begin(&world, &run_at(60)), Ok(()));
    // NOW is 22:14 in UTC.
    let hourly = |zone: &str| JobDefinition { timezone: zone.to_owned(), ..by(&["15 22 * * *"]) };
    let mut world = World::with(&hourly("UTC"));
    world.now = at(55);
    plan_all(&mut world);
    world.apply(&hourly("Europe/Berlin")).unwrap();
    assert!(begin(&world, &run_at(60)).is_err());
}

#[test]
fn a_calendar_that_goes_lets_moments_within_reach_be_runs() {
    let always = Calendar { hours: Some("00:00-24:00".to_owned()), ..Calendar::default() };
    let mut world = World::with(&JobDefinition { exclude: vec![always], ..definition() });
    world.now = at(55);
    plan_all(&mut world);
    assert_eq!((world.stands(), world.records.runs_of(&id()).count()), (at(60), 0));
    world.apply(&definition()).unwrap();
    assert_eq!(begin(&world, &run_at(60)), Ok(()));
}

#[test]
fn what_rests_gets_no_runs_by_a_change_and_what_is_to_be_passed_over_is() {
    let cause = PauseCause::Person { who: "ada".to_owned() };
    for how in ["paused", "suspended", "skips"] {
        let mut world = World::with(&definition());
        world.now = at(52);
        plan_all(&mut world);
        let mut other = by(&["55,58 * * * * *"]);
        match how {
            "paused" => {
                let note = String::new();
                let pause = JobRequest::Pause { job_id: id(), cause: cause.clone(), note };
                world.ask(pause).unwrap();
            }
            "suspended" => other.suspend = true,
            _ => drop(
                world
                    .ask(JobRequest::SkipNext { job_id: id(), action: ActionId(1), count: 1 })
                    .unwrap(),
            ),
        }
        world.apply(&other).unwrap();
        let made = world.records.runs_of(&id()).count();
        assert_eq!(made, if how == "skips" { 2 } else { 1 }, "{how}");
        assert_eq!(world.job().skip_next, 0, "{how}");
    }
}

#[test]
fn a_plan_by_the_former_schedule_is_refused_after_the_change() {
    for other in [
        by(&["30 * * * * *"]),
        JobDefinition {
            exclude: vec![Calendar { weekdays: vec!["sun".to_owned()], ..Calendar::default() }],
            ..definition()
        },
    ] {
        let mut world = World::with(&definition());
        let from = world.stands();
        let planned = vec![scheduled(at(60))];
        world.apply(&other).unwrap();
        let late = JobRequest::Advance {
            job_id: id(),
            from,
            to: at(60),
            runs: planned,
            passed: Vec::new(),
        };
        assert!(world.ask(late).is_err(), "{other:?}");
    }
}

/// A run that waits for its turn is stored as one that waits for its time: a later change must not reach it.
#[test]
fn what_was_due_before_a_change_goes_by_what_it_began_with_over_a_failover_too() {
    let mut world = World::with(&definition());
    let runs = world.advance(1);
    world.now = at(50);
    world.apply(&JobDefinition { tags: vec!["reached".to_owned()], ..definition() }).unwrap();
    world.now = at(70);
    world.apply(&by(&["0 4 * * *"])).unwrap();
    assert_eq!(world.job().revision_of(world.run(&runs[0])), 2);
    assert_eq!(begin(&world, &runs[0]), Ok(()));
    assert_eq!(world.job().revision, 3);
}

const LINES: [&[&str]; 6] = [
    &["* * * * * *"],
    &["*/2 * * * * *"],
    &["*/3 * * * * *", "*/7 * * * * *"],
    &["* * * * *"],
    &["@every 5s"],
    &[],
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Each second the moments of the schedule that counts then are runs that begin, and nothing else is.
    #[test]
    fn over_changes_of_the_schedule_each_moment_begins_once_and_by_the_schedule_that_counts(
        first in 0..LINES.len(),
        changes in prop::collection::vec(prop::option::weighted(0.2, 0..LINES.len()), 90),
    ) {
        let mut world = World::with(&by(LINES[first]));
        let mut lines = first;
        let mut made = BTreeSet::new();
        for (second, change) in (1_i64..).zip(changes) {
            plan_all(&mut world);
            // It comes between two moments.
            world.now = Timestamp(at(second).0 - 500);
            if let Some(other) = change {
                lines = other;
                world.apply(&by(LINES[other])).unwrap();
            }
            plan_all(&mut world);
            world.now = at(second);
            for news in world.told() {
                if let SchedulerNews::Made { run_id } = news {
                    prop_assert!(made.insert(run_id.clone()), "{} twice", run_id);
                }
            }
            let schedule = Schedule::of(&by(LINES[lines])).unwrap();
            let before = Timestamp(world.now.0 - 1);
            let is_due = schedule.next_after(before).is_some_and(|next| next.at == world.now);
            let run_id = run_at(second);
            let begins = made.contains(&run_id) && begin(&world, &run_id).is_ok();
            prop_assert_eq!(begins, is_due, "second {}", second);
        }
    }
}
