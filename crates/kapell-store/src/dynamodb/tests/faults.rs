use std::time::{Duration, Instant};

use kapell_core::seat::{Epoch, Seat};

use super::front::Fate;
use super::{LEASE, Place, SHARD, key, raised};
use crate::error::Error;
use crate::model::{Commit, Fence, Generation, Op, Raise, Shard, Write};
use crate::open::How;
use crate::store::{Shards as _, Ttl as _};
use crate::testing::{Shifted, how, shifted};

const FIRST: Generation = Generation(0);
const BROKEN: Fate = Fate::DoneBut(500, "InternalServerError");
const THROTTLED: [&str; 3] =
    ["ThrottlingException", "ProvisionedThroughputExceededException", "RequestLimitExceeded"];

fn put(name: &str, value: &[u8]) -> Op {
    Op::Put(key(name), value.to_vec())
}

#[tokio::test]
async fn what_was_throttled_is_sent_again_after_pauses_that_grow() {
    let test = "faults::what_was_throttled_is_sent_again_after_pauses_that_grow";
    let Some(place) = Place::find(test).await else { return };
    let (store, direct) = (place.through().await, place.direct().await);
    for (code, name) in THROTTLED.into_iter().zip(["a", "b", "c"]) {
        place.front.set([Fate::Refused(400, code); 4], Fate::Passes);
        let insert = store.insert_if_absent(&key(name), FIRST, b"me", LEASE).await.unwrap();
        assert_eq!(insert, Write::Done, "{code}");
        assert_eq!(place.front.asked(), ["UpdateItem"; 5], "{code}");
        let pauses = place.front.pauses();
        for (pause, least) in pauses.iter().zip([10, 20, 40, 80]) {
            assert!(*pause >= Duration::from_millis(least), "{code}: {pauses:?}");
        }
        let held = direct.read(&key(name)).await.unwrap().held.unwrap();
        assert_eq!(held.value, b"me");
    }
    let at = raised(&store).await;
    for number in 0..3 {
        let code = THROTTLED[number % THROTTLED.len()];
        let at = Fence { seq: at.seq + number as u64, ..at };
        place
            .front
            .set([Fate::Refused(400, code), Fate::Cancelled("ThrottlingError")], Fate::Passes);
        assert_eq!(store.commit(SHARD, at, &[put("r", b"1")]).await.unwrap(), Commit::Done);
        assert_eq!(place.front.asked(), ["TransactWriteItems"; 3]);
        place.front.set([Fate::Refused(400, code)], Fate::Passes);
        assert_eq!(store.scan(SHARD, None).await.unwrap().items.len(), 1);
        assert_eq!(place.front.asked(), ["Query"; 2]);
    }
}

/// A leader must hear in time that it cannot renew.
#[tokio::test]
async fn what_is_throttled_for_good_ends_within_the_limit_of_the_call() {
    let test = "faults::what_is_throttled_for_good_ends_within_the_limit_of_the_call";
    let Some(place) = Place::find(test).await else { return };
    let timeout = Duration::from_millis(700);
    let store = place.through_with(&How { timeout, ..how() }).await;
    let seat = key("seat");
    assert_eq!(store.insert_if_absent(&seat, FIRST, b"me", LEASE).await.unwrap(), Write::Done);
    let at = raised(&store).await;
    for fate in [Fate::Refused(400, THROTTLED[0]), Fate::Refused(503, "ServiceUnavailable")] {
        place.front.set([], fate);
        let began = Instant::now();
        let swap = store.compare_and_swap(&seat, b"me", b"you", LEASE).await.unwrap_err();
        assert!(began.elapsed() <= timeout, "{:?}", began.elapsed());
        assert!(matches!(swap, Error::Failed { .. }) && swap.may_pass(), "{swap:?}");
        let asked = place.front.asked().len();
        assert!((3..=8).contains(&asked), "{asked} requests within {timeout:?}");
        let began = Instant::now();
        let commit = store.commit(SHARD, at, &[put("r", b"1")]).await.unwrap_err();
        assert!(began.elapsed() <= timeout && commit.may_pass(), "{commit:?}");
    }
    place.front.set([], Fate::Passes);
    assert_eq!(store.read(&seat).await.unwrap().held.unwrap().value, b"me");
    assert_eq!(store.compare_and_swap(&seat, b"me", b"me", LEASE).await.unwrap(), Write::Done);
    assert_eq!(store.commit(SHARD, at, &[put("r", b"1")]).await.unwrap(), Commit::Done);
}

