use kapell_core::election::Loss;
use kapell_core::seams::Timestamp;
use kapell_core::seat::{Epoch, Owner, Record, Seat};

use super::{ADDRESS, SEAT, end, lead};
use crate::elections::{Elections as _, Tenure};
use crate::testing::{Call, Fault, Member, World, eventually, for_as_long, within};

/// Found out by the watch, at once, if it tells. What stands there now is left alone.
pub(super) async fn value_changed(world: World) {
    let member = world.member(ADDRESS).await;
    let tenure = lead(&world, &member, SEAT).await;
    world.replace(SEAT, b"10.0.0.9", Some(world.lease() * 3)).await;
    let loss = within("it is lost", world.noticed(), tenure.lost()).await;
    assert_eq!((loss, tenure.loss()), (Loss::Stolen(None), Some(Loss::Stolen(None))));
    assert!(!tenure.may_act());
    assert_killer_after_loss(&world, &member);
    assert!(!member.elections.release(SEAT).await, "what is lost is not given back");
    member.elections.cleanup().await;
    let survives = || async { world.value(SEAT).await.as_deref() == Some(b"10.0.0.9") };
    for_as_long("the new value survives", world.lease(), survives).await;
    assert_eq!(member.store.begun(Call::Delete), 0);
}

pub(super) async fn value_changed_to_another_owner(world: World) {
    let member = world.member(ADDRESS).await;
    let tenure = lead(&world, &member, SEAT).await;
    let thief = Record {
        epoch: tenure.epoch(),
        owner: Owner(7),
        address: ADDRESS.to_owned(),
        since: Timestamp(0),
    };
    world.replace(SEAT, &thief.encode(), Some(world.lease())).await;
    let loss = within("it is lost", world.noticed(), tenure.lost()).await;
    assert_eq!(loss, Loss::Stolen(Some(Owner(7))));
    assert_eq!(world.record(SEAT).await, Some(thief));
    end(&world, &[&member]).await;
}

/// Without a watch the next renewal finds out.
pub(super) async fn value_changed_and_nobody_tells(world: World) {
    let member = world.member(ADDRESS).await;
    member.store.mute();
    let tenure = lead(&world, &member, SEAT).await;
    world.replace(SEAT, b"10.0.0.9", None).await;
    let limit = world.lease() / 4 + world.slack();
    let loss = within("it is lost", limit, tenure.lost()).await;
    assert_eq!(loss, Loss::Stolen(None));
    assert_killer_after_loss(&world, &member);
    member.elections.cleanup().await;
    assert_eq!(world.value(SEAT).await.as_deref(), Some(b"10.0.0.9".as_slice()));
}

pub(super) async fn key_deleted(world: World) {
    let member = world.member(ADDRESS).await;
    let tenure = lead(&world, &member, SEAT).await;
    world.remove(SEAT).await;
    let loss = within("it is lost", world.noticed(), tenure.lost()).await;
    assert_eq!(loss, Loss::Deleted);
    assert!(!tenure.may_act());
    assert_killer_after_loss(&world, &member);
    let stays_away = || async { world.value(SEAT).await.is_none() };
    for_as_long("it does not come back", world.lease(), stays_away).await;
    end(&world, &[&member]).await;
}

pub(super) async fn key_deleted_and_nobody_tells(world: World) {
    let member = world.member(ADDRESS).await;
    member.store.mute();
    let tenure = lead(&world, &member, SEAT).await;
    world.remove(SEAT).await;
    let limit = world.lease() / 4 + world.slack();
    assert_eq!(within("it is lost", limit, tenure.lost()).await, Loss::Deleted);
    assert_eq!(world.value(SEAT).await, None);
    end(&world, &[&member]).await;
}

/// Lost at half of the lease. The record stays until it runs out: a successor waits for that.
pub(super) async fn persistent_errors(world: World) {
    let (member, loss) = silence(&world, &Call::ALL, Fault::Fail).await;
    assert_eq!(loss, Loss::StoreErrors);
    member.store.heal();
    member.elections.cleanup().await;
    assert_eq!(member.store.begun(Call::Delete), 0, "what is lost is not deleted");
    let gone = || async { world.value(SEAT).await.is_none() };
    eventually("it runs out", world.failover(), gone).await;
}

