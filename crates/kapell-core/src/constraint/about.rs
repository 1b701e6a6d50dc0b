//! What is known of a run, for those who are told of it.

use std::collections::BTreeMap;

use serde_json::{Value as Json, json};

use super::rule::Phase;
use crate::job::JobDefinition;
use crate::run::{RunId, Trigger};
use crate::seams::Timestamp;

/// A run as constraints and actions see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct About {
    pub definition: std::sync::Arc<JobDefinition>,
    pub run_id: RunId,
    /// From 0.
    pub attempt: u32,
    pub scheduled_at: Timestamp,
    pub due_at: Timestamp,
    pub trigger: Trigger,
    pub parameters: BTreeMap<String, String>,
    /// Once it has ended.
    pub work: Option<Work>,
}

/// Work that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Work {
    pub started_at: Timestamp,
    pub ended_at: Timestamp,
    pub exit_code: Option<i32>,
    pub failure: Option<String>,
}

/// What was found out about a constraint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    pub name: &'static str,
    /// Nothing while it is being found out.
    pub met: Option<bool>,
    pub message: String,
}

/// A moment as people and programs write it.
pub fn rfc3339(at: Timestamp) -> String {
    jiff::Timestamp::from_millisecond(at.0).map_or_else(|_| at.0.to_string(), |at| at.to_string())
}

impl About {
    pub const fn phase(&self) -> Phase {
        match self.work {
            None => Phase::Before,
            Some(_) => Phase::After,
        }
    }

    /// What templates are filled in with.
    pub fn scope(&self, seen: Option<&Seen>, now: Timestamp) -> Json {
        let job = &self.definition;
        let name = if job.name.is_empty() { job.job_id.as_str() } else { &job.name };
        let work = self.work.as_ref();
        let took = work.map(|work| work.ended_at.since(work.started_at).as_secs_f64());
        json!({
            "now": rfc3339(now),
            "phase": self.phase().name(),
            "job": { "id": job.job_id, "name": name, "domain": job.domain, "tags": job.tags },
            "run": {
                "id": self.run_id,
                "attempt": self.attempt,
                "scheduled_at": rfc3339(self.scheduled_at),
                "due_at": rfc3339(self.due_at),
                "trigger": trigger(&self.trigger),
                "parameters": self.parameters,
                "started_at": work.map(|work| rfc3339(work.started_at)),
                "ended_at": work.map(|work| rfc3339(work.ended_at)),
                "duration_seconds": took,
                "exit_code": work.and_then(|work| work.exit_code),
                "failure": work.and_then(|work| work.failure.clone()),
            },
            "constraint": seen.map(|seen| json!({ "name": seen.name, "met": seen.met, "message": seen.message })),
        })
    }

    /// What is said where a job does not say: type, time and data, as receivers of webhooks expect it.
    pub fn message(&self, kind: &str, seen: Option<&Seen>, now: Timestamp) -> Json {
        let mut data = self.scope(seen, now);
        if let Some(map) = data.as_object_mut() {
            map.remove("now");
        }
        json!({ "type": kind, "timestamp": rfc3339(now), "data": data })
    }
}

const fn trigger(trigger: &Trigger) -> &'static str {
    match trigger {
        Trigger::Schedule => "schedule",
        Trigger::CatchUp => "catch_up",
        Trigger::Manual { .. } => "manual",
        Trigger::Backfill { .. } => "backfill",
        Trigger::Retry { .. } => "retry",
        Trigger::Action { .. } => "action",
    }
}
