//! A clock that was ahead for a while: what it passed over comes after all, and nothing comes twice.

use std::collections::BTreeSet;

use super::world::*;
use crate::job::due::{AHEAD, Planned, is_to_go_back, plan_around};
use crate::job::explain::{JobFacts, job};
use crate::job::{CatchUp, CatchUpPolicy, History, JobDefinition, JobRequest, Length};
use crate::run::{Run, RunId, RunState};
use crate::seams::Timestamp;

const MINUTE: Every = Every::new(60);

/// Plans as the scheduler does, and says which runs were made.
fn step(world: &mut World, definition: &JobDefinition) -> Vec<RunId> {
    step_by(world, definition, &MINUTE)
}

fn step_by(world: &mut World, definition: &JobDefinition, moments: &Every) -> Vec<RunId> {
    let stands = world.stands();
    if is_to_go_back(world.job(), stands, world.now) {
        let to = world.now;
        world.ask(JobRequest::TakeBack { job_id: id(), from: stands, to }).unwrap();
        return step_by(world, definition, moments);
    }
    let has_run = |at| world.records.runs.contains_key(&RunId::scheduled(&id(), at));
    let times = (world.now, AHEAD);
    let planned = plan_around(world.job(), stands, definition, moments, times, has_run);
    let Planned { runs, passed, to, .. } = planned;
    if to <= stands {
        return Vec::new();
    }
    let ids = runs.iter().map(|run| run.run_id.clone()).collect();
    world.ask(JobRequest::Advance { job_id: id(), from: stands, to, runs, passed }).unwrap();
    ids
}

fn explained(world: &World, definition: &JobDefinition) -> String {
    let runs: Vec<&Run> = world.records.runs_of(&id()).collect();
    let facts = JobFacts { job: world.job(), definition, stands: world.stands(), runs: &runs };
    format!("{:?}", job(&facts, &MINUTE, world.now).decisions)
}

/// Lives for so many minutes, in which each run ends as it is made; says of which moments there were runs.
fn live(world: &mut World, definition: &JobDefinition, minutes: u64) -> Vec<Timestamp> {
    live_by(world, definition, &MINUTE, minutes)
}

fn live_by(
    world: &mut World,
    definition: &JobDefinition,
    moments: &Every,
    minutes: u64,
) -> Vec<Timestamp> {
    let mut made = Vec::new();
    for _ in 0..2 * minutes {
        world.now = world.now.after(seconds(30));
        for run in step_by(world, definition, moments) {
            made.extend(run.moment());
            world.end(&run, RunState::Completed);
        }
    }
    made
}

/// Moments that a calendar excludes lie between those that were run: going back through the former must not make the
/// latter again, whether their runs are remembered or not.
#[test]
fn moments_that_were_run_between_excluded_ones_are_not_run_again() {
    for kept in [0, 3, 100] {
        let mut definition = definition();
        let window = Length::new(seconds(7200));
        definition.catch_up = CatchUp { policy: CatchUpPolicy::All, window };
        definition.history =
            History { succeeded: kept, failed: kept, skipped: kept, max_age: None };
        let every_other = Every { excluded: 2, ..MINUTE };
        let mut world = World::with(&definition);
        let mut made = live_by(&mut world, &definition, &every_other, 3);
        let right = world.now;
        world.now = right.after(seconds(2400));
        for _ in 0..8 {
            for run in step_by(&mut world, &definition, &every_other) {
                made.extend(run.moment());
                world.end(&run, RunState::Completed);
            }
        }
        assert!(made.len() >= 20, "{made:?}");
        world.now = right;
        made.extend(live_by(&mut world, &definition, &every_other, 60));
        let each: BTreeSet<Timestamp> = made.iter().copied().collect();
        assert_eq!(each.len(), made.len(), "kept {kept}: a moment came twice");
        assert!(each.len() >= 30, "kept {kept}: it goes on after that: {}", each.len());
        assert_eq!(world.job().again, None);
    }
}

