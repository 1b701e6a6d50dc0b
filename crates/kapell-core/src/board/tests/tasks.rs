use super::world::*;
use crate::board::request::Report;
use crate::board::*;

fn create(definition: TaskDefinition) -> Request {
    Request::CreateTask { definition: Box::new(definition), instance_guid: "i".into() }
}

fn begin(guid: &str) -> Report {
    Report::StartTask { task_guid: "t".into(), instance_guid: guid.into(), reservation: None }
}

fn begin_by(reservation: &str) -> Report {
    let reservation = Some(reservation.into());
    Report::StartTask { task_guid: "t".into(), instance_guid: "i".into(), reservation }
}

#[test]
fn leave_to_start_is_given_again_to_the_reservation_that_has_it() {
    let mut world = with(TaskState::Pending, None);
    world.report("a", begin_by("r")).unwrap();
    let stands = world.task().unwrap().clone();
    world.report("a", begin_by("r")).unwrap();
    assert_eq!(world.task(), Some(&stands), "nothing is written for that");
    refused(world.report("a", begin_by("another")));
    refused(world.report("b", begin_by("r")));
    refused(world.report("a", begin("i")));
    world.report("a", complete()).unwrap();
    refused(world.report("a", begin_by("r")));
}

/// A record that knows of no reservation is given to nobody.
#[test]
fn leave_to_start_that_names_no_reservation_is_given_once() {
    refused(with(TaskState::Running, Some("a")).report("a", begin("i")));
    refused(with(TaskState::Running, Some("a")).report("a", begin_by("r")));
}

fn complete() -> Report {
    Report::CompleteTask {
        task_guid: "t".into(),
        instance_guid: "i".into(),
        failed: true,
        failure_reason: "Exited with status 3".to_owned(),
        result: "so far".to_owned(),
        exit_code: Some(3),
    }
}

fn cancel() -> Request {
    Request::CancelTask { task_guid: "t".into() }
}

fn resolve() -> Request {
    Request::ResolveTask { task_guid: "t".into() }
}

fn delete() -> Request {
    Request::DeleteTask { task_guid: "t".into() }
}

fn kick_pending() -> Request {
    Request::KickPendingTask { task_guid: "t".into() }
}

fn kick_completed() -> Request {
    Request::KickCompletedTask { task_guid: "t".into() }
}

fn with(state: TaskState, cell: Option<&str>) -> World {
    World::new().with_task(task(state, cell))
}

