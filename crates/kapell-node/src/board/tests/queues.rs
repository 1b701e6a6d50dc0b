use kapell_core::board::Request;

use super::theatre::{Theatre, desire, neighbours, pass, secs, set_domain};
use crate::board::{Declined, WAITING};
use crate::testing::{Call, Fault, within};

#[tokio::test(start_paused = true)]
async fn a_full_queue_turns_away_at_once_and_the_boards_own_work_goes_on() {
    let theatre = Theatre::new();
    let show = theatre.open().await;
    let names = neighbours(3);
    show.board.ask(desire(&names[1], 20)).await.unwrap();
    theatre.store.set(&[Call::Commit], Fault::Hang);
    let first = show.ask(set_domain(&names[0]));
    pass(secs(1)).await;
    let waiting: Vec<_> = (0..WAITING).map(|_| show.ask(set_domain(&names[0]))).collect();
    pass(secs(1)).await;
    let turned_away = within("the answer", secs(1), show.board.ask(set_domain(&names[0]))).await;
    assert_eq!(turned_away, Err(Declined::Busy));
    let guid = names[1].as_str().into();
    let own = show.board.ask_inside(Request::Unfold { process_guid: guid, from: 0 });
    theatre.store.heal();
    assert!(own.await.unwrap().is_ok());
    assert!(first.end().await.is_ok());
    for asked in waiting {
        assert!(asked.end().await.is_ok());
    }
    let unfolded = show.board.look(&names[1], |records| records.instances.len());
    assert_eq!(unfolded, 20);
}

/// Neither lane keeps the other waiting: what comes in from outside is decided although the board
/// has much to do itself.
#[tokio::test(start_paused = true)]
async fn the_boards_own_work_does_not_keep_others_waiting() {
    let theatre = Theatre::new();
    let show = theatre.open().await;
    let names = neighbours(2);
    theatre.store.set(&[Call::Commit], Fault::Delay(secs(1)));
    let asked: Vec<_> = (0..5000)
        .map(|n| show.board.ask_inside(desire(&format!("{}-{n}", names[0]), 0)))
        .chain((0..5000).map(|_| show.board.ask_inside(set_domain(&names[0]))))
        .collect();
    within("the answer", secs(3), show.board.ask(set_domain(&names[1]))).await.unwrap();
    for asked in asked {
        asked.await.unwrap().unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_thousand_instances_unfold() {
    let theatre = Theatre::new();
    let show = theatre.open().await;
    show.board.present(super::theatre::presence("c")).unwrap();
    show.board.ask(desire("big", 1000)).await.unwrap();
    crate::testing::eventually("all are handed over", secs(20), async || {
        theatre.cells.work().len() == 1000
    })
    .await;
    assert_eq!(show.board.look("big", |records| records.instances.len()), 1000);
    let figures = show.board.figures();
    let unclaimed = figures.iter().find(|it| {
        it.name == "kapell_actual_lrps" && it.labels == [("state", "unclaimed".to_owned())]
    });
    assert_eq!(unclaimed.map(|it| it.value.to_string()), Some("1000".to_owned()));
}
