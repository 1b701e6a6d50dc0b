//! Runs of jobs: one state machine, and what each state does next.

mod before;
mod ending;
pub mod id;
pub mod message;
pub mod metrics;
pub mod name;
pub mod orchestrator;
mod pack;
pub(crate) mod packed;
mod progress;
pub mod record;
pub mod retry;
pub(crate) mod row;
pub mod sight;
pub mod state;
pub mod timeline;
pub mod update;
mod work;

#[cfg(test)]
mod tests;

pub use id::RunId;
pub use message::{ActionsDone, Ask, Checked, Counts, Evidence, Happened, Timer, WorkEnd};
pub use metrics::RunMetrics;
pub use name::{UpdateId, is_of_run, task_guid, update_id};
pub use orchestrator::{Orchestrator, Plan};
pub use record::{Entry, Noted, Rare, Run, SkippedBy, StopKind, Trigger};
pub use sight::{Doing, Sight};
pub use state::{Ending, IllegalStep, RunState};
pub use timeline::Timeline;
pub use update::{RunUpdate, UpdateKind};
pub use work::{HOST_LOST, START_TIMEOUT};
