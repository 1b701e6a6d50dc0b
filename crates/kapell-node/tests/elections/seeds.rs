//! The seed's tests of the VVM, by name.

use std::sync::Arc;
use std::time::Duration;

use kapell_core::election::Loss;
use kapell_core::seat::{Epoch, Seat};
use kapell_node::conductor::{Problem, Step};
use kapell_node::elections::{Elections as _, Refusal, Tenure};
use kapell_node::testing::{Call, for_as_long, within};

use crate::players::{
    DOWN, DOWN_AFTER_LOSS, DOWN_UNSEATED, House, LOSS, Log, Player, UP, pass, world,
};

/// VVM.test.Basic: the first starts; the second fails to, with the seed's
/// `leadershipAcquisitionErr`, and the first goes on.
#[tokio::test(start_paused = true)]
async fn basic() {
    let (world, log) = (world().await, Log::default());
    let first = House::new(&world, vec![Player::new(&world, &log, "first")]).await;
    let signal = first.conductor.launch(Some(world.lease() * 6)).await;
    assert!(signal.get().is_none());
    assert_eq!(first.steps.all(), UP);

    let second = House::new(&world, vec![Player::new(&world, &log, "second")]).await;
    let (window, begin) = (world.lease() * 6, world.now());
    let problem = second.conductor.launch(Some(window)).await;
    assert_eq!(world.now().since(begin), window);
    let problem = within("it is raised", Duration::from_millis(1), problem.wait()).await;
    assert_eq!(problem.to_string(), "the seat was not acquired");
    let Problem::NotAcquired(refusal @ Refusal::NotAcquired { .. }) = &*problem else {
        panic!("{problem:?}")
    };
    assert_eq!(refusal.to_string(), "no seat was free within 120s");
    assert!(second.conductor.tenure().is_none());

    assert_eq!(log.lines(), ["first up"]);
    let goes_on = || async { first.conductor.tenure().is_some_and(Tenure::may_act) };
    for_as_long("the first goes on", world.lease() * 3, goes_on).await;
    assert!(signal.get().is_none());

    let answer = second.conductor.shutdown().await.expect_err("the problem");
    assert!(Arc::ptr_eq(&answer, &problem), "the problem and no other");
    let started = [Step::Launched, Step::ShutdownerStarted, Step::ProblemRaised];
    assert_eq!(second.steps.all(), [&started[..], &DOWN_UNSEATED[..]].concat());
    assert_eq!(world.record(Seat::FIRST).await.as_ref(), tenure_record(&first));
    first.conductor.shutdown().await.expect("no problem");
    assert_eq!(first.steps.all(), [&UP[..], &DOWN[..]].concat());
    assert_eq!(log.lines(), ["first up", "first told to stop", "first down, the seat is held"]);
    first.assert_empty().await;
}

fn tenure_record(house: &House) -> Option<&kapell_core::seat::Record> {
    house.conductor.tenure().map(Tenure::record)
}

/// VVM.test.Shutdown: the value is changed under it, time goes by, it shuts down; the process
/// ends a quarter of the lease after the loss, or three quarters after the last good renewal.
#[tokio::test(start_paused = true)]
async fn shutdown_on_leadership_loss() {
    let (world, log) = (world().await, Log::default());
    for (mute, wait) in [(false, 0), (false, 7), (true, 0), (true, 7)] {
        let house = House::new(&world, vec![Player::new(&world, &log, "it")]).await;
        if mute {
            house.member.store.mute();
        }
        let signal = house.conductor.launch(None).await;
        let last_good = world.now().after(Duration::from_secs(if wait == 0 { 0 } else { 5 }));
        pass(Duration::from_secs(wait)).await;
        world.replace(Seat::FIRST, b"modified", Some(world.lease())).await;
        let changed = world.now();
        let problem = within("the problem", world.lease() / 2, signal.wait()).await;
        assert!(matches!(&*problem, Problem::Lost(Loss::Stolen(None))), "{problem:?}");
        let lost = world.now();
        let until_renewal = Duration::from_secs(if wait == 0 { 5 } else { 3 });
        assert_eq!(lost.since(changed), if mute { until_renewal } else { Duration::ZERO });
        let (quarter, lease) = (world.lease() / 4, world.lease());
        let kill = lost.after(quarter).min(last_good.after(lease * 3 / 4));
        assert_eq!(house.member.killer.at(), Some(kill));
        let tenure = house.conductor.tenure().expect("it was held");
        assert!(!tenure.may_act());

        let answer = house.conductor.shutdown().await.expect_err("lost");
        assert!(Arc::ptr_eq(&answer, &problem));
        let text = "the seat was lost: stolen: the seat's record is no longer ours";
        assert_eq!(answer.to_string(), text);
        assert_eq!(house.steps.all(), [&UP[..], &LOSS[..], &DOWN_AFTER_LOSS[..]].concat());
        assert_eq!(house.member.killer.at(), Some(kill), "after a loss nothing disarms it");
        assert_eq!(house.member.store.begun(Call::Delete), 0, "nor is the record deleted");
        assert_eq!(world.value(Seat::FIRST).await.as_deref(), Some(b"modified".as_slice()));
        assert_eq!(log.lines().pop().unwrap(), "it down, the seat is gone");
        house.assert_empty().await;
        world.remove(Seat::FIRST).await;
    }
}

