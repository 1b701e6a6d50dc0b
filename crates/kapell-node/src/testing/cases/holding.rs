use kapell_core::seat::{Epoch, Record};
use kapell_store::keys;
use kapell_store::model::Generation;

use super::{ADDRESS, OTHER_ADDRESS, SEAT, end, is_waiting, lead};
use crate::elections::{Elections as _, Refusal};
use crate::testing::{Call, Fault, World, eventually, for_as_long, within};

/// Acquired, the record stands under the seed's key; released, it is gone.
pub(super) async fn basic_use(world: World) {
    assert_eq!(keys::leader(SEAT).as_bytes(), [0, 0, 0, 1, 0, 0, 0, 1]);
    let member = world.member(ADDRESS).await;
    let tenure = lead(&world, &member, SEAT).await;
    assert_eq!((tenure.seat(), tenure.epoch()), (SEAT, Epoch(1)));
    assert!(tenure.may_act());
    assert!(member.killer.at().is_some(), "the killer is armed from the first acquisition");
    let entry = world.entry(SEAT).await;
    let held = entry.held.expect("the record stands");
    let record = Record::decode(&held.value).expect("a record");
    assert_eq!((&record, entry.generation), (tenure.record(), Generation(1)));
    assert_eq!((record.epoch, record.address.as_str()), (Epoch(1), ADDRESS));
    let remaining = held.remaining.expect("it runs out");
    assert!(remaining <= world.lease() + world.store.expiry().lag, "{remaining:?}");
    assert!(remaining + world.slack() + world.store.expiry().lag >= world.lease() / 2);
    let sight = member.elections.seen(SEAT).expect("it sees itself");
    assert_eq!(sight.record, record);

    assert!(member.elections.release(SEAT).await);
    let entry = world.entry(SEAT).await;
    assert_eq!((entry.held, entry.generation), (None, Generation(1)));
    assert!(!tenure.may_act());
    assert_eq!(tenure.loss(), None, "given back is not lost");
    assert_eq!(member.killer.at(), None, "an orderly end disarms the killer");
    assert_eq!(member.elections.seen(SEAT), None);
    assert!(!member.elections.release(SEAT).await, "it is not held any more");
    end(&world, &[&member]).await;
}

pub(super) async fn acquire_when_held_here(world: World) {
    let member = world.member(ADDRESS).await;
    let tenure = lead(&world, &member, SEAT).await;
    let again = member.elections.acquire(&[SEAT], None).await;
    assert_eq!(again.expect_err("held"), Refusal::HeldHere(SEAT));
    assert!(tenure.may_act());
    assert_eq!(world.record(SEAT).await.as_ref(), Some(tenure.record()));
    assert!(member.elections.release(SEAT).await);
    assert_eq!(lead(&world, &member, SEAT).await.epoch(), Epoch(2));
    end(&world, &[&member]).await;
}

pub(super) async fn acquire_when_held_elsewhere(world: World) {
    let (first, second) = (world.member(ADDRESS).await, world.member(OTHER_ADDRESS).await);
    let tenure = lead(&world, &first, SEAT).await;
    let window = world.lease() * 3 / 2;
    let begin = world.now();
    let refusal = second.elections.acquire(&[SEAT], Some(window)).await.expect_err("taken");
    let took = world.now().since(begin);
    assert!(took >= window && took <= window + world.slack(), "{took:?}");
    assert_eq!(refusal, Refusal::NotAcquired { window, store_error: None });
    let seen = second.elections.seen(SEAT).expect("it has seen who holds it");
    assert_eq!(&seen.record, tenure.record());
    assert!(tenure.may_act());
    assert_eq!(world.record(SEAT).await.as_ref(), Some(tenure.record()));
    end(&world, &[&second, &first]).await;
}

pub(super) async fn release_without_acquire(world: World) {
    let (first, second) = (world.member(ADDRESS).await, world.member(OTHER_ADDRESS).await);
    assert!(!second.elections.release(SEAT).await);
    assert_eq!(world.entry(SEAT).await.generation, Generation(0));
    let tenure = lead(&world, &first, SEAT).await;
    assert!(!second.elections.release(SEAT).await);
    assert_eq!(world.record(SEAT).await.as_ref(), Some(tenure.record()));
    assert!(tenure.may_act());
    assert_eq!(second.store.begun(Call::Delete), 0);
    end(&world, &[&first, &second]).await;
}

/// What is only looked for is not held, and is looked for all the same.
pub(super) async fn release_while_looking(world: World) {
    let (first, second) = (world.member(ADDRESS).await, world.member(OTHER_ADDRESS).await);
    lead(&world, &first, SEAT).await;
    let looking = second.elections.acquire(&[SEAT], None);
    let releasing = async {
        is_waiting(&world, &second, SEAT).await;
        assert!(!second.elections.release(SEAT).await);
        assert!(first.elections.release(SEAT).await);
    };
    let (won, ()) = tokio::join!(looking, releasing);
    assert_eq!(won.expect("still looking").epoch(), Epoch(2));
    end(&world, &[&first, &second]).await;
}

