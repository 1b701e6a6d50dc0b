//! Work that is done once.

use serde::{Deserialize, Serialize};

use super::action::{Action, Run, Variable};
use super::ids::{CellId, Domain, InstanceGuid, ReservationId, TaskGuid};
use crate::seams::Timestamp;

/// What somebody wants to be done once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TaskDefinition {
    /// Drawn by the board where a request has none.
    #[serde(default = "unnamed")]
    pub task_guid: TaskGuid,
    pub domain: Domain,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rootfs: Option<String>,
    #[serde(default)]
    pub memory_mb: u32,
    #[serde(default)]
    pub disk_mb: u32,
    #[serde(default, skip_serializing_if = "super::desired::is_zero")]
    pub max_pids: u32,
    /// Thousandths of a processor; 0 is no limit.
    #[serde(default, skip_serializing_if = "super::desired::is_zero")]
    pub cpu_millis: u32,
    /// So many bytes of output a second are kept; 0 is what the cell has.
    #[serde(default, skip_serializing_if = "super::desired::is_zero_long")]
    pub log_rate: u64,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub placement_tags: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<Variable>,
    pub action: Action,
    /// A file whose first 10 KiB become the result, relative to the `dir` of its only `run`, else to the container's own
    /// directory.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub result_file: String,
    /// Told once the task is complete, after which the task is gone.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub completion_callback_url: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub annotation: String,
}

fn unnamed() -> TaskGuid {
    TaskGuid::new("")
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum TaskState {
    Pending,
    Running,
    Completed,
    Resolving,
}

impl TaskState {
    pub const ALL: [Self; 4] = [Self::Pending, Self::Running, Self::Completed, Self::Resolving];

    /// Every step a task may take. It is removed when it is RESOLVING, or COMPLETED for too long.
    pub const fn next(self) -> &'static [Self] {
        match self {
            Self::Pending => &[Self::Running, Self::Completed],
            Self::Running | Self::Resolving => &[Self::Completed],
            Self::Completed => &[Self::Resolving],
        }
    }

    /// What makes a task take a step that [`TaskState::next`] has; nothing for any other.
    pub const fn cause(self, to: Self) -> Option<&'static str> {
        let cause = match self {
            Self::Pending => match to {
                Self::Running => "the cell that reserved room for it asks to start it",
                Self::Completed => {
                    "it is cancelled, fits no cell, waited too long, or its cell could not start it"
                }
                Self::Pending | Self::Resolving => return None,
            },
            Self::Running => match to {
                Self::Completed => {
                    "its container ended, its cell is lost or was evacuated for too long, or it is cancelled"
                }
                Self::Pending | Self::Running | Self::Resolving => return None,
            },
            Self::Completed => match to {
                Self::Resolving => "somebody deletes it, or the board is about to call back",
                Self::Pending | Self::Running | Self::Completed => return None,
            },
            Self::Resolving => match to {
                Self::Completed => "whoever resolved it did not finish",
                Self::Pending | Self::Running | Self::Resolving => return None,
            },
        };
        Some(cause)
    }

    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Pending => "waits for a cell",
            Self::Running => "a cell runs it",
            Self::Completed => "it is over, failed or not",
            Self::Resolving => "somebody is being told, or deletes it",
        }
    }

    pub const fn name(self) -> &'static str {
        match self {
            Self::Pending => "PENDING",
            Self::Running => "RUNNING",
            Self::Completed => "COMPLETED",
            Self::Resolving => "RESOLVING",
        }
    }
}

/// A task and how far it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    #[serde(flatten)]
    pub definition: TaskDefinition,
    /// Made with the task: a container of a task deleted before is never taken for one of its namesake.
    pub instance_guid: InstanceGuid,
    pub state: TaskState,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cell_id: Option<CellId>,
    /// What room its cell had for it when it was let start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reservation: Option<ReservationId>,
    #[serde(default)]
    pub failed: bool,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub failure_reason: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub result: String,
    /// What its process ended with, where it ended by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// Why it has not been placed yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placement_error: Option<String>,
    pub created_at: Timestamp,
    /// When the state last changed.
    pub since: Timestamp,
    /// When its cell was let start it: how long it took is known also to whoever looks when it is over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_completed_at: Option<Timestamp>,
    /// Grows with every change.
    #[serde(default)]
    pub version: u64,
}

impl Task {
    /// What stands for a task whose record cannot be read: it was launched, and nothing else is known of it.
    pub fn unreadable(task_guid: TaskGuid) -> Self {
        let definition = TaskDefinition {
            task_guid,
            domain: Domain::new("jobs"),
            rootfs: None,
            memory_mb: 0,
            disk_mb: 0,
            max_pids: 0,
            cpu_millis: 0,
            log_rate: 0,
            placement_tags: Vec::new(),
            env: Vec::new(),
            action: Action::Run(Run { path: "/".to_owned(), ..Run::default() }),
            result_file: String::new(),
            completion_callback_url: String::new(),
            annotation: String::new(),
        };
        let at = Timestamp(0);
        Self {
            state: TaskState::Completed,
            failed: true,
            failure_reason: "its record could not be read and was set aside".to_owned(),
            first_completed_at: Some(at),
            ..Self::pending(definition, InstanceGuid::new("unreadable"), at)
        }
    }

    /// A task that nobody has begun.
    pub const fn pending(
        definition: TaskDefinition,
        instance_guid: InstanceGuid,
        now: Timestamp,
    ) -> Self {
        Self {
            definition,
            instance_guid,
            state: TaskState::Pending,
            cell_id: None,
            reservation: None,
            failed: false,
            failure_reason: String::new(),
            result: String::new(),
            exit_code: None,
            placement_error: None,
            created_at: now,
            since: now,
            started_at: None,
            first_completed_at: None,
            version: 1,
        }
    }

    /// Whether the fields fit the state.
    pub const fn is_consistent(&self) -> bool {
        match self.state {
            TaskState::Pending => self.cell_id.is_none() && self.first_completed_at.is_none(),
            TaskState::Running => self.cell_id.is_some() && self.first_completed_at.is_none(),
            TaskState::Completed | TaskState::Resolving => self.first_completed_at.is_some(),
        }
    }

    pub const fn guid(&self) -> &TaskGuid {
        &self.definition.task_guid
    }
}
