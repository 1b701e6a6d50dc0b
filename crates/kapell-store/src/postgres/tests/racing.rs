use std::sync::Arc;
use std::time::Duration;

use kapell_core::seat::{Epoch, Seat};
use tokio::task::JoinSet;

use super::{LEASE, Place, SHARD, key, raised};
use crate::error::Error;
use crate::model::{Commit, Fence, Generation, Key, Op, Raise, SHARDS, Shard, Write};
use crate::store::{Shards, Ttl};

#[tokio::test(flavor = "multi_thread")]
async fn of_racing_inserts_exactly_one_wins() {
    let Some(place) = Place::find("of_racing_inserts_exactly_one_wins").await else { return };
    let mut stores = Vec::new();
    for _ in 0..4 {
        stores.push(Arc::new(place.open().await));
    }
    for round in 0..30 {
        let seat = key(&format!("seat {}", round / 3));
        let seen = stores[0].read(&seat).await.unwrap().generation;
        assert_eq!(seen, Generation(round % 3));
        let mut racers = JoinSet::new();
        for (number, store) in stores.iter().chain(&stores).enumerate() {
            let (store, seat, value) = (Arc::clone(store), seat.clone(), number.to_string());
            racers.spawn(async move {
                let won =
                    store.insert_if_absent(&seat, seen, value.as_bytes(), LEASE).await.unwrap();
                won.is_done().then_some(value)
            });
        }
        let winners: Vec<_> = racers.join_all().await.into_iter().flatten().collect();
        assert_eq!(winners.len(), 1, "round {round}");
        let entry = stores[0].read(&seat).await.unwrap();
        assert_eq!(entry.generation, seen.next());
        assert_eq!(entry.held.unwrap().value, winners[0].as_bytes());
        let gone = stores[1].compare_and_delete(&seat, winners[0].as_bytes()).await.unwrap();
        assert_eq!(gone, Write::Done);
    }
    place.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_racing_commits_exactly_one_wins() {
    let Some(place) = Place::find("of_racing_commits_exactly_one_wins").await else { return };
    let store = Arc::new(place.open().await);
    let mut fence = raised(&store).await;
    for round in 0..30 {
        let mut racers = JoinSet::new();
        for number in 0..8_u8 {
            let store = Arc::clone(&store);
            racers.spawn(async move {
                let mine = Op::Put(key(&format!("{round} {number}")), vec![number]);
                let ops = [Op::Put(key("last"), vec![number]), Op::Delete(key("other")), mine];
                (number, store.commit(SHARD, fence, &ops).await.unwrap())
            });
        }
        let outcomes = racers.join_all().await;
        let winners: Vec<_> =
            outcomes.iter().filter(|(_, commit)| *commit == Commit::Done).collect();
        assert_eq!(winners.len(), 1, "round {round}: {outcomes:?}");
        for (_, commit) in &outcomes {
            let lost = Commit::Fenced(fence.next());
            assert!(*commit == Commit::Done || *commit == lost, "{outcomes:?}");
        }
        fence = fence.next();
        let page = store.scan(SHARD, None).await.unwrap();
        assert_eq!(page.items.len(), usize::try_from(fence.seq).unwrap() + 1);
        let last = page.items.iter().find(|item| item.key == key("last")).unwrap();
        assert_eq!(last.value, [winners[0].0]);
    }
    place.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn racing_raises_never_meet_half_way() {
    let Some(place) = Place::find("racing_raises_never_meet_half_way").await else { return };
    let store = Arc::new(place.open().await);
    let mut racers = JoinSet::new();
    for epoch in (1..=24).map(Epoch) {
        let store = Arc::clone(&store);
        racers.spawn(async move { (epoch, store.raise(Seat::FIRST, epoch).await.unwrap()) });
        let store = Arc::new(place.open().await);
        racers.spawn(async move {
            let shard = Shard { seat: Seat::FIRST, number: 7 };
            let at = Fence { epoch, seq: 0 };
            let _ = store.commit(shard, at, &[Op::Put(key("k"), vec![])]).await.unwrap();
            (epoch, Raise::Fenced(epoch.next()))
        });
    }
    for (epoch, raise) in racers.join_all().await {
        match raise {
            Raise::Done(fences) => {
                assert_eq!(fences.len(), usize::from(SHARDS));
                assert!(fences.iter().all(|fence| fence.epoch == epoch), "{fences:?}");
            }
            Raise::Fenced(higher) => assert!(higher > epoch),
        }
    }
    for shard in Shard::all(Seat::FIRST) {
        assert_eq!(store.fence(shard).await.unwrap().epoch, Epoch(24));
    }
    place.leave().await;
}

#[tokio::test]
async fn a_commit_may_come_before_the_first_raise() {
    let test = "a_commit_may_come_before_the_first_raise";
    let Some(place) = Place::find(test).await else { return };
    let store = place.open().await;
    let zero = Fence::default();
    let one = [Op::Put(key("k"), b"v".to_vec())];
    assert_eq!(store.commit(SHARD, zero.next(), &one).await.unwrap(), Commit::Fenced(zero));
    assert_eq!(store.commit(SHARD, zero, &one).await.unwrap(), Commit::Done);
    assert_eq!(store.commit(SHARD, zero, &one).await.unwrap(), Commit::Fenced(zero.next()));
    place.leave().await;
}

#[tokio::test]
async fn a_commit_at_the_limits_lands_and_is_read_in_pages() {
    let test = "a_commit_at_the_limits_lands_and_is_read_in_pages";
    let Some(place) = Place::find(test).await else { return };
    let store = place.open().await;
    let fence = raised(&store).await;
    let limits = store.limits();
    let long_key = |number: usize| {
        let mut bytes = vec![0xff; limits.key_bytes];
        bytes[..2].copy_from_slice(&u16::try_from(number).unwrap().to_be_bytes());
        Key::new(bytes)
    };
    let each = limits.commit_bytes / limits.commit_ops - limits.key_bytes;
    let many: Vec<_> =
        (0..limits.commit_ops).map(|number| Op::Put(long_key(number), vec![7; each])).collect();
    assert_eq!(many.iter().map(Op::bytes).sum::<usize>(), limits.commit_bytes);
    assert_eq!(store.commit(SHARD, fence, &many).await.unwrap(), Commit::Done);
    let large: Vec<_> = (0..limits.commit_bytes / (limits.value_bytes + limits.key_bytes))
        .map(|number| Op::Put(long_key(number), vec![8; limits.value_bytes]))
        .collect();
    assert_eq!(store.commit(SHARD, fence.next(), &large).await.unwrap(), Commit::Done);

    let (mut found, mut after, mut pages) = (Vec::new(), None, 0);
    loop {
        let page = store.scan(SHARD, after.as_ref()).await.unwrap();
        let bytes: usize =
            page.items.iter().map(|it| it.value.len() + it.key.as_bytes().len()).sum();
        assert!(bytes <= 1 << 20 && page.items.len() <= 1000);
        found.extend(page.items);
        pages += 1;
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    assert!(pages > 8);
    assert_eq!(found.len(), limits.commit_ops);
    assert!(found.is_sorted_by(|one, next| one.key < next.key));
    assert!(found.iter().enumerate().all(|(at, item)| {
        let wanted = if at < large.len() { (8, limits.value_bytes) } else { (7, each) };
        item.value.len() == wanted.1 && item.value[0] == wanted.0
    }));

    let gone: Vec<_> = found.into_iter().map(|item| Op::Delete(item.key)).collect();
    assert_eq!(store.commit(SHARD, fence.next().next(), &gone).await.unwrap(), Commit::Done);
    assert!(store.scan(SHARD, None).await.unwrap().items.is_empty());
    place.leave().await;
}

#[tokio::test]
async fn an_insert_that_waited_judges_expiry_by_the_time_it_gets_through() {
    let test = "an_insert_that_waited_judges_expiry_by_the_time_it_gets_through";
    let Some(place) = Place::find(test).await else { return };
    let store = place.open().await;
    let seat = key("seat");
    let short = Some(Duration::from_millis(150));
    let first = store.insert_if_absent(&seat, Generation(0), b"me", short).await.unwrap();
    assert_eq!(first, Write::Done);

    // Renewed by someone who has not committed yet, so that the snapshot says: still to expire.
    place.hold("UPDATE @.ttl SET expires_at = clock_timestamp() + interval '400 ms'").await;
    tokio::time::sleep(Duration::from_millis(200)).await; // tidy: allow(sleep) the server's time must pass
    let insert = store.insert_if_absent(&seat, Generation(1), b"you", LEASE);
    let commit = async {
        place.wait_for_lock_waiters(1).await;
        place.release().await;
    };
    let (insert, ()) = tokio::join!(insert, commit);
    assert_eq!(insert.unwrap(), Write::Lost, "it was renewed meanwhile");

    tokio::time::sleep(Duration::from_millis(400)).await; // tidy: allow(sleep) the server's time must pass
    let insert = store.insert_if_absent(&seat, Generation(1), b"you", LEASE).await.unwrap();
    assert_eq!(insert, Write::Done);
    place.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_being_renewed_has_not_expired_for_anyone() {
    let test = "what_is_being_renewed_has_not_expired_for_anyone";
    let Some(place) = Place::find(test).await else { return };
    let mut stores = Vec::new();
    for _ in 0..5 {
        stores.push(place.open().await);
    }
    let names = ["a read", "renewed", "swapped", "deleted"].map(key);
    for name in &names {
        let short = Some(Duration::from_millis(100));
        let write = stores[0].insert_if_absent(name, Generation(0), b"me", short).await.unwrap();
        assert_eq!(write, Write::Done);
    }
    // Renewed in time, but the commit takes longer than what was left.
    place.hold("UPDATE @.ttl SET expires_at = clock_timestamp() + interval '1 hour'").await;
    tokio::time::sleep(Duration::from_millis(150)).await; // tidy: allow(sleep) the server's time must pass
    let commit = async {
        place.wait_for_lock_waiters(5).await;
        place.release().await;
    };
    let (read, list, renewed, swapped, deleted, ()) = tokio::join!(
        stores[0].read(&names[0]),
        stores[1].list(),
        stores[2].compare_and_swap(&names[1], b"me", b"me", None),
        stores[3].compare_and_swap(&names[2], b"me", b"you", None),
        stores[4].compare_and_delete(&names[3], b"me"),
        commit,
    );
    assert_eq!(read.unwrap().held.unwrap().value, b"me");
    let list = list.unwrap();
    assert_eq!(list[0].0, names[0]);
    assert!(list[0].1.held.is_some());
    for write in [renewed, swapped, deleted] {
        assert_eq!(write.unwrap(), Write::Done);
    }
    place.leave().await;
}

#[tokio::test]
async fn numbers_that_do_not_fit_are_refused() {
    let Some(place) = Place::find("numbers_that_do_not_fit_are_refused").await else { return };
    let store = place.open().await;
    let largest = i64::MAX.unsigned_abs();
    assert!(matches!(store.raise(Seat(u32::MAX), Epoch(largest)).await, Ok(Raise::Done(_))));
    let error = store.raise(Seat(u32::MAX), Epoch(largest + 1)).await.unwrap_err();
    assert!(matches!(error, Error::AboveLimit { what: "epoch", .. }), "{error:?}");
    store.lift(&key("k"), Generation(largest)).await.unwrap();
    let error = store.lift(&key("k"), Generation(largest + 1)).await.unwrap_err();
    assert!(matches!(error, Error::AboveLimit { .. }), "{error:?}");
    let unseen = Generation(u64::MAX);
    let lost = store.insert_if_absent(&key("k"), unseen, b"", LEASE).await.unwrap();
    assert_eq!(lost, Write::Lost);
    let ever = Some(Duration::MAX);
    let write = store.insert_if_absent(&key("l"), Generation(0), b"", ever).await.unwrap();
    assert_eq!(write, Write::Done);
    place.leave().await;
}
