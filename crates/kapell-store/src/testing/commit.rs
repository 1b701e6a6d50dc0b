use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use futures_util::future::try_join_all;
use kapell_core::seat::Epoch;
use tokio::task::yield_now;
use tokio::time::Instant;
use tokio::try_join;

use super::bench::Bench;
use super::raise::{fence, raised, stand};
use super::scan::{all, put, record};
use super::timed::pass;
use super::verdict::{Verdict, Wrong, ensure, same};
use crate::model::{Commit, Fence, Item, Key, Op, Raise, SHARDS, Shard};

/// Commits that must land.
pub(super) async fn committed(
    bench: &Bench,
    client: usize,
    shard: Shard,
    at: Fence,
    ops: &[Op],
) -> Verdict {
    // A store that answers at once would never let anyone else have a turn.
    yield_now().await;
    let commit = bench.client(client).commit(shard, at, ops).await?;
    same!(commit, Commit::Done, "a commit to {shard} at {at}");
    Ok(())
}

/// Every client must read exactly these records.
async fn holds(bench: &Bench, shard: Shard, want: &[Item]) -> Verdict {
    for client in bench.clients.iter() {
        same!(all(client.as_ref(), shard).await?, want, "the records of {shard}");
    }
    Ok(())
}

pub(super) async fn done(bench: Bench) -> Verdict {
    let shard = bench.shard(3);
    raised(&bench, 0, 1).await?;
    holds(&bench, shard, &[]).await?;
    committed(&bench, 0, shard, fence(1, 0), &[put("a", "1"), put("b", "1")]).await?;
    holds(&bench, shard, &[record("a", "1"), record("b", "1")]).await?;
    let ops = [Op::Delete(key("a")), put("b", "2"), put("c", ""), Op::Delete(key("never"))];
    committed(&bench, 0, shard, fence(1, 1), &ops).await?;
    holds(&bench, shard, &[record("b", "2"), record("c", "")]).await?;
    same!(bench.client(1).fence(shard).await?, fence(1, 2), "the fence");
    raised(&bench, 1, 2).await?;
    holds(&bench, shard, &[record("b", "2"), record("c", "")]).await?;
    committed(&bench, 1, shard, fence(2, 0), &[Op::Delete(key("b"))]).await?;
    holds(&bench, shard, &[record("c", "")]).await
}

pub(super) async fn stale_epoch(bench: Bench) -> Verdict {
    let shard = bench.shard(0);
    raised(&bench, 0, 4).await?;
    committed(&bench, 0, shard, fence(4, 0), &[put("a", "ours")]).await?;
    raised(&bench, 1, 5).await?;
    let stand = bench.client(2).fence(shard).await?;
    same!(stand, fence(5, 0), "the fence of the successor");
    for at in [fence(4, 1), fence(4, 0), fence(3, 0), fence(6, 0), fence(0, 0)] {
        fenced(&bench, shard, at, stand).await?;
        holds(&bench, shard, &[record("a", "ours")]).await?;
    }
    Ok(())
}

pub(super) async fn stale_seq(bench: Bench) -> Verdict {
    let shard = bench.shard(0);
    raised(&bench, 0, 4).await?;
    for seq in 0..3 {
        committed(&bench, 0, shard, fence(4, seq), &[put("a", "ours")]).await?;
    }
    for seq in [0, 1, 2, 4, u64::MAX >> 1] {
        fenced(&bench, shard, fence(4, seq), fence(4, 3)).await?;
        holds(&bench, shard, &[record("a", "ours")]).await?;
    }
    Ok(())
}

async fn fenced(bench: &Bench, shard: Shard, at: Fence, stands: Fence) -> Verdict {
    let ops = [put("a", "theirs"), put("b", "theirs")];
    for client in bench.clients.iter() {
        let commit = client.commit(shard, at, &ops).await?;
        same!(commit, Commit::Fenced(stands), "a commit at {at}");
        same!(client.fence(shard).await?, stands, "the fence");
    }
    Ok(())
}

