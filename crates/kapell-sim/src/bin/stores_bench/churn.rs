//! What very many tasks that came and went leave behind for the next leader.

use std::sync::Arc;
use std::time::Instant;

use anyhow::ensure;
use kapell_core::seat::{Epoch, Seat};
use kapell_sim::bench::show::open;
use kapell_sim::bench::usage::thousands;
use kapell_sim::figure::figure;
use kapell_store::Store;
use kapell_store::model::{Commit, Fence, Key, Op, Raise, Shard};
use tokio::task::JoinSet;

use crate::Plan;
use crate::place::Place;

/// Those that are there at a time.
const AT_ONCE: u32 = 500;

/// Each shard has its part of the tasks made and deleted, a few hundred at a time; then another takes over.
pub(crate) async fn measure(place: &Place, plan: Plan) -> anyhow::Result<()> {
    let url = place.url("churn");
    let store = open(&url).await?;
    let Raise::Done(fences) = store.raise(Seat::FIRST, Epoch(1)).await? else {
        anyhow::bail!("somebody leads")
    };
    let shards = u32::try_from(fences.len())?;
    let begun = Instant::now();
    let mut tasks = JoinSet::new();
    for (shard, fence) in Shard::all(Seat::FIRST).zip(fences) {
        tasks.spawn(come_and_go(Arc::clone(&store), shard, fence, plan.tasks / shards));
    }
    while let Some(done) = tasks.join_next().await {
        done??;
    }
    let took = begun.elapsed().as_secs_f64();
    let (name, count) = (place.kind.name(), thousands(plan.tasks));
    let next = open(&url).await?;
    let begun = Instant::now();
    ensure!(matches!(next.raise(Seat::FIRST, Epoch(2)).await?, Raise::Done(_)), "it is alone");
    let mut tasks = JoinSet::new();
    for shard in Shard::all(Seat::FIRST) {
        tasks.spawn(count_all(Arc::clone(&next), shard));
    }
    let mut left = 0;
    while let Some(done) = tasks.join_next().await {
        left += done??;
    }
    ensure!(left == shards, "{left} records are left of {shards}");
    let read = begun.elapsed().as_secs_f64();
    let what = format!("{name}: read by the next leader after {count} tasks came and went");
    figure(&what, &[read], "s", Some(place.kind.take_over_goal()));
    let what = format!("{name}: {count} tasks made and deleted");
    figure(&what, &[f64::from(plan.tasks) / took], "1/s", None);
    Ok(())
}

fn task(number: u32) -> Key {
    Key::new(format!("tbatch-of-the-night/{number:08}").into_bytes())
}

async fn come_and_go(
    store: Arc<dyn Store>,
    shard: Shard,
    mut fence: Fence,
    count: u32,
) -> anyhow::Result<()> {
    let limits = store.limits();
    let each = u32::try_from(limits.commit_ops)?.min(AT_ONCE);
    let mut number = 0;
    while number < count {
        let some = number..count.min(number + each);
        let put = |number| Op::Put(task(number), vec![7; 200]);
        // The last one of each shard stays, so that there is something to be found behind all others.
        let gone = some.clone().filter(|number| number + 1 < count);
        for ops in
            [some.map(put).collect::<Vec<_>>(), gone.map(|it| Op::Delete(task(it))).collect()]
        {
            ensure!(store.commit(shard, fence, &ops).await? == Commit::Done, "it is alone");
            fence = fence.next();
        }
        number += each;
    }
    Ok(())
}

async fn count_all(store: Arc<dyn Store>, shard: Shard) -> anyhow::Result<u32> {
    let (mut count, mut after) = (0, None);
    loop {
        let page = store.scan(shard, after.as_ref()).await?;
        count += u32::try_from(page.items.len())?;
        after = page.next;
        if after.is_none() {
            return Ok(count);
        }
    }
}
