use std::sync::Arc;

use kapell_core::election::Loss;
use kapell_core::seat::Epoch;
use tokio_util::sync::CancellationToken;

use super::service::Failure;
use crate::elections::Refusal;

/// Why a conductor cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    #[error("the seat was not acquired")]
    NotAcquired(#[source] Refusal),
    #[error("the seat was lost: {0}")]
    Lost(Loss),
    #[error("the board of the seat belongs to epoch {0} already")]
    Deposed(Epoch),
    #[error("the board of the seat could not be taken over")]
    Store(#[source] kapell_store::Error),
    #[error("a restore into the store has not ended: run it again, or restore a backup")]
    Unfinished,
    #[error("service `{name}` failed: {why}")]
    Service { name: &'static str, why: String },
    #[error("service `{name}` cannot run here: {why}")]
    Unfit { name: &'static str, why: String },
}

impl Problem {
    /// The kind of problem in one word, for machines.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::NotAcquired(_) => "not_acquired",
            Self::Lost(why) => why.code(),
            Self::Deposed(_) => "deposed",
            Self::Store(_) => "store",
            Self::Unfinished => "unfinished_restore",
            Self::Service { .. } => "service",
            Self::Unfit { .. } => "unfit",
        }
    }

    pub(super) fn of(name: &'static str, failure: Failure) -> Self {
        match failure {
            Failure::Passing(why) => Self::Service { name, why },
            Failure::Lasting(why) => Self::Unfit { name, why },
        }
    }
}

/// Tells when a conductor has a problem.
#[derive(Debug, Clone)]
pub struct ProblemSignal {
    pub(super) raised: CancellationToken,
    pub(super) first: Arc<std::sync::OnceLock<Arc<Problem>>>,
}

impl ProblemSignal {
    /// Waits for the first problem. Without one it waits for ever.
    pub async fn wait(&self) -> Arc<Problem> {
        self.raised.cancelled().await;
        match self.first.get() {
            Some(problem) => Arc::clone(problem),
            None => std::future::pending().await,
        }
    }

    pub fn get(&self) -> Option<Arc<Problem>> {
        self.first.get().cloned()
    }
}