/// To take one's own write for somebody else's is how leaders are lost.
#[tokio::test]
async fn a_write_whose_answer_was_a_failure_is_known_again() {
    let test = "faults::a_write_whose_answer_was_a_failure_is_known_again";
    let Some(place) = Place::find(test).await else { return };
    let store = place.through().await;
    let seat = key("seat");
    let broken = || place.front.set([BROKEN], Fate::Passes);
    broken();
    assert_eq!(store.insert_if_absent(&seat, FIRST, b"a", LEASE).await.unwrap(), Write::Done);
    assert_eq!(place.front.asked(), ["UpdateItem"; 2]);
    broken();
    assert_eq!(store.compare_and_swap(&seat, b"a", b"a", LEASE).await.unwrap(), Write::Done);
    broken();
    assert_eq!(store.compare_and_swap(&seat, b"a", b"b", LEASE).await.unwrap(), Write::Done);
    broken();
    assert_eq!(store.compare_and_delete(&seat, b"b").await.unwrap(), Write::Done);
    assert_eq!(place.front.asked(), ["UpdateItem"; 2]);
    broken();
    store.lift(&seat, Generation(7)).await.unwrap();
    let entry = place.direct().await.read(&seat).await.unwrap();
    assert_eq!((entry.generation, entry.held), (Generation(7), None));
    place.front.set([BROKEN; 16], Fate::Passes);
    let mut at = raised(&store).await;
    for number in 0..3_u8 {
        broken();
        let commit = store.commit(SHARD, at, &[put("r", &[number])]).await.unwrap();
        assert_eq!(commit, Commit::Done, "carried out once, and known by its token");
        assert_eq!(place.front.asked(), ["TransactWriteItems"; 2]);
        at = at.next();
    }
    assert_eq!(store.fence(SHARD).await.unwrap(), at);
    assert_eq!(store.scan(SHARD, None).await.unwrap().items[0].value, [2]);
}

#[tokio::test]
async fn if_somebody_else_wrote_after_a_failure_nobody_knows() {
    let test = "faults::if_somebody_else_wrote_after_a_failure_nobody_knows";
    let Some(place) = Place::find(test).await else { return };
    let (store, direct) = (place.through().await, place.direct().await);
    let seat = key("seat");
    assert_eq!(store.insert_if_absent(&seat, FIRST, b"a", LEASE).await.unwrap(), Write::Done);
    place.front.set([BROKEN, Fate::Held], Fate::Passes);
    let meanwhile = async {
        place.front.held(1).await;
        let theirs = direct.compare_and_swap(&seat, b"b", b"c", LEASE).await.unwrap();
        assert_eq!(theirs, Write::Done, "the first attempt had landed");
        place.front.let_go();
    };
    let (swap, ()) = tokio::join!(store.compare_and_swap(&seat, b"a", b"b", LEASE), meanwhile);
    let unknown = swap.unwrap_err();
    assert!(matches!(unknown, Error::Failed { .. }), "{unknown:?}");
    // Without a failure before it, the same is a loss.
    let lost = store.compare_and_swap(&seat, b"a", b"b", LEASE).await.unwrap();
    assert_eq!(lost, Write::Lost);
    // Of a commit the token tells that it landed, whoever leads now.
    let at = raised(&store).await;
    place.front.set([BROKEN, Fate::Held], Fate::Passes);
    let meanwhile = async {
        place.front.held(2).await;
        let raise = direct.raise(SHARD.seat, Epoch(2)).await.unwrap();
        assert!(matches!(raise, Raise::Done(_)), "{raise:?}");
        place.front.let_go();
    };
    let ops = [put("r", b"1")];
    let (commit, ()) = tokio::join!(store.commit(SHARD, at, &ops), meanwhile);
    assert_eq!(commit.unwrap(), Commit::Done);
    let again = store.commit(SHARD, at, &ops).await.unwrap();
    assert_eq!(again, Commit::Fenced(Fence { epoch: Epoch(2), seq: 0 }));
    assert_eq!(direct.scan(SHARD, None).await.unwrap().items.len(), 1);
}

