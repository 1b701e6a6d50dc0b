use kapell_core::seat::Epoch;
use kapell_store::model::Generation;

use super::{ADDRESS, SEAT, end, lead};
use crate::elections::{Elections as _, Refusal};
use crate::testing::{Call, Fault, World, for_as_long, within};

/// Errors that pass before half of the lease has gone are no loss.
pub(super) async fn transient_errors(world: World) {
    let member = world.member(ADDRESS).await;
    let tenure = lead(&world, &member, SEAT).await;
    for _ in 0..3 {
        member.store.next(Call::Swap, 2, Fault::Fail);
        member.store.next(Call::Read, 2, Fault::Fail);
        member.store.next(Call::Watch, 1, Fault::Fail);
        let held = || async { tenure.may_act() };
        for_as_long("it goes on", world.lease() * 2 / 3, held).await;
    }
    assert!(member.store.begun(Call::Swap) >= 8, "they were tried again");
    assert_eq!(tenure.loss(), None);
    assert_eq!(world.record(SEAT).await.as_ref(), Some(tenure.record()));
    end(&world, &[&member]).await;
}

/// An insert that landed is a success, whatever was heard of it.
pub(super) async fn lost_answer_of_insert(world: World) {
    let member = world.member(ADDRESS).await;
    member.store.next(Call::Insert, 1, Fault::LoseAnswer);
    let seats = [SEAT];
    let acquire = member.elections.acquire(&seats, None);
    let tenure = within("it reads back", world.slack(), acquire).await.expect("it landed");
    assert_eq!(tenure.epoch(), Epoch(1));
    let held = || async { tenure.may_act() };
    for_as_long("it is held like any other", world.lease(), held).await;
    end(&world, &[&member]).await;
}

pub(super) async fn lost_answer_of_renewal(world: World) {
    let member = world.member(ADDRESS).await;
    let tenure = lead(&world, &member, SEAT).await;
    member.store.set(&[Call::Swap], Fault::LoseAnswer);
    let held = || async { tenure.may_act() && world.record(SEAT).await.is_some() };
    for_as_long("reading back is enough", world.lease() * 2, held).await;
    assert_eq!(tenure.loss(), None);
    end(&world, &[&member]).await;
}

pub(super) async fn lost_answer_of_delete(world: World) {
    let member = world.member(ADDRESS).await;
    lead(&world, &member, SEAT).await;
    member.store.next(Call::Delete, 1, Fault::LoseAnswer);
    let limit = world.lease() / 4 + world.slack();
    assert!(within("released", limit, member.elections.release(SEAT)).await);
    assert_eq!(world.value(SEAT).await, None);
    end(&world, &[&member]).await;
}

/// The call timed out, the insert has landed meanwhile: that is found, and counted from when
/// it was sent.
pub(super) async fn late_insert(world: World) {
    let member = world.member(ADDRESS).await;
    member.store.next(Call::Insert, 1, Fault::Late(world.lease() / 8));
    let tenure = lead(&world, &member, SEAT).await;
    assert_eq!(tenure.epoch(), Epoch(1));
    let held = || async { tenure.may_act() && world.record(SEAT).await.is_some() };
    for_as_long("it is held like any other", world.lease() * 2, held).await;
    assert_eq!(world.entry(SEAT).await.generation, Generation(1));
    end(&world, &[&member]).await;
}

/// Only the same insert is sent again, so that it does not matter which of the two lands.
pub(super) async fn insert_later_than_its_repetition(world: World) {
    let member = world.member(ADDRESS).await;
    member.store.next(Call::Insert, 1, Fault::Late(world.lease() * 3 / 8));
    let tenure = lead(&world, &member, SEAT).await;
    assert_eq!((tenure.epoch(), member.store.begun(Call::Insert)), (Epoch(1), 2));
    let held = || async { tenure.may_act() };
    for_as_long("it is held like any other", world.lease(), held).await;
    assert_eq!(world.entry(SEAT).await.generation, Generation(1));
    assert!(member.elections.release(SEAT).await);
    assert_eq!(world.value(SEAT).await, None);
    end(&world, &[&member]).await;
}

pub(super) async fn store_down_and_up(world: World) {
    for fault in [Fault::Fail, Fault::Hang] {
        let member = world.member(ADDRESS).await;
        member.store.set(&Call::ALL, fault);
        let seats = [SEAT];
        let acquire = member.elections.acquire(&seats, Some(world.lease() * 4));
        let heal = async {
            let free = || async { world.value(SEAT).await.is_none() };
            for_as_long("nothing happens", world.lease() / 2, free).await;
            member.store.heal();
            world.now()
        };
        let (won, healed) = tokio::join!(acquire, heal);
        won.expect("it came back in time");
        let took = world.now().since(healed);
        assert!(took <= world.lease() / 4 + world.slack(), "{took:?}");
        end(&world, &[&member]).await;
    }
}

/// The refusal tells what the store said.
pub(super) async fn store_down(world: World) {
    for fault in [Fault::Fail, Fault::Hang] {
        let member = world.member(ADDRESS).await;
        member.store.set(&Call::ALL, fault);
        let window = world.lease();
        let begin = world.now();
        let refusal = member.elections.acquire(&[SEAT], Some(window)).await.expect_err("down");
        let took = world.now().since(begin);
        assert!(took >= window && took <= window + world.slack(), "{took:?}");
        let Refusal::NotAcquired { store_error: Some(error), .. } = &refusal else {
            panic!("{refusal:?}");
        };
        assert!(error.contains(world.store.name().split('?').next().unwrap_or("")), "{error}");
        let text = refusal.to_string();
        assert!(text.starts_with("no seat was free within"), "{text}");
        assert!(text.ends_with(&format!("the store's last error: {error}")), "{text}");
        end(&world, &[&member]).await;
    }
}
