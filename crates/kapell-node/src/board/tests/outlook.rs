use std::sync::atomic::Ordering;

use kapell_core::board::CellId;

use super::theatre::{Manner, Theatre, desire, pass, presence, secs};
use crate::board::Board;
use crate::testing::eventually;

fn rounds(board: &Board) -> u64 {
    board.meters().rounds.load(Ordering::Relaxed)
}

fn passes(board: &Board) -> u64 {
    board.meters().converged.load(Ordering::Relaxed)
}

#[tokio::test(start_paused = true)]
async fn it_is_known_when_what_waits_is_tried_again() {
    let theatre = Theatre::new();
    let show = theatre.open_and_settle().await;
    assert_eq!(show.board.due().round, None, "nothing waits");
    show.board.ask(desire("web", 1)).await.unwrap();
    eventually("it waits", secs(5), async || {
        show.instance("web", 0).is_some_and(|lrp| lrp.placement_error.is_some())
    })
    .await;
    // However long it waits, the next round is always ahead, and never further than the longest wait.
    for _ in 0..40 {
        pass(secs(1)).await;
        let (due, now) = (show.board.due(), show.board.clock().wall());
        let round = due.round.unwrap();
        assert!(round >= now && round.since(now) <= secs(10), "{due:?} at {now:?}");
        assert!(due.pass >= now && due.pass.since(now) <= secs(30), "{due:?} at {now:?}");
    }
    let (due, now) = (show.board.due(), show.board.clock().wall());
    let begun = rounds(&show.board);
    pass(due.round.unwrap().since(now) + secs(1)).await;
    assert!(rounds(&show.board) > begun, "the round was held when it was due");
}

#[tokio::test(start_paused = true)]
async fn the_next_pass_of_convergence_is_held_when_it_is_due() {
    let theatre = Theatre::new();
    let show = theatre.open_and_settle().await;
    pass(secs(3)).await;
    let (due, now) = (show.board.due(), show.board.clock().wall());
    assert!(due.pass > now, "{due:?} at {now:?}");
    let done = passes(&show.board);
    pass(due.pass.since(now) + secs(1)).await;
    assert_eq!(passes(&show.board), done + 1);
}

#[tokio::test(start_paused = true)]
async fn a_cell_that_does_not_answer_is_known_until_it_does() {
    let theatre = Theatre::new();
    let show = theatre.open_and_settle().await;
    let id = CellId::from("s");
    theatre.cells.behave("s", Manner::Silent);
    show.board.present(presence("s")).unwrap();
    assert_eq!(show.board.silent_since(&id), None);
    show.board.ask(desire("web", 1)).await.unwrap();
    eventually("it is known", secs(12), async || show.board.silent_since(&id).is_some()).await;
    theatre.cells.behave("s", Manner::Good);
    eventually("it answers", secs(40), async || {
        drop(show.board.present(presence("s")));
        show.board.silent_since(&id).is_none()
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_cell_that_is_gone_is_still_known() {
    let theatre = Theatre::new();
    let show = theatre.open_and_settle().await;
    let id = CellId::from("a");
    assert_eq!(show.board.gone(&id), None, "never seen");
    show.board.present(presence("a")).unwrap();
    assert_eq!(show.board.gone(&id), None);
    pass(secs(2)).await;
    show.board.leave(&id);
    show.board.leave(&id);
    let gone = show.board.gone(&id).unwrap();
    assert_eq!((gone.state.as_str(), gone.heard_ms_ago), ("gone", Some(2000)));
    assert!(show.board.cells().is_empty());
    show.board.present(presence("a")).unwrap();
    assert_eq!(show.board.gone(&id), None, "it is back");
    eventually("it is lost", secs(20), async || show.board.gone(&id).is_some()).await;
    let heard = show.board.gone(&id).unwrap().heard_ms_ago.unwrap();
    assert!(heard >= 15_000, "{heard}");
}
