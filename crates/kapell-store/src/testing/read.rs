use std::time::Duration;

use super::bench::{Bench, LONG};
use super::timed::{TRIES, pause, timed};
use super::verdict::{Verdict, Wrong, ensure, same};
use crate::model::{Entry, Key, Write};

pub(super) async fn never_inserted(bench: Bench) -> Verdict {
    for client in bench.clients.iter() {
        same!(client.read(&bench.key("a")).await?, Entry::default(), "a key that nobody knows");
    }
    Ok(())
}

/// What is left of a time to live shrinks, never exceeds the truth, and ends.
pub(super) async fn remaining(bench: Bench) -> Verdict {
    if !bench.client(0).observes() {
        return shrinks(&bench, &|turn| turn).await;
    }
    // Each counts by itself: whoever wrote it, and somebody who did not.
    for client in [0, 1] {
        shrinks(&bench, &|_| client).await?;
    }
    Ok(())
}

async fn shrinks(bench: &Bench, looks: &(dyn Fn(usize) -> usize + Sync)) -> Verdict {
    for attempt in 0..TRIES {
        let key = bench.key(&format!("{} {attempt}", looks(0)));
        let least = least_remaining(bench, &key, looks).await?;
        if least.is_some_and(|least| least < bench.short()) {
            return Ok(());
        }
    }
    Err(Wrong::new("what is left of a time to live was never seen to shrink by half"))
}

/// Looks at an entry until it goes; says the least that was left, if anyone saw it at all.
async fn least_remaining(
    bench: &Bench,
    key: &Key,
    looks: &(dyn Fn(usize) -> usize + Sync),
) -> Result<Option<Duration>, Wrong> {
    let ttl = bench.short() * 2;
    let write = bench.insert(key, 0, b"value", Some(ttl)).await?;
    let end = bench.surely_gone(write, ttl);
    let (mut least, mut promised) = (None, write.sent);
    for turn in 0.. {
        let (entry, look) = timed(bench.client(looks(turn)).read(key)).await;
        let Some(held) = entry?.held else {
            let early = promised.saturating_duration_since(look.done);
            ensure!(early.is_zero(), "gone {early:?} before the time that a read has promised");
            ensure!(look.done >= write.sent + ttl, "gone before its time to live");
            break;
        };
        let left = held.remaining.ok_or_else(|| Wrong::new("a time to live is not told"))?;
        ensure!(
            left <= least.unwrap_or(ttl),
            "{left:?} are left of {ttl:?}, before it was {least:?}"
        );
        let most = end.saturating_duration_since(look.sent);
        ensure!(!most.is_zero(), "still there after its time to live and lag have passed");
        ensure!(left <= most, "{left:?} are said to be left where at most {most:?} are");
        (least, promised) = (Some(left), promised.max(look.sent + left));
        pause().await;
    }
    Ok(least)
}

/// What one client has written every other one reads at once.
pub(super) async fn by_every_client(bench: Bench) -> Verdict {
    let key = bench.key("a");
    bench.insert(&key, 0, b"0", Some(LONG)).await?;
    for turn in 0..24_usize {
        let (old, new) = (turn.to_string(), (turn + 1).to_string());
        let swap = bench.client(turn).compare_and_swap(
            &key,
            old.as_bytes(),
            new.as_bytes(),
            (turn % 3 > 0).then_some(LONG),
        );
        same!(swap.await?, Write::Done, "swap number {turn} by the next client");
        bench.shows(&key, 1, Some(new.as_bytes())).await?;
    }
    Ok(())
}