fn refused(answer: Result<Verdict, Refusal>) -> String {
    match answer {
        Err(Refusal::State { text }) => text,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_new_task_is_pending_and_asked_for() {
    let mut world = World::new();
    let verdict = world.ask(&create(definition())).unwrap();
    assert_eq!(verdict.effects, [Effect::StartTask { task_guid: "t".into() }]);
    let stands = world.task().unwrap();
    assert_eq!((stands.state, stands.version), (TaskState::Pending, 1));
    assert_eq!(verdict.reply, Reply::Task { task: Box::new(stands.clone()), created: true });
}

#[test]
fn creating_the_same_task_again_changes_nothing() {
    let mut world = with(TaskState::Running, Some("a"));
    let verdict = world.ask(&create(definition())).unwrap();
    assert!(matches!(verdict.reply, Reply::Task { created: false, .. }));
    assert_eq!((verdict.effects, world.written), (vec![], 0));
}

#[test]
fn another_task_of_the_same_name_is_refused_with_the_fields() {
    let other = TaskDefinition { memory_mb: 5, ..definition() };
    let answer = with(TaskState::Pending, None).ask(&create(other));
    let Err(Refusal::Exists { fields, .. }) = answer else { panic!("{answer:?}") };
    assert_eq!(fields, ["memory_mb"]);
}

#[test]
fn a_bad_task_is_refused() {
    let bad = TaskDefinition { task_guid: "".into(), ..definition() };
    assert!(matches!(World::new().ask(&create(bad)), Err(Refusal::Invalid { .. })));
}

#[test]
fn a_pending_task_is_started_once() {
    let mut world = with(TaskState::Pending, None);
    world.pass(seconds(1));
    world.report("a", begin("i")).unwrap();
    let stands = world.task().unwrap();
    assert_eq!((stands.state, stands.cell_id.clone()), (TaskState::Running, Some("a".into())));
    assert_eq!((stands.since, stands.version), (world.now, 2));
    let text = refused(world.report("a", begin("i")));
    assert!(text.contains("already RUNNING"), "{text}");
}

#[test]
fn a_container_of_a_namesake_is_of_no_task() {
    for answer in [
        with(TaskState::Pending, None).report("a", begin("other")),
        World::new().report("a", begin("i")),
        World::new().report("a", complete()),
    ] {
        assert!(matches!(answer, Err(Refusal::NotFound { .. })), "{answer:?}");
    }
}

#[test]
fn a_task_remembers_when_it_was_started() {
    let mut world = with(TaskState::Pending, None);
    world.pass(seconds(3));
    world.report("a", begin("i")).unwrap();
    let began = world.now;
    world.pass(seconds(5));
    world.report("a", complete()).unwrap();
    let stands = world.task().unwrap();
    assert_eq!((stands.started_at, stands.first_completed_at), (Some(began), Some(world.now)));
}

#[test]
fn a_task_that_is_over_is_not_started() {
    refused(with(TaskState::Completed, None).report("a", begin("i")));
    refused(with(TaskState::Resolving, None).report("a", begin("i")));
}

#[test]
fn a_task_is_completed_by_its_cell_with_all_that_is_known() {
    for mut world in [with(TaskState::Pending, None), with(TaskState::Running, Some("a"))] {
        world.pass(seconds(1));
        assert_eq!(world.report("a", complete()).unwrap().effects, []);
        let stands = world.task().unwrap().clone();
        assert_eq!(stands.state, TaskState::Completed);
        assert_eq!((stands.failed, stands.exit_code), (true, Some(3)));
        assert_eq!(stands.failure_reason, "Exited with status 3");
        assert_eq!((stands.result.as_str(), stands.cell_id), ("so far", Some("a".into())));
        assert_eq!(stands.first_completed_at, Some(world.now));
        world.report("a", complete()).unwrap();
        assert_eq!(world.written, 0, "once is enough");
    }
}

#[test]
fn a_task_of_another_cell_cannot_be_completed() {
    for state in [TaskState::Running, TaskState::Completed, TaskState::Resolving] {
        refused(with(state, Some("b")).report("a", complete()));
    }
    refused(with(TaskState::Completed, None).report("a", complete()));
}

#[test]
fn a_completed_task_with_a_callback_is_resolved_next() {
    let mut world = World::new().with_task(calling_back(task(TaskState::Running, Some("a"))));
    let effects = world.report("a", complete()).unwrap().effects;
    let stands = world.task().unwrap();
    assert_eq!(stands.state, TaskState::Completed);
    assert_eq!(effects, [Effect::CallBack { task: Box::new(stands.clone()) }]);
    assert_eq!(world.effects(&resolve()), []);
    assert_eq!(world.task().unwrap().state, TaskState::Resolving);
    world.ask(&delete()).unwrap();
    assert_eq!(world.task(), None);
}

#[test]
fn a_large_result_still_fits_into_a_record() {
    for text in ["x".repeat(50_000), "\u{1}".repeat(50_000), "ä".repeat(50_000)] {
        let mut world = with(TaskState::Running, Some("a"));
        let report = Report::CompleteTask {
            task_guid: "t".into(),
            instance_guid: "i".into(),
            failed: false,
            failure_reason: text.clone(),
            result: text,
            exit_code: None,
        };
        world.report("a", report).unwrap();
        let stands = world.task().unwrap();
        assert!(stands.result.len() <= 10 * 1024 && stands.result.len() > 6 * 1024);
        let record = Record::Task(Box::new(stands.clone())).encode();
        assert!(record.len() < 50 * 1024, "{}", record.len());
    }
}

#[test]
fn a_task_is_cancelled_while_it_waits_or_runs() {
    let mut world = with(TaskState::Pending, None);
    assert_eq!(world.effects(&cancel()), []);
    let mut world = with(TaskState::Running, Some("a"));
    let instance = InstanceKey { instance_guid: "i".into(), cell_id: "a".into() };
    let effects = world.effects(&cancel());
    assert_eq!(effects, [Effect::CancelTask { task_guid: "t".into(), instance }]);
    let stands = world.task().unwrap();
    assert_eq!((stands.failed, stands.failure_reason.as_str()), (true, "cancelled"));
    for state in [TaskState::Completed, TaskState::Resolving] {
        refused(with(state, Some("a")).ask(&cancel()));
    }
    assert!(matches!(World::new().ask(&cancel()), Err(Refusal::NotFound { .. })));
}

#[test]
fn only_a_completed_task_can_be_resolved_and_deleted() {
    for state in [TaskState::Pending, TaskState::Running, TaskState::Resolving] {
        let text = refused(with(state, None).ask(&resolve()));
        assert!(text.contains("only a COMPLETED task can be deleted"), "{text}");
    }
    for state in [TaskState::Pending, TaskState::Running, TaskState::Completed] {
        refused(with(state, None).ask(&delete()));
    }
    let mut world = with(TaskState::Completed, Some("a"));
    assert_eq!(world.effects(&resolve()), []);
    assert_eq!(world.ask(&delete()).unwrap().reply, Reply::Done);
    assert_eq!(world.task(), None);
}

#[test]
fn a_task_that_no_cell_can_take_fails_with_the_reason() {
    let fail = |last| Request::FailTaskPlacement {
        task_guid: "t".into(),
        reason: "insufficient resources: memory".to_owned(),
        last,
    };
    let mut world = with(TaskState::Pending, None);
    world.ask(&fail(false)).unwrap();
    assert_eq!(world.task().unwrap().state, TaskState::Pending);
    assert!(world.task().unwrap().placement_error.is_some());
    world.ask(&fail(false)).unwrap();
    assert_eq!(world.written, 0);
    world.ask(&fail(true)).unwrap();
    let stands = world.task().unwrap();
    assert_eq!((stands.state, stands.failed), (TaskState::Completed, true));
    assert_eq!(stands.failure_reason, "insufficient resources: memory");
    let mut world = with(TaskState::Running, Some("a"));
    world.ask(&fail(true)).unwrap();
    assert_eq!(world.written, 0);
}

#[test]
fn a_pending_task_is_asked_for_again_and_then_given_up() {
    let mut world = with(TaskState::Pending, None);
    assert_eq!(world.effects(&kick_pending()), []);
    world.pass(seconds(30));
    assert_eq!(world.effects(&kick_pending()), [Effect::StartTask { task_guid: "t".into() }]);
    assert_eq!(world.written, 0);
    world.pass(seconds(30 * 60));
    assert_eq!(world.effects(&kick_pending()), []);
    let stands = world.task().unwrap();
    assert!(stands.failed && stands.failure_reason.starts_with("not started in time: "));
}

#[test]
fn a_task_on_a_lost_cell_has_failed() {
    let lost = Request::FailLostTask { task_guid: "t".into(), cell_id: "a".into() };
    let mut world = with(TaskState::Running, Some("a"));
    world.ask(&lost).unwrap();
    let stands = world.task().unwrap();
    assert_eq!(stands.failure_reason, "cell `a` disappeared before completion");
    for mut world in [with(TaskState::Running, Some("b")), with(TaskState::Pending, None)] {
        world.ask(&lost).unwrap();
        assert_eq!(world.written, 0);
    }
}

#[test]
fn a_completed_task_that_is_the_work_of_a_run_stays_until_it_is_deleted() {
    let run = crate::run::RunId::parse("report:1763290800").unwrap();
    let guid = crate::run::task_guid(&run, 0);
    let world = with(TaskState::Completed, Some("a"));
    let mut task = world.task().unwrap().clone();
    task.definition.task_guid = guid;
    let settings = Settings::default();
    let late = task.first_completed_at.unwrap().after(seconds(86_400));
    assert_eq!(rules::kick(&task, late, &settings), None);
    task.definition.task_guid = "t".into();
    assert!(rules::kick(&task, late, &settings).is_some());
}

#[test]
fn a_completed_task_goes_after_two_minutes() {
    let mut world = with(TaskState::Completed, Some("a"));
    world.pass(seconds(119));
    world.ask(&kick_completed()).unwrap();
    assert!(world.task().is_some());
    world.pass(seconds(1));
    world.ask(&kick_completed()).unwrap();
    assert_eq!(world.task(), None);
}

#[test]
fn a_completed_task_with_a_callback_is_resolved_again() {
    let mut world = World::new().with_task(calling_back(task(TaskState::Completed, Some("a"))));
    world.pass(seconds(30));
    let effects = world.effects(&kick_completed());
    let stands = world.task().unwrap();
    assert_eq!((stands.state, world.written), (TaskState::Completed, 0), "its turn has not come");
    assert_eq!(effects, [Effect::CallBack { task: Box::new(stands.clone()) }]);
}

#[test]
fn a_task_that_is_resolved_for_too_long_gets_another_chance() {
    let mut world = World::new().with_task(calling_back(task(TaskState::Resolving, Some("a"))));
    world.pass(seconds(29));
    assert_eq!((world.effects(&kick_completed()), world.written), (vec![], 0));
    world.pass(seconds(1));
    let effects = world.effects(&kick_completed());
    let stands = world.task().unwrap();
    assert_eq!((stands.state, stands.first_completed_at), (TaskState::Completed, Some(NOW)));
    assert_eq!(effects, [Effect::CallBack { task: Box::new(stands.clone()) }]);
    let mut world = with(TaskState::Resolving, Some("a"));
    world.pass(seconds(30));
    assert_eq!(world.effects(&kick_completed()), []);
}

#[test]
fn a_callback_that_never_works_does_not_keep_a_task_for_ever() {
    let mut world = World::new().with_task(calling_back(task(TaskState::Resolving, Some("a"))));
    let mut untold = 0;
    for _ in 0..10 {
        world.pass(seconds(30));
        for effect in world.effects(&kick_completed()) {
            match &effect {
                Effect::CallBack { .. } => drop(world.ask(&resolve()).unwrap()),
                Effect::Untold { task } => untold += u32::from(task.guid().as_str() == "t"),
                Effect::Start { .. }
                | Effect::StartTask { .. }
                | Effect::Stop { .. }
                | Effect::CancelTask { .. }
                | Effect::Next(_)
                | Effect::Scheduler(_) => panic!("{effect:?}"),
            }
        }
    }
    assert_eq!((world.task(), untold), (None, 1));
}

#[test]
fn a_task_that_grows_too_old_before_its_callback_is_called_is_said_to_be_untold() {
    let mut world = World::new().with_task(calling_back(task(TaskState::Completed, Some("a"))));
    world.pass(seconds(120));
    let untold = Box::new(world.task().unwrap().clone());
    assert_eq!(world.effects(&kick_completed()), [Effect::Untold { task: untold }]);
    assert_eq!(world.task(), None);
    let mut world = with(TaskState::Completed, Some("a"));
    world.pass(seconds(120));
    assert_eq!(world.effects(&kick_completed()), [], "nobody wanted to know");
}

/// However often it is asked for, by clients, callers and convergence: who resolves it may call.
#[test]
fn a_callback_has_one_caller_at_a_time() {
    let mut world = World::new().with_task(calling_back(task(TaskState::Completed, Some("a"))));
    let mut callers = 0;
    for second in 0..30 {
        callers += u32::from(world.ask(&resolve()).is_ok());
        callers += u32::from(world.ask(&resolve()).is_ok());
        assert_eq!(world.effects(&kick_completed()), [], "in second {second}");
        assert_eq!(callers, 1, "in second {second}");
        world.pass(seconds(1));
    }
}

/// Copied by hand from the specification: in which states a task can be cancelled and deleted.
#[test]
fn cancel_and_delete_are_errors_in_any_other_state() {
    let delete_as_clients_do = |world: &mut World| world.ask(&resolve());
    for (state, cancels, deletes) in [
        (TaskState::Pending, true, false),
        (TaskState::Running, true, false),
        (TaskState::Completed, false, true),
        (TaskState::Resolving, false, false),
    ] {
        let cancelled = with(state, Some("a")).ask(&cancel());
        assert_eq!(cancelled.is_ok(), cancels, "{state:?}");
        let deleted = delete_as_clients_do(&mut with(state, Some("a")));
        assert_eq!(deleted.is_ok(), deletes, "{state:?}");
        for answer in [cancelled, deleted] {
            assert!(matches!(answer, Ok(_) | Err(Refusal::State { .. })), "{state:?}: {answer:?}");
        }
    }
}

/// Copied by hand from the specification, as far as it has them.
#[test]
fn the_reasons_for_failures_are_these() {
    assert_eq!(reasons::CANCELLED, "cancelled");
    assert_eq!(reasons::EVACUATION_TIMED_OUT, "timed out during cell evacuation");
    let full = Some("insufficient resources: memory");
    assert_eq!(reasons::not_started(full), "not started in time: insufficient resources: memory");
    assert_eq!(reasons::not_started(None), "not started in time: no cell has taken it");
}