/// Sent again it is told from its answer that the first has landed, and nothing lands twice.
pub(super) async fn sent_again(bench: Bench) -> Verdict {
    let shard = bench.shard(1);
    raised(&bench, 0, 1).await?;
    committed(&bench, 0, shard, fence(1, 0), &[put("a", "1")]).await?;
    for client in 0..3 {
        let again = bench.client(client).commit(shard, fence(1, 0), &[put("a", "1")]).await?;
        same!(again, Commit::Fenced(fence(1, 1)), "the same commit sent again");
    }
    committed(&bench, 0, shard, fence(1, 1), &[put("a", "2")]).await?;
    let late = bench.client(1).commit(shard, fence(1, 0), &[put("a", "1")]).await?;
    same!(late, Commit::Fenced(fence(1, 2)), "a very late copy of the first commit");
    holds(&bench, shard, &[record("a", "2")]).await
}

pub(super) async fn empty(bench: Bench) -> Verdict {
    let shard = bench.shard(1);
    raised(&bench, 0, 1).await?;
    committed(&bench, 0, shard, fence(1, 0), &[]).await?;
    same!(bench.client(1).fence(shard).await?, fence(1, 1), "the fence after an empty commit");
    let again = bench.client(1).commit(shard, fence(1, 0), &[]).await?;
    same!(again, Commit::Fenced(fence(1, 1)), "the same empty commit sent again");
    committed(&bench, 1, shard, fence(1, 1), &[put("a", "1")]).await?;
    holds(&bench, shard, &[record("a", "1")]).await
}

pub(super) async fn last_change_wins(bench: Bench) -> Verdict {
    let shard = bench.shard(1);
    raised(&bench, 0, 1).await?;
    let ops = [
        put("a", "1"),
        put("b", "1"),
        Op::Delete(key("a")),
        Op::Delete(key("c")),
        put("b", "2"),
        put("c", "1"),
        put("a", "3"),
        Op::Delete(key("a")),
    ];
    committed(&bench, 0, shard, fence(1, 0), &ops).await?;
    holds(&bench, shard, &[record("b", "2"), record("c", "1")]).await
}

pub(super) async fn shards_are_independent(bench: Bench) -> Verdict {
    raised(&bench, 0, 1).await?;
    let commits = Shard::all(bench.seat).map(|shard| {
        let bench = &bench;
        async move {
            for seq in 0..=u64::from(shard.number) {
                let ops = [put("same", &format!("{}.{seq}", shard.number))];
                committed(bench, shard.number.into(), shard, fence(1, seq), &ops).await?;
            }
            Ok::<_, Wrong>(())
        }
    });
    try_join_all(commits).await?;
    let fences: Vec<_> = (1..=u64::from(SHARDS)).map(|seq| fence(1, seq)).collect();
    stand(&bench, &fences).await?;
    for shard in Shard::all(bench.seat) {
        let value = format!("{0}.{0}", shard.number);
        holds(&bench, shard, &[record("same", &value)]).await?;
    }
    Ok(())
}

/// Whoever reads sees all changes of a commit or none, and never less than was acknowledged.
pub(super) async fn seen_whole(bench: Bench) -> Verdict {
    const COMMITS: u64 = 150;
    let shard = bench.shard(6);
    raised(&bench, 0, 1).await?;
    let (acknowledged, over) = (AtomicU64::new(0), AtomicBool::new(false));
    let write = async {
        for seq in 0..COMMITS {
            let pair = ["left", "middle", "right"].map(|side| match seq % 5 {
                4 => Op::Delete(key(side)),
                _ => put(side, &seq.to_string()),
            });
            committed(&bench, 0, shard, fence(1, seq), &pair).await?;
            acknowledged.store(seq + 1, Ordering::SeqCst);
        }
        over.store(true, Ordering::SeqCst);
        Ok::<_, Wrong>(())
    };
    let watch = async |client: usize| {
        let mut newest = 0;
        while !over.load(Ordering::SeqCst) {
            let least = acknowledged.load(Ordering::SeqCst).max(newest);
            let found = bench.client(client).scan(shard, None).await?.items;
            let equal = found.windows(2).all(|pair| pair[0].value == pair[1].value);
            ensure!(equal && matches!(found.len(), 0 | 3), "half of a commit: {found:?}");
            if let Some(item) = found.first() {
                let seq: u64 = String::from_utf8_lossy(&item.value).parse().unwrap_or_default();
                ensure!(seq + 2 > least, "commit {seq} was read after {least} were acknowledged");
                newest = newest.max(seq);
            }
            yield_now().await;
        }
        Ok(())
    };
    try_join!(write, watch(1), watch(2), watch(3))?;
    Ok(())
}