#[tokio::test]
async fn a_conflict_is_neither_a_loss_nor_unknown() {
    let test = "faults::a_conflict_is_neither_a_loss_nor_unknown";
    let Some(place) = Place::find(test).await else { return };
    let store = place.through().await;
    let conflict = Fate::Refused(400, "TransactionConflictException");
    place.front.set([conflict; 20], Fate::Passes);
    let at = raised(&store).await;
    let seat = key("seat");
    place.front.set([conflict; 2], Fate::Passes);
    assert_eq!(store.insert_if_absent(&seat, FIRST, b"a", LEASE).await.unwrap(), Write::Done);
    assert_eq!(place.front.asked(), ["UpdateItem"; 3]);
    let fates = [
        Fate::Cancelled("TransactionConflict"),
        Fate::Refused(400, "TransactionInProgressException"),
        Fate::Cancelled("TransactionConflict"),
    ];
    place.front.set(fates, Fate::Passes);
    assert_eq!(store.commit(SHARD, at, &[put("r", b"1")]).await.unwrap(), Commit::Done);
    assert_eq!(place.front.asked(), ["TransactWriteItems"; 4]);
    // A loss is one at once.
    place.front.set([], Fate::Passes);
    let lost = store.commit(SHARD, at, &[put("r", b"2")]).await.unwrap();
    assert_eq!(lost, Commit::Fenced(at.next()));
    // That a commit that is there is in place is asked in a transaction, which waits for others.
    assert_eq!(place.front.asked(), ["TransactWriteItems", "TransactGetItems"]);
    place.front.set([Fate::Passes, Fate::Cancelled("TransactionConflict")], Fate::Passes);
    let lost = store.commit(SHARD, at, &[put("r", b"2")]).await.unwrap();
    assert_eq!(lost, Commit::Fenced(at.next()));
    let asked = ["TransactWriteItems", "TransactGetItems", "TransactGetItems"];
    assert_eq!(place.front.asked(), asked);
}

/// A transaction that is decided may not be in place item by item; one that reads the same items is refused until it is.
#[tokio::test]
async fn who_takes_over_asks_whether_the_last_commit_is_in_place() {
    let test = "faults::who_takes_over_asks_whether_the_last_commit_is_in_place";
    let Some(place) = Place::find(test).await else { return };
    let store = place.through().await;
    let at = raised(&store).await;
    for (seq, ops) in
        [vec![put("a", b"1")], vec![put("b", b"1"), Op::Delete(key("a"))]].iter().enumerate()
    {
        let at = Fence { seq: seq as u64, ..at };
        assert_eq!(store.commit(SHARD, at, ops).await.unwrap(), Commit::Done);
        place.front.set([], Fate::Passes);
        let raise = store.raise(SHARD.seat, at.epoch).await.unwrap();
        assert!(matches!(raise, Raise::Done(_)), "{raise:?}");
        let asked = place.front.asked();
        let count = |what: &str| asked.iter().filter(|it| *it == what).count();
        assert_eq!((count("UpdateItem"), count("TransactGetItems")), (16, 1), "{asked:?}");
    }
}

/// A backup of a store that is led compares fences: what it reads in between is whole only if the commit is.
#[tokio::test]
async fn who_asks_where_a_fence_stands_waits_until_the_commit_is_in_place() {
    let test = "faults::who_asks_where_a_fence_stands_waits_until_the_commit_is_in_place";
    let Some(place) = Place::find(test).await else { return };
    let store = place.through().await;
    let at = raised(&store).await;
    place.front.set([], Fate::Passes);
    assert_eq!(store.fence(SHARD).await.unwrap(), at);
    assert_eq!(place.front.asked(), ["TransactGetItems"], "no commit, no keys");
    let ops = [put("a", b"1"), put("b", b"1")];
    assert_eq!(store.commit(SHARD, at, &ops).await.unwrap(), Commit::Done);
    // The commit's transaction is still on the fence, then on one of its records.
    let conflict = Fate::Cancelled("TransactionConflict");
    place.front.set([conflict, Fate::Passes, conflict], Fate::Passes);
    assert_eq!(store.fence(SHARD).await.unwrap(), at.next());
    assert_eq!(place.front.asked(), ["TransactGetItems"; 4]);
    let unknown = Shard { seat: Seat(77), ..SHARD };
    assert_eq!(store.fence(unknown).await.unwrap(), Fence::default());
}

/// A page ends where the service says so, not where it found nothing.
#[tokio::test]
async fn an_empty_page_with_more_behind_it_is_not_the_end() {
    let test = "faults::an_empty_page_with_more_behind_it_is_not_the_end";
    let Some(place) = Place::find(test).await else { return };
    let store = place.through().await;
    let at = raised(&store).await;
    let ops = [put("a", b"1"), put("b", b"2")];
    assert_eq!(store.commit(SHARD, at, &ops).await.unwrap(), Commit::Done);
    let empty = r#"{"Count":0,"Items":[],"LastEvaluatedKey":{"pk":{"S":"any"},"sk":{"B":"YQ=="}},"ScannedCount":9}"#;
    place.front.set([Fate::Says(empty)], Fate::Passes);
    let page = store.scan(SHARD, None).await.unwrap();
    assert_eq!((page.items.len(), &page.next), (0, &Some(key("a"))));
    let page = store.scan(SHARD, page.next.as_ref()).await.unwrap();
    assert_eq!((page.items[0].key.clone(), page.items.len(), page.next), (key("b"), 1, None));
}

