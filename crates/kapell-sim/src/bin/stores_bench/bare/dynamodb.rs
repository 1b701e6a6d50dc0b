use async_trait::async_trait;
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::{self, BehaviorVersion, Region};
use aws_sdk_dynamodb::primitives::Blob;
use aws_sdk_dynamodb::types::{AttributeValue, Put, TransactWriteItem, Update};
use kapell_sim::bench::show::open;

use super::{Bare, Records};
use crate::place::{Kind, Place};

pub(super) struct DynamoDb {
    client: Client,
    table: String,
}

fn text(value: String) -> AttributeValue {
    AttributeValue::S(value)
}

fn bytes(value: impl Into<Vec<u8>>) -> AttributeValue {
    AttributeValue::B(Blob::new(value))
}

fn number(value: u64) -> AttributeValue {
    AttributeValue::N(value.to_string())
}

impl DynamoDb {
    /// In a table that the driver has made for itself, so that both have the same.
    pub(super) async fn open(place: &Place, shards: u16) -> anyhow::Result<Self> {
        debug_assert_eq!(place.kind, Kind::DynamoDb);
        drop(open(&place.url("bare")).await?);
        let http = aws_smithy_http_client::Builder::new().build_http();
        let nobody = config::Credentials::new("none", "none", None, None, "none");
        let settings = aws_config::defaults(BehaviorVersion::v2026_01_12())
            .http_client(http)
            .region(Region::new("local"))
            .credentials_provider(nobody)
            .endpoint_url(&place.server)
            .load()
            .await;
        let bare = Self { client: Client::new(&settings), table: place.unique("bare") };
        for shard in 0..shards {
            let put = bare.client.put_item().table_name(&bare.table);
            let put =
                put.item("pk", text(format!("bare-fence/{shard}"))).item("sk", bytes("fence"));
            put.item("seq", number(0)).send().await?;
        }
        Ok(bare)
    }
}

#[async_trait]
impl Bare for DynamoDb {
    async fn commit(&self, shard: u16, seq: u64, records: Records) -> anyhow::Result<()> {
        let fence = Update::builder()
            .table_name(&self.table)
            .key("pk", text(format!("bare-fence/{shard}")))
            .key("sk", bytes("fence"))
            .update_expression("SET seq = :next")
            .condition_expression("seq = :seq")
            .expression_attribute_values(":seq", number(seq))
            .expression_attribute_values(":next", number(seq + 1))
            .build()?;
        let mut writes = vec![TransactWriteItem::builder().update(fence).build()];
        for (key, value) in records {
            let put = Put::builder()
                .table_name(&self.table)
                .item("pk", text(format!("bare/{shard}")))
                .item("sk", bytes(key))
                .item("v", bytes(value))
                .build()?;
            writes.push(TransactWriteItem::builder().put(put).build());
        }
        self.client.transact_write_items().set_transact_items(Some(writes)).send().await?;
        Ok(())
    }
}
