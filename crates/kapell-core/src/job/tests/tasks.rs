//! The tasks that do the work of runs are the scheduler's.

use super::world::*;
use crate::board::request::Report;
use crate::board::{
    Refusal, Reply, Request, RunTask, Settings, TaskDefinition, TaskGuid, TaskState, converge,
};
use crate::job::SchedulerNews;
use crate::run::{RunId, task_guid};

fn guid() -> TaskGuid {
    task_guid(&RunId::parse("j:1").unwrap(), 0)
}

fn work() -> TaskDefinition {
    let text = r#"{"domain":"d","action":{"run":{"path":"true"}}}"#;
    TaskDefinition { task_guid: guid(), ..serde_json::from_str(text).unwrap() }
}

fn create(world: &mut World) {
    let create = RunTask::Create { definition: Box::new(work()), instance_guid: "i".into() };
    world.ask_board(&Request::RunTask(create)).unwrap();
}

fn report(world: &mut World, report: Report) {
    world.ask_board(&Request::Report { cell_id: "a".into(), report }).unwrap();
}

#[test]
fn clients_neither_make_nor_cancel_nor_delete_them() {
    let mut world = World::new();
    let definition = Box::new(work());
    let made = world.ask_board(&Request::CreateTask { definition, instance_guid: "i".into() });
    assert!(
        matches!(made, Err(Refusal::Invalid { problems }) if problems[0].contains("kapell-run-"))
    );
    create(&mut world);
    for request in
        [Request::CancelTask { task_guid: guid() }, Request::ResolveTask { task_guid: guid() }]
    {
        let Err(Refusal::State { text }) = world.ask_board(&request) else { panic!("{request:?}") };
        assert!(text.contains("kapell run cancel"), "{text}");
    }
}

#[test]
fn the_scheduler_is_told_of_their_start_and_end_and_they_stay_until_it_deletes_them() {
    let mut world = World::new();
    create(&mut world);
    create(&mut world);
    assert_eq!((world.written, world.told()), (0, vec![]));
    let (task_guid, instance_guid) = (guid(), "i".into());
    report(&mut world, Report::StartTask { task_guid, instance_guid, reservation: None });
    assert_eq!(world.told(), [SchedulerNews::Task { guid: guid() }]);
    let early = world.ask_board(&Request::RunTask(RunTask::Delete { task_guid: guid() }));
    assert!(matches!(early, Err(Refusal::State { .. })));
    report(
        &mut world,
        Report::CompleteTask {
            task_guid: guid(),
            instance_guid: "i".into(),
            failed: false,
            failure_reason: String::new(),
            result: String::new(),
            exit_code: Some(0),
        },
    );
    assert_eq!(world.told(), [SchedulerNews::Task { guid: guid() }]);
    world.now = world.now.after(seconds(86_400));
    let present = std::collections::BTreeSet::from(["a".into()]);
    let found = converge::converge(&[&world.records], &present, world.now, &Settings::default());
    assert_eq!(found, []);
    world.ask_board(&Request::KickCompletedTask { task_guid: guid() }).unwrap();
    assert_eq!(world.written, 0);
    for _ in 0..2 {
        let gone = world.ask_board(&Request::RunTask(RunTask::Delete { task_guid: guid() }));
        assert_eq!(gone, Ok(Reply::Done));
    }
    assert!(world.records.tasks.is_empty());
}

#[test]
fn a_cancel_by_the_scheduler_ends_them_and_one_that_is_over_stays() {
    let mut world = World::new();
    create(&mut world);
    for _ in 0..2 {
        let cancel = Request::RunTask(RunTask::Cancel { task_guid: guid() });
        let Ok(Reply::Task { task, .. }) = world.ask_board(&cancel) else {
            panic!("not cancelled")
        };
        assert_eq!((task.state, task.failed), (TaskState::Completed, true));
    }
    assert_eq!(world.told(), [SchedulerNews::Task { guid: guid() }]);
}

#[test]
fn what_could_not_be_the_work_of_a_run_is_refused() {
    let mut world = World::new();
    let completion_callback_url = "http://localhost/".to_owned();
    let definition = TaskDefinition { completion_callback_url, task_guid: "t".into(), ..work() };
    let create = RunTask::Create { definition: Box::new(definition), instance_guid: "i".into() };
    let made = world.ask_board(&Request::RunTask(create));
    assert!(matches!(made, Err(Refusal::Invalid { problems }) if problems.len() == 2));
}
