use kapell_core::board::{ActualState, Reply};
use tokio::sync::oneshot::error::TryRecvError;

use super::theatre::{Show, Theatre, Told, desire, neighbours, pass, presence, secs, set_domain};
use crate::board::Declined;
use crate::testing::{Call, Fault, eventually, within};

fn is_unsettled(answer: &Result<Reply, Declined>) -> bool {
    matches!(answer, Err(Declined::Unsettled(_)))
}

fn is_read_only(answer: &Result<Reply, Declined>) -> bool {
    matches!(answer, Err(why @ Declined::ReadOnly(_)) if why.to_string().ends_with("nothing was done"))
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
    assert_eq!(show.board.read_only(), None);
    let answer = within("the answer", secs(2), asked.end()).await;
    assert!(is_unsettled(&answer), "{answer:?}");
    let answer = within("the one behind", secs(1), behind.end()).await;
    assert!(is_read_only(&answer), "{answer:?}");
    assert!(show.board.read_only().is_some());
    let begun = theatre.store.begun(Call::Commit);
    for name in [names[2].as_str(), "elsewhere"] {
        let answer = within("at once", secs(1) / 100, show.board.ask(set_domain(name))).await;
        assert!(is_read_only(&answer), "{answer:?}");
    }
    assert_eq!(theatre.store.begun(Call::Commit), begun);
    show.board.look(&names[0], |records| assert!(records.domains.is_empty()));
    theatre.store.heal();
    eventually("writes go on", secs(3), async || show.board.read_only().is_none()).await;
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
    assert!(show.board.read_only().is_some());
    theatre.store.heal();
    assert!(within("the answer", secs(3), own).await.unwrap().is_ok());
    assert_eq!(show.board.read_only(), None);
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
    assert!(is_unsettled(&answer), "{answer:?}");
}

/// What a cell says of itself is not written, so a store that takes nothing loses no cell.
#[tokio::test(start_paused = true)]
async fn a_store_that_takes_no_writes_for_long_moves_and_restarts_nothing() {
    let theatre = Theatre::new();
    let show = theatre.open().await;
    show.board.present(presence("c")).unwrap();
    show.board.ask(desire("l", 2)).await.unwrap();
    eventually("both are there", secs(1), async || show.instance("l", 1).is_some()).await;
    show.run("c", "l", 0).await;
    show.run("c", "l", 1).await;
    let before = [show.instance("l", 0), show.instance("l", 1)];
    let began = show.board.now();
    theatre.store.set(&[Call::Commit], Fault::Fail);
    let _asked = show.ask(set_domain("d"));
    let ttl = theatre.settings.presence_ttl;
    let goes_by = async || {
        for _ in 0..40 {
            pass(ttl / 3).await;
            show.board.present(presence("c")).unwrap();
        }
    };
    goes_by().await;
    let read_only = show.board.read_only().expect("it is told");
    assert!(read_only.since >= began && read_only.since.0 < began.0 + 5_000, "{read_only:?}");
    assert!(gauge(&show));
    assert_eq!(show.board.cells().len(), 1);
    assert_eq!([show.instance("l", 0), show.instance("l", 1)], before, "reads go on");
    theatre.store.heal();
    eventually("writes go on", secs(3), async || show.board.read_only().is_none()).await;
    assert!(!gauge(&show));
    goes_by().await;
    assert_eq!([show.instance("l", 0), show.instance("l", 1)], before, "nothing was moved");
    let is_stop = |told: &Told| matches!(told, Told::Stop(_));
    assert_eq!(theatre.cells.count(is_stop), 0, "nothing was stopped");
}

/// A cell that is lost meanwhile is looked after once writes are taken.
#[tokio::test(start_paused = true)]
async fn a_cell_that_is_lost_meanwhile_is_made_up_for_afterwards() {
    let theatre = Theatre::new();
    let show = theatre.open().await;
    show.board.present(presence("c")).unwrap();
    show.board.ask(desire("l", 1)).await.unwrap();
    eventually("it is there", secs(1), async || show.instance("l", 0).is_some()).await;
    show.run("c", "l", 0).await;
    theatre.store.set(&[Call::Commit], Fault::Fail);
    pass(theatre.settings.presence_ttl * 2).await;
    assert_eq!(show.instance("l", 0).unwrap().state, ActualState::Running, "as it was committed");
    assert!(show.board.read_only().is_some());
    theatre.store.heal();
    let rescued = async || show.instance("l", 0).unwrap().state == ActualState::Unclaimed;
    eventually("it is rescued", secs(3), rescued).await;
}

fn gauge(show: &Show) -> bool {
    let figures = show.board.figures();
    figures.iter().find(|it| it.name == "kapell_read_only").expect("the gauge").value > 0.5
}
