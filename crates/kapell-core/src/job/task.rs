//! The task that a run of a job is.

use serde::{Deserialize, Serialize};

use super::definition::is_default;
use crate::board::{Action, Domain, TaskDefinition, TaskGuid, Variable};

/// A task without what only its run knows: its guid and its domain are empty, and nobody is called back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Written", into = "Written")]
pub struct TaskPayload(pub TaskDefinition);

impl TaskPayload {
    /// The task of a run, under a name and in the domain of its job.
    pub fn task(&self, task_guid: TaskGuid, domain: Domain) -> TaskDefinition {
        TaskDefinition { task_guid, domain, ..self.0.clone() }
    }
}

#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    rootfs: Option<String>,
    #[serde(default, skip_serializing_if = "is_default")]
    memory_mb: u32,
    #[serde(default, skip_serializing_if = "is_default")]
    disk_mb: u32,
    #[serde(default, skip_serializing_if = "is_default")]
    max_pids: u32,
    #[serde(default, skip_serializing_if = "is_default")]
    cpu_millis: u32,
    #[serde(default, skip_serializing_if = "is_default")]
    log_rate: u64,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    placement_tags: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    env: Vec<Variable>,
    action: Action,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    result_file: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    annotation: String,
}

impl From<Written> for TaskPayload {
    fn from(it: Written) -> Self {
        Self(TaskDefinition {
            task_guid: "".into(),
            domain: "".into(),
            rootfs: it.rootfs,
            memory_mb: it.memory_mb,
            disk_mb: it.disk_mb,
            max_pids: it.max_pids,
            cpu_millis: it.cpu_millis,
            log_rate: it.log_rate,
            placement_tags: it.placement_tags,
            env: it.env,
            action: it.action,
            result_file: it.result_file,
            completion_callback_url: String::new(),
            annotation: it.annotation,
        })
    }
}

impl From<TaskPayload> for Written {
    fn from(TaskPayload(it): TaskPayload) -> Self {
        Self {
            rootfs: it.rootfs,
            memory_mb: it.memory_mb,
            disk_mb: it.disk_mb,
            max_pids: it.max_pids,
            cpu_millis: it.cpu_millis,
            log_rate: it.log_rate,
            placement_tags: it.placement_tags,
            env: it.env,
            action: it.action,
            result_file: it.result_file,
            annotation: it.annotation,
        }
    }
}
