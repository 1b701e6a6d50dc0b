//! What the board does where a step of starting, stopping or a task's life fails: one test a branch. Those of
//! completion are among the callbacks, those of placement at the auctioneer.

use kapell_core::board::{ActualState, Request, TaskState};

use super::theatre::{Theatre, Told, create, definition, desire, pass, presence, secs};
use crate::board::Declined;
use crate::testing::{Call, Fault, eventually, within};

/// How long a commit takes here, so that there is time to break the one behind it.
const TAKES: Fault = Fault::Delay(std::time::Duration::from_millis(100));

/// The record that is there is somebody's already: no other is made, nobody is asked to start it again.
#[tokio::test(start_paused = true)]
async fn starting_an_instance_that_is_there_already_is_left_as_it_is() {
    let theatre = Theatre::new();
    let show = theatre.open_and_settle().await;
    show.board.present(presence("c")).unwrap();
    show.board.ask(desire("l", 1)).await.unwrap();
    eventually("it is handed over", secs(1), async || theatre.cells.work().len() == 1).await;
    show.run("c", "l", 0).await;
    let before = show.instance("l", 0);
    show.board.ask(Request::Unfold { process_guid: "l".into(), from: 0 }).await.unwrap();
    pass(secs(1)).await;
    assert_eq!(show.instance("l", 0), before);
    assert_eq!(theatre.cells.work().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn starting_an_instance_whose_record_cannot_be_made_is_made_by_convergence() {
    let theatre = Theatre::new();
    let show = theatre.open_and_settle().await;
    show.board.present(presence("c")).unwrap();
    theatre.store.set(&[Call::Commit], TAKES);
    let desired = show.ask(desire("l", 1));
    pass(secs(1) / 20).await;
    theatre.store.set(&[Call::Commit], Fault::Fail);
    desired.end().await.unwrap();
    pass(secs(1)).await;
    assert_eq!((show.instance("l", 0), theatre.cells.work().len()), (None, 0));
    show.running.abort();
    theatre.store.heal();
    let show = theatre.open().await;
    show.board.present(presence("c")).unwrap();
    let made = async || show.instance("l", 0).is_some() && theatre.cells.work().len() == 1;
    eventually("it is made and handed over", secs(31), made).await;
}

/// Two who want to restart it start it once.
#[tokio::test(start_paused = true)]
async fn starting_a_crashed_instance_that_is_being_restarted_does_nothing() {
    let theatre = Theatre::new();
    let show = theatre.open_and_settle().await;
    show.board.ask(desire("l", 1)).await.unwrap();
    eventually("it is there", secs(1), async || show.instance("l", 0).is_some()).await;
    show.run("c", "l", 0).await;
    let before = show.instance("l", 0).unwrap();
    assert_eq!(before.state, ActualState::Running);
    show.board.ask(Request::RestartCrashed { key: before.key() }).await.unwrap();
    assert_eq!(show.instance("l", 0).unwrap(), before);
}

#[tokio::test(start_paused = true)]
async fn stopping_a_record_that_is_on_no_cell_and_cannot_be_deleted_is_deleted_by_convergence() {
    let theatre = Theatre::new();
    let show = theatre.open_and_settle().await;
    show.board.ask(desire("l", 1)).await.unwrap();
    eventually("it is there", secs(1), async || show.instance("l", 0).is_some()).await;
    pass(secs(1)).await;
    theatre.store.set(&[Call::Commit], TAKES);
    let removed = show.ask(Request::RemoveDesired { process_guid: "l".into() });
    pass(secs(1) / 20).await;
    theatre.store.set(&[Call::Commit], Fault::Fail);
    removed.end().await.unwrap();
    pass(secs(1)).await;
    assert_eq!(show.instance("l", 0).unwrap().state, ActualState::Unclaimed);
    show.running.abort();
    theatre.store.heal();
    let show = theatre.open().await;
    eventually("it is gone", secs(31), async || show.instance("l", 0).is_none()).await;
}

#[tokio::test(start_paused = true)]
async fn a_task_that_cannot_be_kept_is_an_error_to_whoever_wants_it() {
    let theatre = Theatre::new();
    let show = theatre.open_and_settle().await;
    show.board.present(presence("c")).unwrap();
    theatre.store.set(&[Call::Commit], Fault::Fail);
    let answer = within("the answer", secs(5), show.board.ask(create(definition("t")))).await;
    assert!(matches!(answer, Err(Declined::Unsettled(_))), "{answer:?}");
    assert_eq!((show.task("t"), theatre.cells.work().len()), (None, 0));
}

/// Whoever was to place it died: the next one asks for it again.
#[tokio::test(start_paused = true)]
async fn a_task_whose_start_is_lost_is_asked_for_again() {
    let theatre = Theatre::new();
    let show = theatre.open().await;
    show.board.ask(create(definition("t"))).await.unwrap();
    show.running.abort();
    let show = theatre.open().await;
    assert_eq!(show.task("t").unwrap().state, TaskState::Pending);
    show.board.present(presence("c")).unwrap();
    let placed = async || theatre.cells.work().contains(&Told::Task("t".to_owned()));
    eventually("it is handed over", secs(31), placed).await;
}
