//! What the routes ask of the scheduler, beside what the board knows: a seam, so that tests need none.

use std::fmt;

use async_trait::async_trait;
use kapell_api::v1::{SchedulerStats, WebhookDelivery};
use kapell_core::board::JobId;
use kapell_core::run::RunId;
use kapell_node::cell::ContainerLogs;
use kapell_node::scheduler::RunView;

#[async_trait]
pub(crate) trait Scheduler: fmt::Debug + Send + Sync {
    /// Where this host keeps what an attempt of a run wrote; nothing if it keeps nothing of it. May read the disk.
    fn log(&self, run_id: &RunId, attempt: u32) -> Option<ContainerLogs>;
    /// How a run under way stands, with what is noted of it and not stored yet. None of one that has ended, and none if
    /// the scheduler has too much to do to say.
    async fn live(&self, run_id: &RunId) -> Option<RunView>;
    fn stats(&self) -> SchedulerStats;
    /// The messages that were asked for, the newest first.
    fn deliveries(&self) -> Vec<WebhookDelivery>;
    /// The figures that actions of a job have set, by name.
    fn metrics(&self, job_id: &JobId) -> Vec<(String, f64)>;
}
