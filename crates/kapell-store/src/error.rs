use std::io;
use std::path::PathBuf;
use std::time::Duration;

type Source = Box<dyn std::error::Error + Send + Sync>;

/// Why a store gave no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    #[error("`{url}` names no store: {why}")]
    BadUrl { url: String, why: String },
    #[error("no answer from {store} after {tried:.1?}")]
    Unreachable {
        store: String,
        tried: Duration,
        #[source]
        source: Source,
    },
    #[error("{store} refused the credentials")]
    Denied {
        store: String,
        #[source]
        source: Source,
    },
    #[error("there is no Kapell store at {store}")]
    Absent { store: String },
    #[error("{store} holds a Kapell store of format {found}; this kapell knows {known}")]
    Format { store: String, found: String, known: u32 },
    #[error("`{}` is in use by {by}", path.display())]
    InUse { path: PathBuf, by: String },
    #[error("`{}` is damaged at offset {offset}: {why}", path.display())]
    Damaged { path: PathBuf, offset: u64, why: String },
    #[error("{what} of {is} is above the limit of {limit}")]
    AboveLimit { what: &'static str, is: usize, limit: usize },
    #[error("a record needs a key: it is empty")]
    NoKey,
    #[error("{store} did not answer `{call}` within {limit:?}")]
    Timeout { store: String, call: &'static str, limit: Duration },
    #[error("`{call}` failed on {store}")]
    Failed {
        store: String,
        call: &'static str,
        #[source]
        source: Source,
    },
    #[error(
        "{store} holds elections and nothing else: records need a file, etcd, PostgreSQL, Cassandra or DynamoDB"
    )]
    ElectionsOnly { store: String },
    /// After an error a file store takes nothing more: what is on disk is no longer known.
    #[error("{store} stopped after an earlier error: {why}")]
    Stopped { store: String, why: String },
}

impl Error {
    /// Whether trying again later may help. What needs a person does not pass by waiting.
    pub const fn may_pass(&self) -> bool {
        match self {
            Self::Unreachable { .. }
            | Self::Timeout { .. }
            | Self::Failed { .. }
            | Self::InUse { .. } => true,
            Self::BadUrl { .. }
            | Self::Denied { .. }
            | Self::Absent { .. }
            | Self::Format { .. }
            | Self::Damaged { .. }
            | Self::AboveLimit { .. }
            | Self::NoKey
            | Self::ElectionsOnly { .. }
            | Self::Stopped { .. } => false,
        }
    }

    /// The system call's own error, if that is what is behind it.
    pub fn io(&self) -> Option<&io::Error> {
        match self {
            Self::Failed { source, .. } | Self::Unreachable { source, .. } => source.downcast_ref(),
            Self::BadUrl { .. }
            | Self::Denied { .. }
            | Self::Absent { .. }
            | Self::Format { .. }
            | Self::InUse { .. }
            | Self::Damaged { .. }
            | Self::AboveLimit { .. }
            | Self::NoKey
            | Self::Timeout { .. }
            | Self::ElectionsOnly { .. }
            | Self::Stopped { .. } => None,
        }
    }
}
