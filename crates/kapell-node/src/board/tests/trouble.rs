use kapell_core::board::Reply;
use tokio::sync::oneshot::error::TryRecvError;

use super::theatre::{Theatre, neighbours, pass, secs, set_domain};
use crate::board::Declined;
use crate::testing::{Call, Fault, eventually, within};

fn is_store(answer: &Result<Reply, Declined>, with: &str) -> bool {
    matches!(answer, Err(Declined::Store(why)) if why.ends_with(with))
}

#[tokio::test(start_paused = true)]
async fn a_store_that_takes_no_writes_is_told_of_and_recovers() {
    let theatre = Theatre::new();
    let show = theatre.open().await;
    let names = neighbours(3);
    theatre.store.set(&[Call::Commit], Fault::Fail);
    let asked = show.ask(set_domain(&names[0]));
    pass(secs(1)).await;
    let behind = show.ask(set_domain(&names[1]));
    pass(secs(1) / 2).await;
    assert!(!asked.is_finished() && !behind.is_finished());
    assert_eq!(show.board.store_trouble(), None);
    let answer = within("the answer", secs(2), asked.end()).await;
    assert!(is_store(&answer, "whether this was carried out is not known yet"), "{answer:?}");
    let answer = within("the one behind", secs(1), behind.end()).await;
    assert!(is_store(&answer, "nothing was done"), "{answer:?}");
    assert!(show.board.store_trouble().is_some());
    let begun = theatre.store.begun(Call::Commit);
    for name in [names[2].as_str(), "elsewhere"] {
        let answer = within("at once", secs(1) / 100, show.board.ask(set_domain(name))).await;
        assert!(is_store(&answer, "nothing was done"), "{answer:?}");
    }
    assert_eq!(theatre.store.begun(Call::Commit), begun);
    show.board.look(&names[0], |records| assert!(records.domains.is_empty()));
    theatre.store.heal();
    eventually("writes go on", secs(3), async || show.board.store_trouble().is_none()).await;
    // It was carried out after all, once.
    assert_eq!(theatre.seq(&names[0]).await, 1);
    show.board.ask(set_domain(&names[1])).await.unwrap();
    show.board.look(&names[0], |records| assert_eq!(records.domains.len(), 2));
}

/// What the board asks of itself is never given up, so it need not be asked again.
#[tokio::test(start_paused = true)]
async fn the_boards_own_requests_outlast_the_trouble() {
    let theatre = Theatre::new();
    let show = theatre.open().await;
    theatre.store.set(&[Call::Commit], Fault::Fail);
    let mut own = show.board.ask_inside(set_domain("d"));
    pass(secs(5)).await;
    assert_eq!(own.try_recv(), Err(TryRecvError::Empty));
    assert!(show.board.store_trouble().is_some());
    theatre.store.heal();
    assert!(within("the answer", secs(3), own).await.unwrap().is_ok());
    assert_eq!(show.board.store_trouble(), None);
}

/// A store that fails once and then hangs is as bad.
#[tokio::test(start_paused = true)]
async fn a_second_try_that_hangs_is_trouble_too() {
    let theatre = Theatre::new();
    let show = theatre.open().await;
    theatre.store.set(&[Call::Commit], Fault::Fail);
    let asked = show.ask(set_domain("d"));
    pass(secs(1) / 4).await;
    assert!(theatre.store.begun(Call::Commit) > 0);
    theatre.store.set(&[Call::Commit], Fault::Hang);
    let answer = within("the answer", secs(3), asked.end()).await;
    assert!(is_store(&answer, "is not known yet"), "{answer:?}");
}
