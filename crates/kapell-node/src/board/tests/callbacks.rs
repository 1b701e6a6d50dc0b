//! What is told to those who wait for a task, and how often.

use kapell_core::board::{Request, TaskState};

use super::theatre::{Theatre, create, definition, pass, secs};
use crate::board::CallbackOutcome;
use crate::testing::{Call, Fault, eventually};

/// How long a commit takes here, so that there is time to break the one behind it.
const TAKES: Fault = Fault::Delay(std::time::Duration::from_millis(100));

fn calling_back(guid: &str) -> Request {
    let mut definition = definition(guid);
    "http://example.com/done".clone_into(&mut definition.completion_callback_url);
    create(definition)
}

fn cancel(guid: &str) -> Request {
    Request::CancelTask { task_guid: guid.into() }
}

fn made(theatre: &Theatre) -> usize {
    theatre.calls.made.lock().unwrap().len()
}

#[tokio::test(start_paused = true)]
async fn nobody_is_called_while_the_task_cannot_be_set_to_resolving() {
    let theatre = Theatre::new();
    let show = theatre.open().await;
    show.board.ask(calling_back("t")).await.unwrap();
    theatre.store.set(&[Call::Commit], TAKES);
    let cancelled = show.ask(cancel("t"));
    pass(secs(1) / 20).await;
    theatre.store.set(&[Call::Commit], Fault::Fail);
    cancelled.end().await.unwrap();
    pass(secs(10)).await;
    assert_eq!((show.task("t").unwrap().state, made(&theatre)), (TaskState::Completed, 0));
    theatre.store.heal();
    eventually("it is told and gone", secs(5), async || show.task("t").is_none()).await;
    assert_eq!(made(&theatre), 1);
}

#[tokio::test(start_paused = true)]
async fn a_task_that_could_not_be_deleted_is_told_again_by_the_next_leader() {
    let theatre = Theatre::new();
    let show = theatre.open().await;
    show.board.ask(calling_back("t")).await.unwrap();
    theatre.store.set(&[Call::Commit], TAKES);
    show.board.ask(cancel("t")).await.unwrap();
    // The commit to RESOLVING is under way, and what comes behind it fails.
    pass(secs(1) / 20).await;
    theatre.store.set(&[Call::Commit], Fault::Fail);
    eventually("it is told", secs(1), async || made(&theatre) == 1).await;
    pass(secs(1)).await;
    assert_eq!(show.task("t").unwrap().state, TaskState::Resolving);
    show.running.abort();
    theatre.store.heal();
    let show = theatre.open().await;
    assert_eq!(show.task("t").unwrap().state, TaskState::Resolving);
    eventually("it is told and gone", secs(61), async || show.task("t").is_none()).await;
    assert_eq!(made(&theatre), 2);
}

/// A call that waits for its turn behind others is not made twice, although convergence gave the task
/// another chance meanwhile.
#[tokio::test(start_paused = true)]
async fn a_task_is_told_once_however_long_its_call_had_to_wait() {
    let theatre = Theatre::new();
    *theatre.calls.slow.lock().unwrap() = secs(7);
    // More than 30 s of calls are ahead of it: five rounds of sixteen.
    let show = theatre.open().await;
    for n in 0..100 {
        show.board.ask(calling_back(&format!("t{n}"))).await.unwrap();
        show.board.ask(cancel(&format!("t{n}"))).await.unwrap();
    }
    let left = |n: i32| show.task(&format!("t{n}")).is_some();
    eventually("all are gone", secs(110), async || !(0..100).any(left)).await;
    let mut told: Vec<String> = {
        let made = theatre.calls.made.lock().unwrap();
        made.iter().map(|(_, task)| task.guid().to_string()).collect()
    };
    let calls = told.len();
    told.sort_unstable();
    told.dedup();
    assert_eq!((told.len(), calls), (100, 100));
}

/// The answer to a call for a task that is gone deletes no other of its name.
#[tokio::test(start_paused = true)]
async fn a_late_answer_deletes_no_other_task_of_that_name() {
    let theatre = Theatre::new();
    *theatre.calls.slow.lock().unwrap() = secs(5);
    let show = theatre.open().await;
    show.board.ask(calling_back("t")).await.unwrap();
    show.board.ask(cancel("t")).await.unwrap();
    eventually("it is being told", secs(1), async || made(&theatre) == 1).await;
    show.board.ask(Request::DeleteTask { task_guid: "t".into() }).await.unwrap();
    let Request::CreateTask { definition, .. } = calling_back("t") else { panic!() };
    let again = Request::CreateTask { definition, instance_guid: "another".into() };
    show.board.ask(again).await.unwrap();
    *theatre.calls.answers.lock().unwrap() = vec![CallbackOutcome::Answered(200)];
    show.board.ask(cancel("t")).await.unwrap();
    pass(secs(10)).await;
    assert_eq!(show.task("t").unwrap().state, TaskState::Resolving, "it was not told yet");
    eventually("it is told and gone", secs(61), async || show.task("t").is_none()).await;
    let instances: Vec<String> = {
        let made = theatre.calls.made.lock().unwrap();
        made.iter().map(|(_, task)| task.instance_guid.to_string()).collect()
    };
    assert_eq!(instances, ["t-instance", "another"]);
}
