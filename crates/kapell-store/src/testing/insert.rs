use super::bench::{Bench, LONG};
use super::timed::{pass, timed};
use super::verdict::{Verdict, ensure, same};
use crate::model::{Entry, Generation, Write};

pub(super) async fn absent(bench: Bench) -> Verdict {
    let key = bench.key("a");
    same!(bench.client(1).read(&key).await?, Entry::default(), "a key that nobody knows");
    bench.insert(&key, 0, b"first", Some(LONG)).await?;
    bench.shows(&key, 1, Some(b"first")).await?;
    same!(bench.client(2).read(&bench.key("b")).await?, Entry::default(), "another key");
    Ok(())
}

/// Whatever a second insert brings, it loses and leaves no trace.
pub(super) async fn exists(bench: Bench) -> Verdict {
    let key = bench.key("a");
    bench.insert(&key, 0, b"first", Some(LONG)).await?;
    for (number, client) in bench.clients.iter().enumerate() {
        for seen in [0, 1, 2] {
            for value in [&b"first"[..], b"other", b""] {
                for ttl in [None, Some(bench.short())] {
                    let write = client.insert_if_absent(&key, Generation(seen), value, ttl).await?;
                    same!(write, Write::Lost, "client {number} inserts where something stands");
                }
            }
        }
    }
    bench.shows(&key, 1, Some(b"first")).await?;
    let held = bench.client(1).read(&key).await?.held;
    let remaining = held.and_then(|held| held.remaining);
    ensure!(
        remaining.is_some_and(|remaining| remaining > bench.short() * 2),
        "a lost insert has replaced the time to live: {remaining:?} of {LONG:?} are left"
    );
    Ok(())
}

/// Two hosts may write the same bytes. That must not make them one.
pub(super) async fn equal_values_of_two_owners(bench: Bench) -> Verdict {
    let (key, ttl, value) = (bench.key("a"), bench.short(), b"10.0.0.1");
    let (former, successor) = (bench.client(0), bench.client(1));
    let write = bench.insert(&key, 0, value, Some(ttl)).await?;
    for seen in [0, 1] {
        let (insert, look) =
            timed(successor.insert_if_absent(&key, Generation(seen), value, Some(LONG))).await;
        let lost = insert? == Write::Lost || look.done >= write.sent + ttl;
        ensure!(lost, "an insert of an equal value at generation {seen} has won");
    }
    bench.goes(&key, write, ttl).await?;
    let insert = successor.insert_if_absent(&key, Generation(1), value, Some(LONG)).await?;
    same!(insert, Write::Done, "an insert of an equal value after the first has expired");
    let stale = former.insert_if_absent(&key, Generation(1), value, Some(LONG)).await?;
    same!(stale, Write::Lost, "the former owner inserts as if nothing had happened");
    bench.shows(&key, 2, Some(value)).await?;
    let delete = successor.compare_and_delete(&key, value).await?;
    same!(delete, Write::Done, "the successor deletes");
    let stale = former.insert_if_absent(&key, Generation(1), value, Some(LONG)).await?;
    same!(stale, Write::Lost, "the former owner inserts into nothing, unaware of the successor");
    bench.shows(&key, 2, None).await
}

pub(super) async fn after_expiry(bench: Bench) -> Verdict {
    let (key, unseen, ttl) = (bench.key("seen"), bench.key("unseen"), bench.short());
    let write = bench.insert(&key, 0, b"first", Some(ttl)).await?;
    let mut quiet = bench.insert(&unseen, 0, b"first", Some(ttl)).await?;
    let (noticed, span) = timed(bench.noticed(&unseen, b"first")).await;
    noticed?;
    quiet.done = span.done;
    bench.goes(&key, write, ttl).await?;
    bench.shows(&key, 1, None).await?;
    let insert = bench.client(1).insert_if_absent(&key, Generation(1), b"second", None).await?;
    same!(insert, Write::Done, "an insert after expiry was seen");
    bench.shows(&key, 2, Some(b"second")).await?;
    // No read may be what makes an entry go.
    pass(bench.surely_gone(quiet, ttl)).await;
    let insert = bench.client(2).insert_if_absent(&unseen, Generation(1), b"second", None).await?;
    same!(insert, Write::Done, "an insert after expiry that nobody has looked at");
    bench.shows(&unseen, 2, Some(b"second")).await
}

pub(super) async fn without_ttl(bench: Bench) -> Verdict {
    let key = bench.key("a");
    let write = bench.insert(&key, 0, b"for ever", None).await?;
    let held = bench.client(1).read(&key).await?.held;
    same!(held.map(|held| held.remaining), Some(None), "what is left of no time to live");
    bench.stays(&key, b"for ever", bench.surely_gone(write, bench.short())).await
}

pub(super) async fn stale_generation(bench: Bench) -> Verdict {
    let key = bench.key("a");
    let ahead = bench.client(1).insert_if_absent(&key, Generation(1), b"x", None).await?;
    same!(ahead, Write::Lost, "an insert with a generation that never was");
    bench.shows(&key, 0, None).await?;
    bench.insert(&key, 0, b"first", None).await?;
    same!(bench.client(0).compare_and_delete(&key, b"first").await?, Write::Done, "a delete");
    for seen in [0, 2, u64::MAX >> 1] {
        let stale = bench.client(2).insert_if_absent(&key, Generation(seen), b"x", None).await?;
        same!(stale, Write::Lost, "an insert with generation {seen} where 1 stands");
        bench.shows(&key, 1, None).await?;
    }
    bench.insert(&key, 1, b"second", Some(LONG)).await?;
    bench.shows(&key, 2, Some(b"second")).await
}

pub(super) async fn generation_grows(bench: Bench) -> Verdict {
    let (key, ttl) = (bench.key("a"), bench.short());
    let mut generation = 0;
    for expires in [false, true, false, false, true, false] {
        let write = bench.insert(&key, generation, b"x", expires.then_some(ttl)).await?;
        generation += 1;
        bench.shows_generation(&key, generation).await?;
        if expires {
            bench.goes(&key, write, ttl).await?;
        } else {
            let (swap, _) = timed(bench.client(1).compare_and_swap(&key, b"x", b"y", None)).await;
            same!(swap?, Write::Done, "a swap");
            let delete = bench.client(2).compare_and_delete(&key, b"y").await?;
            same!(delete, Write::Done, "a delete");
        }
        bench.shows(&key, generation, None).await?;
    }
    Ok(())
}
