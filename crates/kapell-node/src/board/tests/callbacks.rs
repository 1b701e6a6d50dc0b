//! What is told to those who wait for a task, and how often.

use kapell_core::board::{Request, TaskState};

use super::theatre::{Show, Theatre, create, definition, pass, secs};
use crate::board::CallbackOutcome;
use crate::testing::{Call, Fault, eventually};

/// How long a commit takes here, so that there is time to break the one behind it.
const TAKES: Fault = Fault::Delay(std::time::Duration::from_millis(100));

fn calling_back(guid: &str) -> Request {
    calling(guid, "http://example.com/done")
}

fn calling(guid: &str, url: &str) -> Request {
    let mut definition = definition(guid);
    url.clone_into(&mut definition.completion_callback_url);
    create(definition)
}

async fn complete(show: &Show, guid: &str, url: &str) {
    show.board.ask(calling(guid, url)).await.unwrap();
    show.board.ask(cancel(guid)).await.unwrap();
}

fn figure(show: &Show, name: &str) -> String {
    let figures = show.board.figures();
    figures.iter().find(|it| it.name == name).unwrap().value.to_string()
}

fn cancel(guid: &str) -> Request {
    Request::CancelTask { task_guid: guid.into() }
}

fn made(theatre: &Theatre) -> usize {
    theatre.calls.made.lock().unwrap().len()
}

/// Task `t` is COMPLETED, and the store refuses what comes behind that.
async fn complete_but_nothing_more(theatre: &Theatre, show: &Show) {
    show.board.ask(calling_back("t")).await.unwrap();
    theatre.store.set(&[Call::Commit], TAKES);
    let cancelled = show.ask(cancel("t"));
    pass(secs(1) / 20).await;
    theatre.store.set(&[Call::Commit], Fault::Fail);
    cancelled.end().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn nobody_is_called_while_the_task_cannot_be_set_to_resolving() {
    let theatre = Theatre::new();
    let show = theatre.open().await;
    complete_but_nothing_more(&theatre, &show).await;
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
    // More than 30 s of calls are ahead of it: twelve rounds of eight.
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
    *theatre.calls.slow.lock().unwrap() = secs(7);
    show.board.ask(cancel("t")).await.unwrap();
    pass(secs(6)).await;
    assert_eq!(show.task("t").unwrap().state, TaskState::Resolving, "it was not told yet");
    eventually("it is told and gone", secs(61), async || show.task("t").is_none()).await;
    let instances: Vec<String> = {
        let made = theatre.calls.made.lock().unwrap();
        made.iter().map(|(_, task)| task.instance_guid.to_string()).collect()
    };
    assert_eq!(instances, ["t-instance", "another"]);
}

/// Whether all of it hangs at one receiver or each at another.
#[tokio::test(start_paused = true)]
async fn receivers_that_hang_do_not_delay_others() {
    for receivers in [1, 60] {
        let theatre = Theatre::new();
        let show = theatre.open().await;
        for n in 0..60 {
            let url = format!("http://hangs{}/{n}", n % receivers);
            complete(&show, &format!("t{n}"), &url).await;
        }
        pass(secs(1)).await;
        assert_eq!(made(&theatre), if receivers == 1 { 8 } else { 60 });
        complete(&show, "healthy", "http://healthy/").await;
        eventually("it is told and gone", secs(1), async || show.task("healthy").is_none()).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_task_that_waits_for_its_turn_stays_completed_and_is_told_in_the_end() {
    let theatre = Theatre::new();
    let show = theatre.open().await;
    for n in 0..8 {
        complete(&show, &format!("t{n}"), "http://hangs/").await;
    }
    complete(&show, "last", "http://hangs/").await;
    pass(secs(1)).await;
    let waits = show.task("last").unwrap();
    assert_eq!(waits.state, TaskState::Completed);
    pass(secs(24)).await;
    assert_eq!(show.task("last"), Some(waits), "nothing is written for it while it waits");
    pass(secs(2)).await;
    assert_eq!(show.task("last").unwrap().state, TaskState::Resolving, "its turn has come");
}

#[tokio::test(start_paused = true)]
async fn who_is_not_told_of_a_task_until_it_is_deleted_is_counted() {
    let theatre = Theatre::new();
    let show = theatre.open().await;
    for n in 0..60 {
        complete(&show, &format!("t{n}"), "http://hangs/").await;
    }
    show.board.ask(create(definition("nobody"))).await.unwrap();
    show.board.ask(cancel("nobody")).await.unwrap();
    pass(secs(110)).await;
    assert_eq!(figure(&show, "kapell_callbacks_untold_total"), "0");
    assert!(show.task("t59").is_some());
    let left = |n: i32| show.task(&format!("t{n}")).is_some();
    eventually("all are gone", secs(130), async || !(0..60).any(left)).await;
    assert!(show.task("nobody").is_none());
    assert_eq!(figure(&show, "kapell_callbacks_untold_total"), "60");
}

#[tokio::test(start_paused = true)]
async fn calls_that_waited_for_their_turn_are_made_by_the_next_leader() {
    let theatre = Theatre::new();
    let show = theatre.open().await;
    *theatre.calls.slow.lock().unwrap() = secs(7);
    for n in 0..12 {
        complete(&show, &format!("t{n}"), "http://example.com/").await;
    }
    pass(secs(1)).await;
    show.close().await;
    assert_eq!(made(&theatre), 8);
    *theatre.calls.slow.lock().unwrap() = secs(0);
    let show = theatre.open().await;
    let left = |n: i32| show.task(&format!("t{n}")).is_some();
    eventually("they are told and gone", secs(1), async || !(8..12).any(left)).await;
    assert_eq!(made(&theatre), 12, "those that were being told may have been told");
}

/// The commit to RESOLVING took so long that convergence takes the task for stuck at once.
#[tokio::test(start_paused = true)]
async fn a_task_that_is_demoted_while_it_is_told_is_told_once() {
    let theatre = Theatre::new();
    *theatre.calls.slow.lock().unwrap() = secs(7);
    let show = theatre.open().await;
    complete_but_nothing_more(&theatre, &show).await;
    pass(secs(40)).await;
    assert_eq!((show.task("t").unwrap().state, made(&theatre)), (TaskState::Completed, 0));
    theatre.store.heal();
    eventually("it is being told", secs(2), async || made(&theatre) == 1).await;
    show.board.alarm().at_once();
    pass(secs(1)).await;
    assert_eq!(show.task("t").unwrap().state, TaskState::Completed);
    eventually("it is gone", secs(7), async || show.task("t").is_none()).await;
    assert_eq!(made(&theatre), 1);
}
