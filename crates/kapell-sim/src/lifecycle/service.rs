use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use kapell_node::conductor::{Failure, Running, Service, Stage};
use tokio_util::sync::CancellationToken;

use super::script::{Act, End, Start, a_while};

/// Which services are up, in the order of the pipeline.
#[derive(Debug)]
pub(super) struct Stages {
    up: Mutex<Vec<bool>>,
    /// Cancelled when one was told to stop that never will.
    pub(super) stuck: CancellationToken,
}

impl Stages {
    pub(super) fn new(count: usize) -> Self {
        Self { up: Mutex::new(vec![false; count]), stuck: CancellationToken::new() }
    }

    fn up(&self) -> MutexGuard<'_, Vec<bool>> {
        self.up.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn is_any_up(&self) -> bool {
        self.up().contains(&true)
    }

    fn rise(self: &Arc<Self>, at: usize) -> Up {
        let mut up = self.up();
        assert!(!up[at], "service {at} is started twice");
        assert!(!up[at..].contains(&true), "service {at} is started out of turn");
        up[at] = true;
        Up { stages: Arc::clone(self), at }
    }

    /// A service is told to stop: those that were started after it are down.
    fn told(&self, at: usize) {
        let later = self.up()[at + 1..].contains(&true);
        assert!(!later, "service {at} is told to stop out of turn");
    }
}

/// A service is up.
struct Up {
    stages: Arc<Stages>,
    at: usize,
}

impl Drop for Up {
    fn drop(&mut self) {
        self.stages.up()[self.at] = false;
    }
}

/// A service that does what the script says.
#[derive(Debug)]
pub(super) struct Actor {
    pub(super) at: usize,
    pub(super) act: Act,
    pub(super) stages: Arc<Stages>,
}

#[async_trait]
impl Service for Actor {
    fn name(&self) -> &'static str {
        "actor"
    }

    async fn start(&self, stage: Stage) -> Result<Running, Failure> {
        let up = self.stages.rise(self.at);
        a_while().await;
        match self.act.start {
            Start::Well => {}
            Start::Fails => return Err("it could not start".to_owned().into()),
            Start::Never => std::future::pending().await,
        }
        let Self { at, act, .. } = *self;
        Ok(Running::new(async move {
            let by_itself = async {
                a_while().await;
                match act.end {
                    End::Early => Ok(()),
                    End::Fails => Err("it failed".to_owned()),
                    End::Told | End::Slowly | End::Never => std::future::pending().await,
                }
            };
            let ended = tokio::select! {
                biased;
                () = stage.stop.cancelled() => None,
                ended = by_itself => Some(ended),
            };
            if ended.is_none() {
                up.stages.told(at);
                match act.end {
                    End::Never => {
                        up.stages.stuck.cancel();
                        std::future::pending::<()>().await;
                    }
                    End::Slowly => a_while().await,
                    End::Told | End::Early | End::Fails => {}
                }
            }
            drop(up);
            ended.unwrap_or(Ok(()))
        }))
    }
}
