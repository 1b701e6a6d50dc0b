//! Jobs and runs: what is launched, what becomes of moments, what is kept and what is left.

use std::collections::BTreeMap;
use std::sync::Arc;

use kapell_core::board::{Domain, InstanceGuid, JobId, Record, RecordKey, Reply, Request};
use kapell_core::job::{Definition, Job, JobDefinition, JobRequest, PassReason, Passed};
use kapell_core::run::{Run, RunId, RunState, StopKind, task_guid};
use kapell_core::seams::Timestamp;
use kapell_node::scheduler::backend::Attempt;

use super::stage::{Outcome, Stage, broken, process};
use crate::fleet::checks::Check;
use crate::fleet::checks::attempt_once::AttemptOnce;
use crate::fleet::checks::jobs_kept::JobsKept;
use crate::fleet::checks::leaders_launch::LeadersLaunch;
use crate::fleet::checks::moments_once::MomentsOnce;
use crate::fleet::checks::nothing_left::NothingLeft;
use crate::fleet::checks::places_kept::PlacesKept;
use crate::fleet::checks::runs_end::RunsEnd;
use crate::fleet::fact::{Fact, Process, Unit};

/// In seconds since 1970; every fifth second is a moment of the job.
const fn at(second: i64) -> Timestamp {
    Timestamp(second * 1000)
}

fn id() -> JobId {
    JobId::new("j")
}

fn definition(more: &str) -> Record {
    let text = format!(
        r#"{{"job_id": "j", "schedule": ["@every 5s"], "command": {{"command": "work"}}{more}}}"#
    );
    let definition: JobDefinition = serde_json::from_str(&text).expect("a definition");
    Record::Definition(Definition { revision: 1, definition: Arc::new(definition) })
}

fn job(mark: Timestamp, passed: Vec<Passed>, version: u64) -> Record {
    Record::Job(Box::new(Job {
        job_id: id(),
        domain: Domain::new("jobs"),
        revision: 1,
        revised: Vec::new(),
        mark,
        again: None,
        paused: None,
        failures_in_a_row: 0,
        skip_next: 0,
        skips: Vec::new(),
        removed: false,
        cancels_runs: false,
        passed,
        taken: Vec::new(),
        figures: BTreeMap::new(),
        created_at: at(0),
        updated_at: at(0),
        version,
    }))
}

fn run(second: i64, state: RunState) -> Run {
    let run_id = RunId::scheduled(&id(), at(second));
    let mut run = Run { revision: 1, state, ..Run::unreadable(run_id) };
    run.completed_at = state.is_final().then_some(at(second));
    run
}

fn record(second: i64, state: RunState, version: u64) -> Record {
    Record::Run(Arc::new(Run { version, ..run(second, state) }))
}

fn attempt(second: i64) -> Attempt {
    Attempt { run_id: RunId::scheduled(&id(), at(second)), number: 0 }
}

fn launch<C: Check + Default>(world: &mut Stage<C>, host: usize, second: i64) -> Outcome {
    world.works.insert((host, attempt(second)));
    world.tell(&Fact::WorkBegan { host, attempt: attempt(second), leads: true })
}

/// The work of a run on a cell.
fn on_cell(second: i64, container: &str) -> Process {
    let Attempt { run_id, number } = attempt(second);
    Process {
        unit: Unit::Task(task_guid(&run_id, number)),
        container: InstanceGuid::new(container),
        ..process(0, container, "a")
    }
}

#[test]
fn an_attempt_is_launched_once_and_announced() {
    let mut world = Stage::<AttemptOnce>::new();
    world.put([record(5, RunState::PreRun, 1)]).unwrap();
    broken(launch(&mut world, 0, 5), "unannounced");
    world.put([record(5, RunState::ContainerCreating, 2)]).unwrap();
    launch(&mut world, 0, 5).unwrap();
    broken(launch(&mut world, 1, 5), "on host 0 and on host 1");
}

