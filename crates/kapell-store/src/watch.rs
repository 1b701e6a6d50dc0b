use tokio::sync::watch;
use tokio::task::AbortHandle;

/// Tells that an entry may have changed. Expiry may go untold: that is what the remaining
/// time of an [`Entry`](crate::model::Entry) is for.
#[derive(Debug)]
pub struct Watch {
    changes: watch::Receiver<u64>,
    feeder: Option<AbortHandle>,
}

/// The other end of a [`Watch`]. The watch closes when all of these are gone.
#[derive(Debug, Clone)]
pub struct Bell(watch::Sender<u64>);

/// Nobody tells any more; watch again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the watch was cut")]
pub struct Cut;

impl Bell {
    pub fn new() -> Self {
        Self(watch::Sender::new(0))
    }

    pub fn ring(&self) {
        self.0.send_modify(|rings| *rings = rings.wrapping_add(1));
    }

    pub fn watch(&self) -> Watch {
        Watch { changes: self.0.subscribe(), feeder: None }
    }

    /// Whether anyone listens.
    pub fn is_heard(&self) -> bool {
        self.0.receiver_count() > 0
    }
}

impl Default for Bell {
    fn default() -> Self {
        Self::new()
    }
}

impl Watch {
    /// Ends this task with the watch.
    #[must_use]
    pub fn fed_by(mut self, feeder: AbortHandle) -> Self {
        self.feeder = Some(feeder);
        self
    }

    /// Waits until the entry may have changed since the last call. Changes that come close
    /// together may be told once.
    pub async fn changed(&mut self) -> Result<(), Cut> {
        self.changes.changed().await.map_err(|_| Cut)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        if let Some(feeder) = &self.feeder {
            feeder.abort();
        }
    }
}
