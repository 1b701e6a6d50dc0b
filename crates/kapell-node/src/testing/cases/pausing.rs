use kapell_core::election::Loss;

use super::{ADDRESS, SEAT, end, lead};
use crate::elections::{Elections as _, Tenure};
use crate::testing::{Call, Fault, Member, World, eventually, for_as_long, within};

/// Two processes with one address, the first stopped for longer than its lease: the second
/// leads, and the first knows that it does not from the moment it wakes.
pub(super) async fn paused_with_the_same_address(world: World) {
    let (first, second) = (world.member(ADDRESS).await, world.member(ADDRESS).await);
    let old = lead(&world, &first, SEAT).await;
    first.stop();
    succeed(&world, &first, &old, &second).await;
}

/// The renewal was sent before the pause and arrives when another leads.
pub(super) async fn paused_with_a_renewal_under_way(world: World) {
    let (first, second) = (world.member(ADDRESS).await, world.member(ADDRESS).await);
    let old = lead(&world, &first, SEAT).await;
    first.store.set(&[Call::Swap], Fault::Late(world.failover() + world.lease() / 4));
    let renewing = || async { first.store.begun(Call::Swap) > 0 };
    eventually("it renews", world.lease() / 4 + world.slack(), renewing).await;
    first.stop();
    succeed(&world, &first, &old, &second).await;
}

async fn succeed(world: &World, first: &Member, old: &Tenure, second: &Member) {
    let seats = [SEAT];
    let acquire = second.elections.acquire(&seats, None);
    let new = within("the second leads", world.failover() + world.slack(), acquire).await;
    let new = new.expect("the seat ran out");
    assert_eq!(new.epoch(), old.epoch().next());
    assert_eq!(new.record().address, old.record().address);
    let kill = first.killer.at().expect("armed");
    assert!(kill < world.now(), "the first is dead or stopped when the second leads");

    first.go_on();
    assert!(!old.may_act(), "never both");
    let loss = within("the first finds out", world.slack(), old.lost()).await;
    assert!(matches!(loss, Loss::Deadline | Loss::StoreErrors), "{loss}");
    assert!(first.killer.at().is_some_and(|at| at <= kill), "nothing takes that back");
    for_as_long("the second goes on", world.lease() * 2, || async {
        new.may_act() && !old.may_act() && world.record(SEAT).await.as_ref() == Some(new.record())
    })
    .await;
    assert_eq!(first.store.begun(Call::Delete), 0);
    end(world, &[first, second]).await;
}

/// A pause that leaves time enough to renew is no loss.
pub(super) async fn paused_for_a_moment(world: World) {
    let member = world.member(ADDRESS).await;
    let tenure = lead(&world, &member, SEAT).await;
    member.stop();
    let stands = || async { world.record(SEAT).await.as_ref() == Some(tenure.record()) };
    for_as_long("the record stands", world.lease() * 3 / 10, stands).await;
    member.go_on();
    assert!(tenure.may_act());
    let held = || async { tenure.may_act() && world.record(SEAT).await.is_some() };
    for_as_long("it goes on", world.lease() * 2, held).await;
    end(&world, &[&member]).await;
}
