use std::sync::Arc;
use std::time::Duration;

use kapell_core::election::Loss;
use kapell_core::seat::Seat;
use kapell_node::elections::Elections as _;
use kapell_node::testing::{
    Call, Speed, TokioClock, TtlStorageMock, elections_test_suite, eventually, within,
};

use crate::players::{assert_nothing_runs, world};

/// The seed's `ElectionsTest`: the suite on its mock.
#[tokio::test(start_paused = true)]
async fn elections_test() {
    let stores = TtlStorageMock::new(Arc::new(TokioClock::new()));
    elections_test_suite(Arc::new(stores), Speed::PAUSED).await;
}

/// The whole process stood still for longer than its lease, candidates and all: nobody acts on
/// what was, and one of them leads anew.
#[tokio::test(start_paused = true)]
async fn a_jump_of_time() {
    let world = world().await;
    let (first, second) = (world.member("10.0.0.1:1").await, world.member("10.0.0.1:1").await);
    let seats = [Seat::FIRST];
    let old = first.elections.acquire(&seats, None).await.expect("free");
    let jump = async {
        let seen = || async { second.elections.seen(Seat::FIRST).is_some() };
        eventually("the second waits", world.lease(), seen).await;
        tokio::time::advance(world.lease() * 2).await;
        assert!(!old.may_act(), "before any task has run");
        world.now()
    };
    let (new, woke) = tokio::join!(second.elections.acquire(&seats, None), jump);
    let new = new.expect("it ran out");
    assert_eq!((new.epoch(), world.now()), (old.epoch().next(), woke));
    assert!(new.may_act() && !old.may_act());
    let loss = within("the first knows", world.slack(), old.lost()).await;
    assert_eq!(loss, Loss::Deadline);
    for member in [first, second] {
        member.elections.cleanup().await;
    }
    assert_nothing_runs().await;
}

/// An hour of renewals: nothing that is to clean up old entries takes a live one.
#[tokio::test(start_paused = true)]
async fn held_for_hours() {
    let world = world().await;
    let member = world.member("10.0.0.1:1").await;
    let tenure = member.elections.acquire(&[Seat::FIRST], None).await.expect("free");
    let hours = Duration::from_secs(3 * 60 * 60);
    let loss = tokio::time::timeout(hours, tenure.lost()).await;
    assert!(loss.is_err(), "{loss:?}");
    assert!(tenure.may_act());
    assert_eq!(world.record(Seat::FIRST).await.as_ref(), Some(tenure.record()));
    let renewals = u128::try_from(member.store.begun(Call::Swap)).unwrap();
    let quarters = hours.as_millis() / (world.lease() / 4).as_millis();
    assert!(renewals.abs_diff(quarters) <= 1, "{renewals} renewals in {quarters} quarters");
    member.elections.cleanup().await;
    assert_nothing_runs().await;
}
