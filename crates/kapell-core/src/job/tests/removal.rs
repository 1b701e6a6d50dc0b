//! Jobs go.

use super::world::*;
use crate::board::{Refusal, Reply};
use crate::job::{JobRequest, SchedulerNews};
use crate::run::{RunState, StopKind, UpdateKind};

fn remove(world: &mut World, cancel_runs: bool) -> Result<Reply, Refusal> {
    world.ask(JobRequest::Remove { job_id: id(), cancel_runs })
}

fn is_empty(world: &World) -> bool {
    world.records.jobs.is_empty()
        && world.records.definitions.is_empty()
        && world.records.runs.is_empty()
}

#[test]
fn a_job_without_runs_is_gone_at_once() {
    let mut world = World::with(&definition());
    remove(&mut world, false).unwrap();
    assert!(is_empty(&world));
    assert_eq!(world.told().last(), Some(&SchedulerNews::Gone { job_id: id() }));
    assert!(matches!(remove(&mut world, false), Err(Refusal::NotFound { .. })));
}

#[test]
fn what_waits_is_cancelled_and_what_runs_goes_on_unless_told_otherwise() {
    for cancel_runs in [false, true] {
        let mut world = World::with(&definition());
        let runs = world.advance(2);
        world.update(&runs[0], update(UpdateKind::Intent, 0, RunState::ContainerCreating));
        remove(&mut world, cancel_runs).unwrap();
        let cancelled = |at: usize| world.run(&runs[at]).cancel;
        assert_eq!(cancelled(1), Some(StopKind::Graceful));
        assert_eq!(cancelled(0), cancel_runs.then_some(StopKind::Graceful));
        assert!(world.job().removed);
        world.end(&runs[1], RunState::Cancelled);
        assert!(!is_empty(&world));
        world.end(&runs[0], RunState::Completed);
        assert!(is_empty(&world), "{:?}", world.records.runs);
    }
}

#[test]
fn a_removed_job_takes_nothing_but_what_its_runs_say() {
    let mut world = World::with(&definition());
    world.trigger(1);
    remove(&mut world, false).unwrap();
    let pause = crate::job::PauseCause::Person { who: String::new() };
    let refused = [
        JobRequest::Pause { job_id: id(), cause: pause, note: String::new() },
        JobRequest::Resume { job_id: id() },
        JobRequest::SkipNext { job_id: id(), action: crate::job::ActionId(1), count: 1 },
        JobRequest::Trigger { job_id: id(), run: asked_for(NOW, 2) },
        JobRequest::Advance {
            job_id: id(),
            from: NOW,
            to: NOW,
            runs: Vec::new(),
            passed: Vec::new(),
        },
    ];
    for request in refused {
        assert!(matches!(world.ask(request), Err(Refusal::State { .. })));
    }
}

#[test]
fn very_many_runs_are_cancelled_and_forgotten_a_few_records_at_a_time() {
    let mut world = World::with(&definition());
    let mut runs = Vec::new();
    for _ in 0..8 {
        runs.extend(world.advance(14));
    }
    for run in &runs[..45] {
        world.end(run, RunState::Failed);
    }
    remove(&mut world, false).unwrap();
    assert_eq!(world.records.active_runs().filter(|run| run.cancel.is_some()).count(), 67);
    for run in &runs[45..] {
        world.end(run, RunState::Cancelled);
    }
    assert!(is_empty(&world), "{} runs", world.records.runs.len());
}

#[test]
fn a_removed_job_that_is_applied_again_begins_anew_and_repeats_no_moment() {
    let mut world = World::with(&definition());
    world.now = NOW.after(seconds(55));
    let run = world.advance(1).remove(0);
    remove(&mut world, false).unwrap();
    let Ok(Reply::Job { job, created: true }) = world.apply(&definition()) else {
        panic!("not made")
    };
    assert_eq!((job.removed, job.revision), (false, 2));
    assert_eq!(world.stands(), world.run(&run).scheduled_at);
    world.end(&run, RunState::Cancelled);
    assert_eq!(world.records.jobs.len(), 1);
}

#[test]
fn one_that_is_applied_again_has_its_moments_within_reach() {
    let mut world = World::with(&definition());
    // One run keeps the former from being gone, and another was made ahead.
    let runs = world.advance(2);
    world.update(&runs[0], update(UpdateKind::Intent, 0, RunState::ContainerCreating));
    let stands = world.stands();
    world.now = stands.before(seconds(9));
    remove(&mut world, false).unwrap();
    let lines = vec!["* * * * * *".to_owned()];
    world.apply(&crate::job::JobDefinition { schedule: lines, ..definition() }).unwrap();
    let at = |second: u64| crate::run::RunId::scheduled(&id(), world.now.after(seconds(second)));
    for second in 1..9 {
        assert!(world.records.runs.contains_key(&at(second)), "{second}");
    }
    assert_eq!(world.run(&runs[1]).cancel, Some(StopKind::Graceful), "it went with the former");
}
