//! Records, of which there are none here.

use async_trait::async_trait;
use kapell_core::seat::{Epoch, Seat};

use super::Leases;
use crate::error::Error;
use crate::model::{Commit, Fence, Key, Limits, Op, Page, Raise, Shard};
use crate::store::Shards;

impl Leases {
    fn no_records(&self) -> Error {
        Error::ElectionsOnly { store: self.name.clone() }
    }
}

#[async_trait]
impl Shards for Leases {
    fn limits(&self) -> Limits {
        Limits { commit_ops: 0, commit_bytes: 0, value_bytes: 0, key_bytes: 0 }
    }

    async fn raise(&self, _seat: Seat, _epoch: Epoch) -> Result<Raise, Error> {
        Err(self.no_records())
    }

    async fn fence(&self, _shard: Shard) -> Result<Fence, Error> {
        Err(self.no_records())
    }

    async fn commit(&self, _shard: Shard, _at: Fence, _ops: &[Op]) -> Result<Commit, Error> {
        Err(self.no_records())
    }

    async fn scan(&self, _shard: Shard, _after: Option<&Key>) -> Result<Page, Error> {
        Err(self.no_records())
    }
}
