//! A run as it lies on the board.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::id::RunId;
use super::metrics::RunMetrics;
use super::state::RunState;
use crate::board::Domain;
use crate::seams::Timestamp;

/// So many entries of its timeline a run keeps: the first half of them and the newest.
pub const TIMELINE_KEPT: usize = 64;

/// So many hosts are kept that may have its log.
pub const LOG_HOSTS_KEPT: usize = 8;

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
    /// The addresses of hosts that led it and may have what it wrote, the newest last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub log_hosts: Vec<String>,
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
    /// Of the last update that was stored; written as a text, for not every reader has numbers of that size.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "uuid")]
    pub update_id: Option<u128>,
    /// Grows with every change.
    pub version: u64,
}

impl Run {
    /// Whether the fields fit the state.
    pub const fn is_consistent(&self) -> bool {
        self.state.is_final() == self.completed_at.is_some()
    }

    /// What stands for a run whose record cannot be read: its moment was dealt with, and nothing else is known of it.
    pub fn unreadable(run_id: RunId) -> Self {
        let at = run_id.moment().unwrap_or(Timestamp(0));
        Self {
            run_id,
            domain: Domain::new("jobs"),
            revision: 0,
            trigger: Trigger::Schedule,
            scheduled_at: at,
            due_at: at,
            parameters: BTreeMap::new(),
            state: RunState::Orphaned,
            previous_state: None,
            attempt: 0,
            place: String::new(),
            log_hosts: Vec::new(),
            created_at: at,
            started_at: None,
            retry_at: None,
            completed_at: Some(at),
            exit_code: None,
            reason:
                "its record could not be read and was set aside: what became of it is not known"
                    .to_owned(),
            skipped: false,
            cancel: None,
            timeline: Vec::new(),
            metrics: None,
            update_id: None,
            version: 1,
        }
    }
}

/// So many runs may kick each other off, one after the other: a circle comes to its end, however it was made.
pub const MOST_KICKS: u32 = 64;

impl Trigger {
    /// What a run is triggered by that an action of `of` kicks off.
    pub const fn kicked_off(of: RunId, by: &Self) -> Self {
        let depth = match by {
            Self::Action { depth, .. } => depth.saturating_add(1),
            Self::Schedule
            | Self::CatchUp
            | Self::Manual { .. }
            | Self::Backfill { .. }
            | Self::Retry { .. } => 1,
        };
        Self::Action { of, depth }
    }

    /// Whether the schedule asked for it: its moment is then dealt with.
    pub const fn is_of_schedule(&self) -> bool {
        match self {
            Self::Schedule | Self::CatchUp => true,
            Self::Manual { .. }
            | Self::Backfill { .. }
            | Self::Retry { .. }
            | Self::Action { .. } => false,
        }
    }
}

/// 32 digits.
mod uuid {
    use serde::de::Error as _;
    use serde::{Deserialize, Deserializer, Serializer};

    #[expect(clippy::ref_option, reason = "serde hands out references")]
    pub(super) fn serialize<S: Serializer>(id: &Option<u128>, to: S) -> Result<S::Ok, S::Error> {
        match id {
            Some(id) => to.collect_str(&format_args!("{id:032x}")),
            None => to.serialize_none(),
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<u128>, D::Error> {
        let text = Option::<String>::deserialize(from)?;
        let id = text.map(|text| u128::from_str_radix(&text, 16)).transpose();
        id.map_err(|_| D::Error::custom("the id of an update has 32 hexadecimal digits"))
    }
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
        /// How many runs before it kicked each other off, one after the other.
        #[serde(default = "one")]
        depth: u32,
    },
}

impl Trigger {
    /// Whether it stands for a moment that is past, of which there may be many at once.
    pub const fn makes_up(&self) -> bool {
        match self {
            Self::CatchUp | Self::Backfill { .. } => true,
            Self::Schedule | Self::Manual { .. } | Self::Retry { .. } | Self::Action { .. } => {
                false
            }
        }
    }
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
    /// Most reasons are one of a few sentences, which cost nothing to keep.
    State {
        to: RunState,
        why: Cow<'static, str>,
    },
    /// Another revision of its job reached it while it waited for its time.
    Revision {
        revision: u64,
    },
    Waits {
        why: String,
    },
    /// It ends well without its work. The states that follow are only the way there.
    Skipped {
        by: SkippedBy,
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

const fn one() -> u32 {
    1
}

/// What has a run end without its work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SkippedBy {
    /// Its job was changed, and does not have its moment any more.
    Schedule,
    /// `starting_deadline`
    Deadline,
    /// There is no place for it, or its job rests.
    Overlap,
    /// What was found out about its constraints, or done about it.
    Constraint,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands out references")]
const fn is_zero(count: &u32) -> bool {
    *count == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands out references")]
const fn is_false(flag: &bool) -> bool {
    !*flag
}
