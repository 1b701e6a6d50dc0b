use anyhow::ensure;
use async_trait::async_trait;
use etcd_client::{Client, Compare, CompareOp, KvClient, Txn, TxnOp};

use super::{Bare, Records};
use crate::place::Place;

pub(super) struct Etcd {
    client: KvClient,
    prefix: String,
}

impl Etcd {
    pub(super) async fn open(place: &Place, shards: u16) -> anyhow::Result<Self> {
        let client = Client::connect([&place.server], None).await?.kv_client();
        let etcd = Self { client, prefix: place.unique("bare") };
        for shard in 0..shards {
            let (path, zero) = (etcd.fence(shard), 0_u64.to_be_bytes());
            etcd.client.clone().put(path, zero, None).await?;
        }
        Ok(etcd)
    }

    fn fence(&self, shard: u16) -> Vec<u8> {
        format!("{}/fence/{shard}", self.prefix).into_bytes()
    }
}

#[async_trait]
impl Bare for Etcd {
    async fn commit(&self, shard: u16, seq: u64, records: Records) -> anyhow::Result<()> {
        let (fence, prefix) = (self.fence(shard), format!("{}/record/{shard}/", self.prefix));
        let put = |(key, value): (Vec<u8>, Vec<u8>)| {
            TxnOp::put([prefix.as_bytes(), &key].concat(), value, None)
        };
        let mut puts: Vec<_> = records.into_iter().map(put).collect();
        puts.push(TxnOp::put(fence.clone(), (seq + 1).to_be_bytes(), None));
        let stands = Compare::value(fence, CompareOp::Equal, seq.to_be_bytes());
        let txn = Txn::new().when([stands]).and_then(puts);
        ensure!(self.client.clone().txn(txn).await?.succeeded(), "nobody else writes");
        Ok(())
    }
}
