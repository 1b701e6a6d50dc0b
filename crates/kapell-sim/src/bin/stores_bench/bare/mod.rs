//! Minimal clients: the same statement as the driver's and nothing besides.

mod cassandra;
mod dynamodb;
mod etcd;
mod postgres;

use std::sync::Arc;

use async_trait::async_trait;
use kapell_store::model::SHARDS;

use crate::place::{Kind, Place};

/// Keys and values.
pub(crate) type Records = Vec<(Vec<u8>, Vec<u8>)>;

/// Writes records where the count of a shard stands at `seq`, and counts on.
#[async_trait]
pub(crate) trait Bare: Send + Sync {
    async fn commit(&self, shard: u16, seq: u64, records: Records) -> anyhow::Result<()>;
}

/// None for the embedded store, whose floor is a file: `cargo xtask bench leadership` has that.
pub(crate) async fn open(place: &Place) -> anyhow::Result<Option<Arc<dyn Bare>>> {
    let shards = SHARDS;
    Ok(Some(match place.kind {
        Kind::Embedded => return Ok(None),
        Kind::Etcd => Arc::new(etcd::Etcd::open(place, shards).await?),
        Kind::Postgres => Arc::new(postgres::Postgres::open(place, shards).await?),
        Kind::Cassandra => Arc::new(cassandra::Cassandra::open(place, shards).await?),
        Kind::DynamoDb => Arc::new(dynamodb::DynamoDb::open(place, shards).await?),
    }))
}
