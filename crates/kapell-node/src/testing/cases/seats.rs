use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use kapell_core::seat::{Epoch, Seat};
use tokio::task::JoinSet;

use super::{ADDRESS, OTHER_ADDRESS, end, is_waiting, lead};
use crate::elections::{Elections as _, Refusal, Tenure};
use crate::testing::{Call, Fault, World, for_as_long, within};

const SEATS: [Seat; 3] = [Seat(1), Seat(2), Seat(3)];

async fn taken(world: &World) -> Vec<Seat> {
    let mut taken = Vec::new();
    for seat in SEATS {
        taken.extend(world.value(seat).await.map(|_| seat));
    }
    taken
}

/// As many lead as there are seats, and not one more.
pub(super) async fn any_seat(world: World) {
    let mut members = Vec::new();
    for _ in 0..SEATS.len() {
        members.push(world.member(ADDRESS).await);
    }
    let window = Some(world.lease());
    let (a, b, c) = tokio::join!(
        members[0].elections.acquire(&SEATS, window),
        members[1].elections.acquire(&SEATS, window),
        members[2].elections.acquire(&SEATS, window),
    );
    let tenures = [a, b, c].map(|tenure| tenure.expect("a seat for everyone"));
    let held: BTreeSet<Seat> = tenures.iter().map(Tenure::seat).collect();
    assert_eq!(held, BTreeSet::from(SEATS));
    for tenure in &tenures {
        assert_eq!(world.record(tenure.seat()).await.as_ref(), Some(tenure.record()));
        assert_eq!(tenure.epoch(), Epoch(1), "epochs are per seat");
    }
    let late = world.member(OTHER_ADDRESS).await;
    let window = world.lease() / 2;
    let refusal = late.elections.acquire(&SEATS, Some(window)).await;
    assert_eq!(refusal.expect_err("all taken"), Refusal::NotAcquired { window, store_error: None });
    end(&world, &[&members[0], &members[1], &members[2], &late]).await;
    assert_eq!(taken(&world).await, []);
}

pub(super) async fn a_given_seat(world: World) {
    let (first, second) = (world.member(ADDRESS).await, world.member(OTHER_ADDRESS).await);
    assert_eq!(lead(&world, &first, Seat(3)).await.seat(), Seat(3));
    assert_eq!(taken(&world).await, [Seat(3)]);
    assert_eq!(lead(&world, &second, Seat(2)).await.seat(), Seat(2));
    assert_eq!(lead(&world, &first, Seat(1)).await.seat(), Seat(1), "one may hold several");
    assert!(first.elections.release(Seat(3)).await);
    assert_eq!(taken(&world).await, [Seat(1), Seat(2)]);
    end(&world, &[&first, &second]).await;
    assert_eq!(taken(&world).await, []);
}

/// Who waits for any seat gets the one that becomes free, whichever it is.
pub(super) async fn one_of_all_is_released(world: World) {
    let (first, second) = (world.member(ADDRESS).await, world.member(OTHER_ADDRESS).await);
    for seat in SEATS {
        lead(&world, &first, seat).await;
    }
    let acquire = second.elections.acquire(&SEATS, None);
    let release = async {
        for seat in SEATS {
            is_waiting(&world, &second, seat).await;
        }
        let released = world.now();
        assert!(first.elections.release(Seat(2)).await);
        released
    };
    let (won, released) = tokio::join!(acquire, release);
    let won = won.expect("one is free");
    assert_eq!((won.seat(), won.epoch()), (Seat(2), Epoch(2)));
    let took = world.now().since(released);
    assert!(took <= world.slack(), "{took:?}");
    assert_eq!(second.store.begun(Call::Insert), 1, "nothing else was tried for");
    end(&world, &[&first, &second]).await;
}

/// Whatever becomes of the insert, one who wants any seat has one.
pub(super) async fn never_two_seats(world: World) {
    let late = Fault::Late(world.lease() / 3);
    for fault in [Fault::LoseAnswer, Fault::Fail, late] {
        let member = world.member(ADDRESS).await;
        member.store.next(Call::Insert, 1, fault);
        let won = member.elections.acquire(&SEATS, Some(world.lease() * 2)).await;
        let seat = won.expect("all are free").seat();
        let only = || async { taken(&world).await == [seat] };
        for_as_long("it holds one", world.lease() / 2, only).await;
        end(&world, &[&member]).await;
    }
}

/// Many want the only seat: they have it one after the other, never two at once, and no two
/// with the same epoch.
pub(super) async fn race_for_one_seat(world: World) {
    const MANY: u64 = 8;
    let inside = Arc::new(AtomicUsize::new(0));
    let mut racing = JoinSet::new();
    for _ in 0..MANY {
        let member = world.member(ADDRESS).await;
        let inside = Arc::clone(&inside);
        let (seats, time) = ([Seat(1)], world.slack() / 4);
        racing.spawn(async move {
            let tenure = member.elections.acquire(&seats, None).await.expect("in its turn");
            assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "two at once");
            for_as_long("it leads", time, || async { tenure.may_act() }).await;
            assert_eq!(inside.fetch_sub(1, Ordering::SeqCst), 1, "two at once");
            assert!(member.elections.release(tenure.seat()).await);
            member.elections.cleanup().await;
            tenure.epoch()
        });
    }
    let epochs = within("all had their turn", world.lease() * 8, racing.join_all()).await;
    let epochs: BTreeSet<Epoch> = epochs.into_iter().collect();
    assert_eq!(epochs, (1..=MANY).map(Epoch).collect());
}
