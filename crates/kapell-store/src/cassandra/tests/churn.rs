use std::time::{Duration, Instant};

use kapell_core::seat::{Epoch, Seat};

use super::super::Cassandra;
use super::Place;
use crate::model::{Commit, Fence, Item, Key, Op, Raise, Shard};
use crate::store::Shards as _;

/// More than the server for tests lets a read pass (a fifth of what is usual), several times over. The soak run has a
/// million.
fn tasks() -> u64 {
    let soak = std::env::var("KAPELL_SOAK_TASKS").ok().and_then(|text| text.parse().ok());
    soak.unwrap_or(70_000)
}

const SHARD: Shard = Shard { seat: Seat::FIRST, number: 1 };

fn task(number: u64) -> Key {
    // As long as names are that people give, with most of them in common.
    Key::new(format!("tbatch-of-the-night/{number:08}").into_bytes())
}

async fn commit(store: &Cassandra, seq: u64, ops: &[Op]) {
    let at = Fence { epoch: Epoch(1), seq };
    assert_eq!(store.commit(SHARD, at, ops).await.unwrap(), Commit::Done, "commit {seq}");
}

async fn all(store: &Cassandra) -> Vec<Item> {
    let (mut found, mut after) = (Vec::new(), None);
    loop {
        let page = store.scan(SHARD, after.as_ref()).await.unwrap();
        found.extend(page.items);
        after = page.next;
        if after.is_none() {
            return found;
        }
    }
}

/// Tasks come and go. What they leave behind is passed in parts, none of which is more than the server allows.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_scan_passes_what_was_deleted_in_parts() {
    let name = "a_scan_passes_what_was_deleted_in_parts";
    let Some(place) = Place::named(name) else { return };
    let store = place.open("replication=1").await.unwrap();
    assert!(matches!(store.raise(Seat::FIRST, Epoch(1)).await, Ok(Raise::Done(_))));
    let (mut seq, mut want) = (0, Vec::new());
    let numbers: Vec<u64> = (0..tasks()).collect();
    for some in numbers.chunks(1024) {
        // A few stay; a delete of what was never there costs as much as any other.
        let ops: Vec<Op> = some
            .iter()
            .map(|&number| match number % 5000 {
                77 => Op::Put(task(number), number.to_be_bytes().to_vec()),
                _ => Op::Delete(task(number)),
            })
            .collect();
        commit(&store, seq, &ops).await;
        seq += 1;
    }
    for number in (0..tasks()).filter(|number| number % 5000 == 77) {
        want.push(Item { key: task(number), value: number.to_be_bytes().to_vec() });
    }
    let fresh = place.open("").await.unwrap();
    let (found, tasks) = (all(&fresh).await, tasks());
    assert_eq!(found, want);
    let (cuts, marks) = fresh.bounds().count(SHARD);
    assert!(
        (3..tasks / 1000).contains(&(cuts as u64)) && marks > 10,
        "{cuts} cuts at {marks} marks"
    );
    // What was learned is not learned again.
    assert_eq!(all(&fresh).await, want);
    assert_eq!(fresh.bounds().count(SHARD), (cuts, marks));
}

/// A leader that takes over has a limit for each call and tries again when one is over. It must come to the end.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_deleted_need_not_be_passed_within_one_call() {
    let name = "what_was_deleted_need_not_be_passed_within_one_call";
    let Some(place) = Place::named(name) else { return };
    let store = place.open("replication=1").await.unwrap();
    assert!(matches!(store.raise(Seat::FIRST, Epoch(1)).await, Ok(Raise::Done(_))));
    let numbers: Vec<u64> = (0..210_000).collect();
    let last = Op::Put(task(u64::MAX), vec![1]);
    for (seq, some) in (0..).zip(numbers.chunks(1000)) {
        let mut ops: Vec<Op> = some.iter().map(|&number| Op::Delete(task(number))).collect();
        ops.push(last.clone());
        commit(&store, seq, &ops).await;
    }
    let mut fresh = place.open("").await.unwrap();
    fresh.timeout = Duration::from_secs(1);
    let (began, mut found, mut after, mut empty) = (Instant::now(), Vec::new(), None, 0);
    loop {
        assert!(began.elapsed() < Duration::from_secs(60), "it comes to no end");
        match fresh.scan(SHARD, after.as_ref()).await {
            Ok(page) => {
                empty += u32::from(page.items.is_empty());
                found.extend(page.items);
                assert!(page.next.is_none() || page.next > after, "it does not go on");
                after = page.next;
            }
            Err(error) => {
                assert!(error.may_pass(), "{error:?}");
                continue;
            }
        }
        if after.is_none() {
            break;
        }
    }
    assert_eq!(found, [Item { key: task(u64::MAX), value: vec![1] }]);
    assert!(empty > 0, "it was passed within one call");
}

/// Each commit looks at the fence, and a node looks for the first record beside it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commits_go_on_where_more_was_deleted_than_may_be_read() {
    let name = "commits_go_on_where_more_was_deleted_than_may_be_read";
    let Some(place) = Place::named(name) else { return };
    let store = place.open("replication=1").await.unwrap();
    assert!(matches!(store.raise(Seat::FIRST, Epoch(1)).await, Ok(Raise::Done(_))));
    let numbers: Vec<u64> = (0..30_000).collect();
    for (seq, some) in (0..).zip(numbers.chunks(1024)) {
        let ops: Vec<Op> = some.iter().map(|&number| Op::Delete(task(number))).collect();
        commit(&store, seq, &ops).await;
    }
    let next = place.open("").await.unwrap();
    let Ok(Raise::Done(fences)) = next.raise(Seat::FIRST, Epoch(2)).await else { panic!() };
    assert_eq!(fences[usize::from(SHARD.number)], Fence { epoch: Epoch(2), seq: 0 });
    assert_eq!(all(&next).await, []);
    let last = Op::Put(task(u64::MAX), vec![1]);
    let at = Fence { epoch: Epoch(2), seq: 0 };
    assert_eq!(next.commit(SHARD, at, &[last]).await.unwrap(), Commit::Done);
    assert_eq!(next.fence(SHARD).await.unwrap(), at.next());
    assert_eq!(all(&next).await, [Item { key: task(u64::MAX), value: vec![1] }]);
}
