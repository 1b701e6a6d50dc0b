//! Where messages are kept that must outlive the host which is to send them.

use std::fmt;

use async_trait::async_trait;
use kapell_core::board::JobId;
use kapell_core::constraint::Outgoing;
use kapell_core::job::ActionId;

/// Keeps messages for whoever leads next.
#[async_trait]
pub trait Outbox: fmt::Debug + Send + Sync {
    /// Answers when the message is on disk. An error is for good.
    async fn keep(&self, message: Outgoing) -> Result<(), String>;

    /// A message was taken, or is given up.
    async fn forget(&self, job: JobId, id: ActionId);
}
