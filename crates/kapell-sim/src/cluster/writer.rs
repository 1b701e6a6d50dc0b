use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use kapell_node::conductor::{Failure, Running, Service, Stage};
use kapell_store::Error;
use kapell_store::model::{Commit, Fence, Key, Op, Page, Shard};
use tokio_util::sync::CancellationToken;

use super::desk::{Desk, Seen, Staged};
use crate::parts::chance::Chance;

/// How many of a seat's shards are written to.
pub(super) const WRITTEN: u16 = 3;

/// Where the counter of a shard is kept.
pub(super) fn counter_key() -> Key {
    Key::new(*b"counter")
}

pub(super) fn counter_of(page: &Page) -> u64 {
    let item = page.items.iter().find(|item| item.key == counter_key());
    item.and_then(|item| item.value.as_slice().try_into().ok()).map_or(0, u64::from_be_bytes)
}

/// A service that counts its own commits in the store, one shard after the other.
#[derive(Debug)]
pub(super) struct Writer {
    pub(super) desk: Arc<Desk>,
    pub(super) chance: Mutex<Chance>,
    pub(super) lease: Duration,
    /// Faults have stopped, its own ones too.
    pub(super) calm: Arc<AtomicBool>,
}

/// How it takes being told to stop.
#[derive(Debug, Clone, Copy)]
enum Manner {
    /// Drops what is under way.
    Prompt,
    /// Waits for what is under way.
    Finishing,
    /// Works on for a while as if nothing had been said.
    Stubborn(Duration),
}

struct Run {
    desk: Arc<Desk>,
    chance: Chance,
    lease: Duration,
    calm: Arc<AtomicBool>,
    stage: Stage,
    counters: Vec<(Shard, Fence, u64)>,
    _staged: Staged,
}

#[async_trait]
impl Service for Writer {
    fn name(&self) -> &'static str {
        "writer"
    }

    async fn start(&self, stage: Stage) -> Result<Running, Failure> {
        let mut chance = self.chance.lock().unwrap_or_else(PoisonError::into_inner).fork();
        let staged = self.desk.stage(stage.tenure.seat(), stage.tenure.epoch());
        let mut counters = Vec::new();
        for shard in Shard::all(stage.tenure.seat()).take(usize::from(WRITTEN)) {
            let fence = stage.fences[usize::from(shard.number)];
            let count = loop {
                match stage.tenure.store().scan(shard, None).await {
                    Ok(page) => break counter_of(&page),
                    Err(error) if !stage.tenure.may_act() => return Err(error.to_string().into()),
                    Err(_) => tokio::time::sleep(self.lease / 40).await,
                }
            };
            counters.push((shard, fence, count));
        }
        if chance.permille(20) && !self.calm.load(Ordering::Relaxed) {
            return Err("it could not start".to_owned().into());
        }
        let manner = match chance.below(10) {
            0..=4 => Manner::Prompt,
            5..=7 => Manner::Finishing,
            _ => Manner::Stubborn(chance.between(Duration::ZERO, self.lease * 3 / 8)),
        };
        let stop = stage.stop.clone();
        let (desk, lease) = (Arc::clone(&self.desk), self.lease);
        let calm = Arc::clone(&self.calm);
        let mut run =
            Run { desk, chance, lease, calm: Arc::clone(&calm), stage, counters, _staged: staged };
        Ok(Running::new(async move {
            let told = async {
                stop.cancelled().await;
                match manner {
                    Manner::Prompt => {}
                    // Its end is looked for between two commits.
                    Manner::Finishing => std::future::pending().await,
                    Manner::Stubborn(_) if calm.load(Ordering::Relaxed) => {}
                    Manner::Stubborn(by) => tokio::time::sleep(by).await,
                }
            };
            let until = matches!(manner, Manner::Finishing).then(|| stop.clone());
            tokio::select! {
                biased;
                () = told => Ok(()),
                wrote = run.write(until) => wrote,
            }
        }))
    }
}

impl Run {
    async fn write(&mut self, until: Option<CancellationToken>) -> Result<(), String> {
        for turn in (0..self.counters.len()).cycle() {
            tokio::time::sleep(self.chance.between(self.lease / 200, self.lease / 20)).await;
            if until.as_ref().is_some_and(CancellationToken::is_cancelled) {
                return Ok(());
            }
            if self.chance.permille(1) && !self.calm.load(Ordering::Relaxed) {
                return Err("it failed by itself".to_owned());
            }
            let (shard, at, count) = self.counters[turn];
            if self.commit(shard, at, count + 1).await? {
                self.desk.see(Seen::Acknowledged { shard, at });
                self.counters[turn] = (shard, at.next(), count + 1);
            }
        }
        Ok(())
    }

    /// Whether it has landed. If not, nobody knows, and there is no time left to find out.
    async fn commit(&self, shard: Shard, at: Fence, count: u64) -> Result<bool, String> {
        let ops = [Op::Put(counter_key(), count.to_be_bytes().to_vec())];
        let mut tries = 0;
        while self.stage.tenure.may_act() {
            tries += 1;
            let answer: Result<Commit, Error> =
                self.stage.tenure.store().commit(shard, at, &ops).await;
            match answer {
                Ok(Commit::Done) => return Ok(true),
                Ok(Commit::Fenced(fence)) if fence == at.next() && tries > 1 => return Ok(true),
                Ok(Commit::Fenced(fence)) => {
                    if fence.epoch <= at.epoch {
                        let odd = format!("{shard}: a commit at {at} met the fence {fence}");
                        self.desk.see(Seen::Odd(odd));
                    }
                    return Err(format!("deposed by epoch {}", fence.epoch));
                }
                Err(_) => tokio::time::sleep(self.lease / 40).await,
            }
        }
        // The fence is somewhere unknown from here on: nothing more can be written.
        self.stage.stop.cancelled().await;
        Ok(false)
    }
}
