use futures_util::future::try_join_all;

use super::bench::Bench;
use super::commit::committed;
use super::raise::{fence, raised};
use super::scan::{all, put, record};
use super::verdict::{Verdict, Wrong, ensure, same};
use crate::error::Error;
use crate::model::{Item, Key, Limits, Op, Shard};

/// A commit exactly at a limit is taken, whole.
pub(super) async fn reached(bench: Bench) -> Verdict {
    raised(&bench, 0, 1).await?;
    let at = commits(bench.client(0).limits(), 0);
    let tries = Shard::all(bench.seat).zip(at).map(|(shard, (what, ops))| {
        let bench = &bench;
        async move {
            committed(bench, 1, shard, fence(1, 0), &ops).await?;
            let mut want: Vec<Item> = ops.iter().filter_map(item).collect();
            want.sort_by(|a, b| a.key.cmp(&b.key));
            let found = all(bench.client(2).as_ref(), shard).await?;
            ensure!(
                found == want,
                "{} records of {} with {what} at its limit",
                found.len(),
                want.len()
            );
            Ok::<_, Wrong>(())
        }
    });
    try_join_all(tries).await?;
    Ok(())
}

/// A commit one above a limit is refused and changes nothing.
pub(super) async fn exceeded(bench: Bench) -> Verdict {
    raised(&bench, 0, 1).await?;
    for (shard, (what, ops)) in Shard::all(bench.seat).zip(commits(bench.client(0).limits(), 1)) {
        committed(&bench, 0, shard, fence(1, 0), &[put("before", "1")]).await?;
        let commit = bench.client(1).commit(shard, fence(1, 1), &ops).await;
        let refused = matches!(commit, Err(Error::AboveLimit { .. }));
        ensure!(refused, "{what} above its limit: {commit:?}");
        same!(bench.client(2).fence(shard).await?, fence(1, 1), "the fence after {what}");
        let found = all(bench.client(3).as_ref(), shard).await?;
        same!(found, [record("before", "1")], "the records after {what} above its limit");
        committed(&bench, 0, shard, fence(1, 1), &[put("after", "1")]).await?;
    }
    Ok(())
}

/// One commit for each limit, which it exceeds by so much.
fn commits(limits: Limits, by: usize) -> Vec<(&'static str, Vec<Op>)> {
    let number = (0..limits.commit_ops + by).map(|number| {
        let key = Key::new(number.to_be_bytes());
        Op::Put(key, vec![1])
    });
    let value = Op::Put(Key::new(*b"v"), vec![7; limits.value_bytes + by]);
    let key = Key::new(vec![0xfe; limits.key_bytes + by]);
    // Something that could be taken comes first.
    let behind = |op| vec![put("before", "2"), op];
    let mut commits = vec![
        ("the number of changes", number.collect()),
        ("the size of a commit", sized(limits, limits.commit_bytes + by)),
        ("a value", behind(value)),
        ("a key", behind(Op::Put(key.clone(), vec![1]))),
        ("a key to delete", behind(Op::Delete(key))),
    ];
    // A store whose commits cannot be filled within its other limits has no such limit.
    commits.retain(|(_, ops)| ops.len() <= limits.commit_ops + by);
    commits
}

/// Changes that have this size together.
fn sized(limits: Limits, bytes: usize) -> Vec<Op> {
    const KEY: usize = 8;
    let mut ops = Vec::new();
    let mut left = bytes;
    while left > 0 {
        let mut value = limits.value_bytes.min(left - KEY);
        let rest = left - KEY - value;
        if (1..KEY).contains(&rest) {
            value -= KEY;
        }
        ops.push(Op::Put(Key::new(ops.len().to_be_bytes()), vec![3; value]));
        left -= KEY + value;
    }
    ops
}

fn item(op: &Op) -> Option<Item> {
    match op {
        Op::Put(key, value) => Some(Item { key: key.clone(), value: value.clone() }),
        Op::Delete(_) => None,
    }
}
