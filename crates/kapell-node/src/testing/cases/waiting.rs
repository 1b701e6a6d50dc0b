use std::future::Future as _;
use std::task::Poll;
use std::time::Duration;

use kapell_core::seat::Epoch;

use super::{ADDRESS, OTHER_ADDRESS, SEAT, end, is_waiting, lead};
use crate::elections::{Elections as _, Refusal};
use crate::testing::{Call, Fault, Member, World, eventually, for_as_long, within};

/// By the watch, at once.
pub(super) async fn takes_over_on_release(world: World) {
    let (first, second) = (world.member(ADDRESS).await, world.member(OTHER_ADDRESS).await);
    take_over(&world, &first, &second, world.slack()).await;
}

/// By looking, a few times a lease.
pub(super) async fn takes_over_on_release_and_nobody_tells(world: World) {
    let (first, second) = (world.member(ADDRESS).await, world.member(OTHER_ADDRESS).await);
    second.store.mute();
    let poll = world.lease() / 4 * 5 / 4;
    take_over(&world, &first, &second, poll + world.slack()).await;
}

pub(super) async fn takes_over_on_release_without_watches(world: World) {
    let (first, second) = (world.member(ADDRESS).await, world.member(OTHER_ADDRESS).await);
    first.store.set(&[Call::Watch, Call::Prepare], Fault::Fail);
    second.store.set(&[Call::Watch, Call::Prepare], Fault::Fail);
    let poll = world.lease() / 4 * 5 / 4;
    take_over(&world, &first, &second, poll + world.slack()).await;
}

async fn take_over(world: &World, first: &Member, second: &Member, limit: Duration) {
    let old = lead(world, first, SEAT).await;
    let seats = [SEAT];
    let acquire = second.elections.acquire(&seats, None);
    let release = async {
        is_waiting(world, second, SEAT).await;
        let waits = || async { old.may_act() };
        for_as_long("the second waits", world.lease(), waits).await;
        let released = world.now();
        assert!(first.elections.release(SEAT).await);
        released
    };
    let (new, released) = tokio::join!(acquire, release);
    let took = world.now().since(released);
    assert!(took <= limit, "{took:?} is more than {limit:?}");
    let new = new.expect("it is free");
    assert_eq!(new.epoch(), Epoch(2));
    assert!(new.may_act() && !old.may_act());
    end(world, &[first, second]).await;
}

/// The first is gone without a word: not before its time has run out, and soon after.
pub(super) async fn takes_over_on_expiry(world: World) {
    let (first, second) = (world.member(ADDRESS).await, world.member(OTHER_ADDRESS).await);
    lead(&world, &first, SEAT).await;
    let seats = [SEAT];
    let acquire = second.elections.acquire(&seats, None);
    let crash = async {
        is_waiting(&world, &second, SEAT).await;
        let renewed = || async { first.store.begun(Call::Swap) >= 2 };
        eventually("it renews", world.lease(), renewed).await;
        first.stop();
        world.now()
    };
    let (won, crashed) = tokio::join!(acquire, crash);
    let (won, now) = (won.expect("it ran out"), world.now());
    assert_eq!(won.epoch(), Epoch(2));
    let kill = first.killer.at().expect("armed");
    assert!(now >= kill.after(world.lease() / 4), "before its time had run out");
    let took = now.since(crashed);
    assert!(took <= world.failover() + world.slack(), "{took:?}");
    end(&world, &[&first, &second]).await;
}

/// What is no record of ours has a seat all the same.
pub(super) async fn foreign_value_is_left_alone(world: World) {
    let (first, second) = (world.member(ADDRESS).await, world.member(OTHER_ADDRESS).await);
    lead(&world, &first, SEAT).await;
    world.replace(SEAT, b"10.0.0.9", None).await;
    let window = world.lease() * 2;
    let refusal = second.elections.acquire(&[SEAT], Some(window)).await;
    assert_eq!(refusal.expect_err("taken"), Refusal::NotAcquired { window, store_error: None });
    assert_eq!(world.value(SEAT).await.as_deref(), Some(b"10.0.0.9".as_slice()));
    world.remove(SEAT).await;
    assert_eq!(lead(&world, &second, SEAT).await.epoch(), Epoch(2));
    end(&world, &[&first, &second]).await;
}