/// The next ones may be on their way: a host that waits for them is no reason to end it.
#[tokio::test]
async fn credentials_that_are_over_may_pass() {
    let test = "faults::credentials_that_are_over_may_pass";
    let Some(place) = Place::find(test).await else { return };
    let store = place.through().await;
    for code in ["ExpiredTokenException", "ExpiredToken"] {
        place.front.set([Fate::Refused(400, code)], Fate::Passes);
        let over = store.read(&key("a")).await.unwrap_err();
        assert!(over.may_pass(), "{over:?}");
        assert_eq!(place.front.asked(), ["GetItem"]);
        assert_eq!(store.read(&key("a")).await.unwrap().generation, FIRST);
    }
}

#[tokio::test]
async fn a_connection_that_is_cut_leaves_it_unknown_and_nothing_is_sent_twice() {
    let test = "faults::a_connection_that_is_cut_leaves_it_unknown_and_nothing_is_sent_twice";
    let Some(place) = Place::find(test).await else { return };
    let store = place.through().await;
    let seat = key("seat");
    assert_eq!(store.insert_if_absent(&seat, FIRST, b"a", LEASE).await.unwrap(), Write::Done);
    place.front.set([], Fate::Cut);
    let cut = store.compare_and_swap(&seat, b"a", b"b", LEASE).await.unwrap_err();
    assert!(matches!(cut, Error::Unreachable { .. }) && cut.may_pass(), "{cut:?}");
    let cut = store.read(&seat).await.unwrap_err();
    assert!(matches!(cut, Error::Unreachable { .. }), "{cut:?}");
    place.front.set([], Fate::Passes);
    assert_eq!(store.compare_and_swap(&seat, b"a", b"b", LEASE).await.unwrap(), Write::Done);
}

/// The service refuses what was signed at another time than its own; it says its time, and that is what is signed with.
#[tokio::test]
async fn a_clock_that_is_an_hour_off_is_corrected() {
    let test = "faults::a_clock_that_is_an_hour_off_is_corrected";
    let Some(place) = Place::find(test).await else { return };
    drop(place.direct().await);
    for (wall, name) in [(3600, "ahead"), (-3600, "behind"), (0, "right")] {
        place.front.set([], Fate::ByTime);
        let store = place.through_with(&shifted(Shifted { boot: -wall, wall })).await;
        let asked = place.front.asked();
        let refused = usize::from(wall != 0);
        let described = asked.iter().filter(|what| *what == "DescribeTable").count();
        assert_eq!(described, 1 + refused, "{name}: {asked:?}");
        place.front.set([], Fate::ByTime);
        let (ttl, key) = (Some(Duration::from_millis(600)), key(name));
        assert_eq!(store.insert_if_absent(&key, FIRST, b"x", ttl).await.unwrap(), Write::Done);
        assert_eq!(store.compare_and_swap(&key, b"x", b"x", ttl).await.unwrap(), Write::Done);
        assert_eq!(place.front.asked().len(), 2, "the clock is set for all that follows");
        let written = Instant::now();
        while store.read(&key).await.unwrap().held.is_some() {
            assert!(written.elapsed() < Duration::from_secs(10), "{name}: it never runs out");
        }
        assert!(written.elapsed() >= Duration::from_millis(590), "{name}: it ran out early");
    }
}

/// What only looks like a wrong clock is not tried for ever.
#[tokio::test]
async fn a_wrong_key_is_refused_after_two_attempts() {
    let test = "faults::a_wrong_key_is_refused_after_two_attempts";
    let Some(place) = Place::find(test).await else { return };
    let store = place.through().await;
    place.front.set([], Fate::Refused(400, "InvalidSignatureException"));
    let denied = store.read(&key("a")).await.unwrap_err();
    assert!(matches!(denied, Error::Denied { .. }) && !denied.may_pass(), "{denied:?}");
    assert_eq!(place.front.asked(), ["GetItem"; 2]);
    place.front.set([], Fate::Refused(400, "AccessDeniedException"));
    let denied = store.read(&key("a")).await.unwrap_err();
    assert!(matches!(denied, Error::Denied { .. }), "{denied:?}");
    assert_eq!(place.front.asked(), ["GetItem"]);
}
