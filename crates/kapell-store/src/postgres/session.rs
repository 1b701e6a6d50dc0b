//! One connection and what is prepared on it.

use std::time::{Duration, Instant};

use futures_util::future::try_join_all;
use tokio::task::JoinSet;
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Connection, Row, Socket, Statement};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::check;
use crate::error::Error;

use super::fault;
use super::query::Query;
use super::target::Target;

pub(super) type Params<'a> = &'a [&'a (dyn ToSql + Sync)];
pub(super) type Wire = Connection<Socket, <MakeRustlsConnect as MakeTlsConnect<Socket>>::Stream>;

/// Where sessions come from.
#[derive(Clone)]
pub(super) struct Door {
    pub(super) target: Target,
    pub(super) timeout: Duration,
    tls: MakeRustlsConnect,
}

/// A connection without anything prepared. Ends with its owner, and whatever it waits for.
#[derive(Debug)]
pub(super) struct Raw {
    pub(super) client: Client,
    _driver: JoinSet<()>,
}

/// A connection that answers every [`Query`] in one round trip.
#[derive(Debug)]
pub(super) struct Session {
    statements: Vec<Statement>,
    raw: Raw,
}

impl Door {
    pub(super) fn new(target: Target, timeout: Duration) -> Result<Self, Error> {
        let tls = super::tls::connector(&target.trust)
            .map_err(|why| Error::BadUrl { url: target.name.clone(), why })?;
        Ok(Self { target, timeout, tls })
    }

    /// Connects; `run` makes of the wire what is to run in the background.
    pub(super) async fn connect<D>(&self, run: impl FnOnce(Wire) -> D) -> Result<Raw, Error>
    where
        D: Future<Output = ()> + Send + 'static,
    {
        let begun = Instant::now();
        let config = self.target.config()?;
        let connected = async {
            let (client, wire) = config.connect(self.tls.clone()).await?;
            let mut driver = JoinSet::new();
            driver.spawn(run(wire));
            client.batch_execute(&settings(self.timeout)).await?;
            Ok(Raw { client, _driver: driver })
        };
        match tokio::time::timeout(self.timeout, connected).await {
            Ok(Ok(raw)) => Ok(raw),
            Ok(Err(error)) => Err(fault::of_connecting(error, &self.target, begun.elapsed())),
            Err(elapsed) => Err(Error::Unreachable {
                store: self.target.name.clone(),
                tried: begun.elapsed(),
                source: Box::new(elapsed),
            }),
        }
    }

    pub(super) async fn session(&self) -> Result<Session, Error> {
        let raw = self.connect(drive).await?;
        self.prepare(raw).await
    }

    pub(super) async fn prepare(&self, raw: Raw) -> Result<Session, Error> {
        let texts = Query::ALL.map(|query| query.sql(&self.target.schema));
        let prepared = try_join_all(texts.iter().map(|text| raw.client.prepare(text))).await;
        let statements = prepared.map_err(|error| self.fault(error, "connect"))?;
        Ok(Session { statements, raw })
    }

    pub(super) fn fault(&self, error: tokio_postgres::Error, call: &'static str) -> Error {
        fault::of_call(error, &self.target, call, self.timeout)
    }

    /// No call takes longer than the timeout, whatever it is made of.
    pub(super) async fn within<T>(
        &self,
        call: &'static str,
        work: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        let in_time = tokio::time::timeout(self.timeout, work).await;
        in_time.unwrap_or_else(|_| {
            Err(Error::Timeout { store: self.target.name.clone(), call, limit: self.timeout })
        })
    }
}

impl Session {
    pub(super) async fn ask(
        &self,
        query: Query,
        params: Params<'_>,
    ) -> Result<Vec<Row>, tokio_postgres::Error> {
        self.raw.client.query(&self.statements[query as usize], params).await
    }

    pub(super) fn is_closed(&self) -> bool {
        self.raw.client.is_closed()
    }
}

/// Errors of the wire reach whoever waits for an answer; nobody else needs them.
pub(super) async fn drive(wire: Wire) {
    drop(wire.await);
}

/// What must hold whatever the server, the database and the role have for defaults.
///
/// The server gives up a little before the caller does, so that a call that waits for a lock is
/// over when its caller is told so. All statements go by key: plans are made once, and one made
/// while a table was small must not outlive that.
fn settings(timeout: Duration) -> String {
    let patience =
        check::millis(timeout.saturating_sub(timeout / 10)).clamp(1, i64::from(i32::MAX));
    format!(
        "SET synchronous_commit = on;
         SET default_transaction_isolation = 'read committed';
         SET statement_timeout = {patience};
         SET lock_timeout = {patience};
         SET idle_in_transaction_session_timeout = {patience};
         SET search_path = pg_catalog;
         SET plan_cache_mode = force_generic_plan;
         SET enable_seqscan = off;
         SET jit = off"
    )
}