/// A former leader commits without pause while the next one raises the fences: what the next
/// one reads after that is final, and what was acknowledged is in it.
pub(super) async fn around_a_raise(bench: Bench) -> Verdict {
    raised(&bench, 0, 1).await?;
    let mut want = vec![Vec::new(); usize::from(SHARDS)];
    for epoch in 1..=6 {
        let former = try_join_all(Shard::all(bench.seat).map(|shard| reign(&bench, shard, epoch)));
        let successor = async {
            pass(Instant::now() + Duration::from_millis(epoch * 7)).await;
            raised(&bench, 1, epoch + 1).await?;
            let scans = Shard::all(bench.seat).map(|shard| all(bench.client(2).as_ref(), shard));
            try_join_all(scans).await
        };
        let (landed, found) = try_join!(former, successor)?;
        for (want, landed) in want.iter_mut().zip(landed) {
            if landed > 0 {
                *want = vec![record("last", &format!("{epoch}.{landed}"))];
            }
        }
        same!(found, want, "what the successor of epoch {epoch} found");
        for (shard, want) in Shard::all(bench.seat).zip(&want) {
            holds(&bench, shard, want).await?;
        }
    }
    Ok(())
}

/// Commits until it is deposed; says how many commits have landed.
async fn reign(bench: &Bench, shard: Shard, epoch: u64) -> Result<u64, Wrong> {
    let end = Instant::now() + Duration::from_secs(10);
    for seq in 0.. {
        yield_now().await;
        let ops = [put("last", &format!("{epoch}.{}", seq + 1))];
        match bench.client(3).commit(shard, fence(epoch, seq), &ops).await? {
            Commit::Done => ensure!(Instant::now() < end, "epoch {epoch} commits for ever"),
            Commit::Fenced(by) => {
                same!(by, fence(epoch + 1, 0), "who has deposed epoch {epoch}");
                return Ok(seq);
            }
        }
    }
    Ok(0)
}

/// Of commits that name the same fence exactly one lands.
pub(super) async fn racing(bench: Bench) -> Verdict {
    let shard = bench.shard(9);
    let raises = (0..4).map(|client| bench.client(client).raise(bench.seat, Epoch(1)));
    for raise in try_join_all(raises).await? {
        ensure!(matches!(raise, Raise::Done(_)), "raising side by side: {raise:?}");
    }
    for seq in 0..40 {
        let tries = (0..8_usize).map(|task| {
            let (store, ops) = (bench.client(task).clone(), [put("winner", &task.to_string())]);
            async move { store.commit(shard, fence(1, seq), &ops).await }
        });
        let answers = try_join_all(tries).await?;
        let winners: Vec<_> = (0..8_usize).filter(|task| answers[*task] == Commit::Done).collect();
        same!(winners.len(), 1, "how many commits at {seq} have landed");
        for answer in answers.iter().filter(|answer| **answer != Commit::Done) {
            same!(*answer, Commit::Fenced(fence(1, seq + 1)), "the answer to a loser");
        }
        holds(&bench, shard, &[record("winner", &winners[0].to_string())]).await?;
    }
    Ok(())
}

fn key(name: &str) -> Key {
    Key::new(name.as_bytes())
}