#[test]
fn work_on_cells_counts_as_well() {
    let mut world = Stage::<AttemptOnce>::new();
    broken(world.begin(&on_cell(5, "x")), "no run wants it");
    world.put([record(5, RunState::PreRun, 1)]).unwrap();
    world.put([record(5, RunState::ContainerCreating, 2)]).unwrap();
    world.begin(&on_cell(5, "x")).unwrap();
    broken(world.begin(&on_cell(5, "y")), "on a and on a");
}

#[test]
fn one_that_was_forgotten_and_is_made_again_is_another_one() {
    let mut world = Stage::<AttemptOnce>::new();
    for _ in 0..2 {
        world.put([record(5, RunState::PreRun, 1)]).unwrap();
        world.put([record(5, RunState::ContainerCreating, 2)]).unwrap();
        launch(&mut world, 0, 5).unwrap();
        world.delete(&RecordKey::Run(attempt(5).run_id)).unwrap();
    }
}

#[test]
fn who_does_not_lead_launches_nothing() {
    let mut world = Stage::<LeadersLaunch>::new();
    launch(&mut world, 0, 5).unwrap();
    let late = Fact::WorkBegan { host: 1, attempt: attempt(5), leads: false };
    broken(world.tell(&late), "does not lead");
}

fn scheduled(stands: i64) -> Stage<MomentsOnce> {
    let mut world = Stage::<MomentsOnce>::new();
    world.put([definition(""), job(at(stands), Vec::new(), 1)]).unwrap();
    world
}

#[test]
fn every_moment_is_a_run_or_has_its_reason() {
    let mut world = scheduled(1);
    world.put([record(5, RunState::PreRun, 1), record(10, RunState::PreRun, 1)]).unwrap();
    let why = PassReason::NotCaughtUp { policy: "last".to_owned() };
    let passed = |from, to| vec![Passed::new(at(from), at(to), 1, why.clone())];
    world.put([job(at(20), passed(15, 20), 2)]).unwrap();
    broken(world.put([job(at(30), passed(15, 20), 3)]), "which is no run, for None");
}

#[test]
fn a_reason_must_be_true() {
    let mut world = scheduled(1);
    let why = PassReason::Suspended { note: String::new() };
    let passed = vec![Passed::new(at(5), at(5), 1, why)];
    broken(world.put([job(at(5), passed, 2)]), "which is no run, for Some(Suspended");
}

#[test]
fn no_moment_comes_twice_and_none_that_is_not_one() {
    let mut world = scheduled(1);
    broken(world.put([record(7, RunState::PreRun, 1)]), "of no moment");
    let mut world = scheduled(1);
    world.put([record(5, RunState::PreRun, 1)]).unwrap();
    world.put([record(5, RunState::Completed, 2)]).unwrap();
    world.delete(&RecordKey::Run(attempt(5).run_id)).unwrap();
    broken(world.put([record(5, RunState::PreRun, 1)]), "a second time");
}

#[test]
fn a_moment_that_is_not_dealt_with_in_time_is_noticed() {
    let mut world = scheduled(1);
    world.tell(&Fact::FaultsOver).unwrap();
    let request = Request::Job(JobRequest::Remove { job_id: id(), cancel_runs: true });
    broken(world.after(60).tell(&Fact::Asked { request }), "5000 is long past");
}

#[test]
fn no_more_work_at_the_same_time_than_may() {
    let mut world = Stage::<PlacesKept>::new();
    world.put([definition(""), job(at(1), Vec::new(), 1)]).unwrap();
    world.put([record(5, RunState::Running, 1), record(10, RunState::Running, 1)]).unwrap();
    launch(&mut world, 0, 5).unwrap();
    broken(launch(&mut world, 0, 10), "work at the same time");
    let over = Fact::WorkOver { host: 0, attempt: attempt(5) };
    let mut world = Stage::<PlacesKept>::new();
    world.put([definition(""), job(at(1), Vec::new(), 1)]).unwrap();
    world.put([record(5, RunState::Running, 1), record(10, RunState::Running, 1)]).unwrap();
    launch(&mut world, 0, 5).unwrap();
    world.tell(&over).unwrap();
    launch(&mut world, 0, 10).unwrap();
}

