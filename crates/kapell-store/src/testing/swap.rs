use std::time::Duration;

use tokio::time::Instant;

use super::bench::{Bench, LONG};
use super::timed::{Span, TRIES, pass, timed};
use super::verdict::{Verdict, Wrong, ensure, same};
use crate::model::{Entry, Key, Write};

pub(super) async fn equal(bench: Bench) -> Verdict {
    let key = bench.key("a");
    bench.insert(&key, 0, b"old", Some(LONG)).await?;
    let swap = bench.client(1).compare_and_swap(&key, b"old", b"new", Some(LONG)).await?;
    same!(swap, Write::Done, "a swap of what stands there");
    bench.shows(&key, 1, Some(b"new")).await?;
    let again = bench.client(1).compare_and_swap(&key, b"old", b"newer", Some(LONG)).await?;
    same!(again, Write::Lost, "a swap of what stood there before");
    bench.shows(&key, 1, Some(b"new")).await
}

pub(super) async fn unequal(bench: Bench) -> Verdict {
    let key = bench.key("a");
    bench.insert(&key, 0, b"value", Some(LONG)).await?;
    for old in [&b""[..], b"v", b"valu", b"value ", b"value\0", b"VALUE", b"other"] {
        let swap = bench.client(1).compare_and_swap(&key, old, b"new", None).await?;
        same!(swap, Write::Lost, "a swap of `{}`", old.escape_ascii());
        bench.shows(&key, 1, Some(b"value")).await?;
    }
    let held = bench.client(2).read(&key).await?.held;
    let remaining = held.and_then(|held| held.remaining);
    ensure!(remaining.is_some(), "a lost swap has taken the time to live away");
    Ok(())
}

pub(super) async fn absent(bench: Bench) -> Verdict {
    let key = bench.key("a");
    for old in [&b""[..], b"old"] {
        let swap = bench.client(0).compare_and_swap(&key, old, b"new", None).await?;
        same!(swap, Write::Lost, "a swap of nothing");
        same!(bench.client(1).read(&key).await?, Entry::default(), "what a lost swap has left");
    }
    Ok(())
}

pub(super) async fn deleted(bench: Bench) -> Verdict {
    let key = bench.key("a");
    bench.insert(&key, 0, b"old", None).await?;
    same!(bench.client(0).compare_and_delete(&key, b"old").await?, Write::Done, "a delete");
    for old in [&b""[..], b"old"] {
        let swap = bench.client(1).compare_and_swap(&key, old, b"new", None).await?;
        same!(swap, Write::Lost, "a swap of what was deleted");
        bench.shows(&key, 1, None).await?;
    }
    Ok(())
}

pub(super) async fn expired(bench: Bench) -> Verdict {
    let (key, ttl) = (bench.key("a"), bench.short());
    let write = bench.insert(&key, 0, b"old", Some(ttl)).await?;
    // Nobody looks before: the swap itself must notice.
    pass(bench.surely_gone(write, ttl)).await;
    let swap = bench.client(0).compare_and_swap(&key, b"old", b"old", Some(LONG)).await?;
    same!(swap, Write::Lost, "a renewal of what has expired");
    bench.shows(&key, 1, None).await
}

pub(super) async fn from_no_ttl(bench: Bench) -> Verdict {
    let (key, ttl) = (bench.key("a"), bench.short());
    bench.insert(&key, 0, b"value", None).await?;
    let write = swapped(&bench, &key, Some(ttl)).await?.ok_or_else(lost)?;
    bench.goes(&key, write, ttl).await
}

pub(super) async fn to_no_ttl(bench: Bench) -> Verdict {
    let (key, write) = begun(&bench, None).await?;
    let held = bench.client(1).read(&key).await?.held;
    same!(held.map(|held| held.remaining), Some(None), "what is left of no time to live");
    bench.stays(&key, b"value", bench.surely_gone(write, bench.short())).await
}

pub(super) async fn to_shorter(bench: Bench) -> Verdict {
    let (key, ttl) = (bench.key("a"), bench.short());
    bench.insert(&key, 0, b"value", Some(LONG)).await?;
    let write = swapped(&bench, &key, Some(ttl)).await?.ok_or_else(lost)?;
    bench.goes(&key, write, ttl).await
}

pub(super) async fn to_longer(bench: Bench) -> Verdict {
    let (key, write) = begun(&bench, Some(LONG)).await?;
    bench.stays(&key, b"value", bench.surely_gone(write, bench.short())).await?;
    let held = bench.client(2).read(&key).await?.held;
    let remaining = held.and_then(|held| held.remaining).unwrap_or_default();
    // A store may count in whole seconds.
    let least = LONG.saturating_sub(write.sent.elapsed() + Duration::from_secs(2));
    ensure!(remaining > least, "only {remaining:?} are left of the {LONG:?} from the swap");
    Ok(())
}

/// Equal values renew: for several times to live it never goes, then it goes in time.
pub(super) async fn renewals(bench: Bench) -> Verdict {
    let ttl = bench.short();
    for attempt in 0..TRIES {
        let key = bench.key(&attempt.to_string());
        let mut last = bench.insert(&key, 0, b"value", Some(ttl)).await?;
        let end = Instant::now() + ttl * 4;
        let mut late = false;
        while !late && Instant::now() < end {
            pass(last.done + ttl / 4).await;
            match swapped(&bench, &key, Some(ttl)).await? {
                Some(write) => last = write,
                None if Instant::now() < last.sent + ttl => return Err(lost()),
                None => late = true,
            }
        }
        if !late {
            return bench.goes(&key, last, ttl).await;
        }
    }
    Err(Wrong::new("this machine is too slow to renew in time"))
}

/// An entry with a short time to live that was swapped for this one while it stood.
async fn begun(bench: &Bench, ttl: Option<Duration>) -> Result<(Key, Span), Wrong> {
    for attempt in 0..TRIES {
        let key = bench.key(&attempt.to_string());
        let first = bench.insert(&key, 0, b"value", Some(bench.short())).await?;
        if let Some(write) = swapped(bench, &key, ttl).await? {
            return Ok((key, write));
        }
        ensure!(Instant::now() >= first.sent + bench.short(), "a swap lost against nobody");
    }
    Err(Wrong::new("this machine is too slow to renew in time"))
}

async fn swapped(bench: &Bench, key: &Key, ttl: Option<Duration>) -> Result<Option<Span>, Wrong> {
    let call = bench.client(0).compare_and_swap(key, b"value", b"value", ttl);
    let (write, span) = timed(call).await;
    Ok(write?.is_done().then_some(span))
}

fn lost() -> Wrong {
    Wrong::new("a renewal lost against nobody")
}
