//! A run as it lies on the board.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::id::RunId;
use super::metrics::RunMetrics;
use super::state::RunState;
use crate::board::Domain;
use crate::seams::Timestamp;

/// So many entries of its timeline a run keeps: the first half of them and the newest.
pub const TIMELINE_KEPT: usize = 64;

/// A run and how far it is. Of states between those that are stored only the orchestrator knows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    pub run_id: RunId,
    pub domain: Domain,
    /// Of the definition of its job by which it goes.
    pub revision: u64,
    pub trigger: Trigger,
    /// The moment by the schedule, or when it was asked for.
    pub scheduled_at: Timestamp,
    /// With jitter.
    pub due_at: Timestamp,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub parameters: BTreeMap<String, String>,
    pub state: RunState,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous_state: Option<RunState>,
    /// From 0.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub attempt: u32,
    /// Where the work of this attempt was to be launched, as its backend calls it: nothing before the first intent.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub place: String,
    pub created_at: Timestamp,
    /// When the work of this attempt began to run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    /// When the next attempt is due, while it waits for that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// Why it ended as it did, or why it waits.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// It ended well without having done anything.
    #[serde(default, skip_serializing_if = "is_false")]
    pub skipped: bool,
    /// Somebody wants it to end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancel: Option<StopKind>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub timeline: Vec<Entry>,
    /// Once it has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metrics: Option<Box<RunMetrics>>,
    /// Of the last update that was stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub update_id: Option<u128>,
    /// Grows with every change.
    pub version: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "by")]
pub enum Trigger {
    Schedule,
    /// A moment that was missed and is made up for.
    CatchUp,
    Manual {
        who: String,
    },
    Backfill {
        who: String,
    },
    Retry {
        of: RunId,
        who: String,
    },
    Action {
        of: RunId,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopKind {
    /// SIGTERM, and SIGKILL after the grace time.
    Graceful,
    AtOnce,
}

/// One decision about a run, or one thing that happened to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    pub at: Timestamp,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub attempt: u32,
    #[serde(flatten)]
    pub noted: Noted,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "noted")]
pub enum Noted {
    State {
        to: RunState,
        why: String,
    },
    /// Another revision of its job reached it while it waited for its time.
    Revision {
        revision: u64,
    },
    Waits {
        why: String,
    },
    Constraint {
        name: String,
        met: bool,
        message: String,
    },
    ConstraintError {
        name: String,
        message: String,
    },
    Action {
        name: String,
        ok: bool,
        message: String,
    },
    Adopted {
        evidence: String,
    },
    Cancel {
        why: String,
    },
    /// Said to it after it had ended, or a step that it may not take.
    Ignored {
        what: String,
    },
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands out references")]
const fn is_zero(count: &u32) -> bool {
    *count == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands out references")]
const fn is_false(flag: &bool) -> bool {
    !*flag
}
