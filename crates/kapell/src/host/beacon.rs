use std::sync::Arc;

use async_trait::async_trait;
use kapell_node::conductor::{Failure, Running, Service, Stage};

use super::face::HostFace;

/// Says that this host leads. The first of the services, and for now the only one.
#[derive(Debug)]
pub(super) struct Beacon {
    face: Arc<HostFace>,
}

impl Beacon {
    pub(super) fn new(face: Arc<HostFace>) -> Self {
        Self { face }
    }
}

#[async_trait]
impl Service for Beacon {
    fn name(&self) -> &'static str {
        "beacon"
    }

    async fn start(&self, stage: Stage) -> Result<Running, Failure> {
        let (seat, epoch) = (stage.tenure.seat(), stage.tenure.epoch());
        tracing::info!(seat = seat.0, epoch = epoch.0, owner = %stage.tenure.record().owner, "leading");
        self.face.leading(stage.tenure.clone());
        let face = Arc::clone(&self.face);
        Ok(Running::new(async move {
            stage.stop.cancelled().await;
            face.stopping();
            tracing::info!(seat = seat.0, epoch = epoch.0, "no longer leading");
            Ok(())
        }))
    }
}