pub(super) async fn hung_store(world: World) {
    let (member, loss) = silence(&world, &Call::ALL, Fault::Hang).await;
    assert_eq!(loss, Loss::StoreErrors);
    within("cleaned up", world.slack(), member.elections.cleanup()).await;
    assert_eq!(member.store.begun(Call::Delete), 0);
}

pub(super) async fn hung_renewal(world: World) {
    let (member, loss) = silence(&world, &[Call::Swap], Fault::Hang).await;
    assert_eq!(loss, Loss::StoreErrors);
    end(&world, &[&member]).await;
    assert_eq!(member.store.begun(Call::Delete), 0);
}

/// No renewal gets through from the first moment on; checks that the loss comes at half of the
/// lease, neither sooner nor later, with the record where it was and the killer set.
async fn silence(world: &World, calls: &[Call], fault: Fault) -> (Member, Loss) {
    let lease = world.lease();
    let member = world.member(ADDRESS).await;
    let before = world.now();
    let tenure = lead(world, &member, SEAT).await;
    member.store.set(calls, fault);
    let after = world.now();
    let silent = after.since(before) + lease / 2;
    let loss = within("it is lost", silent + world.slack(), tenure.lost()).await;
    assert!(!tenure.may_act());
    assert!(world.now() >= before.after(lease / 2), "lost too soon");
    let kill = member.killer.at().expect("armed");
    assert!(kill >= before.after(lease * 3 / 4) && kill <= after.after(lease * 3 / 4));
    assert_eq!(world.record(SEAT).await.as_ref(), Some(tenure.record()));
    (member, loss)
}

/// A seat that was lost can be taken again; the process ends nevertheless.
pub(super) async fn lost_and_acquired_again(world: World) {
    let member = world.member(ADDRESS).await;
    let tenure = lead(&world, &member, SEAT).await;
    world.remove(SEAT).await;
    within("it is lost", world.noticed(), tenure.lost()).await;
    let kill = assert_killer_after_loss(&world, &member);
    let again = lead(&world, &member, SEAT).await;
    assert_eq!(again.epoch(), Epoch(2));
    assert!(again.may_act() && !tenure.may_act());
    assert_eq!(member.killer.at(), Some(kill), "after a loss nothing puts the killer off");
    let stays = || async { member.killer.at() == Some(kill) };
    for_as_long("renewals do not either", world.lease() / 2, stays).await;
    member.elections.cleanup().await;
    assert_eq!(member.killer.at(), Some(kill));
}

/// One seat that is renewed does not put off what another one demands.
pub(super) async fn killer_of_several_seats(world: World) {
    let member = world.member(ADDRESS).await;
    let lost = lead(&world, &member, SEAT).await;
    let held = lead(&world, &member, Seat(2)).await;
    world.replace(SEAT, b"10.0.0.9", None).await;
    within("one is lost", world.noticed(), lost.lost()).await;
    let kill = assert_killer_after_loss(&world, &member);
    let stays = || async { member.killer.at() == Some(kill) && held.may_act() };
    for_as_long("the earlier moment counts", world.lease(), stays).await;
    let third: Tenure = lead(&world, &member, Seat(3)).await;
    assert_eq!((third.epoch(), member.killer.at()), (Epoch(1), Some(kill)));
    assert!(member.elections.release(Seat(2)).await);
    assert_eq!(member.killer.at(), Some(kill));
    end(&world, &[&member]).await;
}

/// The process is gone a quarter of the lease after the loss, or earlier.
fn assert_killer_after_loss(world: &World, member: &Member) -> kapell_core::seams::Moment {
    let kill = member.killer.at().expect("a loss leaves the killer armed");
    assert!(kill <= world.now().after(world.lease() / 4), "later than a quarter after the loss");
    assert!(kill.after(world.slack()) >= world.now(), "sooner than it need be");
    kill
}
