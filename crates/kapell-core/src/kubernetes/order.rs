//! From the work of a run to the batch/v1 Job that does it, and back.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Map, Value as Json, json};
use uuid::Uuid;

use super::check;
use super::payload;
use super::policy::Policy;
use super::seen::Metadata;
use crate::constraint::rfc3339;
use crate::job::{JobDefinition, Length, environment};
use crate::run::RunId;
use crate::seams::Timestamp;

/// Labels that people know, in the form that Kubernetes accepts.
pub const JOB_ID: &str = "job-id";
pub const RUN_ID: &str = "run-id";
pub const SCHEDULED_AT: &str = "scheduled-at";
/// Whose Jobs they are: two that share a cluster do not touch each other's.
pub const OWNER: &str = "kapell/owner";
/// The exact values, as annotations.
const EXACT_JOB_ID: &str = "kapell/job-id";
const EXACT_RUN_ID: &str = "kapell/run-id";
const EXACT_SCHEDULED_AT: &str = "kapell/scheduled-at";
pub const ATTEMPT: &str = "kapell/attempt";
/// An annotation of a Job that we have stopped.
pub const STOPPED: &str = "kapell/stopped";

const LONGEST_LABEL: usize = 63;
/// The backstop comes later than what the scheduler sees to itself.
pub(super) const MARGIN: Duration = Duration::from_secs(60);

/// One attempt of a run on a cluster.
#[derive(Debug, Clone, Copy)]
pub struct Order<'a> {
    pub owner: &'a str,
    pub run_id: &'a RunId,
    pub attempt: u32,
    pub scheduled_at: Timestamp,
    pub definition: &'a JobDefinition,
    /// Of the run, defaults filled in.
    pub parameters: &'a BTreeMap<String, String>,
    pub namespace: &'a str,
    pub policy: Policy,
    /// Where the job does not say.
    pub start_timeout: Duration,
}

impl Order<'_> {
    /// The Job to be created, or everything that is wrong with it, each with its field.
    pub fn job(&self) -> Result<Json, Vec<String>> {
        let Some(payload) = payload::of(self.definition) else {
            return Err(vec!["kubernetes: the job does not say what to run".to_owned()]);
        };
        let mut found = check::faults(payload);
        let mut pod = payload.pod();
        found.extend(payload.refused_by(self.policy));
        if !found.is_empty() {
            return Err(found);
        }
        pod.insert("restartPolicy".to_owned(), "Never".into());
        self.tell_about(&mut pod);
        let (labels, annotations) = (self.labels(), self.annotations());
        let mut spec = json!({
            "backoffLimit": 0,
            "completions": 1,
            "parallelism": 1,
            "template": {
                "metadata": {"labels": labels, "annotations": annotations},
                "spec": pod,
            },
        });
        if let Some(most) = self.definition.max_allowed_run_time {
            spec["activeDeadlineSeconds"] = self.deadline(most).into();
        }
        Ok(json!({
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {
                "name": job_name(self.owner, self.run_id, self.attempt),
                "namespace": self.namespace,
                "labels": labels,
                "annotations": annotations,
            },
            "spec": spec,
        }))
    }

    /// In case that nobody is left to see to it.
    fn deadline(&self, most: Length) -> u64 {
        let start = self.definition.start_timeout.map_or(self.start_timeout, Length::get);
        let whole = start.saturating_add(most.get()).saturating_add(MARGIN);
        whole.as_secs() + u64::from(whole.subsec_nanos() > 0)
    }

    fn labels(&self) -> Json {
        let moment = rfc3339(self.scheduled_at);
        let second = moment.split('.').next().unwrap_or_default().trim_end_matches('Z');
        let compact: String = second.chars().filter(|it| !matches!(it, '-' | ':')).collect();
        json!({
            JOB_ID: label(self.run_id.job()),
            RUN_ID: label(self.run_id.as_str()),
            SCHEDULED_AT: format!("{compact}Z"),
            OWNER: label(self.owner),
        })
    }

    fn annotations(&self) -> Json {
        json!({
            EXACT_JOB_ID: self.run_id.job(),
            EXACT_RUN_ID: self.run_id.as_str(),
            ATTEMPT: self.attempt.to_string(),
            EXACT_SCHEDULED_AT: rfc3339(self.scheduled_at),
        })
    }

    /// Every container knows the parameters and what run it works for; of one name there is one variable.
    fn tell_about(&self, pod: &mut Map<String, Json>) {
        let Self { definition, parameters, run_id, attempt, scheduled_at, .. } = *self;
        let ours = environment(definition, parameters, run_id, attempt, scheduled_at);
        for list in ["containers", "initContainers"] {
            let containers = pod.get_mut(list).and_then(Json::as_array_mut).into_iter().flatten();
            for container in containers.filter_map(Json::as_object_mut) {
                let env = container.entry("env").or_insert_with(|| json!([]));
                let Some(env) = env.as_array_mut() else { continue };
                env.retain(|it| ours.iter().all(|variable| it["name"] != *variable.name));
                let told = |it: &crate::board::Variable| {
                    let value = it.value.as_deref().map(literal);
                    json!({"name": it.name, "value": value})
                };
                env.extend(ours.iter().map(told));
            }
        }
    }
}

