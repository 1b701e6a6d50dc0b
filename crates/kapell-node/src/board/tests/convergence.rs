use kapell_core::board::{ActualState, shard_of};
use kapell_store::model::SHARDS;

use super::theatre::{Show, Theatre, desire, neighbours, pass, presence, secs};
use crate::testing::{Call, Fault, eventually};

async fn run_on(show: &Show, cell: &str, guid: &str) {
    show.board.present(presence(cell)).unwrap();
    show.board.ask(desire(guid, 1)).await.unwrap();
    eventually("it is there", secs(1), async || show.instance(guid, 0).is_some()).await;
    show.run(cell, guid, 0).await;
}

fn is_running(show: &Show, guid: &str) -> bool {
    show.instance(guid, 0).unwrap().state == ActualState::Running
}

/// A pass waits for all its answers, but a cell that is lost meanwhile does not wait for the pass.
#[tokio::test(start_paused = true)]
async fn a_lost_cell_is_looked_after_while_a_pass_waits_for_a_slow_commit() {
    let theatre = Theatre::new();
    let show = theatre.open_and_settle().await;
    let late = neighbours(1).remove(0);
    assert_ne!(shard_of(&late, SHARDS), shard_of("l", SHARDS));
    run_on(&show, "b", &late).await;
    run_on(&show, "c", "l").await;
    run_on(&show, "d", "m").await;
    theatre.store.next(Call::Commit, 1, Fault::Delay(secs(10)));
    show.board.leave(&"b".into());
    pass(secs(1)).await;
    assert!(is_running(&show, &late), "its commit is slow");
    // One after the other, during one and the same pass.
    for (cell, guid) in [("c", "l"), ("d", "m")] {
        show.board.leave(&cell.into());
        eventually("it is rescued", secs(1), async || !is_running(&show, guid)).await;
    }
    assert!(is_running(&show, &late));
    assert_eq!(show.board.waiting().1, 0, "what is asked for is not asked for again");
    eventually("the slow one too", secs(10), async || !is_running(&show, &late)).await;
}

/// What was rescued in this very pass may be lost again before it is over.
#[tokio::test(start_paused = true)]
async fn a_cell_that_is_lost_twice_during_a_pass_is_looked_after_twice() {
    let theatre = Theatre::new();
    let show = theatre.open_and_settle().await;
    let late = neighbours(1).remove(0);
    run_on(&show, "b", &late).await;
    run_on(&show, "c", "l").await;
    theatre.store.next(Call::Commit, 1, Fault::Delay(secs(10)));
    show.board.leave(&"b".into());
    pass(secs(1)).await;
    for _ in 0..2 {
        show.board.leave(&"c".into());
        eventually("it is rescued", secs(1), async || !is_running(&show, "l")).await;
        show.board.present(presence("c")).unwrap();
        show.run("c", "l", 0).await;
    }
    assert!(is_running(&show, &late), "it is the same pass");
}
