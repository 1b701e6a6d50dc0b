use anyhow::{Context as _, ensure};
use async_trait::async_trait;
use scylla::client::session::Session;
use scylla::client::session_builder::SessionBuilder;
use scylla::statement::batch::{Batch, BatchType};
use scylla::statement::prepared::PreparedStatement;
use scylla::statement::{Consistency, SerialConsistency};
use scylla::value::CqlValue;

use super::{Bare, Records};
use crate::place::Place;

pub(super) struct Cassandra {
    session: Session,
    advance: PreparedStatement,
    put: PreparedStatement,
}

impl Cassandra {
    pub(super) async fn open(place: &Place, shards: u16) -> anyhow::Result<Self> {
        let server = place.server.strip_prefix("cassandra://").context("a URL")?;
        let (login, at) = server.rsplit_once('@').context("a login")?;
        let (user, password) = login.split_once(':').context("a password")?;
        let session = SessionBuilder::new()
            .known_node(at)
            .user(user, password)
            .build()
            .await
            .context(at.to_owned())?;
        let table = format!("{}.bare", place.unique(""));
        session
            .query_unpaged(
                format!(
                    "CREATE TABLE {table} (shard int, key blob, seq bigint static, value blob, PRIMARY KEY (shard, key)) \
                     WITH compaction = {{'class': 'LeveledCompactionStrategy'}}"
                ),
                (),
            )
            .await?;
        session.await_schema_agreement().await?;
        let advance = format!("UPDATE {table} SET seq = ? WHERE shard = ? IF seq = ?");
        let put = format!("UPDATE {table} SET value = ? WHERE shard = ? AND key = ?");
        for shard in 0..i32::from(shards) {
            let first = format!("UPDATE {table} SET seq = 0 WHERE shard = ? IF seq = null");
            session.query_unpaged(first, (shard,)).await?;
        }
        let (advance, put) = (session.prepare(advance).await?, session.prepare(put).await?);
        Ok(Self { session, advance, put })
    }
}

#[async_trait]
impl Bare for Cassandra {
    async fn commit(&self, shard: u16, seq: u64, records: Records) -> anyhow::Result<()> {
        let shard = CqlValue::Int(shard.into());
        let count = |seq: u64| CqlValue::BigInt(seq.cast_signed());
        let mut batch = Batch::new(BatchType::Unlogged);
        batch.set_consistency(Consistency::Quorum);
        batch.set_serial_consistency(Some(SerialConsistency::Serial));
        batch.append_statement(self.advance.clone());
        let mut values = vec![vec![count(seq + 1), shard.clone(), count(seq)]];
        for (key, value) in records {
            batch.append_statement(self.put.clone());
            values.push(vec![CqlValue::Blob(value), shard.clone(), CqlValue::Blob(key)]);
        }
        let answer = self.session.batch(&batch, &values).await?.into_rows_result()?;
        let row = answer.first_row::<scylla::value::Row>()?;
        let applied = row.columns.first().cloned().flatten();
        ensure!(applied == Some(CqlValue::Boolean(true)), "nobody else writes: {applied:?}");
        Ok(())
    }
}
