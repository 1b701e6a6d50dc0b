use super::bench::{Bench, LONG};
use super::timed::{pass, timed};
use super::verdict::{Verdict, ensure, same};
use crate::model::{Entry, Generation, Key, Write};

pub(super) async fn all_in_order(bench: Bench) -> Verdict {
    let ttl = bench.short();
    let stands: Vec<Key> = (0..9_u8).rev().map(|number| own(&bench, &[number * 31])).collect();
    for key in &stands {
        bench.insert(key, 0, key.as_bytes(), Some(LONG)).await?;
    }
    let (deleted, expired) = (own(&bench, b"deleted"), own(&bench, b"expired"));
    bench.insert(&deleted, 0, b"x", None).await?;
    same!(bench.client(0).compare_and_delete(&deleted, b"x").await?, Write::Done, "a delete");
    let write = bench.insert(&expired, 0, b"x", Some(ttl)).await?;
    pass(bench.surely_gone(write, ttl)).await;
    let mut want: Vec<Key> = stands.iter().chain([&deleted, &expired]).cloned().collect();
    want.sort();
    for client in bench.clients.iter() {
        let all = client.list().await?;
        ensure!(all.is_sorted_by(|a, b| a.0 < b.0), "the list is not in order of its keys");
        let ours = || all.iter().filter(|(key, _)| key.as_bytes().starts_with(&prefix(&bench)));
        let keys: Vec<Key> = ours().map(|(key, _)| key.clone()).collect();
        same!(keys, want, "the keys of the list");
        for (key, entry) in ours() {
            same!(entry.generation, Generation(1), "the generation listed for {key}");
            let value = entry.held.as_ref().map(|held| held.value.as_slice());
            let want = stands.contains(key).then_some(key.as_bytes());
            same!(value, want, "what is listed for {key}");
            let left = entry.held.as_ref().and_then(|held| held.remaining);
            ensure!(left.is_none_or(|left| left <= LONG), "{key} has {left:?} left");
            ensure!(left.is_some() == want.is_some(), "{key} has {left:?} left");
        }
    }
    Ok(())
}

pub(super) async fn lift_never_lowers(bench: Bench) -> Verdict {
    // Above what a double can tell apart from its neighbours.
    let high = (1 << 53) + 1;
    let key = bench.key("a");
    for (floor, want) in [(0, 0), (7, 7), (3, 7), (7, 7), (8, 8), (high, high), (1, high)] {
        bench.client(0).lift(&key, Generation(floor)).await?;
        bench.shows(&key, want, None).await?;
    }
    let stale = bench.client(1).insert_if_absent(&key, Generation(0), b"x", None).await?;
    same!(stale, Write::Lost, "an insert at the generation before it was lifted");
    bench.insert(&key, high, b"x", None).await?;
    bench.shows(&key, high + 1, Some(b"x")).await?;
    same!(bench.client(0).compare_and_delete(&key, b"x").await?, Write::Done, "a delete");
    bench.client(2).lift(&key, Generation(high)).await?;
    bench.shows(&key, high + 1, None).await?;
    let all = bench.client(3).list().await?;
    let listed = all.into_iter().find(|(each, _)| *each == key).map(|(_, entry)| entry);
    let want = Entry { generation: Generation(high + 1), held: None };
    same!(listed, Some(want), "what is listed");
    Ok(())
}

pub(super) async fn lift_keeps_what_stands(bench: Bench) -> Verdict {
    let (forever, lives, ttl) = (bench.key("forever"), bench.key("lives"), bench.short());
    bench.insert(&forever, 0, b"x", None).await?;
    let write = bench.insert(&lives, 0, b"x", Some(LONG)).await?;
    for floor in [1, 0, 5] {
        bench.client(1).lift(&forever, Generation(floor)).await?;
        bench.client(1).lift(&lives, Generation(floor)).await?;
        bench.shows(&forever, floor.max(1), Some(b"x")).await?;
        bench.shows(&lives, floor.max(1), Some(b"x")).await?;
    }
    let held = bench.client(2).read(&forever).await?.held;
    same!(held.map(|held| held.remaining), Some(None), "what is left of no time to live");
    let held = bench.client(2).read(&lives).await?.held;
    let left = held.and_then(|held| held.remaining);
    ensure!(left.is_some_and(|left| left > LONG / 2 && left <= LONG), "{left:?} of {LONG:?} left");
    bench.stays(&lives, b"x", write.done + ttl).await?;
    let (swap, write) =
        timed(bench.client(0).compare_and_swap(&lives, b"x", b"y", Some(ttl))).await;
    same!(swap?, Write::Done, "a swap after a lift");
    bench.client(1).lift(&lives, Generation(6)).await?;
    // Whether a lift may prolong what stands is left open; it may not cut it short.
    let (again, late) = timed(bench.client(1).lift(&lives, Generation(7))).await;
    again?;
    let span = super::timed::Span { sent: write.sent, done: late.done };
    bench.goes(&lives, span, ttl).await?;
    bench.shows(&lives, 7, None).await
}

fn prefix(bench: &Bench) -> Vec<u8> {
    bench.key("").as_bytes().to_vec()
}

fn own(bench: &Bench, tail: &[u8]) -> Key {
    Key::new([prefix(bench).as_slice(), tail].concat())
}
