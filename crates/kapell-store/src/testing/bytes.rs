use super::bench::{Bench, LONG, brief};
use super::verdict::{Verdict, ensure, same};
use crate::error::Error;
use crate::model::{ENTRY_BYTES, Entry, Generation, KEY_BYTES, Key, Write};

/// Keys that someone who thinks of text, paths, patterns or C would mix up.
pub(super) async fn keys(bench: Bench) -> Verdict {
    let every: Vec<u8> = (0..=u8::MAX).collect();
    let tails: [&[u8]; 16] = [
        &every,
        b"a",
        b"A",
        b"a\0",
        b"a\0b",
        b"a/",
        b"a/b",
        b"a/../b",
        b"a%",
        b"a_",
        b"a'--",
        b"\\x61",
        b"\xff",
        b"\xff\xff",
        b"\xc3\xa9",
        b"e\xcc\x81",
    ];
    let key = |tail: &[u8]| Key::new([bench.key("").as_bytes(), tail].concat());
    for tail in tails {
        bench.insert(&key(tail), 0, tail, Some(LONG)).await?;
    }
    for tail in tails {
        bench.shows(&key(tail), 1, Some(tail)).await?;
    }
    let all = bench.client(1).list().await?;
    for tail in tails {
        let listed = all.iter().find(|(each, _)| *each == key(tail));
        let value = listed.and_then(|(_, entry)| entry.held.as_ref());
        let value = value.map(|held| held.value.as_slice());
        ensure!(value == Some(tail), "{:?} is listed as {}", key(tail), brief(value));
    }
    for tail in tails {
        let delete = bench.client(2).compare_and_delete(&key(tail), tail).await?;
        same!(delete, Write::Done, "a delete of {:?}", key(tail));
    }
    Ok(())
}

pub(super) async fn values(bench: Bench) -> Verdict {
    let every: Vec<u8> = (0..=u8::MAX).collect();
    let backwards: Vec<u8> = (0..=u8::MAX).rev().collect();
    let values: [&[u8]; 8] =
        [b"", &every, b"\0", &backwards, b" ", b"\xff\xfe", b"a\0b", b"a\r\n'\"\\"];
    let key = bench.key("a");
    bench.insert(&key, 0, b"", Some(LONG)).await?;
    let insert = bench.client(1).insert_if_absent(&key, Generation(1), b"x", None).await?;
    same!(insert, Write::Lost, "an insert where an empty value stands");
    for pair in values.windows(2) {
        bench.shows(&key, 1, Some(pair[0])).await?;
        let swap = bench.client(2).compare_and_swap(&key, pair[0], pair[1], Some(LONG)).await?;
        same!(swap, Write::Done, "a swap to {}", brief(Some(pair[1])));
    }
    let swap = bench.client(3).compare_and_swap(&key, values[7], b"", None).await?;
    same!(swap, Write::Done, "a swap to an empty value");
    bench.shows(&key, 1, Some(b"")).await?;
    let delete = bench.client(1).compare_and_delete(&key, b"").await?;
    same!(delete, Write::Done, "a delete of an empty value");
    bench.shows(&key, 1, None).await
}

pub(super) async fn longest(bench: Bench) -> Verdict {
    let keys = [b'a', b'b'].map(|last| long_key(&bench, KEY_BYTES, last));
    let value = |seed: u8| (0..ENTRY_BYTES).map(|at| seed ^ at.to_le_bytes()[0]).collect();
    let values: [Vec<u8>; 3] = [value(0), value(1), value(2)];
    for (key, value) in keys.iter().zip(&values) {
        bench.insert(key, 0, value, Some(LONG)).await?;
    }
    for (key, value) in keys.iter().zip(&values) {
        bench.shows(key, 1, Some(value)).await?;
        let swap = bench.client(1).compare_and_swap(key, value, &values[2], None).await?;
        same!(swap, Write::Done, "a swap of the longest value");
        bench.shows(key, 1, Some(&values[2])).await?;
        let delete = bench.client(2).compare_and_delete(key, &values[2]).await?;
        same!(delete, Write::Done, "a delete of the longest value");
    }
    Ok(())
}

pub(super) async fn above_limits(bench: Bench) -> Verdict {
    let (key, large) = (bench.key("a"), vec![7; ENTRY_BYTES + 1]);
    let long = long_key(&bench, KEY_BYTES + 1, b'a');
    let store = bench.client(0);
    let insert = store.insert_if_absent(&key, Generation(0), &large, Some(LONG)).await;
    refused(&insert, "an insert of a value above the limit")?;
    same!(bench.client(1).read(&key).await?, Entry::default(), "what the refused insert left");
    bench.insert(&key, 0, b"x", None).await?;
    let swap = store.compare_and_swap(&key, b"x", &large, None).await;
    refused(&swap, "a swap to a value above the limit")?;
    bench.shows(&key, 1, Some(b"x")).await?;
    let insert = store.insert_if_absent(&long, Generation(0), b"x", None).await;
    refused(&insert, "an insert at a key above the limit")?;
    refused(&store.compare_and_swap(&long, b"x", b"y", None).await, "a swap at such a key")?;
    let all = bench.client(1).list().await?;
    ensure!(all.iter().all(|(key, _)| *key != long), "the key above the limit is listed");
    Ok(())
}

fn long_key(bench: &Bench, length: usize, last: u8) -> Key {
    let mut bytes = bench.key("").as_bytes().to_vec();
    bytes.resize(length - 1, 0xfe);
    bytes.push(last);
    Key::new(bytes)
}

fn refused(write: &Result<Write, Error>, what: &str) -> Verdict {
    ensure!(matches!(write, Err(Error::AboveLimit { .. })), "{what}: {write:?}");
    Ok(())
}