/// A text that a cluster hands on as it is: of two `$` it makes one, and `$(NAME)` it replaces.
pub(super) fn literal(text: &str) -> String {
    text.replace('$', "$$")
}

/// The name of a run's Job: the same whoever makes it, and another for each attempt.
pub fn job_name(owner: &str, run: &RunId, attempt: u32) -> String {
    let id = format!("{owner} {attempt} {run}");
    readable_name(run.job(), Uuid::new_v5(&Uuid::NAMESPACE_OID, id.as_bytes()))
}

/// A name that nobody else has, of which people know what it is.
pub(super) fn readable_name(text: &str, id: Uuid) -> String {
    const READABLE: usize = 28;
    /// All that the number leaves: a Job's name is the value of a label too.
    const ROOM: usize = LONGEST_LABEL - 33;
    let letters = text.chars().map(|letter| match letter {
        'a'..='z' | '0'..='9' => letter,
        'A'..='Z' => letter.to_ascii_lowercase(),
        _ => '-',
    });
    let readable: String = letters.take(READABLE).collect();
    let readable = readable.trim_matches('-');
    let lead =
        if readable.starts_with(|letter: char| letter.is_ascii_lowercase()) { "" } else { "run-" };
    let most = readable.len().min(ROOM - lead.len());
    let readable = readable[..most].trim_end_matches('-');
    format!("{lead}{readable}{}{:032x}", if readable.is_empty() { "" } else { "-" }, id.as_u128())
}

/// A text as the value of a label: letters, digits and `-_.`, at most 63, a letter or digit at both ends.
pub fn label(text: &str) -> String {
    let fits = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.');
    let safe: String = text.chars().map(|it| if fits(it) { it } else { '.' }).collect();
    let trimmed = safe.trim_matches(|letter: char| !letter.is_ascii_alphanumeric());
    if trimmed.len() == text.len() && trimmed.len() <= LONGEST_LABEL {
        return safe;
    }
    // What was cut off is told apart by a few digits of all of it.
    let id = Uuid::new_v5(&Uuid::NAMESPACE_OID, text.as_bytes()).as_u128() >> 96;
    let mut short: String = trimmed.chars().take(LONGEST_LABEL - 9).collect();
    if !short.is_empty() {
        short.push('-');
    }
    format!("{short}{id:08x}")
}

/// Finds all Jobs and pods of an owner.
pub fn selector(owner: &str) -> String {
    format!("{OWNER}={}", label(owner))
}

/// Whose work an object is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    pub run_id: RunId,
    pub attempt: u32,
}

/// What the annotations of a Job or a pod say; none if it is none of ours.
pub fn attempt_of(metadata: &Metadata) -> Option<Found> {
    let run_id = RunId::parse(metadata.annotations.get(EXACT_RUN_ID)?)?;
    let attempt = metadata.annotations.get(ATTEMPT)?.parse().ok()?;
    Some(Found { run_id, attempt })
}
