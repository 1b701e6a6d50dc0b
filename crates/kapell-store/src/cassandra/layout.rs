//! The tables of a store.

use std::collections::BTreeSet;
use std::time::Duration;

use scylla::client::session::Session;
use scylla::statement::Statement;

use super::address::Address;
use super::answer::Answer;
use super::fault::Failure;
use super::link::Levels;
use crate::model::SHARDS;

pub(super) const FORMAT: u32 = 1;
/// Nodes that are busy make tables for many times as long as they answer anything else, and all of them have to agree.
pub(super) const MAKING: Duration = Duration::from_mins(2);
const TABLES: [&str; 3] = ["layout", "entry", "record"];

/// What a store says of itself.
type Found = (Option<i32>, Option<i32>, Option<String>);

/// Whether there is a store, which then is of the known format.
pub(super) async fn is_there(session: &Session, address: &Address) -> Result<bool, Failure> {
    let tables = tables(session, address).await?;
    let is_whole = TABLES.iter().all(|name| tables.contains(*name));
    let found = if is_whole { found(session, address).await? } else { None };
    let Some((format, shards, serial)) = found else { return Ok(false) };
    let shards = shards.unwrap_or_default();
    if format.map(i64::from) != Some(FORMAT.into()) {
        return Err(Failure::Format(format.map_or("unknown".to_owned(), |it| it.to_string())));
    }
    if shards != i32::from(SHARDS) {
        return Err(Failure::Format(format!("{FORMAT} with {shards} shards instead of {SHARDS}")));
    }
    let (theirs, ours) = (serial.unwrap_or_default(), address.agreement());
    if theirs != ours {
        // Those who agree among others would not hear of each other.
        return Err(Failure::Refused(format!(
            "its hosts agree by `{theirs}`; with `{ours}` nobody would hear of them"
        )));
    }
    Ok(true)
}

async fn tables(session: &Session, address: &Address) -> Result<BTreeSet<String>, Failure> {
    let ask = "SELECT table_name FROM system_schema.tables WHERE keyspace_name = ?";
    let found = session.query_unpaged(ask, (&address.keyspace,)).await?.into_rows_result()?;
    let rows = found.rows::<(String,)>()?;
    rows.map(|row| Ok(row?.0)).collect()
}

async fn has_keyspace(session: &Session, address: &Address) -> Result<bool, Failure> {
    let ask = "SELECT keyspace_name FROM system_schema.keyspaces WHERE keyspace_name = ?";
    let found = session.query_unpaged(ask, (&address.keyspace,)).await?.into_rows_result()?;
    Ok(found.rows_num() > 0)
}

async fn found(session: &Session, address: &Address) -> Result<Option<Found>, Failure> {
    let ask =
        format!("SELECT format, shards, serial FROM {}.layout WHERE store = ?", address.keyspace);
    let mut ask = Statement::new(ask);
    ask.set_consistency(Levels::of(address.serial).read);
    let found = session.query_unpaged(ask, (&address.store,)).await?.into_rows_result()?;
    Ok(found.maybe_first_row::<Found>()?)
}

/// Makes what is missing of a store. May be done again, and by several at once.
///
/// A role that may not create anything is fine as long as there is nothing to create.
pub(super) async fn make(session: &Session, address: &Address) -> Result<(), Failure> {
    let (keyspace, there) = (&address.keyspace, tables(session, address).await?);
    if there.is_empty() && !has_keyspace(session, address).await? {
        make_keyspace(session, address).await?;
    }
    for (name, text) in TABLES.into_iter().zip(definitions(keyspace, address.gc_grace_seconds)) {
        // Asking for a table that exists takes the right to make one all the same.
        if !there.contains(name) {
            session.query_unpaged(patient(text), ()).await?;
        }
    }
    let agreement = address.agreement();
    let first = format!(
        "UPDATE {keyspace}.layout SET format = {FORMAT}, shards = {SHARDS}, serial = '{agreement}' \
         WHERE store = ? IF format = null"
    );
    // Whoever was faster has written theirs, which is looked at next.
    Answer::of(session.query_unpaged(patient(first), (&address.store,)).await?).map(drop)
}

/// One that takes as long as it takes.
fn patient(text: String) -> Statement {
    let mut statement = Statement::new(text);
    statement.set_request_timeout(Some(MAKING));
    statement
}

async fn make_keyspace(session: &Session, address: &Address) -> Result<(), Failure> {
    let keyspace = &address.keyspace;
    let make = |replication: &str| {
        format!("CREATE KEYSPACE IF NOT EXISTS {keyspace} WITH replication = {replication}")
    };
    let Some(replication) = &address.replication else {
        let example = make("{'class': 'NetworkTopologyStrategy', 'DATACENTRE': 3}");
        return Err(Failure::Refused(format!(
            "there is no keyspace `{keyspace}`: run `{example}`, or let it be made by `replication=3` or \
             `replication=DATACENTRE:3`"
        )));
    };
    session.query_unpaged(patient(make(&replication.to_cql())), ()).await?;
    Ok(())
}

/// Rows of entries change for ever and are never deleted. Deleted records are thrown away as soon as they may be: levels are
/// what finds them soonest, and a file is looked through for them even if others have the same keys.
fn definitions(keyspace: &str, gc_grace_seconds: u32) -> [String; 3] {
    let keep = format!(
        "gc_grace_seconds = {gc_grace_seconds} AND compaction = {{'class': 'LeveledCompactionStrategy', \
         'tombstone_threshold': 0.1, 'tombstone_compaction_interval': 600, \
         'unchecked_tombstone_compaction': true}}"
    );
    [
        format!(
            "CREATE TABLE IF NOT EXISTS {keyspace}.layout (\
             store text PRIMARY KEY, format int, shards int, serial text)"
        ),
        format!(
            "CREATE TABLE IF NOT EXISTS {keyspace}.entry (\
             store text, key blob, generation bigint, value blob, expires timestamp, \
             PRIMARY KEY ((store, key))) WITH {keep}"
        ),
        format!(
            "CREATE TABLE IF NOT EXISTS {keyspace}.record (\
             store text, seat bigint, shard int, key blob, epoch bigint static, seq bigint static, \
             marks set<blob> static, value blob, \
             PRIMARY KEY ((store, seat, shard), key)) WITH {keep}"
        ),
    ]
}
