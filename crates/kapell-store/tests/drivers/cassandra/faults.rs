//! What happens to a server here happens to a server of the test's own.

use std::sync::Arc;
use std::time::Duration;

use kapell_core::seat::{Epoch, Seat};
use kapell_store::cassandra::Cassandra;
use kapell_store::model::{Commit, Fence, Generation, Key, Op, Raise, Shard, Write};
use kapell_store::testing::how;
use kapell_store::{Error, How, Shards as _, Ttl as _};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, interval};

use super::own::Own;

const SHARD: Shard = Shard { seat: Seat::FIRST, number: 5 };
const PATIENCE: Duration = Duration::from_secs(2);
const LONGEST: Duration = Duration::from_secs(60);
/// So much is in its key that it is surely on its way when something happens.
const SIZE: usize = 20_000;

fn fence(seq: u64) -> Fence {
    Fence { epoch: Epoch(1), seq }
}

fn ops(seq: u64) -> [Op; 2] {
    let value = vec![7; SIZE];
    let name = |name: &str| Key::new(name.as_bytes());
    [Op::Put(name(&format!("{seq:06}")), value), Op::Put(name("last"), seq.to_be_bytes().to_vec())]
}

/// Commits one after the other until it has made `to`. What is not answered is sent again, the same.
async fn commit_until(
    store: &Cassandra,
    mut seq: u64,
    to: u64,
    made: &watch::Sender<u64>,
    failed: &watch::Sender<u64>,
) {
    let end = Instant::now() + LONGEST;
    let mut again = interval(Duration::from_millis(20));
    while seq < to {
        match store.commit(SHARD, fence(seq), &ops(seq)).await {
            Ok(Commit::Done) => {}
            // An earlier attempt has landed.
            Ok(Commit::Fenced(by)) => assert_eq!(by, fence(seq + 1), "someone else has committed"),
            Err(error) => {
                assert!(error.may_pass() && Instant::now() < end, "{error:?}");
                failed.send_modify(|count| *count += 1);
                again.tick().await;
                continue;
            }
        }
        seq += 1;
        made.send_replace(seq);
    }
}

async fn reached(count: &watch::Sender<u64>, wanted: u64) {
    let mut count = count.subscribe();
    let reached = tokio::time::timeout(LONGEST, count.wait_for(|count| *count >= wanted));
    reached.await.expect("it takes too long").expect("a sender");
}

async fn holds(store: &Cassandra, commits: u64) {
    assert_eq!(store.fence(SHARD).await.expect("the fence"), fence(commits));
    let (mut found, mut after) = (Vec::new(), None);
    loop {
        let page = store.scan(SHARD, after.as_ref()).await.expect("a page");
        found.extend(page.items);
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    let names: Vec<String> = found.iter().map(|item| item.key.to_string()).collect();
    let wanted = (0..commits).map(|seq| format!("{seq:06}")).chain(["last".to_owned()]);
    assert_eq!(names, wanted.collect::<Vec<_>>(), "each acknowledged commit, once");
    let last = found.last().map(|item| item.value.clone());
    assert_eq!(last, Some((commits - 1).to_be_bytes().to_vec()));
}

/// Stopped while commits are on their way, and then killed while they are: no call outlasts its limit, and everything that
/// was acknowledged is there, once.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn stopped_and_killed_mid_commit() {
    let Some(mut own) = Own::start("stopped_and_killed_mid_commit") else { return };
    let how = How { timeout: PATIENCE, ..how() };
    let store = own.store(&how).await;
    let seat = Key::new(*b"seat");
    let insert = store.insert_if_absent(&seat, Generation(0), b"us", None).await;
    assert_eq!(insert.expect("an insert"), Write::Done);
    assert!(matches!(store.raise(Seat::FIRST, Epoch(1)).await, Ok(Raise::Done(_))));

    let (made, failed) = (watch::Sender::new(0), watch::Sender::new(0));
    let mut writer = JoinSet::new();
    let (store_, made_, failed_) = (Arc::clone(&store), made.clone(), failed.clone());
    writer.spawn(async move { commit_until(&store_, 0, 90, &made_, &failed_).await });

    reached(&made, 20).await;
    own.stop();
    let began = Instant::now();
    let late = store.read(&seat).await;
    assert!(matches!(late, Err(Error::Timeout { .. })), "{late:?}");
    assert!(began.elapsed() < PATIENCE * 2, "a call took {:?}", began.elapsed());
    reached(&failed, 1).await;
    own.go_on();
    reached(&made, 50).await;

    own.kill();
    let before = *failed.borrow();
    reached(&failed, before + 1).await;
    assert!(store.read(&seat).await.is_err(), "nobody answers");
    own.start_again();
    reached(&made, 90).await;
    writer.join_all().await;

    holds(&store, 90).await;
    let other = own.store(&how).await;
    holds(&other, 90).await;
    let entry = other.read(&seat).await.expect("the entry");
    assert_eq!(
        (entry.generation, entry.held.map(|held| held.value)),
        (Generation(1), Some(b"us".to_vec()))
    );
}