/// A range without runs between is gone through again; a run that lies in it all the same is dealt with.
#[test]
fn a_job_that_goes_back_plans_around_runs_that_are_there() {
    let definition = definition();
    let mut world = World::with(&definition);
    let right = world.now;
    world.now = right.after(seconds(7200));
    step(&mut world, &definition);
    world.now = right;
    step(&mut world, &definition);
    let again = world.job().again.expect("it goes back");
    let (stands, run_at) = (world.stands(), right.after(seconds(60)));
    let has_run = |at| at == run_at;
    world.now = right.after(seconds(120));
    let times = (world.now, AHEAD);
    let planned = plan_around(world.job(), stands, &definition, &MINUTE, times, has_run);
    assert!(planned.to <= again.until);
    let moments: Vec<Timestamp> = planned.runs.iter().map(|run| run.scheduled_at).collect();
    assert!(!moments.contains(&run_at) && !moments.is_empty(), "{moments:?}");
}

#[test]
fn what_a_clock_that_was_ahead_passed_over_comes_after_all_and_nothing_comes_twice() {
    for policy in CatchUpPolicy::ALL {
        for kept in [0, 3] {
            let mut definition = definition();
            definition.catch_up = CatchUp { policy, window: Length::new(seconds(1200)) };
            definition.history =
                History { succeeded: kept, failed: kept, skipped: kept, max_age: None };
            let mut world = World::with(&definition);
            let mut made = live(&mut world, &definition, 3);
            let right = world.now;
            world.now = right.after(seconds(7200));
            for _ in 0..4 {
                for run in step(&mut world, &definition) {
                    made.extend(run.moment());
                    world.end(&run, RunState::Completed);
                }
            }
            world.now = right;
            let count = made.len();
            made.extend(live(&mut world, &definition, 30));
            assert!(made.len() - count >= 29, "{policy:?}: it goes on by the clock: {made:?}");
            made.extend(live(&mut world, &definition, 100));
            let each: BTreeSet<Timestamp> = made.iter().copied().collect();
            assert_eq!(each.len(), made.len(), "{policy:?}: a moment came twice");
            // Not those of the last minute, which is no longer far ahead.
            assert!(each.len() >= 130, "{policy:?}: {} moments", each.len());
            assert_eq!(world.job().again, None);
        }
    }
}

#[test]
fn a_clock_that_is_set_back_repeats_nothing_and_it_is_said_why_nothing_is_scheduled() {
    let definition = definition();
    let mut world = World::with(&definition);
    assert!(live(&mut world, &definition, 60).len() >= 60);
    world.now = world.now.before(seconds(3600));
    assert!(live(&mut world, &definition, 50).is_empty());
    let said = explained(&world, &definition);
    assert!(said.contains("were dealt with when a clock was ahead"), "{said}");
    assert!(!live(&mut world, &definition, 20).is_empty());
    assert!(!explained(&world, &definition).contains("a clock was ahead"));
}

#[test]
fn a_job_that_goes_back_says_so() {
    let definition = definition();
    let mut world = World::with(&definition);
    let right = world.now;
    world.now = right.after(seconds(7200));
    step(&mut world, &definition);
    world.now = right;
    step(&mut world, &definition);
    let said = explained(&world, &definition);
    assert!(said.contains("were passed over: they come after all"), "{said}");
}

#[test]
fn only_a_job_that_stands_far_ahead_and_has_passed_something_over_goes_back() {
    let mut world = World::with(&definition());
    let back = |world: &mut World, from: Timestamp| {
        let to = world.now;
        world.ask(JobRequest::TakeBack { job_id: id(), from, to }).is_ok()
    };
    let stands = world.stands();
    assert!(!back(&mut world, stands), "it does not stand ahead");
    world.advance(9);
    let stands = world.stands();
    assert!(!back(&mut world, stands), "its moments were run");
    world.now = stands.after(seconds(7200));
    step(&mut world, &definition());
    let stands = world.stands();
    world.now = stands.before(seconds(7200));
    let elsewhere = stands.next();
    assert!(!back(&mut world, elsewhere), "it stands elsewhere");
    assert!(back(&mut world, stands));
    let stands = world.stands();
    assert!(!back(&mut world, stands), "it goes back already");
}