#[test]
fn of_a_group_no_more_work_than_may() {
    let mut world = Stage::<PlacesKept>::new();
    let grouped = r#", "overlap": "allow", "group": {"name": "turns", "limit": 2}"#;
    world.put([definition(grouped), job(at(1), Vec::new(), 1)]).unwrap();
    for second in [5, 10, 15] {
        world.put([record(second, RunState::Running, 1)]).unwrap();
    }
    launch(&mut world, 0, 5).unwrap();
    launch(&mut world, 0, 10).unwrap();
    broken(launch(&mut world, 0, 15), "and 2 may");
}

#[test]
fn an_end_stays_as_it_is() {
    let mut world = Stage::<RunsEnd>::new();
    world.put([record(5, RunState::Failed, 3)]).unwrap();
    broken(world.put([record(5, RunState::Completed, 4)]), "had ended as Failed");
}

#[test]
fn a_cancel_is_not_taken_back_and_no_older_version_put_over_a_newer_one() {
    let mut world = Stage::<RunsEnd>::new();
    let mut wanted = Run { version: 2, ..run(5, RunState::Running) };
    wanted.cancel = Some(StopKind::Graceful);
    world.put([Record::Run(Arc::new(wanted))]).unwrap();
    broken(world.put([record(5, RunState::Running, 3)]), "was to be cancelled");
    broken(world.put([record(5, RunState::Retrying, 1)]), "version 1 is put over");
}

#[test]
fn every_run_ends() {
    let mut world = Stage::<RunsEnd>::new();
    world.put([record(5, RunState::Retrying, 1)]).unwrap();
    broken(world.end(), "has not ended");
    world.put([record(5, RunState::Failed, 2)]).unwrap();
    world.end().unwrap();
}

fn acknowledge(world: &mut Stage<JobsKept>, version: u64) -> Outcome {
    let run_id = attempt(5).run_id;
    let (kind, why) = (StopKind::Graceful, String::new());
    let request = Request::Job(JobRequest::Cancel { run_id, kind, why });
    let run = Arc::new(Run { version, ..run(5, RunState::Running) });
    world.tell(&Fact::Asked { request: request.clone() }).unwrap();
    world.tell(&Fact::Acknowledged { request, reply: Reply::Run { run, created: false } })
}

#[test]
fn what_is_acknowledged_is_written() {
    let mut world = Stage::<JobsKept>::new();
    world.put([record(5, RunState::Running, 2)]).unwrap();
    acknowledge(&mut world, 2).unwrap();
    broken(acknowledge(&mut world, 3), "acknowledged and not committed");
}

#[test]
fn nothing_goes_that_is_needed() {
    let mut world = Stage::<JobsKept>::new();
    world.put([definition(""), job(at(1), Vec::new(), 1)]).unwrap();
    world.put([record(5, RunState::Running, 1)]).unwrap();
    broken(world.delete(&RecordKey::Definition(id(), 1)), "what job j does goes");
    broken(world.delete(&RecordKey::Job(id())), "nobody has asked");
    broken(world.delete(&RecordKey::Run(attempt(5).run_id)), "has not ended");
}

#[test]
fn of_what_has_ended_nothing_is_left_where_the_leader_reaches() {
    let mut world = Stage::<NothingLeft>::new();
    world.put([record(5, RunState::ContainerCreating, 1)]).unwrap();
    world.works.insert((1, attempt(5)));
    world.put([record(5, RunState::Failed, 2)]).unwrap();
    world.end().unwrap();
    world.works.insert((0, attempt(5)));
    broken(world.end(), "its work runs on host 0");
    world.works.clear();
    world.begin(&on_cell(5, "x")).unwrap();
    broken(world.end(), "its work runs on a");
    world.machine("a").is_up = false;
    world.end().unwrap();
}
