//! Messages of actions, kept on the board until they were sent.

use async_trait::async_trait;
use kapell_core::board::JobId;
use kapell_core::constraint::Outgoing;
use kapell_core::job::{ActionId, JobRequest};

use super::insist::insist;
use crate::board::Board;
use crate::failpoint;
use crate::webhook::{Handler, Outbox};

#[derive(Debug, Clone)]
pub(super) struct BoardOutbox(pub(super) Board);

impl BoardOutbox {
    /// Has everything sent that the leader before has not sent.
    pub(super) fn resume(&self, webhooks: &Handler) {
        self.0.look_at_all(|records| {
            for message in records.messages.values() {
                webhooks.resume(message.as_ref().clone());
            }
        });
    }
}

#[async_trait]
impl Outbox for BoardOutbox {
    async fn keep(&self, message: Outgoing) -> Result<(), String> {
        failpoint::pass("post");
        let kept = insist(&self.0, JobRequest::Post { message: Box::new(message) }).await;
        failpoint::pass("post-stored");
        kept.map(drop).map_err(|refused| refused.to_string())
    }

    async fn forget(&self, job_id: JobId, id: ActionId) {
        failpoint::pass("posted");
        // It is never refused.
        drop(insist(&self.0, JobRequest::Posted { job_id, id }).await);
    }
}
