use kapell_core::board::{Action, DesiredLrp, Refusal, Reply, Request, Run, Variable, shard_of};
use kapell_core::election::Loss;
use kapell_core::seat::Epoch;
use kapell_store::Shards as _;
use kapell_store::model::{Commit, Fence, SHARDS, Shard};

use super::theatre::{
    SEAT, Show, Theatre, Told, create, definition, desire, lrp, neighbours, pass, presence, secs,
    set_domain,
};
use crate::board::Declined;
use crate::testing::{Call, Fault, eventually, within};

async fn a_while() {
    pass(secs(1)).await;
}

fn has_domain(show: &Show, domain: &str) -> bool {
    show.board.look(domain, |records| records.domains.contains_key(&domain.into()))
}

#[tokio::test(start_paused = true)]
async fn nothing_is_shown_answered_or_told_before_the_commit() {
    let theatre = Theatre::new();
    let show = theatre.open().await;
    let mut events = show.board.events(None);
    theatre.store.set(&[Call::Commit], Fault::Hang);
    let asked = show.ask(set_domain("d"));
    a_while().await;
    assert_eq!(theatre.store.begun(Call::Commit), 1);
    assert!(!asked.is_finished());
    assert!(!has_domain(&show, "d"));
    assert_eq!(show.board.last_event().number, 0);
    theatre.store.heal();
    assert!(matches!(asked.end().await, Ok(Reply::Domain(_))));
    assert!(has_domain(&show, "d"));
    assert!(within("the event", secs(1), events.next()).await.is_some());
    assert_eq!(show.board.last_event().number, 1);
}

#[tokio::test(start_paused = true)]
async fn effects_come_after_the_commit() {
    let theatre = Theatre::new();
    let show = theatre.open().await;
    show.board.present(presence("c")).unwrap();
    theatre.store.set(&[Call::Commit], Fault::Hang);
    let asked = show.ask(create(definition("t")));
    a_while().await;
    assert_eq!(theatre.cells.work(), []);
    theatre.store.heal();
    asked.end().await.unwrap();
    eventually("the task is handed over", secs(1), async || {
        theatre.cells.work() == [Told::Task("t".to_owned())]
    })
    .await;
    assert!(theatre.cells.told().iter().all(|(_, epoch, _)| *epoch == Epoch(1)));
}

/// What changes nothing says so only when what it rests on is committed.
#[tokio::test(start_paused = true)]
async fn an_answer_that_rests_on_a_change_waits_for_it() {
    let theatre = Theatre::new();
    let show = theatre.open().await;
    let names = neighbours(2);
    theatre.store.set(&[Call::Commit], Fault::Delay(secs(10)));
    let first = show.ask(desire(&names[0], 0));
    a_while().await;
    let second = show.ask(desire(&names[1], 0));
    a_while().await;
    let same = show.ask(desire(&names[1], 0));
    let other =
        show.ask(Request::Desire(Box::new(DesiredLrp { memory_mb: 1, ..lrp(&names[1], 0) })));
    pass(secs(10)).await;
    assert!(first.is_finished());
    assert!(!second.is_finished() && !same.is_finished() && !other.is_finished());
    pass(secs(10)).await;
    assert!(matches!(second.end().await, Ok(Reply::Desired { created: true, .. })));
    assert!(matches!(same.end().await, Ok(Reply::Desired { created: false, .. })));
    assert!(matches!(other.end().await, Err(Declined::Refused(Refusal::Exists { .. }))));
}

#[tokio::test(start_paused = true)]
async fn what_changes_nothing_needs_no_commit() {
    let theatre = Theatre::new();
    let show = theatre.open().await;
    theatre.store.set(&[Call::Commit], Fault::Hang);
    let request = Request::RemoveDesired { process_guid: "none".into() };
    let answer = within("the refusal", secs(1), show.board.ask(request)).await;
    assert!(matches!(answer, Err(Declined::Refused(Refusal::NotFound { .. }))));
    assert_eq!(theatre.store.begun(Call::Commit), 0);
}

