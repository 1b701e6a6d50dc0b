//! What the routes ask of the scheduler, beside what the board knows: a seam, so that tests need none.

use std::fmt;

use kapell_api::v1::{SchedulerStats, WebhookDelivery};
use kapell_core::run::RunId;
use kapell_node::cell::ContainerLogs;

pub(crate) trait Scheduler: fmt::Debug + Send + Sync {
    /// Where this host keeps what an attempt of a run wrote; nothing if it keeps nothing of it. May read the disk.
    fn log(&self, run_id: &RunId, attempt: u32) -> Option<ContainerLogs>;
    fn stats(&self) -> SchedulerStats;
    /// The messages that were asked for, the newest first.
    fn deliveries(&self) -> Vec<WebhookDelivery>;
}
