use std::time::Duration;

use tokio::time::Instant;
use tokio::try_join;

use super::bench::{Bench, LONG};
use super::clock::how;
use super::timed::{TRIES, pass, timed};
use super::verdict::{Verdict, Wrong, ensure, same};
use crate::model::{Generation, Write};

const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);

pub(super) async fn after_an_insert(bench: Bench) -> Verdict {
    for factor in [1, 2] {
        let (key, ttl) = (bench.key(&factor.to_string()), bench.short() * factor);
        let write = bench.insert(&key, 0, b"x", Some(ttl)).await?;
        bench.goes(&key, write, ttl).await?;
        bench.shows(&key, 1, None).await?;
    }
    Ok(())
}

pub(super) async fn after_a_swap(bench: Bench) -> Verdict {
    let (key, ttl) = (bench.key("a"), bench.short());
    bench.insert(&key, 0, b"x", Some(LONG)).await?;
    let (swap, write) = timed(bench.client(1).compare_and_swap(&key, b"x", b"y", Some(ttl))).await;
    same!(swap?, Write::Done, "a swap");
    bench.goes(&key, write, ttl).await?;
    bench.shows(&key, 1, None).await
}

/// Time counts from the insert, however long ago it was prepared.
pub(super) async fn prepared_long_ago(bench: Bench) -> Verdict {
    let ttl = bench.short();
    try_join!(
        prepared(&bench, "while it lives", ttl * 3 / 4),
        prepared(&bench, "after", ttl + bench.lag() * 2),
        prepared_once(&bench),
    )?;
    Ok(())
}

async fn prepared(bench: &Bench, label: &str, waits: Duration) -> Verdict {
    let (key, ttl) = (bench.key(label), bench.short());
    // A client of its own: no insert of another case may use up what was prepared.
    let store = bench.fresh.client(&how()).await?;
    store.prepare(ttl).await?;
    pass(Instant::now() + waits).await;
    let insert = store.insert_if_absent(&key, Generation(0), b"x", Some(ttl));
    let (insert, write) = timed(insert).await;
    same!(insert?, Write::Done, "an insert that was prepared");
    bench.goes(&key, write, ttl).await
}

/// What was prepared for one insert must not tie two entries together.
async fn prepared_once(bench: &Bench) -> Verdict {
    let (first, second, ttl) = (bench.key("first"), bench.key("second"), bench.short());
    let store = bench.fresh.client(&how()).await?;
    store.prepare(ttl).await?;
    store.prepare(ttl).await?;
    let insert = store.insert_if_absent(&first, Generation(0), b"x", Some(ttl)).await?;
    same!(insert, Write::Done, "an insert that was prepared");
    let insert = store.insert_if_absent(&second, Generation(0), b"x", Some(ttl));
    let (insert, write) = timed(insert).await;
    same!(insert?, Write::Done, "another insert that was prepared");
    let delete = bench.client(1).compare_and_delete(&first, b"x").await?;
    ensure!(delete.is_done() || Instant::now() > write.sent + ttl, "a delete lost against nobody");
    bench.goes(&second, write, ttl).await?;
    store.prepare(ttl).await?;
    let insert = store.insert_if_absent(&second, Generation(0), b"y", Some(ttl)).await?;
    same!(insert, Write::Lost, "an insert at a stale generation");
    bench.shows(&second, 1, None).await
}

/// What removes expired entries must look at when they expire now, not at when they once did.
pub(super) async fn cleaner_and_renewal(bench: Bench) -> Verdict {
    let ttl = bench.short();
    for attempt in 0..TRIES {
        let renewed = bench.key(&format!("renewed {attempt}"));
        let again = bench.key(&format!("inserted again {attempt}"));
        let first = bench.insert(&renewed, 0, b"x", Some(ttl)).await?;
        bench.insert(&again, 0, b"x", Some(ttl)).await?;
        let same_value =
            bench.client(1).compare_and_swap(&renewed, b"x", b"x", Some(ttl * 2)).await?;
        let swap = bench.client(2).compare_and_swap(&renewed, b"x", b"x", Some(LONG)).await?;
        let delete = bench.client(3).compare_and_delete(&again, b"x").await?;
        if !(same_value.is_done() && swap.is_done() && delete.is_done()) {
            ensure!(Instant::now() >= first.sent + ttl, "a renewal lost against nobody");
            continue;
        }
        let write = bench.insert(&again, 1, b"y", Some(LONG)).await?;
        let past = bench.surely_gone(write, ttl * 2);
        bench.stays(&renewed, b"x", past).await?;
        bench.stays(&again, b"y", past).await?;
        bench.fresh.sweep().await?;
        bench.shows(&renewed, 1, Some(b"x")).await?;
        bench.shows(&again, 2, Some(b"y")).await?;
        let swap = bench.client(1).compare_and_swap(&renewed, b"x", b"x", Some(LONG)).await?;
        same!(swap, Write::Done, "a renewal after every former deadline");
        return Ok(());
    }
    Err(Wrong::new("this machine is too slow to renew in time"))
}

pub(super) async fn a_year(bench: Bench) -> Verdict {
    let key = bench.key("a");
    bench.insert(&key, 0, b"x", Some(YEAR)).await?;
    let held = bench.client(1).read(&key).await?.held;
    let left = held.and_then(|held| held.remaining).unwrap_or_default();
    ensure!(left <= YEAR && left + LONG > YEAR, "{left:?} are left of a year");
    Ok(())
}