/// VVM.test.CancelLeadership: after a shutdown the record is gone and another leads at once.
#[tokio::test(start_paused = true)]
async fn cancel_leadership() {
    let (world, log) = (world().await, Log::default());
    let first = House::new(&world, vec![Player::new(&world, &log, "first")]).await;
    first.conductor.launch(None).await;
    assert!(world.value(Seat::FIRST).await.is_some());
    let begin = world.now();
    first.conductor.shutdown().await.expect("no problem");
    assert_eq!(world.value(Seat::FIRST).await, None);
    assert_eq!(first.member.killer.at(), None, "an orderly shutdown disarms the killer");
    let other = world.member("10.0.0.2:7070").await;
    let tenure = other.elections.acquire(&[Seat::FIRST], Some(Duration::from_millis(1))).await;
    assert_eq!(tenure.expect("it is free").epoch(), Epoch(2));
    assert_eq!(world.now(), begin, "at once");
    other.elections.cleanup().await;
    first.assert_empty().await;
}

/// Two with one address launched together: one of them leads, and the other after it.
#[tokio::test(start_paused = true)]
async fn collision() {
    let (world, log) = (world().await, Log::default());
    let a = House::new(&world, vec![Player::new(&world, &log, "a")]).await;
    let b = House::new(&world, vec![Player::new(&world, &log, "b")]).await;
    let launch = async |house: &House, other: &House| {
        let signal = house.conductor.launch(None).await;
        assert!(signal.get().is_none());
        let other = other.conductor.tenure().filter(|tenure| tenure.may_act());
        assert!(other.is_none(), "both lead");
        let leads = || async { house.conductor.tenure().is_some_and(Tenure::may_act) };
        for_as_long("it leads", world.lease() * 2, leads).await;
        house.conductor.shutdown().await.expect("no problem");
        world.now()
    };
    let (first, second) = tokio::join!(launch(&a, &b), launch(&b, &a));
    assert_eq!(first.since(second).max(second.since(first)), world.lease() * 2);
    let log = log.lines();
    assert_eq!(log.len(), 6);
    assert_eq!(&log[0][1..], " up");
    assert_eq!(&log[2][1..], " down, the seat is held");
    assert_eq!(&log[3][1..], " up", "not before the first was down");
    a.assert_empty().await;
    b.assert_empty().await;
}

/// Seed 001's manual test: each takes over when the other stops, there and back.
#[tokio::test(start_paused = true)]
async fn there_and_back() {
    let (world, log) = (world().await, Log::default());
    let mut leader = House::new(&world, vec![Player::new(&world, &log, "host")]).await;
    leader.conductor.launch(None).await;
    for epoch in 2..=5 {
        let standby = House::new(&world, vec![Player::new(&world, &log, "host")]).await;
        let hand_over = async {
            let waits = || async { !standby.steps.has(Step::Acquired) };
            for_as_long("it waits", world.lease(), waits).await;
            leader.conductor.shutdown().await.expect("no problem");
            world.now()
        };
        let (_, released) = tokio::join!(standby.conductor.launch(None), hand_over);
        assert_eq!(world.now(), released, "at once");
        let tenure = standby.conductor.tenure().expect("it leads");
        assert_eq!(tenure.epoch(), Epoch(epoch));
        leader = standby;
    }
    leader.conductor.shutdown().await.expect("no problem");
    leader.assert_empty().await;
}
