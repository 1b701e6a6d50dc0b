use super::bench::{Bench, LONG};
use super::timed::{pass, timed};
use super::verdict::{Verdict, same};
use crate::model::{Entry, Write};

pub(super) async fn equal(bench: Bench) -> Verdict {
    for (label, ttl) in [("ttl", Some(LONG)), ("none", None)] {
        let key = bench.key(label);
        bench.insert(&key, 0, b"value", ttl).await?;
        let delete = bench.client(1).compare_and_delete(&key, b"value").await?;
        same!(delete, Write::Done, "a delete of what stands there");
        bench.shows(&key, 1, None).await?;
        let again = bench.client(2).compare_and_delete(&key, b"value").await?;
        same!(again, Write::Lost, "a second delete");
        bench.shows(&key, 1, None).await?;
    }
    Ok(())
}

pub(super) async fn unequal(bench: Bench) -> Verdict {
    let key = bench.key("a");
    bench.insert(&key, 0, b"value", Some(LONG)).await?;
    for old in [&b""[..], b"v", b"valu", b"value ", b"value\0", b"VALUE", b"other"] {
        let delete = bench.client(1).compare_and_delete(&key, old).await?;
        same!(delete, Write::Lost, "a delete of `{}`", old.escape_ascii());
        bench.shows(&key, 1, Some(b"value")).await?;
    }
    Ok(())
}

pub(super) async fn absent(bench: Bench) -> Verdict {
    let key = bench.key("a");
    for old in [&b""[..], b"value"] {
        let delete = bench.client(0).compare_and_delete(&key, old).await?;
        same!(delete, Write::Lost, "a delete of nothing");
    }
    same!(bench.client(1).read(&key).await?, Entry::default(), "what a lost delete has left");
    Ok(())
}

pub(super) async fn expired(bench: Bench) -> Verdict {
    let (key, ttl) = (bench.key("a"), bench.short());
    let mut write = bench.insert(&key, 0, b"value", Some(ttl)).await?;
    let (noticed, span) = timed(bench.noticed(&key, b"value")).await;
    noticed?;
    write.done = span.done;
    // Nobody looks after that: the delete itself must notice.
    pass(bench.surely_gone(write, ttl)).await;
    let delete = bench.client(1).compare_and_delete(&key, b"value").await?;
    same!(delete, Write::Lost, "a delete of what has expired");
    bench.shows(&key, 1, None).await
}
