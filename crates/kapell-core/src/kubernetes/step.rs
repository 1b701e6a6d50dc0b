//! From the command of a workflow's step to the batch/v1 Job that runs it.

use std::collections::BTreeSet;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json, json};
use uuid::Uuid;

use super::check;
use super::order::{ATTEMPT, MARGIN, OWNER, label, literal, readable_name};
use super::payload::KubernetesPayload;
use super::policy::Policy;
use super::seen::Metadata;

/// Labels for people, and the exact values as annotations.
const STEP: &str = "kapell/step";
const WORKFLOW: &str = "kapell/workflow";
/// An annotation that tells whether a Job does what it is to do.
const DIGEST: &str = "kapell/digest";

/// Where the Job of a step is, or will be.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JobPlace {
    /// As the step names it; empty if it names none.
    pub cluster: String,
    pub namespace: String,
    pub name: String,
    /// The run that made it.
    pub run: String,
}

/// One attempt of a step on a cluster.
#[derive(Debug, Clone, Copy)]
pub struct StepOrder<'a> {
    pub place: &'a JobPlace,
    pub workflow: &'a str,
    pub step: &'a str,
    pub attempt: u32,
    pub payload: &'a KubernetesPayload,
    pub policy: Policy,
    /// A program and its arguments; empty: what the pod says itself.
    pub command: &'a [String],
    pub dir: Option<&'a str>,
    /// Of variables of one name the last counts.
    pub env: &'a [(String, String)],
    /// How long it may take in all, should nobody be left to see to it.
    pub limit: Option<Duration>,
    /// How long it may take to end once it was told to. A pod that asks for less has less.
    pub grace: Duration,
}

/// What a pod has that does not say how long it may take to end.
const USUAL_GRACE_S: u64 = 30;

impl StepOrder<'_> {
    /// The Job to be created, or everything that is wrong with it, each with its field.
    pub fn job(&self) -> Result<Json, Vec<String>> {
        let mut found = check::faults(self.payload);
        let mut pod = self.payload.pod();
        found.extend(self.payload.refused_by(self.policy));
        if !self.command.is_empty() && self.payload.has_command() {
            found.push(format!("{}: {TWO_COMMANDS}", self.payload.at()));
        }
        if !found.is_empty() {
            return Err(found);
        }
        pod.insert("restartPolicy".to_owned(), "Never".into());
        self.tell_main(&mut pod);
        self.hand_over(&mut pod);
        let labels = json!({
            OWNER: label(&self.place.run),
            STEP: label(self.step),
            WORKFLOW: label(self.workflow),
        });
        let mut spec = json!({
            "backoffLimit": 0,
            "completions": 1,
            "parallelism": 1,
            "template": {"metadata": {"labels": labels}, "spec": pod},
        });
        if let Some(limit) = self.limit {
            let whole = limit.saturating_add(MARGIN);
            spec["activeDeadlineSeconds"] = (whole.as_secs() + 1).into();
        }
        let digest = Uuid::new_v5(&Uuid::NAMESPACE_OID, spec.to_string().as_bytes());
        // Not at the end: a node that waits for a pod does not hear that it is to wait for less.
        let pod = &mut spec["template"]["spec"];
        let own = pod["terminationGracePeriodSeconds"].as_u64().unwrap_or(USUAL_GRACE_S);
        let most = self.grace.as_secs() + u64::from(self.grace.subsec_nanos() > 0);
        pod["terminationGracePeriodSeconds"] = own.min(most.max(1)).into();
        Ok(json!({
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {
                "name": self.place.name,
                "namespace": self.place.namespace,
                "labels": labels,
                "annotations": {
                    STEP: self.step,
                    WORKFLOW: self.workflow,
                    ATTEMPT: self.attempt.to_string(),
                    DIGEST: digest.to_string(),
                },
            },
            "spec": spec,
        }))
    }

    /// The first container is the step.
    fn tell_main(&self, pod: &mut Map<String, Json>) {
        let first = pod.get_mut("containers").and_then(|list| list.get_mut(0));
        let Some(main) = first.and_then(Json::as_object_mut) else { return };
        if !self.command.is_empty() {
            let words = self.command.iter().map(|word| literal(word));
            main.insert("command".to_owned(), words.collect());
        }
        if let Some(dir) = self.dir {
            main.entry("workingDir").or_insert_with(|| dir.into());
        }
    }

    /// Every container has every value in its environment. What it sets itself stays, and may refer to them.
    fn hand_over(&self, pod: &mut Map<String, Json>) {
        let mut seen = BTreeSet::new();
        let mut values: Vec<&(String, String)> =
            self.env.iter().rev().filter(|(name, _)| seen.insert(name)).collect();
        values.reverse();
        for list in ["containers", "initContainers"] {
            let containers = pod.get_mut(list).and_then(Json::as_array_mut).into_iter().flatten();
            for container in containers.filter_map(Json::as_object_mut) {
                let own = match container.remove("env") {
                    Some(Json::Array(own)) => own,
                    Some(_) | None => Vec::new(),
                };
                let is_own = |name: &str| own.iter().any(|it| it["name"] == *name);
                let given = values.iter().filter(|(name, _)| !is_own(name));
                let given =
                    given.map(|(name, value)| json!({"name": name, "value": literal(value)}));
                let env: Vec<Json> = given.chain(own.iter().cloned()).collect();
                container.insert("env".to_owned(), env.into());
            }
        }
    }
}

/// Why a step cannot have a command when its pod has one.
pub(crate) const TWO_COMMANDS: &str = "the step has a command, and so has its first container";

/// Whether a Job that is there is the one that was to be created.
pub fn is_work_of(metadata: &Metadata, job: &Json) -> bool {
    let digest = metadata.annotations.get(DIGEST);
    digest.is_some_and(|digest| job["metadata"]["annotations"][DIGEST] == **digest)
}

/// The name of a step's Job: the same whoever makes it, and another for each attempt of each run.
pub fn step_job_name(run: &str, step: &str, attempt: u32) -> String {
    let id = format!("step {run} {attempt} {step}");
    readable_name(step, Uuid::new_v5(&Uuid::NAMESPACE_OID, id.as_bytes()))
}

/// Finds all Jobs and pods of steps of these runs.
pub fn step_selector<'a>(runs: impl IntoIterator<Item = &'a str>) -> String {
    let runs: BTreeSet<String> = runs.into_iter().map(label).collect();
    format!("{OWNER} in ({})", runs.into_iter().collect::<Vec<_>>().join(","))
}
