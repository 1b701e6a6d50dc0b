use std::fmt;
use std::future::Future;
use std::pin::Pin;

use async_trait::async_trait;
use kapell_store::model::Fence;
use tokio_util::sync::CancellationToken;

use crate::elections::Tenure;

/// What services work under: the seat, the fences of its board, and the word to stop.
#[derive(Debug, Clone)]
pub struct Stage {
    pub tenure: Tenure,
    /// Where the fence of each shard stood when the seat was taken over.
    pub fences: Vec<Fence>,
    /// Cancelled when this service is to stop.
    pub stop: CancellationToken,
}

/// One part of what a conductor runs while it holds a seat.
#[async_trait]
pub trait Service: fmt::Debug + Send + Sync {
    fn name(&self) -> &'static str;

    /// Starts, and returns once it can be used. The future may be dropped to give up.
    async fn start(&self, stage: Stage) -> Result<Running, Failure>;
}

/// Why a service did not start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// It may start another time.
    Passing(String),
    /// It will not, for as long as nobody does anything about it.
    Lasting(String),
}

impl From<String> for Failure {
    fn from(why: String) -> Self {
        Self::Passing(why)
    }
}

/// A service that runs until its stage says stop, or until it fails.
pub struct Running(pub Pin<Box<dyn Future<Output = Result<(), String>> + Send>>);

impl Running {
    pub fn new(until_stopped: impl Future<Output = Result<(), String>> + Send + 'static) -> Self {
        Self(Box::pin(until_stopped))
    }
}

impl fmt::Debug for Running {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Running")
    }
}
