//! What a scheduler works with while its leader leads: made when it starts, let go of when it stops.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use arcstr::ArcStr;
use async_trait::async_trait;
use kapell_core::board::secrets::Due;
use kapell_core::board::{Domain, SecretName, TaskGuid};
use kapell_core::causes::chain;
use kapell_core::constraint::lines::Pace;
use kapell_core::job::{JobDefinition, Payload};
use kapell_core::kubernetes::Clusters;
use kapell_core::run::StopKind;
use kapell_core::seams::{Clock, Ids};
use kapell_core::secret::Secret;
use kapell_store::Store;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::absent::Absent;
use super::backend::{Backend, Newsroom, Secrets};
use super::cells::{CellsBackend, Logs, TaskLogs};
use super::checker::Checker;
use super::concierge;
use super::constrained::Constrained;
use super::inbox::Scheduler;
#[cfg(feature = "kubernetes")]
use super::kubernetes::{self, KubernetesBackend};
use super::local::{self, LocalBackend};
use super::logs::RunLogs;
use super::outbox::BoardOutbox;
use crate::access::{self, ClusterKey};
use crate::board::Board;
use crate::constraint::{self, BoardCells, Inbox, Means};
use crate::elections::Tenure;
use crate::link::CellLink;
use crate::webhook::{self, Handler, HttpOutbound};

#[cfg(feature = "kubernetes")]
const NO_CLUSTER: Absent = Absent {
    name: "kubernetes",
    why: "no Kubernetes cluster is known to this host: name a file of clusters by the setting `kubernetes_clusters`",
};
#[cfg(not(feature = "kubernetes"))]
const NO_CLUSTER: Absent =
    Absent { name: "kubernetes", why: "this host was built without Kubernetes" };

/// Messages of constraints and actions that wait at most.
const WAITING: usize = 256;

/// Where the work of each kind of job is done: on the host that leads, on cells, or on Kubernetes.
#[derive(Debug, Clone)]
pub struct Backends {
    all: [Arc<dyn Backend>; 3],
    keeps: Option<Keeps>,
}

/// Where this host keeps what runs write, and where others ask it for that.
#[derive(Debug, Clone)]
pub struct Keeps {
    pub logs: RunLogs,
    pub address: ArcStr,
}

impl Backends {
    pub fn new(host: Arc<dyn Backend>, cells: Arc<dyn Backend>) -> Self {
        Self { all: [host, cells, Arc::new(NO_CLUSTER)], keeps: None }
    }

    /// The same with clusters.
    #[must_use]
    pub fn with_clusters(self, clusters: Arc<dyn Backend>) -> Self {
        let [host, cells, _] = self.all;
        Self { all: [host, cells, clusters], ..self }
    }

    /// The same on a host that keeps what is written.
    #[must_use]
    pub fn keeping(self, keeps: Keeps) -> Self {
        Self { keeps: Some(keeps), ..self }
    }

    pub(super) const fn keeps(&self) -> Option<&Keeps> {
        self.keeps.as_ref()
    }

    pub(super) const fn len(&self) -> usize {
        self.all.len()
    }

    pub(super) fn get(&self, number: usize) -> &Arc<dyn Backend> {
        &self.all[number]
    }

    /// Which one does the work of a job.
    pub(super) fn number_for(definition: &JobDefinition) -> Option<usize> {
        match definition.payload()? {
            Payload::Command(_) | Payload::Workflow(_) => Some(0),
            Payload::Task(_) => Some(1),
            Payload::Kubernetes(_) => Some(2),
        }
    }

    pub(super) async fn leave(&self, kind: StopKind) {
        for backend in &self.all {
            backend.leave(kind).await;
        }
    }

    pub(super) fn task_changed(&self, guid: &TaskGuid) {
        for backend in &self.all {
            backend.task_changed(guid);
        }
    }
}

/// Whom supplies are for.
#[derive(Debug, Clone)]
pub struct Opening {
    pub board: Board,
    pub store: Arc<dyn Store>,
    pub scheduler: Scheduler,
    /// Where backends tell what became of work.
    pub newsroom: Newsroom,
    /// For how long it may act.
    pub tenure: Tenure,
}

/// What a scheduler works with.
#[derive(Debug)]
pub struct Supply {
    pub backends: Backends,
    pub checker: Arc<dyn Checker>,
    /// Messages to places outside, for those who want to see them.
    pub webhooks: Option<Handler>,
    /// Done for as long as the scheduler runs.
    pub errands: JoinSet<()>,
}

