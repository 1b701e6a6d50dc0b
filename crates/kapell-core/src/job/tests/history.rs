//! Ended runs are kept as the job says.

use super::world::*;
use crate::board::RecordKey;
use crate::job::{History, JobDefinition, JobRequest, Length};
use crate::run::{RunId, RunState, RunUpdate, UpdateKind};

fn keeping(succeeded: u32, failed: u32, age: Option<u64>) -> JobDefinition {
    let max_age = age.map(|age| Length::new(seconds(age)));
    JobDefinition {
        history: History { succeeded, failed, max_age, ..History::default() },
        ..definition()
    }
}

fn left(world: &World) -> Vec<RunId> {
    world.records.runs_of(&id()).map(|run| run.run_id.clone()).collect()
}

#[test]
fn the_first_to_end_are_forgotten_first_by_outcome() {
    let mut world = World::with(&keeping(2, 1, None));
    let runs = world.advance(8);
    for (at, run) in runs.iter().enumerate() {
        world.now = world.now.after(seconds(1));
        let state = if at % 2 == 0 { RunState::Completed } else { RunState::Failed };
        world.end(run, state);
    }
    assert_eq!(left(&world), [runs[4].clone(), runs[6].clone(), runs[7].clone()]);
}

#[test]
fn skipped_runs_have_a_limit_of_their_own() {
    let mut job = keeping(2, 2, None);
    job.history.skipped = 3;
    let mut world = World::with(&job);
    let runs = world.advance(10);
    for (at, run) in runs.iter().enumerate() {
        world.now = world.now.after(seconds(1));
        let skipped = at >= 2;
        let ended = update(UpdateKind::Ended, 0, RunState::Completed);
        world.update(run, RunUpdate { at: world.now, skipped, ..ended });
    }
    let want: Vec<RunId> = runs[..2].iter().chain(&runs[7..]).cloned().collect();
    assert_eq!(left(&world), want, "however many were skipped, those that did something stay");
    world.ask(JobRequest::Remove { job_id: id(), cancel_runs: true }).unwrap();
    assert!(left(&world).is_empty());
    assert!(!world.has(&RecordKey::Job(id())));
}

#[test]
fn where_a_job_stands_is_kept_though_no_run_is() {
    let mut world = World::with(&keeping(0, 0, None));
    let runs = world.advance(2);
    let stands = world.stands();
    world.end(&runs[1], RunState::Completed);
    assert_eq!((world.stands(), world.job().mark), (stands, stands));
    world.end(&runs[0], RunState::Completed);
    assert_eq!((left(&world).len(), world.stands()), (0, stands));
}

#[test]
fn a_shorter_history_is_reached_a_few_records_at_a_time() {
    let mut world = World::with(&keeping(100, 100, None));
    let mut runs = Vec::new();
    for _ in 0..5 {
        runs.extend(world.advance(14));
    }
    for run in &runs[..69] {
        world.end(run, RunState::Completed);
    }
    world.apply(&keeping(3, 3, None)).unwrap();
    world.end(&runs[69], RunState::Completed);
    assert_eq!(left(&world).len(), 3);
}

#[test]
fn what_is_too_old_goes_when_somebody_looks() {
    let mut world = World::with(&keeping(50, 50, Some(100)));
    let runs = world.advance(2);
    world.end(&runs[0], RunState::Completed);
    world.now = world.now.after(seconds(90));
    world.end(&runs[1], RunState::Failed);
    world.now = world.now.after(seconds(20));
    world.ask(JobRequest::Settle { job_id: id() }).unwrap();
    assert_eq!(left(&world), [runs[1].clone()]);
}

#[test]
fn only_what_the_history_does_not_keep_is_forgotten() {
    let mut world = World::with(&keeping(1, 1, None));
    let runs = world.advance(3);
    world.end(&runs[0], RunState::Completed);
    world.ask(JobRequest::Forget { run_ids: runs.clone() }).unwrap();
    assert_eq!(left(&world), runs);
    let stray = vec![runs[0].clone(), RunId::parse("k:1").unwrap()];
    assert!(world.ask(JobRequest::Forget { run_ids: stray }).is_err());
}
