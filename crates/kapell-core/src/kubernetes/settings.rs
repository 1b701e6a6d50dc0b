//! Clusters by their names, and how each is reached.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use super::policy::Policy;

/// The clusters of a host, the first of which is that of jobs that name none.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Clusters {
    pub first: String,
    pub all: BTreeMap<String, Cluster>,
}

/// One cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cluster {
    pub access: Access,
    /// Where work may be, the first for jobs that name none. Nothing elsewhere is looked at. Empty: that of the access.
    pub namespaces: Vec<String>,
    pub pace: Pace,
    pub policy: Policy,
    /// Pods whose logs are followed while they run, at most. Those of others are fetched when they end.
    pub followed_logs: usize,
    pub leftovers: Leftovers,
}

/// What becomes of Jobs of ours that no run knows. They are told of in any case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Leftovers {
    /// They are ended and deleted.
    #[default]
    Delete,
    Keep,
}

/// How a cluster is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Access {
    /// A file, and one of its contexts; without a name, its current one.
    Kubeconfig { path: PathBuf, context: Option<String> },
    /// By the account of the pod that the host is.
    InCluster,
    /// As other tools find theirs: `KUBECONFIG`, the file in the home directory, or the account of the pod.
    Usual { context: Option<String> },
}

/// How much is asked of a cluster, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    /// At most; fewer while the cluster says that it is too much.
    pub calls_per_second: u32,
    /// So long a call is tried again that may come to something.
    pub patience: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        Self { calls_per_second: 50, patience: Duration::from_secs(30) }
    }
}

impl Cluster {
    pub fn new(access: Access) -> Self {
        Self {
            access,
            namespaces: Vec::new(),
            pace: Pace::default(),
            policy: Policy::default(),
            followed_logs: 64,
            leftovers: Leftovers::default(),
        }
    }
}
