//! A run as it lies on the board.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};

use arcstr::ArcStr;
use serde::{Deserialize, Serialize, Serializer};

use super::id::RunId;
use super::metrics::RunMetrics;
use super::name::UpdateId;
use super::state::RunState;
use super::timeline::Timeline;
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
    pub state: RunState,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous_state: Option<RunState>,
    /// From 0.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub attempt: u32,
    /// Where the work of this attempt was to be launched, as its backend calls it: nothing before the first intent.
    #[serde(default, skip_serializing_if = "ArcStr::is_empty")]
    pub place: ArcStr,
    pub created_at: Timestamp,
    /// When the work of this attempt began to run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Timeline::is_empty")]
    pub timeline: Timeline,
    /// Of the last update that was stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub update_id: Option<UpdateId>,
    /// Grows with every change.
    pub version: u64,
    /// Reached as if it were its own.
    #[serde(flatten)]
    pub rare: Rarely,
}

/// What a run has that most runs under way have not.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Rare {
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub parameters: BTreeMap<String, String>,
    /// The addresses of hosts that led it and may have what it wrote, the newest last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub log_hosts: Vec<ArcStr>,
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
    /// Once it has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metrics: Option<Box<RunMetrics>>,
}

static NOTHING_RARE: Rare = Rare {
    parameters: BTreeMap::new(),
    log_hosts: Vec::new(),
    retry_at: None,
    completed_at: None,
    exit_code: None,
    reason: String::new(),
    skipped: false,
    cancel: None,
    metrics: None,
};

/// Costs room only if there is something: there are very many runs.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(from = "Rare")]
pub struct Rarely(Option<Box<Rare>>);

impl Serialize for Rarely {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        Rare::serialize(self, to)
    }
}

impl From<Rare> for Rarely {
    fn from(rare: Rare) -> Self {
        Self((rare != NOTHING_RARE).then(|| Box::new(rare)))
    }
}

impl Rarely {
    pub(crate) fn into_rare(self) -> Rare {
        self.0.map_or_else(Rare::default, |rare| *rare)
    }
}

impl PartialEq for Rarely {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for Rarely {}

impl Deref for Rarely {
    type Target = Rare;

    fn deref(&self) -> &Rare {
        self.0.as_deref().unwrap_or(&NOTHING_RARE)
    }
}

impl Deref for Run {
    type Target = Rare;

    fn deref(&self) -> &Rare {
        &self.rare
    }
}

impl DerefMut for Run {
    fn deref_mut(&mut self) -> &mut Rare {
        self.rare.0.get_or_insert_default()
    }
}

impl Run {
    /// Whether the fields fit the state.
    pub fn is_consistent(&self) -> bool {
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
            state: RunState::Orphaned,
            previous_state: None,
            attempt: 0,
            place: ArcStr::new(),
            created_at: at,
            started_at: None,
            timeline: Timeline::new(),
            update_id: None,
            version: 1,
            rare: Rarely::from(Rare {
                completed_at: Some(at),
                reason:
                    "its record could not be read and was set aside: what became of it is not known"
                        .to_owned(),
                ..Rare::default()
            }),
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

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "by")]
pub enum Trigger {
    Schedule,
    /// A moment that was missed and is made up for.
    CatchUp,
    Manual {
        who: ArcStr,
    },
    Backfill {
        who: ArcStr,
    },
    Retry {
        of: RunId,
        who: ArcStr,
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
    /// `catch_up`: nobody led when its time came.
    CatchUp,
    /// `skipNextInstance`
    Action,
}

impl SkippedBy {
    /// As which it is written. Fixed for ever.
    pub(super) const fn number(self) -> u8 {
        match self {
            Self::Schedule => 0,
            Self::Deadline => 1,
            Self::Overlap => 2,
            Self::Constraint => 3,
            Self::CatchUp => 4,
            Self::Action => 5,
        }
    }

    pub(super) fn of_number(number: u8) -> Option<Self> {
        let all = [
            Self::Schedule,
            Self::Deadline,
            Self::Overlap,
            Self::Constraint,
            Self::CatchUp,
            Self::Action,
        ];
        all.into_iter().find(|it| it.number() == number)
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands out references")]
const fn is_zero(count: &u32) -> bool {
    *count == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands out references")]
const fn is_false(flag: &bool) -> bool {
    !*flag
}
