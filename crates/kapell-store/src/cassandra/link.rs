//! The session with the cluster, and what is prepared for it.

use std::num::NonZeroUsize;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use futures_util::future::try_join_all;
use scylla::client::PoolSize;
use scylla::client::SelfIdentity;
use scylla::client::execution_profile::{ExecutionProfile, ExecutionProfileHandle};
use scylla::client::session::Session;
use scylla::client::session_builder::SessionBuilder;
use scylla::policies::load_balancing::DefaultPolicy;
use scylla::policies::retry::FallthroughRetryPolicy;
use scylla::response::PagingState;
use scylla::response::query_result::QueryResult;
use scylla::serialize::row::SerializeRow;
use scylla::statement::batch::{Batch, BatchType};
use scylla::statement::prepared::PreparedStatement;
use scylla::statement::{Consistency, SerialConsistency};
use scylla::value::CqlValue;

use super::address::{Address, Serial};
use super::fault::{Failure, was_not_sent};
use super::layout::MAKING;
use super::query::Query;

/// A node that says nothing for about this long twice is left alone until it does.
const KEEPALIVE: Duration = Duration::from_secs(4);
/// Changes of the cluster are told; this is for those that were missed.
const REFRESH: Duration = Duration::from_mins(10);

/// Values for the markers of one statement of a batch.
pub(super) type Values = Vec<Option<CqlValue>>;

/// All statements, in the order of their numbers.
pub(super) type Statements = Vec<PreparedStatement>;

/// Who has to agree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Levels {
    pub(super) serial: SerialConsistency,
    /// To read what serial changes have left.
    pub(super) read: Consistency,
    /// To have a change where later reads find it.
    pub(super) most: Consistency,
}

impl Levels {
    pub(super) const fn of(serial: Serial) -> Self {
        match serial {
            Serial::Global => Self {
                serial: SerialConsistency::Serial,
                read: Consistency::Serial,
                most: Consistency::Quorum,
            },
            Serial::Local => Self {
                serial: SerialConsistency::LocalSerial,
                read: Consistency::LocalSerial,
                most: Consistency::LocalQuorum,
            },
        }
    }
}

pub(super) struct Link {
    address: Address,
    timeout: Duration,
    statements: Statements,
    session: RwLock<Arc<Session>>,
    mending: tokio::sync::Mutex<()>,
}

/// Nothing is sent twice behind our back: no retries and no speculation. And no time of ours: the session has no generator
/// of timestamps, so cells get theirs from the nodes.
fn profile(address: &Address, timeout: Duration) -> ExecutionProfileHandle {
    let levels = Levels::of(address.serial);
    let mut policy = DefaultPolicy::builder().token_aware(true);
    if let Some(dc) = &address.dc {
        policy = policy.prefer_datacenter(dc.clone()).permit_dc_failover(false);
    }
    ExecutionProfile::builder()
        .consistency(levels.most)
        .serial_consistency(Some(levels.serial))
        .request_timeout(Some(timeout))
        .retry_policy(Arc::new(FallthroughRetryPolicy::new()))
        .speculative_execution_policy(None)
        .load_balancing_policy(policy.build())
        .build()
        .into_handle()
}

pub(super) async fn connect(address: &Address, timeout: Duration) -> Result<Session, Failure> {
    let identity = SelfIdentity::new().with_application_name("kapell");
    let mut builder = SessionBuilder::new()
        .known_nodes(&address.hosts)
        .default_execution_profile_handle(profile(address, timeout))
        .connection_timeout(timeout)
        .hostname_resolution_timeout(Some(timeout))
        .metadata_request_clientside_timeout(timeout)
        .schema_agreement_timeout(MAKING)
        .pool_size(PoolSize::PerHost(NonZeroUsize::MIN))
        .keepalive_interval(KEEPALIVE)
        .keepalive_timeout(KEEPALIVE)
        .cluster_metadata_refresh_interval(REFRESH)
        .fetch_schema_metadata(false)
        .refresh_metadata_on_auto_schema_agreement(false)
        .driver_config_reporting(false)
        .custom_identity(identity);
    if let Some(login) = &address.login {
        builder = builder.user(&login.user, login.password().map_err(Failure::Refused)?);
    }
    if let Some(tls) = &address.tls {
        builder = builder.tls_context(Some(Arc::clone(&tls.0)));
    }
    Ok(builder.build().await?)
}