#[tokio::test(start_paused = true)]
async fn what_arrives_during_a_commit_makes_the_next_one() {
    let theatre = Theatre::new();
    let show = theatre.open().await;
    let names = neighbours(101);
    theatre.store.set(&[Call::Commit], Fault::Delay(secs(1)));
    let first = show.ask(set_domain(&names[0]));
    pass(secs(1) / 2).await;
    let rest: Vec<_> = names[1..].iter().map(|name| show.ask(set_domain(name))).collect();
    first.end().await.unwrap();
    for asked in rest {
        asked.end().await.unwrap();
    }
    assert_eq!(theatre.store.begun(Call::Commit), 2);
    assert_eq!(theatre.seq(&names[0]).await, 2);
}

/// A desired process of about 100 KiB.
fn large(guid: &str) -> Request {
    let routes = [("r".to_owned(), "x".repeat(100 << 10).into())].into();
    Request::Desire(Box::new(DesiredLrp { routes, ..lrp(guid, 0) }))
}

#[tokio::test(start_paused = true)]
async fn a_group_is_cut_where_the_store_wants_it() {
    let theatre = Theatre::new();
    let show = theatre.open().await;
    let names = neighbours(200);
    theatre.store.set(&[Call::Commit], Fault::Delay(secs(1)));
    let asked: Vec<_> = names.iter().map(|name| show.ask(large(name))).collect();
    for asked in asked {
        asked.end().await.unwrap();
    }
    // 20 MiB in commits of at most 8; the first may have had to go with few.
    let commits = theatre.store.begun(Call::Commit);
    assert!((3..=4).contains(&commits), "{commits} commits");
    assert_eq!(show.board.look(&names[0], |records| records.desired.len()), 200);
    show.close().await;
    let show = theatre.open().await;
    assert_eq!(show.board.look(&names[0], |records| records.desired.len()), 200);
}

/// What no commit can hold is the request's problem, not the board's.
#[tokio::test(start_paused = true)]
async fn what_the_store_cannot_take_is_refused() {
    let theatre = Theatre::new();
    let show = theatre.open().await;
    let env = vec![Variable::plain("E", "x".repeat(300 << 10))];
    let run = Run { path: "true".to_owned(), env, ..Run::default() };
    let request = Request::Desire(Box::new(DesiredLrp { action: Action::Run(run), ..lrp("l", 0) }));
    let answer = show.board.ask(request).await;
    assert!(matches!(answer, Err(Declined::Refused(Refusal::Invalid { .. }))), "{answer:?}");
    show.board.ask(set_domain("d")).await.unwrap();
}

