//! Reads the board from its store. The fences are raised: nobody writes behind the scan.

use std::sync::Arc;
use std::time::Duration;

use kapell_core::board::Gathering;
use kapell_core::board::aside::{Aside, admit, replacement};
use kapell_core::board::ids::Names;
use kapell_core::board::record::Corrupt;
use kapell_core::board::time::settle_in;
use kapell_core::causes::chain;
use kapell_core::seams::Timestamp;
use kapell_store::Error;
use kapell_store::model::{Fence, Item, Key, Page, SHARDS, Shard};
use tokio::task::JoinSet;

use super::pruning;
use super::sheet::Sheet;
use crate::conductor::Failure;
use crate::elections::Tenure;

const PAUSE: Duration = Duration::from_millis(50);
/// How many bad records of a shard are named in the log.
const NAMED: usize = 5;

/// What was read, and what the next commits must name; both in the order of shards.
#[derive(Debug)]
pub(super) struct Loaded {
    pub(super) sheets: Vec<Sheet>,
    pub(super) fences: Vec<Fence>,
}

/// Reads all shards at once. What is no record is set aside before anything is decided. What is
/// said to lie in the future has happened `now`.
pub(super) async fn load(
    tenure: &Tenure,
    fences: &[Fence],
    now: Timestamp,
) -> Result<Loaded, Failure> {
    if fences.len() != usize::from(SHARDS) {
        let is = fences.len();
        return Err(format!("the store has fences for {is} shards, and not for {SHARDS}").into());
    }
    let mut shards = JoinSet::new();
    for (shard, fence) in Shard::all(tenure.seat()).zip(fences.iter().copied()) {
        let tenure = tenure.clone();
        shards.spawn(async move { (shard.number, load_one(&tenure, shard, fence, now).await) });
    }
    let mut loaded = Vec::new();
    while let Some(done) = shards.join_next().await {
        let (number, one) = done.map_err(|error| format!("reading the board failed: {error}"))?;
        loaded.push((number, one?));
    }
    loaded.sort_by_key(|(number, _)| *number);
    let (sheets, fences) = loaded.into_iter().map(|(_, one)| one).unzip();
    Ok(Loaded { sheets, fences })
}

async fn load_one(
    tenure: &Tenure,
    shard: Shard,
    fence: Fence,
    now: Timestamp,
) -> Result<(Sheet, Fence), Failure> {
    let found = read(tenure, shard, now).await.map_err(|error| {
        format!("shard {shard} of the board could not be read: {}", chain(&error))
    })?;
    if let Some(refusal) = found.newer {
        return Err(Failure::Lasting(refusal));
    }
    let fence = pruning::set_aside(tenure, shard, fence, found.bad).await?;
    Ok((Sheet::new(found.records.end(), found.aside), fence))
}

#[derive(Debug, Default)]
struct Found {
    records: Gathering,
    /// How much is no record, set aside before or from now on.
    aside: usize,
    bad: Vec<Item>,
    /// What a newer version of kapell wrote is not for us to lead.
    newer: Option<String>,
}

async fn read(tenure: &Tenure, shard: Shard, now: Timestamp) -> Result<Found, Error> {
    let mut found = Found::default();
    let mut names = Names::default();
    let mut after: Option<Key> = None;
    loop {
        let page = page(tenure, shard, after.as_ref()).await?;
        after = page.next;
        for item in page.items {
            found.take(shard, item, now, &mut names);
        }
        if found.newer.is_some() || after.is_none() {
            return Ok(found);
        }
    }
}

impl Found {
    fn take(&mut self, shard: Shard, item: Item, now: Timestamp, names: &mut Names) {
        let key = item.key.as_bytes();
        if Aside::decode(key).is_some() {
            self.aside += 1;
            return;
        }
        match admit(key, &item.value, (shard.number, SHARDS), names) {
            Ok(mut record) => {
                settle_in(&mut record, now);
                self.records.add(record);
            }
            Err(why @ Corrupt::Newer { .. }) => {
                let key = &item.key;
                self.newer = Some(format!(
                    "record `{key}` in shard {shard} of the board cannot be led by this program: \
                     {why}; run that version here, or restore a backup from before it"
                ));
            }
            Err(why) => {
                if self.bad.len() < NAMED {
                    let key = &item.key;
                    tracing::warn!(%shard, %key, %why, "no record of the board: set aside");
                }
                self.aside += 1;
                if let Some(stands_in) = replacement(key, (shard.number, SHARDS)) {
                    self.records.add(stands_in);
                }
                self.bad.push(item);
            }
        }
    }
}

async fn page(tenure: &Tenure, shard: Shard, after: Option<&Key>) -> Result<Page, Error> {
    let store = Arc::clone(tenure.store());
    loop {
        match store.scan(shard, after).await {
            Err(error) if error.may_pass() && tenure.may_act() => {
                let error = chain(&error);
                tracing::warn!(%shard, error, "reading the board failed; trying again");
                tokio::time::sleep(PAUSE).await;
            }
            read => return read,
        }
    }
}
