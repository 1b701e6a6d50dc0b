//! What a run may do.

use std::path::Path;

use super::{A_DAY, Found, LONGEST_NAME};
use crate::board::{TaskDefinition, Variable, validate};
use crate::job::definition::{Command, JobDefinition, WorkflowPayload};
use crate::job::environment::OURS;
use crate::kubernetes::{self, KubernetesPayload};

const MOST_ARGUMENTS: usize = 1_000;

impl Found {
    pub(super) fn work(&mut self, job: &JobDefinition) {
        if job.payload().is_none() {
            let text = "must have exactly one of `command`, `task`, `workflow` and `kubernetes`";
            self.add("the job", text);
        }
        if let Some(command) = &job.command {
            self.command(command);
        }
        if let Some(task) = &job.task {
            self.task(&task.0);
        }
        if let Some(workflow) = &job.workflow {
            self.workflow(workflow);
        }
        if let Some(kubernetes) = &job.kubernetes {
            self.kubernetes(kubernetes);
        }
    }

    fn command(&mut self, command: &Command) {
        self.needed("command.command", &command.command);
        self.no_nul("command.command", &command.command);
        let args = command.args.as_deref().unwrap_or_default();
        self.arguments("command.args", args);
        self.texts.extend(validate::variables("command.env", &command.env));
        self.variables("command.env", &command.env);
        if let Some(dir) = &command.dir {
            self.no_nul("command.dir", dir);
            if !Path::new(dir).is_absolute() {
                let text = format!("must be an absolute path, not {}", validate::quoted(dir));
                self.add("command.dir", text);
            }
        }
        if let Some(user) = &command.user {
            self.needed("command.user", user);
            self.no_nul("command.user", user);
        }
        if let Some(grace) = command.stop_grace.filter(|grace| *grace > A_DAY) {
            self.add("command.stop_grace", format!("must be at most {A_DAY}, not {grace}"));
        }
    }

    fn task(&mut self, task: &TaskDefinition) {
        // What the run gives it is not at fault.
        let whole = TaskDefinition {
            task_guid: "run".into(),
            domain: "jobs".into(),
            completion_callback_url: String::new(),
            ..task.clone()
        };
        let faults = validate::task(&whole).into_iter();
        // Of its size the job has its own to say.
        let faults = faults.filter(|text| !text.starts_with("the whole task"));
        self.texts.extend(faults.map(|text| format!("task.{text}")));
        self.variables("task.env", &task.env);
        for (field, text) in [
            ("task_guid", task.task_guid.as_str()),
            ("domain", task.domain.as_str()),
            ("completion_callback_url", &task.completion_callback_url),
        ] {
            if !text.is_empty() {
                self.add(&format!("task.{field}"), "must not be there: each run has its own");
            }
        }
    }

    fn workflow(&mut self, workflow: &WorkflowPayload) {
        match (&workflow.file, &workflow.text) {
            (Some(file), None) => {
                self.needed("workflow.file", file);
                self.no_nul("workflow.file", file);
            }
            (None, Some(text)) => self.needed("workflow.text", text),
            (Some(_), Some(_)) | (None, None) => {
                self.add("workflow", "must have exactly one of `file` and `text`");
            }
        }
        self.arguments("workflow.params", &workflow.params);
    }

    fn kubernetes(&mut self, payload: &KubernetesPayload) {
        self.printable("kubernetes.cluster", &payload.cluster, LONGEST_NAME);
        self.arguments("kubernetes.command", &payload.command);
        self.arguments("kubernetes.args", &payload.args);
        self.texts.extend(validate::variables("kubernetes.env", &payload.env));
        self.variables("kubernetes.env", &payload.env);
        self.texts.extend(kubernetes::faults(payload));
    }

    fn arguments(&mut self, field: &str, texts: &[String]) {
        self.count(field, texts.len(), MOST_ARGUMENTS);
        for (at, text) in texts.iter().enumerate() {
            self.no_nul(&format!("{field}[{at}]"), text);
        }
    }

    fn variables(&mut self, field: &str, env: &[Variable]) {
        self.count(field, env.len(), MOST_ARGUMENTS);
        for (at, variable) in env.iter().enumerate() {
            let name = &variable.name;
            if OURS.contains(&name.as_str()) {
                let text = format!("`{name}` is set by Kapell for every run; use another name");
                self.add(&format!("{field}[{at}].name"), text);
            } else if env[..at].iter().any(|other| other.name == *name) {
                let text = format!("{} stands there twice", validate::quoted(name));
                self.add(&format!("{field}[{at}].name"), text);
            }
        }
    }
}
