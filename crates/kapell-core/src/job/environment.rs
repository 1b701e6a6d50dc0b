//! What the work of a run is told in its environment.

use std::collections::BTreeMap;

use super::definition::{JobDefinition, Payload};
use crate::board::Variable;
use crate::constraint::rfc3339;
use crate::run::RunId;
use crate::seams::Timestamp;

/// The variables that every run has, whatever its job says.
pub const OURS: [&str; 4] =
    ["KAPELL_JOB_ID", "KAPELL_RUN_ID", "KAPELL_ATTEMPT", "KAPELL_SCHEDULED_AT"];

/// What the definition says, then the parameters, then our own: of one name there is one variable, the last.
///
/// The parameters of a workflow are none of its variables: it has them by [`named`].
pub fn environment(
    definition: &JobDefinition,
    parameters: &BTreeMap<String, String>,
    run_id: &RunId,
    attempt: u32,
    scheduled_at: Timestamp,
) -> Vec<Variable> {
    let (own, parameters): (&[Variable], _) = match definition.payload() {
        Some(Payload::Command(command)) => (&command.env, Some(parameters)),
        Some(Payload::Task(task)) => (&task.0.env, Some(parameters)),
        // Its containers have variables of their own.
        Some(Payload::Kubernetes(_)) => (&[], Some(parameters)),
        Some(Payload::Workflow(_)) | None => (&[], None),
    };
    let ours =
        [run_id.job().to_owned(), run_id.to_string(), attempt.to_string(), rfc3339(scheduled_at)];
    let mut all = own.to_vec();
    for (name, value) in parameters.into_iter().flatten() {
        all.retain(|it| it.name != *name);
        all.push(Variable::plain(name.clone(), value.clone()));
    }
    for (name, value) in OURS.into_iter().zip(ours) {
        all.retain(|it| it.name != name);
        all.push(Variable::plain(name, value));
    }
    all
}

/// The parameters as the command line of `kapell process` has them after `-p`; none of anything but a workflow.
pub fn named(definition: &JobDefinition, parameters: &BTreeMap<String, String>) -> Vec<String> {
    match definition.payload() {
        Some(Payload::Workflow(_)) => {
            parameters.iter().map(|(name, value)| format!("{name}={value}")).collect()
        }
        Some(Payload::Command(_) | Payload::Task(_) | Payload::Kubernetes(_)) | None => Vec::new(),
    }
}
