use kapell_core::board::{ActualState, Records};
use kapell_core::seat::Epoch;
use kapell_store::model::SHARDS;

use super::theatre::{
    Show, Theatre, Told, create, definition, desire, pass, presence, secs, set_domain,
};
use crate::conductor::Failure;
use crate::testing::{Call, Fault, eventually};

fn all(show: &Show) -> Vec<Records> {
    let mut all = Vec::new();
    show.board.look_at_all(|records| all.push(records.clone()));
    all
}

#[tokio::test(start_paused = true)]
async fn a_new_leader_knows_everything() {
    let theatre = Theatre::new();
    let show = theatre.open().await;
    for n in 0..300 {
        show.board.ask(desire(&format!("l{n}"), n % 3)).await.unwrap();
        show.board.ask(create(definition(&format!("t{n}")))).await.unwrap();
        show.board.ask(set_domain(&format!("d{n}"))).await.unwrap();
    }
    let count = |of: fn(&Records) -> usize| all(&show).iter().map(of).sum::<usize>();
    eventually("all are unfolded", secs(5), async || count(|it| it.instances.len()) == 300).await;
    assert_eq!(count(|it| it.tasks.len() + it.desired.len() + it.domains.len()), 900);
    pass(secs(1)).await;
    let before = all(&show);
    show.close().await;
    theatre.store.next(Call::Scan, 3, Fault::Fail);
    let show = theatre.open().await;
    assert_eq!(all(&show), before);
    assert_eq!(show.board.epoch(), Epoch(2));
    show.board.ask(set_domain("one-more")).await.unwrap();
}

/// What the former leader wanted to place is placed as soon as a cell comes.
#[tokio::test(start_paused = true)]
async fn what_was_not_placed_is_placed_by_the_next_leader() {
    let theatre = Theatre::new();
    let show = theatre.open().await;
    show.board.ask(desire("l", 1)).await.unwrap();
    show.board.ask(create(definition("t"))).await.unwrap();
    eventually("it is there", secs(1), async || show.instance("l", 0).is_some()).await;
    show.close().await;
    let show = theatre.open().await;
    pass(secs(1)).await;
    assert_eq!(show.instance("l", 0).unwrap().state, ActualState::Unclaimed);
    show.board.present(presence("c")).unwrap();
    eventually("both are handed over", secs(1), async || theatre.cells.work().len() == 2).await;
    assert!(theatre.cells.work().contains(&Told::Task("t".to_owned())));
}

/// Unfolding that a crash cut short goes on at once.
#[tokio::test(start_paused = true)]
async fn what_was_not_unfolded_is_unfolded_by_the_next_leader() {
    let theatre = Theatre::new();
    let show = theatre.open().await;
    theatre.store.set(&[Call::Commit], Fault::Delay(secs(1) / 10));
    show.board.ask(desire("l", 500)).await.unwrap();
    pass(secs(1)).await;
    show.running.abort();
    theatre.store.heal();
    let there = show.board.look("l", |records| records.instances.len());
    assert!((16..500).contains(&there), "{there}");
    let show = theatre.open().await;
    eventually("all are there", secs(1), async || show.instance("l", 499).is_some()).await;
}

#[tokio::test(start_paused = true)]
async fn a_store_that_needs_a_person_fails_the_start() {
    let theatre = Theatre::new();
    theatre.store.next(Call::Scan, usize::from(SHARDS), Fault::Deny);
    let Err(Failure::Passing(why)) = theatre.try_open().await else { panic!("it is led") };
    assert!(why.contains("could not be read") && why.contains("credentials"), "{why}");
    assert!(theatre.slot.get().is_none());
}
