//! Which parameters a job may have.

use super::{Found, LONGEST_TEXT};
use crate::board::validate::quoted;
use crate::job::definition::{JobDefinition, Parameter, Payload};
use crate::job::params::LONGEST_VALUE;

const MOST_PARAMETERS: usize = 64;
const MOST_OPTIONS: usize = 100;
const LONGEST_NAME: usize = 100;
/// Those names are ours.
const RESERVED: &str = "KAPELL_";

impl Found {
    pub(super) fn parameters(&mut self, job: &JobDefinition) {
        self.count("parameters", job.parameters.len(), MOST_PARAMETERS);
        for (at, parameter) in job.parameters.iter().enumerate() {
            let field = format!("parameters[{at}]");
            self.parameter(&field, parameter);
            let name = &parameter.name;
            if job.parameters[..at].iter().any(|other| other.name == *name) {
                self.add(&format!("{field}.name"), format!("{} stands there twice", quoted(name)));
            }
            if sets(job, name) {
                let text = format!("`{name}` is set by `env` too; leave one of them out");
                self.add(&format!("{field}.name"), text);
            }
            if parameter.default.is_some() {
                continue;
            }
            let field = format!("{field}.default");
            if !parameter.changeable {
                self.add(&field, "must be there: nobody may change it");
            } else if !job.schedule.is_empty() {
                self.add(&field, "must be there: a run by the schedule is given no values");
            }
        }
    }

    fn parameter(&mut self, field: &str, parameter: &Parameter) {
        let Parameter { name, default, options, about, .. } = parameter;
        let mut letters = name.bytes();
        let fits = letters.next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_')
            && letters.all(|b| b.is_ascii_alphanumeric() || b == b'_');
        if !fits || name.len() > LONGEST_NAME {
            let right = "must be 1 to 100 letters, digits or `_`, not beginning with a digit";
            self.add(&format!("{field}.name"), format!("{right}, not {}", quoted(name)));
        } else if name.starts_with(RESERVED) {
            let why = format!("begins with `{RESERVED}`, which is for what Kapell sets");
            let text = format!("{} {why}; use another name", quoted(name));
            self.add(&format!("{field}.name"), text);
        }
        self.count(&format!("{field}.options"), options.len(), MOST_OPTIONS);
        self.unique(&format!("{field}.options"), options);
        for (at, option) in options.iter().enumerate() {
            self.value(&format!("{field}.options[{at}]"), option);
        }
        if let Some(default) = default {
            self.value(&format!("{field}.default"), default);
            if !options.is_empty() && !options.contains(default) {
                let shown: Vec<String> = options.iter().map(|option| quoted(option)).collect();
                let text = format!("must be one of {}, not {}", shown.join(", "), quoted(default));
                self.add(&format!("{field}.default"), text);
            }
        }
        self.no_nul(&format!("{field}.about"), about);
        self.bytes(&format!("{field}.about"), about, LONGEST_TEXT);
    }

    fn value(&mut self, field: &str, value: &str) {
        self.no_nul(field, value);
        self.bytes(field, value, LONGEST_VALUE);
    }
}

/// Whether the work sets a variable of that name itself: which of both would hold?
fn sets(job: &JobDefinition, name: &str) -> bool {
    match job.payload() {
        Some(Payload::Command(command)) => command.env.iter().any(|it| it.name == name),
        Some(Payload::Task(task)) => {
            let runs = task.0.action.all().filter_map(|action| action.as_run());
            let mut all = task.0.env.iter().chain(runs.flat_map(|run| &run.env));
            all.any(|it| it.name == name)
        }
        Some(Payload::Kubernetes(kubernetes)) => kubernetes.sets(name),
        Some(Payload::Workflow(_)) | None => false,
    }
}
