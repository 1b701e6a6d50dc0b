//! Reads the board from its store. The fences are raised: nobody writes behind the scan.

use std::sync::Arc;
use std::time::Duration;

use kapell_core::board::Record;
use kapell_core::causes::chain;
use kapell_store::Error;
use kapell_store::model::{Key, Page, Shard};
use tokio::task::JoinSet;

use super::sheet::Sheet;
use crate::elections::Tenure;

const PAUSE: Duration = Duration::from_millis(50);
/// How many bad records of a shard are named in the log.
const NAMED: usize = 5;

/// What was read: the shards in order, and how many records are none.
#[derive(Debug)]
pub(super) struct Loaded {
    pub(super) sheets: Vec<Sheet>,
    pub(super) undecodable: usize,
}

/// Reads all shards at once.
pub(super) async fn load(tenure: &Tenure) -> Result<Loaded, String> {
    let mut scans = JoinSet::new();
    for shard in Shard::all(tenure.seat()) {
        let tenure = tenure.clone();
        scans.spawn(async move { (shard, read(&tenure, shard).await) });
    }
    let mut loaded = Vec::new();
    while let Some(done) = scans.join_next().await {
        let (shard, read) = done.map_err(|error| format!("reading the board failed: {error}"))?;
        let read = read.map_err(|error| {
            format!("shard {shard} of the board could not be read: {}", chain(&error))
        })?;
        loaded.push((shard.number, read));
    }
    loaded.sort_by_key(|(number, _)| *number);
    let undecodable = loaded.iter().map(|(_, (_, bad))| bad).sum();
    let sheets = loaded.into_iter().map(|(_, (sheet, _))| sheet).collect();
    Ok(Loaded { sheets, undecodable })
}

async fn read(tenure: &Tenure, shard: Shard) -> Result<(Sheet, usize), Error> {
    let mut sheet = Sheet::default();
    let mut bad = 0;
    let mut after: Option<Key> = None;
    loop {
        let page = page(tenure, shard, after.as_ref()).await?;
        for item in &page.items {
            match Record::decode(item.key.as_bytes(), &item.value) {
                Ok(record) => drop(sheet.apply(&record.key(), Some(record))),
                Err(why) => {
                    bad += 1;
                    if bad <= NAMED {
                        let key = &item.key;
                        tracing::warn!(%shard, %key, %why, "a record is left out: it cannot be read");
                    }
                }
            }
        }
        after = page.items.last().map(|item| item.key.clone());
        if !page.more || after.is_none() {
            break;
        }
    }
    if bad > 0 {
        tracing::warn!(%shard, bad, "records cannot be read; they are left where they are");
    }
    Ok((sheet, bad))
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
