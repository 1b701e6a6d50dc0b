//! What is stored of a run as it goes on.

use arcstr::ArcStr;
use serde::{Deserialize, Serialize};

use super::metrics::RunMetrics;
use super::state::RunState;
use super::timeline::Timeline;
use crate::seams::Timestamp;

/// A change of a run that must not be lost. Its id is made of run, attempt and kind, so that the same one is stored once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunUpdate {
    pub kind: UpdateKind,
    /// The attempt that it is about; of a retry, the one that failed.
    pub attempt: u32,
    /// Of an intent: where the work is about to be launched, as its backend calls it. Whoever stores it fills it in.
    pub place: ArcStr,
    /// The address of the host that leads it, if what it writes may come to lie there. Whoever stores it fills it in.
    pub log_host: ArcStr,
    pub at: Timestamp,
    pub state: RunState,
    pub previous_state: RunState,
    pub revision: u64,
    pub started_at: Option<Timestamp>,
    pub retry_at: Option<Timestamp>,
    pub completed_at: Option<Timestamp>,
    pub exit_code: Option<i32>,
    pub reason: String,
    pub skipped: bool,
    /// What is new in its timeline.
    pub timeline: Timeline,
    pub metrics: Option<Box<RunMetrics>>,
}

/// Which updates there are: nothing else of a run is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UpdateKind {
    /// The work of an attempt is about to be launched: stored before it is.
    Intent,
    /// The work runs.
    Started,
    /// An attempt failed and another one will be made.
    Retry,
    /// A final state.
    Ended,
}

impl RunUpdate {
    /// Which one of its run it is.
    pub const fn which(&self) -> (UpdateKind, u32) {
        (self.kind, self.attempt)
    }

    /// Takes in what an earlier update of the same run says that has not been sent: this one says the rest anyway.
    pub fn include(&mut self, earlier: Self) {
        let newer = std::mem::replace(&mut self.timeline, earlier.timeline);
        self.timeline.append(&newer);
        if self.log_host.is_empty() {
            self.log_host = earlier.log_host;
        }
    }
}

impl UpdateKind {
    /// The update after which a run stands so; none if no update leads there.
    pub const fn that_leads_to(state: RunState) -> Option<Self> {
        match state {
            RunState::ContainerCreating => Some(Self::Intent),
            RunState::Running => Some(Self::Started),
            RunState::Retrying => Some(Self::Retry),
            RunState::Completed | RunState::Failed | RunState::Cancelled | RunState::Orphaned => {
                Some(Self::Ended)
            }
            RunState::PreRun
            | RunState::Pending
            | RunState::ConditionPending
            | RunState::ConditionRunning
            | RunState::ActionPending
            | RunState::ActionRunning
            | RunState::Terminating => None,
        }
    }

    pub const ALL: [Self; 4] = [Self::Intent, Self::Started, Self::Retry, Self::Ended];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Intent => "intent",
            Self::Started => "started",
            Self::Retry => "retry",
            Self::Ended => "ended",
        }
    }
}