/// Sent again, whatever became of the first try, it lands exactly once.
#[tokio::test(start_paused = true)]
async fn an_unknown_outcome_is_found_out_by_sending_again() {
    for fault in [Fault::LoseAnswer, Fault::Fail] {
        let theatre = Theatre::new();
        let show = theatre.open().await;
        let mut events = show.board.events(None);
        theatre.store.next(Call::Commit, 1, fault);
        show.board.ask(set_domain("d")).await.unwrap();
        assert_eq!(theatre.store.begun(Call::Commit), 2);
        assert_eq!(theatre.seq("d").await, 1);
        assert!(events.next().await.is_some());
        assert_eq!(show.board.last_event().number, 1);
        // The fence is where the next commit expects it.
        show.board
            .ask(Request::SetDomain { domain: "d".into(), ttl: Some(secs(9)) })
            .await
            .unwrap();
        assert_eq!(theatre.seq("d").await, 2);
        show.close().await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_error_that_does_not_pass_ends_the_board() {
    let theatre = Theatre::new();
    let show = theatre.open().await;
    theatre.store.next(Call::Commit, 1, Fault::Deny);
    assert_eq!(show.board.ask(set_domain("d")).await, Err(Declined::NotLeading));
    let why = show.running.end().await.unwrap_err();
    assert!(why.contains("credentials"), "{why}");
    assert!(!show.board.look("d", |records| records.domains.contains_key(&"d".into())));
}

#[tokio::test(start_paused = true)]
async fn a_deposed_leader_ends() {
    let theatre = Theatre::new();
    let show = theatre.open().await;
    let mut events = show.board.events(None);
    drop(theatre.mem.raise(SEAT, Epoch(9)).await.unwrap());
    assert_eq!(show.board.ask(set_domain("d")).await, Err(Declined::NotLeading));
    let why = show.running.end().await.unwrap_err();
    assert!(why.starts_with("deposed") && why.contains("9.0"), "{why}");
    assert!(theatre.slot.get().is_none());
    assert!(events.next().await.is_none());
    assert_eq!(show.board.ask(set_domain("d")).await, Err(Declined::NotLeading));
}

/// Somebody else writes with our epoch: that must not be taken for our own try.
#[tokio::test(start_paused = true)]
async fn a_fence_that_we_did_not_move_ends_the_board() {
    let theatre = Theatre::new();
    let show = theatre.open().await;
    let shard = Shard { seat: SEAT, number: shard_of("d", SHARDS) };
    let fence = Fence { epoch: Epoch(1), seq: 0 };
    assert_eq!(theatre.mem.commit(shard, fence, &[]).await.unwrap(), Commit::Done);
    assert_eq!(show.board.ask(set_domain("d")).await, Err(Declined::NotLeading));
    assert!(show.running.end().await.is_err());
}

#[tokio::test(start_paused = true)]
async fn who_may_not_act_decides_nothing() {
    let theatre = Theatre::new();
    let show = theatre.open().await;
    show.standing.act_until(None);
    assert!(theatre.slot.get().is_none());
    assert_eq!(show.board.ask(set_domain("d")).await, Err(Declined::NotLeading));
    assert_eq!(theatre.store.begun(Call::Commit), 0);
}

/// Nothing is sent again in the name of a seat that may be another's.
#[tokio::test(start_paused = true)]
async fn a_commit_without_an_answer_is_not_sent_again_after_the_loss() {
    let theatre = Theatre::new();
    let show = theatre.open().await;
    theatre.store.set(&[Call::Commit], Fault::Fail);
    let asked = show.ask(set_domain("d"));
    a_while().await;
    show.standing.act_until(None);
    assert_eq!(asked.end().await, Err(Declined::NotLeading));
    assert!(show.running.end().await.is_err());
    let begun = theatre.store.begun(Call::Commit);
    a_while().await;
    assert_eq!(theatre.store.begun(Call::Commit), begun);
}

/// Whoever waits for an answer is not kept waiting by a store that hangs.
#[tokio::test(start_paused = true)]
async fn a_loss_ends_the_wait_for_a_commit() {
    let theatre = Theatre::new();
    let show = theatre.open().await;
    theatre.store.set(&[Call::Commit], Fault::Hang);
    let asked = show.ask(set_domain("d"));
    a_while().await;
    show.standing.lose(Loss::Expired);
    let answer = within("the answer", secs(1), asked.end()).await;
    assert_eq!(answer, Err(Declined::NotLeading));
    assert!(show.running.end().await.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_stop_lets_the_commit_under_way_land() {
    let theatre = Theatre::new();
    let show = theatre.open().await;
    theatre.store.set(&[Call::Commit], Fault::Delay(secs(1)));
    let asked = show.ask(set_domain("d"));
    pass(secs(1) / 2).await;
    show.close().await;
    assert!(asked.end().await.is_ok());
    assert!(theatre.slot.get().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_stop_does_not_wait_for_ever() {
    let theatre = Theatre::new();
    let show = theatre.open().await;
    theatre.store.set(&[Call::Commit], Fault::Hang);
    let asked = show.ask(set_domain("d"));
    a_while().await;
    within("the stop", secs(5), show.close()).await;
    assert_eq!(asked.end().await, Err(Declined::NotLeading));
}