pub(super) async fn dropped_while_waiting(world: World) {
    let (first, second) = (world.member(ADDRESS).await, world.member(OTHER_ADDRESS).await);
    lead(&world, &first, SEAT).await;
    let seats = [SEAT];
    let acquire = second.elections.acquire(&seats, None);
    assert!(tokio::time::timeout(world.lease() / 2, acquire).await.is_err());
    assert!(first.elections.release(SEAT).await);
    let stays_free = || async { world.value(SEAT).await.is_none() };
    for_as_long("nobody takes it", world.lease(), stays_free).await;
    assert_eq!(second.store.begun(Call::Insert), 0);
    assert_eq!(lead(&world, &second, SEAT).await.epoch(), Epoch(2), "it may be asked for again");
    end(&world, &[&first, &second]).await;
}

/// Who has stopped waiting is not in its own way, also not while it gives back what it was
/// about to win.
pub(super) async fn dropped_and_asked_for_again(world: World) {
    let member = world.member(ADDRESS).await;
    let seats = [SEAT];
    member.store.next(Call::Insert, 1, Fault::Delay(world.lease() / 10));
    let acquire = member.elections.acquire(&seats, None);
    assert!(tokio::time::timeout(world.lease() / 20, acquire).await.is_err());
    let tenure = lead(&world, &member, SEAT).await;
    assert!(tenure.may_act());
    assert_eq!(world.record(SEAT).await.as_ref(), Some(tenure.record()));
    end(&world, &[&member]).await;
}

pub(super) async fn dropped_while_inserting(world: World) {
    let slow = world.lease() / 10;
    drop_while_inserting(&world, Fault::Delay(slow)).await;
}

/// The insert lands after whoever asked has gone, and no answer comes.
pub(super) async fn dropped_while_the_insert_is_late(world: World) {
    let slow = world.lease() / 10;
    drop_while_inserting(&world, Fault::Late(slow)).await;
}

async fn drop_while_inserting(world: &World, fault: Fault) {
    let member = world.member(ADDRESS).await;
    member.store.next(Call::Insert, 1, fault);
    {
        let seats = [SEAT];
        let acquire = member.elections.acquire(&seats, None);
        let inserting = || async { member.store.begun(Call::Insert) > 0 };
        tokio::select! {
            _ = acquire => panic!("the insert is slow"),
            () = eventually("it inserts", world.slack(), inserting) => {}
        }
    }
    let ended = within("cleaned up", world.lease() * 3 / 8, member.elections.cleanup()).await;
    assert_eq!((ended, world.value(SEAT).await), ((), None));
    let stays_free = || async { world.value(SEAT).await.is_none() };
    for_as_long("it is given back", world.lease() / 2, stays_free).await;
}

/// The seat was won, but nobody waits for the answer any more.
pub(super) async fn dropped_when_won(world: World) {
    let member = world.member(ADDRESS).await;
    {
        let seats = [SEAT];
        let mut acquire = std::pin::pin!(member.elections.acquire(&seats, None));
        // Asked, and not listened to.
        let asked = std::future::poll_fn(|context| Poll::Ready(acquire.as_mut().poll(context)));
        assert!(asked.await.is_pending());
        let stands = || async { world.value(SEAT).await.is_some() };
        eventually("it is won", world.lease(), stands).await;
    }
    let free = || async { world.value(SEAT).await.is_none() };
    eventually("it is given back", world.slack(), free).await;
    assert_eq!(lead(&world, &member, SEAT).await.epoch(), Epoch(2));
    end(&world, &[&member]).await;
}
