use std::time::Duration;

use futures_util::future::try_join_all;
use tokio::sync::watch::channel;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout, timeout_at};

use super::bench::{Bench, LONG};
use super::chance::Dice;
use super::timed::pass;
use super::verdict::{Verdict, Wrong, ensure, same};
use crate::model::{Generation, Key, Write};
use crate::store::Store;
use crate::watch::Watch;

/// How soon a change must be told.
const SOON: Duration = Duration::from_secs(10);

pub(super) async fn tells_of_every_kind(bench: Bench) -> Verdict {
    let key = bench.key("a");
    for (watcher, writer) in [(0, 0), (1, 0), (2, 3)] {
        let (eyes, hand) = (bench.client(watcher), bench.client(writer));
        let seen = eyes.read(&key).await?.generation;
        let mut watch = eyes.watch(&key).await?;
        same!(eyes.read(&key).await?.held, None, "what stands before");
        let insert = hand.insert_if_absent(&key, seen, b"a", Some(LONG)).await?;
        same!(insert, Write::Done, "an insert");
        told(&mut watch, "an insert").await?;
        let mut watch = eyes.watch(&key).await?;
        let swap = hand.compare_and_swap(&key, b"a", b"b", Some(LONG)).await?;
        same!(swap, Write::Done, "a swap");
        told(&mut watch, "a swap").await?;
        let mut watch = eyes.watch(&key).await?;
        same!(hand.compare_and_delete(&key, b"b").await?, Write::Done, "a delete");
        told(&mut watch, "a delete").await?;
    }
    Ok(())
}

/// One watch tells of many changes, and every watcher is told.
pub(super) async fn tells_every_watcher(bench: Bench) -> Verdict {
    let (key, other) = (bench.key("a"), bench.key("ab"));
    let mut watches = Vec::new();
    for number in 0..8 {
        watches.push(bench.client(number).watch(&key).await?);
    }
    drop(bench.client(0).watch(&key).await?);
    bench.insert(&other, 0, b"x", None).await?;
    for generation in 0..3 {
        let seen = Generation(generation);
        let insert = bench.client(1).insert_if_absent(&key, seen, b"x", None).await?;
        same!(insert, Write::Done, "an insert");
        try_join_all(watches.iter_mut().map(|watch| told(watch, "an insert"))).await?;
        // Late news of the insert must not be taken for news of the delete.
        for (number, watch) in watches.iter_mut().enumerate() {
            *watch = bench.client(number).watch(&key).await?;
        }
        same!(bench.client(2).compare_and_delete(&key, b"x").await?, Write::Done, "a delete");
        try_join_all(watches.iter_mut().map(|watch| told(watch, "a delete"))).await?;
    }
    Ok(())
}

/// Whoever reads after it has the watch and then waits, misses no change: the next one is made
/// only when everyone has seen the last, so nothing else would wake a watcher that missed it.
pub(super) async fn read_after_watch_misses_nothing(bench: Bench) -> Verdict {
    const CHANGES: u64 = 100;
    const WATCHERS: usize = 4;
    let key = bench.key("a");
    bench.insert(&key, 0, b"0", None).await?;
    let (progress, mut seen) = channel([0; WATCHERS]);
    let mut watchers = JoinSet::new();
    for number in 0..WATCHERS {
        let (store, key, progress) = (bench.client(number).clone(), key.clone(), progress.clone());
        watchers.spawn(async move {
            let mut last = 0;
            while last < CHANGES {
                last = beyond(store.as_ref(), &key, last).await?;
                progress.send_modify(|seen| seen[number] = last);
            }
            Ok::<_, Wrong>(())
        });
    }
    drop(progress);
    let mut dice = Dice::new();
    for number in 0..CHANGES {
        let (old, new) = (number.to_string(), (number + 1).to_string());
        let writer = bench.client(1);
        let swap = writer.compare_and_swap(&key, old.as_bytes(), new.as_bytes(), None).await?;
        same!(swap, Write::Done, "swap number {number}");
        if seen.wait_for(|seen| seen.iter().all(|seen| *seen > number)).await.is_err() {
            break;
        }
        // At every point of what the watchers do next.
        pass(Instant::now() + Duration::from_micros(dice.roll(8_000))).await;
    }
    while let Some(watcher) = watchers.join_next().await {
        watcher.map_err(|error| Wrong::new(error.to_string()))??;
    }
    Ok(())
}

/// Waits for more than was seen before: watches, reads, and waits until it is told.
async fn beyond(store: &dyn Store, key: &Key, seen: u64) -> Result<u64, Wrong> {
    let mut watch = store.watch(key).await?;
    let deadline = Instant::now() + SOON;
    loop {
        let now = value(store.read(key).await?.held.map(|held| held.value));
        ensure!(now >= seen, "a read has gone back from {seen} to {now}");
        if now > seen {
            return Ok(now);
        }
        let Ok(told) = timeout_at(deadline, watch.changed()).await else {
            return Err(Wrong::new(format!("change {} was not told", seen + 1)));
        };
        told.map_err(|cut| Wrong::new(cut.to_string()))?;
    }
}

fn value(bytes: Option<Vec<u8>>) -> u64 {
    let text = String::from_utf8(bytes.unwrap_or_default()).unwrap_or_default();
    text.parse().unwrap_or_default()
}

async fn told(watch: &mut Watch, of: &str) -> Verdict {
    match timeout(SOON, watch.changed()).await {
        Ok(told) => told.map_err(|cut| Wrong::new(format!("{cut} at {of}"))),
        Err(_) => Err(Wrong::new(format!("{of} was not told within {SOON:?}"))),
    }
}
