use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::ensure;
use async_trait::async_trait;
use tokio::sync::Mutex;
use tokio::task::JoinSet;
use tokio_postgres::{Client, NoTls, Statement};

use super::{Bare, Records};
use crate::place::Place;

/// As many as the driver has, if nobody says otherwise.
const CONNECTIONS: usize = 4;

pub(super) struct Postgres {
    clients: Vec<Mutex<(Client, Statement)>>,
    next: AtomicUsize,
    _connections: JoinSet<Result<(), tokio_postgres::Error>>,
}

impl Postgres {
    pub(super) async fn open(place: &Place, shards: u16) -> anyhow::Result<Self> {
        let schema = place.unique("bare");
        let mut connections = JoinSet::new();
        let mut clients = Vec::new();
        for number in 0..CONNECTIONS {
            let (client, connection) = tokio_postgres::connect(&place.server, NoTls).await?;
            connections.spawn(connection);
            if number == 0 {
                client.batch_execute(&tables(&schema, shards)).await?;
            }
            let commit = client.prepare(&commit(&schema)).await?;
            clients.push(Mutex::new((client, commit)));
        }
        Ok(Self { clients, next: AtomicUsize::default(), _connections: connections })
    }
}

fn tables(schema: &str, shards: u16) -> String {
    format!(
        "CREATE SCHEMA {schema};
         CREATE TABLE {schema}.fence (shard int PRIMARY KEY, seq bigint NOT NULL);
         CREATE TABLE {schema}.record (shard int, key bytea, value bytea NOT NULL, PRIMARY KEY (shard, key));
         INSERT INTO {schema}.fence SELECT number, 0 FROM generate_series(0, {shards} - 1) AS number"
    )
}

fn commit(schema: &str) -> String {
    format!(
        "WITH moved AS (
             UPDATE {schema}.fence SET seq = seq + 1 WHERE shard = $1 AND seq = $2 RETURNING seq
         ), put AS (
             INSERT INTO {schema}.record (shard, key, value)
             SELECT $1, change.key, change.value
             FROM unnest($3::bytea[], $4::bytea[]) AS change (key, value)
             WHERE EXISTS (SELECT FROM moved)
             ON CONFLICT (shard, key) DO UPDATE SET value = excluded.value
         )
         SELECT seq FROM moved"
    )
}

#[async_trait]
impl Bare for Postgres {
    async fn commit(&self, shard: u16, seq: u64, records: Records) -> anyhow::Result<()> {
        let (keys, values): (Vec<_>, Vec<_>) = records.into_iter().unzip();
        let turn = self.next.fetch_add(1, Ordering::Relaxed) % self.clients.len();
        let guard = self.clients[turn].lock().await;
        let (client, commit) = &*guard;
        let (shard, seq) = (i32::from(shard), i64::try_from(seq)?);
        let rows = client.query(commit, &[&shard, &seq, &keys, &values]).await?;
        ensure!(rows.len() == 1, "nobody else writes");
        Ok(())
    }
}