pub(super) async fn acquire_after_cleanup(world: World) {
    let member = world.member(ADDRESS).await;
    let tenure = lead(&world, &member, SEAT).await;
    member.elections.cleanup().await;
    assert_eq!(world.value(SEAT).await, None, "cleanup gives everything back");
    assert!(!tenure.may_act());
    let refusal = member.elections.acquire(&[SEAT], None).await;
    assert_eq!(refusal.expect_err("closed"), Refusal::Closed);
    assert_eq!(world.value(SEAT).await, None);
    assert!(!member.elections.release(SEAT).await);
    within("cleaned up again", world.slack(), member.elections.cleanup()).await;
}

pub(super) async fn cleanup_while_looking(world: World) {
    let (first, second) = (world.member(ADDRESS).await, world.member(OTHER_ADDRESS).await);
    let tenure = lead(&world, &first, SEAT).await;
    for window in [None, Some(world.lease() * 10)] {
        let third = world.member(OTHER_ADDRESS).await;
        let looking = third.elections.acquire(&[SEAT], window);
        let cleaning = async {
            is_waiting(&world, &third, SEAT).await;
            within("it stops looking", world.slack(), third.elections.cleanup()).await;
        };
        let (refused, ()) = tokio::join!(looking, cleaning);
        assert_eq!(refused.expect_err("cleaned up"), Refusal::Closed);
    }
    assert!(tenure.may_act());
    end(&world, &[&first, &second]).await;
}

/// A renewal that is under way, slow or late, does not bring back what was deleted.
pub(super) async fn cleanup_during_renewal(world: World) {
    let slow = world.lease() / 8;
    for fault in [Fault::Delay(slow), Fault::Late(slow)] {
        let member = world.member(ADDRESS).await;
        let tenure = lead(&world, &member, SEAT).await;
        member.store.next(Call::Swap, 1, fault);
        let renewing = || async { member.store.begun(Call::Swap) > 0 };
        eventually("it renews", world.lease() / 4 + world.slack(), renewing).await;
        within("cleaned up", world.slack(), member.elections.cleanup()).await;
        assert_eq!(world.value(SEAT).await, None);
        assert_eq!(tenure.loss(), None);
        let stays_away = || async { world.value(SEAT).await.is_none() };
        for_as_long("it stays away", slow * 2, stays_away).await;
    }
}

/// Ends within a quarter of the lease. What could not be deleted runs out by itself.
pub(super) async fn cleanup_during_retries(world: World) {
    for fault in [Fault::Fail, Fault::Hang] {
        let member = world.member(ADDRESS).await;
        let tenure = lead(&world, &member, SEAT).await;
        member.store.set(&Call::ALL, fault);
        let trying = || async { tenure.may_act() };
        for_as_long("it tries again", world.lease() * 3 / 8, trying).await;
        let limit = world.lease() / 4 + world.slack();
        within("cleaned up", limit, member.elections.cleanup()).await;
        assert!(!tenure.may_act());
        assert_eq!(tenure.loss(), None, "given up is not lost");
        assert_eq!(member.killer.at(), None);
        assert_eq!(world.record(SEAT).await.as_ref(), Some(tenure.record()));
        let gone = || async { world.value(SEAT).await.is_none() };
        eventually("it runs out", world.failover(), gone).await;
    }
}

/// Nothing takes away what is renewed, and nobody gets in meanwhile.
pub(super) async fn renewed_for_long(world: World) {
    let (first, second) = (world.member(ADDRESS).await, world.member(OTHER_ADDRESS).await);
    let tenure = lead(&world, &first, SEAT).await;
    let time = world.lease() * 5;
    let holding = for_as_long("it holds the seat", time, || async {
        let sight = first.elections.seen(SEAT);
        tenure.may_act()
            && sight.and_then(|sight| sight.until).is_some_and(|until| until > world.now())
            && world.record(SEAT).await.as_ref() == Some(tenure.record())
    });
    let seats = [SEAT];
    let looking = second.elections.acquire(&seats, Some(time));
    let ((), refused) = tokio::join!(holding, looking);
    assert_eq!(
        refused.expect_err("taken"),
        Refusal::NotAcquired { window: time, store_error: None }
    );
    assert!(first.store.begun(Call::Swap) >= 15, "a renewal every quarter of the lease");
    assert_eq!(second.store.begun(Call::Insert), 0);
    end(&world, &[&first, &second]).await;
}

/// Over release, expiry, deletion and theft.
pub(super) async fn epochs_grow(world: World) {
    let first = world.member(ADDRESS).await;
    assert_eq!(lead(&world, &first, SEAT).await.epoch(), Epoch(1));
    assert!(first.elections.release(SEAT).await);

    let second = world.member(ADDRESS).await;
    assert_eq!(lead(&world, &second, SEAT).await.epoch(), Epoch(2));
    second.stop();

    let third = world.member(ADDRESS).await;
    let tenure = lead(&world, &third, SEAT).await;
    assert_eq!(tenure.epoch(), Epoch(3));
    world.remove(SEAT).await;
    within("it is lost", world.lease(), tenure.lost()).await;

    let tenure = lead(&world, &first, SEAT).await;
    assert_eq!(tenure.epoch(), Epoch(4));
    world.replace(SEAT, b"a thief", Some(world.lease())).await;
    within("it is lost", world.lease(), tenure.lost()).await;
    assert_eq!(lead(&world, &first, SEAT).await.epoch(), Epoch(5));
    end(&world, &[&first, &second, &third]).await;
}
