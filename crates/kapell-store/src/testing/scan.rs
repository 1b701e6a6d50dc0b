use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::future::try_join_all;
use tokio::task::yield_now;
use tokio::try_join;

use super::bench::Bench;
use super::chance::Dice;
use super::commit::committed;
use super::raise::{fence, raised};
use super::verdict::{Verdict, Wrong, ensure, same};
use crate::model::{Item, Key, Op, SHARDS, Shard};
use crate::store::Store;

/// How many records stand while commits go on.
const RECORDS: u32 = 100_000;
const MANY_OPS: usize = 128;
/// How often every shard is read meanwhile, from beginning to end.
const SCANS: u32 = 3;

pub(super) fn put(key: &str, value: &str) -> Op {
    Op::Put(Key::new(key.as_bytes()), value.as_bytes().to_vec())
}

pub(super) fn record(key: &str, value: &str) -> Item {
    Item { key: Key::new(key.as_bytes()), value: value.as_bytes().to_vec() }
}

/// All records of a shard, page by page, each page checked in itself.
pub(super) async fn all(store: &dyn Store, shard: Shard) -> Result<Vec<Item>, Wrong> {
    let mut items: Vec<Item> = Vec::new();
    let mut after = None;
    loop {
        // A store that answers at once would leave no gap between pages for anyone else.
        yield_now().await;
        let page = store.scan(shard, after.as_ref()).await?;
        let first = items.len().saturating_sub(1);
        items.extend(page.items);
        let ordered = items[first..].is_sorted_by(|a, b| a.key < b.key);
        ensure!(ordered, "the records of {shard} do not come in order, each once");
        let Some(next) = page.next else { return Ok(items) };
        let last = items.last().map(|item| &item.key);
        ensure!(last <= Some(&next), "{shard} goes on behind {next:?}, before the last record");
        ensure!(after < Some(next.clone()), "{shard} goes on where it was: behind {next:?}");
        after = Some(next);
    }
}

pub(super) async fn nothing(bench: Bench) -> Verdict {
    let shard = bench.shard(0);
    for after in [None, Some(Key::new(*b"x"))] {
        let page = bench.client(0).scan(shard, after.as_ref()).await?;
        ensure!(
            page.items.is_empty() && page.next.is_none(),
            "a shard that nobody knows: {page:?}"
        );
    }
    Ok(())
}

/// A page begins behind any key, also one that is not there.
pub(super) async fn pages(bench: Bench) -> Verdict {
    let shard = bench.shard(0);
    raised(&bench, 0, 1).await?;
    let ops: Vec<Op> = (0..50).map(|number| put(&format!("{:03}", number * 2), "x")).collect();
    committed(&bench, 0, shard, fence(1, 0), &ops).await?;
    for number in 0..101 {
        let after = Key::new(format!("{number:03}").as_bytes());
        let page = bench.client(1).scan(shard, Some(&after)).await?;
        let first = page.items.first().map(|item| item.key.to_string());
        let next = number / 2 * 2 + 2;
        let want = (next < 100).then(|| format!("{next:03}"));
        same!(first, want, "what comes behind {number:03}");
    }
    // Large records make short pages; nothing may be lost between them.
    let limits = bench.client(0).limits();
    let large = vec![9; limits.value_bytes.min(limits.commit_bytes / 2)];
    for seq in 1..=12 {
        let key = Key::new(format!("{:03}", seq * 2 - 1).as_bytes());
        committed(&bench, 0, shard, fence(1, seq), &[Op::Put(key, large.clone())]).await?;
    }
    let items = all(bench.client(2).as_ref(), shard).await?;
    same!(items.len(), 62, "how many records there are");
    let whole = items.iter().filter(|item| item.value == large).count();
    same!(whole, 12, "how many large records came back whole");
    Ok(())
}

