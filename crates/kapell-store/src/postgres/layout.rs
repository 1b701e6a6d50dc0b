//! The tables of a store.

use crate::error::Error;
use crate::model::SHARDS;

use super::fault;
use super::session::{Door, Raw};

const FORMAT: u32 = 1;

/// Makes sure that a store of the known format is there, laid out now if `create` says so.
///
/// A role that may not create anything is fine as long as there is nothing to create.
pub(super) async fn check(door: &Door, raw: &Raw, create: bool) -> Result<(), Error> {
    let found = match found(door, raw).await? {
        Some(found) => found,
        None if create => {
            lay_out(door, raw).await?;
            found(door, raw)
                .await?
                .ok_or_else(|| Error::Absent { store: door.target.name.clone() })?
        }
        None => return Err(Error::Absent { store: door.target.name.clone() }),
    };
    let store = door.target.name.clone();
    let (format, shards) = found;
    if i64::from(format) != i64::from(FORMAT) {
        return Err(Error::Format { store, found: format.to_string(), known: FORMAT });
    }
    if shards != i32::from(SHARDS) {
        let found = format!("{format} with {shards} shards instead of {SHARDS}");
        return Err(Error::Format { store, found, known: FORMAT });
    }
    Ok(())
}

/// The format and the number of shards, if there is a store.
async fn found(door: &Door, raw: &Raw) -> Result<Option<(i32, i32)>, Error> {
    let question = format!("SELECT format, shards FROM {}.layout", door.target.schema);
    let row = match raw.client.query_opt(&question, &[]).await {
        Ok(row) => row,
        Err(error) if error.code().is_some_and(fault::is_missing) => None,
        Err(error) => return Err(door.fault(error, "open")),
    };
    let read = |row: &tokio_postgres::Row| Ok((row.try_get(0)?, row.try_get(1)?));
    row.as_ref().map(read).transpose().map_err(|error| door.fault(error, "open"))
}

/// Everything in one go: several statements sent as one text are one transaction, which is over
/// whatever becomes of the sender. The lock is there because `IF NOT EXISTS` looks and makes in
/// two steps, and fails if someone else makes in between. Pages of rows that change all the time are
/// left half empty, so that a new version of a row finds room beside the old one and no index changes.
async fn lay_out(door: &Door, raw: &Raw) -> Result<(), Error> {
    let schema = &door.target.schema;
    let fault = |error| door.fault(error, "open");
    // Asking for a schema that exists takes the right to make one all the same.
    let there = "SELECT FROM pg_namespace WHERE nspname = $1";
    let there = raw.client.query_opt(there, &[schema]).await.map_err(fault)?.is_some();
    let make_schema =
        if there { String::new() } else { format!("CREATE SCHEMA IF NOT EXISTS {schema};") };
    let text = format!(
        "SELECT pg_advisory_xact_lock(hashtextextended('kapell {schema}', 0));
         {make_schema}
         CREATE TABLE IF NOT EXISTS {schema}.layout (
             one boolean PRIMARY KEY DEFAULT true CHECK (one),
             format integer NOT NULL,
             shards integer NOT NULL
         );
         CREATE TABLE IF NOT EXISTS {schema}.ttl (
             key bytea PRIMARY KEY,
             generation bigint NOT NULL CHECK (generation > 0),
             value bytea,
             expires_at timestamptz
         ) WITH (fillfactor = 50);
         CREATE TABLE IF NOT EXISTS {schema}.fence (
             seat bigint,
             shard integer,
             epoch bigint NOT NULL,
             seq bigint NOT NULL,
             PRIMARY KEY (seat, shard)
         ) WITH (fillfactor = 10);
         CREATE TABLE IF NOT EXISTS {schema}.record (
             seat bigint,
             shard integer,
             key bytea,
             value bytea NOT NULL,
             PRIMARY KEY (seat, shard, key)
         );
         INSERT INTO {schema}.layout (format, shards) VALUES ({FORMAT}, {SHARDS})
             ON CONFLICT DO NOTHING"
    );
    raw.client.batch_execute(&text).await.map_err(fault)
}
