use futures_util::future::try_join_all;
use kapell_core::seat::{Epoch, Seat};

use super::bench::Bench;
use super::verdict::{Verdict, Wrong, ensure, same};
use crate::model::{Commit, Fence, Raise, SHARDS, Shard};

pub(super) const fn fence(epoch: u64, seq: u64) -> Fence {
    Fence { epoch: Epoch(epoch), seq }
}

/// Raises all fences of the case's seat and says where they stand.
pub(super) async fn raised(bench: &Bench, client: usize, epoch: u64) -> Result<Vec<Fence>, Wrong> {
    match bench.client(client).raise(bench.seat, Epoch(epoch)).await? {
        Raise::Done(fences) => {
            same!(fences.len(), usize::from(SHARDS), "how many fences were raised");
            Ok(fences)
        }
        Raise::Fenced(by) => Err(Wrong::new(format!("not raised to {epoch}: fenced by {by}"))),
    }
}

/// Every client must see the same fences.
pub(super) async fn stand(bench: &Bench, want: &[Fence]) -> Verdict {
    for client in bench.clients.iter() {
        let fences = Shard::all(bench.seat).map(|shard| client.fence(shard));
        let fences = try_join_all(fences).await?;
        same!(fences.as_slice(), want, "where the fences stand");
    }
    Ok(())
}

pub(super) async fn from_zero(bench: Bench) -> Verdict {
    stand(&bench, &[Fence::default(); SHARDS as usize]).await?;
    let fences = raised(&bench, 0, 7).await?;
    same!(fences, vec![fence(7, 0); usize::from(SHARDS)], "the fences raised");
    stand(&bench, &fences).await?;
    // Above what a double can tell apart from its neighbours.
    for epoch in [8, (1 << 53) + 1] {
        let fences = raised(&bench, 1, epoch).await?;
        same!(fences, vec![fence(epoch, 0); usize::from(SHARDS)], "the fences raised");
        stand(&bench, &fences).await?;
    }
    Ok(())
}

/// Raising to the epoch that stands there changes nothing, whatever was committed under it.
pub(super) async fn again(bench: Bench) -> Verdict {
    raised(&bench, 0, 3).await?;
    let mut want = vec![fence(3, 0); usize::from(SHARDS)];
    for (number, commits) in [(0, 1), (5, 3), (15, 2)] {
        for seq in 0..commits {
            let commit = bench.client(0).commit(bench.shard(number), fence(3, seq), &[]).await?;
            same!(commit, Commit::Done, "commit {seq} of shard {number}");
        }
        want[usize::from(number)] = fence(3, commits);
    }
    for client in 0..3 {
        same!(raised(&bench, client, 3).await?, want, "the fences after raising again");
        stand(&bench, &want).await?;
    }
    let higher = raised(&bench, 1, 4).await?;
    same!(higher, vec![fence(4, 0); usize::from(SHARDS)], "the fences of the next epoch");
    Ok(())
}

pub(super) async fn lower(bench: Bench) -> Verdict {
    raised(&bench, 0, 9).await?;
    let commit = bench.client(0).commit(bench.shard(2), fence(9, 0), &[]).await?;
    same!(commit, Commit::Done, "a commit");
    let mut want = vec![fence(9, 0); usize::from(SHARDS)];
    want[2] = fence(9, 1);
    for epoch in [0, 1, 8] {
        let raise = bench.client(1).raise(bench.seat, Epoch(epoch)).await?;
        same!(raise, Raise::Fenced(Epoch(9)), "raising to {epoch}");
        stand(&bench, &want).await?;
    }
    Ok(())
}

pub(super) async fn seats_are_independent(bench: Bench) -> Verdict {
    let other = Bench { seat: Seat(bench.seat.0 + 10_000), ..bench.clone() };
    raised(&bench, 0, 5).await?;
    stand(&other, &[Fence::default(); SHARDS as usize]).await?;
    raised(&other, 1, 2).await?;
    let commit = bench.client(0).commit(other.shard(0), fence(2, 0), &[]).await?;
    same!(commit, Commit::Done, "a commit under the other seat");
    stand(&bench, &[fence(5, 0); SHARDS as usize]).await
}

/// Whatever order they come in, the highest epoch stands in the end and no lower one after it.
pub(super) async fn racing(bench: Bench) -> Verdict {
    for round in 0..5 {
        let mut epochs: Vec<u64> = (round * 8 + 1..=round * 8 + 8).collect();
        // A store that answers at once takes them in this order.
        epochs.rotate_left(usize::try_from(round).unwrap_or_default() * 3 % 8);
        let highest = Epoch(round * 8 + 8);
        let calls = epochs.iter().zip(0..);
        let calls =
            calls.map(|(epoch, client)| bench.client(client).raise(bench.seat, Epoch(*epoch)));
        let raises = try_join_all(calls).await?;
        for (raise, epoch) in raises.into_iter().zip(epochs.into_iter().map(Epoch)) {
            match raise {
                Raise::Done(fences) => {
                    let all = fences.iter().all(|fence| fence.epoch == epoch);
                    ensure!(all, "raised to {epoch}: {fences:?}");
                }
                Raise::Fenced(by) => {
                    ensure!(epoch < by && by <= highest, "{epoch} was fenced by {by}");
                }
            }
        }
        stand(&bench, &vec![fence(highest.0, 0); usize::from(SHARDS)]).await?;
    }
    Ok(())
}
