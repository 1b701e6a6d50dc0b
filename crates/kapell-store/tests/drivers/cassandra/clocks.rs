//! Clients whose machines are wrong about the time, not only what they hand to the driver.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

use kapell_core::seat::{Epoch, Seat};
use kapell_store::cassandra::Cassandra;
use kapell_store::model::{Commit, Fence, Generation, Item, Key, Op, Raise, Shard, Write};
use kapell_store::testing::{how, skip};
use kapell_store::{Shards as _, Ttl as _};

use super::Cluster;

const TEST: &str = "clients_an_hour_off";
const URL: &str = "KAPELL_TEST_WRONG_URL";
const TURN: &str = "KAPELL_TEST_WRONG_TURN";
const NOW: &str = "KAPELL_TEST_WRONG_NOW";
/// What tells programs another time.
const FAKE: &str = "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1";
const SHARD: Shard = Shard { seat: Seat::FIRST, number: 2 };
const TTL: Duration = Duration::from_secs(30);

fn seconds() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.expect("a time after 1970").as_secs()
}

/// Takes a seat that was left, renews it, commits, and leaves it. If anyone's clock were in the data, what the one with the
/// earlier clock writes would be lost behind what the other has written.
async fn reign(store: &Cassandra, turn: u64) {
    let key = Key::new(*b"seat");
    let value = turn.to_string().into_bytes();
    let insert = store.insert_if_absent(&key, Generation(turn), &value, Some(TTL)).await;
    assert_eq!(insert.expect("an insert"), Write::Done, "turn {turn}");
    for _ in 0..2 {
        let renewal = store.compare_and_swap(&key, &value, &value, Some(TTL)).await;
        assert_eq!(renewal.expect("a renewal"), Write::Done, "turn {turn}");
    }
    let entry = store.read(&key).await.expect("the entry");
    let held = entry.held.expect("what was inserted");
    let left = held.remaining.expect("a time to live");
    assert!(held.value == value && left <= TTL && left > TTL / 2, "turn {turn}: {left:?}");

    let epoch = Epoch(turn + 1);
    assert!(matches!(store.raise(Seat::FIRST, epoch).await, Ok(Raise::Done(_))), "turn {turn}");
    let last = |value: &[u8]| Op::Put(Key::new(*b"last"), value.to_vec());
    let steps = [vec![last(b"first")], vec![Op::Delete(Key::new(*b"last"))], vec![last(&value)]];
    for (seq, ops) in (0..).zip(steps) {
        let commit = store.commit(SHARD, Fence { epoch, seq }, &ops).await;
        assert_eq!(commit.expect("a commit"), Commit::Done, "turn {turn}");
    }
    let page = store.scan(SHARD, None).await.expect("a page");
    assert_eq!(page.items, [Item { key: Key::new(*b"last"), value: value.clone() }], "turn {turn}");
    let delete = store.compare_and_delete(&key, &value).await;
    assert_eq!(delete.expect("a delete"), Write::Done, "turn {turn}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_an_hour_off() {
    if let (Ok(url), Ok(turn), Ok(now)) =
        (std::env::var(URL), std::env::var(TURN), std::env::var(NOW))
    {
        let right: u64 = now.parse().expect("a time");
        assert!(seconds().abs_diff(right) > 3000, "the clock of this process is right");
        let store = Cassandra::open(&url, &how()).await.expect("the parent's store");
        return reign(&store, turn.parse().expect("a turn")).await;
    }
    let Some(cluster) = Cluster::named(TEST) else { return };
    if !Path::new(FAKE).exists() {
        return skip(TEST, "there is no faketime");
    }
    let named = cluster.store();
    let url = named.url(named.server);
    let store = Cassandra::open(&url, &how()).await.expect("a store");
    for (turn, off) in (0..).zip(["", "+1h", "-1h", "", "-1h", "+1h", ""]) {
        if off.is_empty() {
            reign(&store, turn).await;
            continue;
        }
        let (url, turn) = (url.clone(), turn.to_string());
        let ended = tokio::task::spawn_blocking(move || {
            let mut child = Command::new(std::env::current_exe().expect("this program"));
            child.args(["cassandra::clocks::clients_an_hour_off", "--exact", "--nocapture"]);
            child.env(URL, url).env(TURN, turn).env(NOW, seconds().to_string());
            // Time goes on at its pace: only what o'clock it is is wrong.
            child.env("LD_PRELOAD", FAKE).env("FAKETIME", off);
            child.env("FAKETIME_DONT_FAKE_MONOTONIC", "1").env("DONT_FAKE_MONOTONIC", "1");
            child.stdout(Stdio::null()).status().expect("a child")
        });
        assert!(ended.await.expect("a child").success(), "a client {off} off");
    }
    let entry = store.read(&Key::new(*b"seat")).await.expect("the entry");
    assert_eq!((entry.generation, entry.held), (Generation(7), None));
}