/// Makes what a scheduler works with.
#[async_trait]
pub trait Supplies: fmt::Debug + Send + Sync {
    async fn open(&self, opening: Opening) -> Result<Supply, String>;
}

/// The supplies of a real host.
pub struct HostSupplies {
    /// Processes of runs and their logs are kept below it.
    pub data_dir: PathBuf,
    pub keeps: Keeps,
    /// Runs workflows: `kapell` itself.
    pub program: PathBuf,
    pub clock: Arc<dyn Clock>,
    pub ids: Arc<dyn Ids>,
    pub cells: Arc<dyn CellLink>,
    pub task_logs: Arc<dyn TaskLogs>,
    pub key: ClusterKey,
    /// Kubernetes clusters, and whose Jobs ours are there.
    pub clusters: Clusters,
    pub owner: String,
    /// Between a launch and the work that runs, where the job does not say.
    pub start_timeout: Duration,
}

impl fmt::Debug for HostSupplies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostSupplies").field("data_dir", &self.data_dir).finish_non_exhaustive()
    }
}

impl HostSupplies {
    #[cfg(feature = "kubernetes")]
    async fn with_clusters(&self, backends: Backends, newsroom: Newsroom) -> Backends {
        let opened = KubernetesBackend::open(kubernetes::Parts {
            clusters: self.clusters.clone(),
            owner: self.owner.clone(),
            start_timeout: self.start_timeout,
            newsroom,
            clock: Arc::clone(&self.clock),
            logs: Some(self.keeps.logs.clone()),
        });
        backends.with_clusters(Arc::new(opened.await))
    }

    #[cfg(not(feature = "kubernetes"))]
    #[expect(clippy::unused_async, reason = "as with Kubernetes")]
    async fn with_clusters(&self, backends: Backends, _newsroom: Newsroom) -> Backends {
        backends
    }
}

#[async_trait]
impl Supplies for HostSupplies {
    async fn open(&self, opening: Opening) -> Result<Supply, String> {
        let Opening { board, store, scheduler, newsroom, tenure } = opening;
        let secrets = access::Secrets::new(store, Arc::clone(&self.clock), &self.key);
        let secrets = Arc::new(secrets.map_err(|error| chain(&error))?);
        let host = LocalBackend::open(local::Parts {
            data_dir: self.data_dir.clone(),
            newsroom: newsroom.clone(),
            clock: Arc::clone(&self.clock),
            ids: Arc::clone(&self.ids),
            secrets: Arc::clone(&secrets) as Arc<dyn Secrets>,
            program: self.program.clone(),
            tenure: Some(tenure),
        })
        .await?;
        let cells = CellsBackend::new(
            board.clone(),
            Arc::clone(&self.cells),
            Some(Logs { of_tasks: Arc::clone(&self.task_logs), of_runs: self.keeps.logs.clone() }),
            newsroom.clone(),
        );
        let mut backends =
            Backends::new(Arc::new(host), Arc::new(cells)).keeping(self.keeps.clone());
        if !self.clusters.all.is_empty() {
            backends = self.with_clusters(backends, newsroom).await;
        }
        let outbox = BoardOutbox(board.clone());
        let parts = webhook::Parts {
            outbound: Arc::new(HttpOutbound::new(None, Arc::clone(&self.clock))),
            keys: secrets,
            outbox: Arc::new(outbox.clone()),
            clock: Arc::clone(&self.clock),
            ids: Arc::clone(&self.ids),
        };
        let (webhooks, worker) = Handler::new(parts, Pace::default());
        outbox.resume(&webhooks);
        let (inbox, messages) = mpsc::channel(WAITING);
        let means = Means {
            inbox: Inbox::new(inbox),
            webhooks: webhooks.clone(),
            cells: Arc::new(BoardCells(board.clone())),
            clock: Arc::clone(&self.clock),
        };
        let mut errands = JoinSet::new();
        errands.spawn(worker.run());
        errands.spawn(concierge::serve(board, scheduler, messages));
        Ok(Supply {
            backends,
            checker: Arc::new(Constrained::new(constraint::Checker::new(means))),
            webhooks: Some(webhooks),
            errands,
        })
    }
}

#[async_trait]
impl Secrets for access::Secrets {
    async fn open(
        &self,
        domain: &Domain,
        names: &[SecretName],
    ) -> Result<std::collections::BTreeMap<SecretName, Secret>, String> {
        let due = Due { domain: domain.clone(), names: names.iter().cloned().collect() };
        let found = Self::open(self, &due).await.map_err(|error| chain(&error))?;
        Ok(found.into_iter().collect())
    }
}