pub(super) async fn binary_keys(bench: Bench) -> Verdict {
    let shard = bench.shard(15);
    raised(&bench, 0, 1).await?;
    let mut keys: Vec<Vec<u8>> = (0..=u8::MAX).map(|byte| vec![byte]).collect();
    keys.extend((0..=u8::MAX).step_by(5).map(|byte| vec![b'a', byte, 0]));
    keys.push(vec![0xff; 200]);
    let put = |key: &Vec<u8>| Op::Put(Key::new(key.as_slice()), key.clone());
    for (number, some) in keys.chunks(64).enumerate() {
        let ops: Vec<Op> = some.iter().map(put).collect();
        committed(&bench, 0, shard, fence(1, number as u64), &ops).await?;
    }
    keys.sort();
    let items = all(bench.client(1).as_ref(), shard).await?;
    let found: Vec<&[u8]> = items.iter().map(|item| item.key.as_bytes()).collect();
    same!(found, keys, "the keys");
    ensure!(items.iter().all(|item| item.value == item.key.as_bytes()), "values were mixed up");
    let behind = bench.client(2).scan(shard, Some(&Key::new(*b"a\0\0"))).await?;
    let first = behind.items.first().map(|item| item.key.clone());
    same!(first, Some(Key::new(*b"a\x05\0")), "what comes behind a\\0\\0");
    Ok(())
}

pub(super) async fn while_committing(bench: Bench) -> Verdict {
    // Where a commit takes few changes, so many take minutes.
    let few = bench.client(0).limits().commit_ops < MANY_OPS;
    scanned(&bench, if few { RECORDS / 10 } else { RECORDS }).await
}

/// Records that nobody touches are read exactly once, in order, whatever happens around them.
pub(super) async fn scanned(bench: &Bench, records: u32) -> Verdict {
    raised(bench, 0, 1).await?;
    let each = records / u32::from(SHARDS);
    let loads = Shard::all(bench.seat).map(|shard| load(bench, shard, each));
    let seqs = try_join_all(loads).await?;
    let over = AtomicBool::new(false);
    let scans = async {
        for turn in 0..SCANS {
            let scans = Shard::all(bench.seat).map(|shard| checked(bench, shard, each, turn));
            try_join_all(scans).await?;
        }
        over.store(true, Ordering::SeqCst);
        Ok::<_, Wrong>(())
    };
    let writers = Shard::all(bench.seat).zip(seqs).map(|(shard, seq)| {
        let over = &over;
        async move {
            let mut dice = Dice::new();
            let mut seq = seq;
            // At least once, so that no scan was ever alone.
            loop {
                let ops = disturbance(&mut dice, each);
                committed(bench, 0, shard, fence(1, seq), &ops).await?;
                seq += 1;
                if over.load(Ordering::SeqCst) {
                    return Ok::<_, Wrong>(());
                }
            }
        }
    });
    try_join!(scans, try_join_all(writers))?;
    Ok(())
}

/// Untouched records have the numbers `0..each`; what is written meanwhile lies between them.
fn still(number: u32) -> Op {
    put(&format!("{number:08}"), &format!("record {number} of this shard"))
}

fn disturbance(dice: &mut Dice, each: u32) -> Vec<Op> {
    let between = |dice: &mut Dice| format!("{:08}+", dice.roll(each.into()));
    let mut ops = Vec::new();
    for _ in 0..4 {
        ops.push(put(&between(dice), "disturbs"));
        ops.push(Op::Delete(Key::new(between(dice).as_bytes())));
    }
    ops
}

async fn load(bench: &Bench, shard: Shard, each: u32) -> Result<u64, Wrong> {
    let limits = bench.client(0).limits();
    let (mut seq, mut ops, mut bytes) = (0, Vec::new(), 0);
    for number in 0..each {
        let op = still(number);
        if ops.len() == limits.commit_ops || bytes + op.bytes() > limits.commit_bytes {
            committed(bench, shard.number.into(), shard, fence(1, seq), &ops).await?;
            ops.clear();
            (seq, bytes) = (seq + 1, 0);
        }
        bytes += op.bytes();
        ops.push(op);
    }
    committed(bench, shard.number.into(), shard, fence(1, seq), &ops).await?;
    Ok(seq + 1)
}

async fn checked(bench: &Bench, shard: Shard, each: u32, turn: u32) -> Verdict {
    let client = usize::from(shard.number) + turn as usize;
    let mut wanted = (0..each).map(still);
    let mut found = 0;
    for item in all(bench.client(client).as_ref(), shard).await? {
        if item.key.as_bytes().ends_with(b"+") {
            same!(item.value, b"disturbs", "what disturbs");
            continue;
        }
        let is = Op::Put(item.key, item.value);
        let want = wanted.next();
        ensure!(Some(&is) == want.as_ref(), "{is:?} of {shard} came where {want:?} was due");
        found += 1;
    }
    same!(found, each, "how many untouched records of {shard} were read");
    Ok(())
}