pub(super) async fn prepare(session: &Session, address: &Address) -> Result<Statements, Failure> {
    let levels = Levels::of(address.serial);
    let texts = Query::ALL.map(|query| query.cql(&address.keyspace));
    let mut statements =
        try_join_all(texts.iter().map(|text| session.prepare(text.as_str()))).await?;
    for (query, statement) in Query::ALL.into_iter().zip(&mut statements) {
        query.set(statement, levels);
    }
    Ok(statements)
}

impl Link {
    pub(super) fn new(
        address: Address,
        session: Session,
        statements: Statements,
        timeout: Duration,
    ) -> Self {
        let session = RwLock::new(Arc::new(session));
        Self { address, timeout, statements, session, mending: tokio::sync::Mutex::default() }
    }

    /// Which of the stores of its keyspace it is.
    pub(super) fn store(&self) -> &str {
        &self.address.store
    }

    fn session(&self) -> Arc<Session> {
        Arc::clone(&self.session.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// A session in place of one that has no connection left. It would look for one itself, but ever more seldom.
    async fn mended(&self, broken: &Arc<Session>) -> Result<Arc<Session>, Failure> {
        let _one = self.mending.lock().await;
        let now = self.session();
        if !Arc::ptr_eq(&now, broken) {
            return Ok(now);
        }
        let new = Arc::new(connect(&self.address, self.timeout).await?);
        *self.session.write().unwrap_or_else(PoisonError::into_inner) = Arc::clone(&new);
        Ok(new)
    }

    /// Sends a statement once.
    pub(super) async fn ask(
        &self,
        query: Query,
        values: impl SerializeRow,
    ) -> Result<QueryResult, Failure> {
        let statement = &self.statements[query as usize];
        let session = self.session();
        match session.execute_unpaged(statement, &values).await {
            Err(error) if was_not_sent(&error) => {
                let session = self.mended(&session).await?;
                Ok(session.execute_unpaged(statement, &values).await?)
            }
            answer => Ok(answer?),
        }
    }

    /// Sends one page of a read that is only a hint.
    pub(super) async fn page(
        &self,
        query: Query,
        state: PagingState,
    ) -> Result<(QueryResult, Option<PagingState>), Failure> {
        let statement = &self.statements[query as usize];
        let session = self.session();
        let (result, next) = match session.execute_single_page(statement, (), state.clone()).await {
            Err(error) if was_not_sent(&error) => {
                let session = self.mended(&session).await?;
                session.execute_single_page(statement, (), state).await?
            }
            answer => answer?,
        };
        let next = next.into_paging_control_flow();
        Ok((result, next.continue_value()))
    }

    /// Sends statements that happen together or not at all, once.
    pub(super) async fn batch(&self, parts: Vec<(Query, Values)>) -> Result<QueryResult, Failure> {
        let levels = Levels::of(self.address.serial);
        let mut batch = Batch::new(BatchType::Unlogged);
        batch.set_consistency(levels.most);
        batch.set_serial_consistency(Some(levels.serial));
        let mut values = Vec::with_capacity(parts.len());
        for (query, row) in parts {
            batch.append_statement(self.statements[query as usize].clone());
            values.push(row);
        }
        let session = self.session();
        match session.batch(&batch, &values).await {
            Err(error) if was_not_sent(&error) => {
                let session = self.mended(&session).await?;
                Ok(session.batch(&batch, &values).await?)
            }
            answer => Ok(answer?),
        }
    }
}
