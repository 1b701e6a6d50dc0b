//! What a job goes by, and what would change that it runs or does not.

use super::definition::JobDefinition;
use super::record::Job;
use crate::board::explain::Input;
use crate::run::Run;

/// What would change how a job stands, the most likely first.
pub fn of_job(job: &Job, definition: &JobDefinition) -> Vec<String> {
    let id = &job.job_id;
    let mut advice = Vec::new();
    if job.removed {
        advice.push("apply its definition again: a deleted job schedules nothing".to_owned());
        return advice;
    }
    if job.paused.is_some() {
        advice.push(format!("`kapell job resume {id}`"));
    }
    if definition.suspend {
        advice.push("take `suspend` out of its definition and apply it again".to_owned());
    }
    if definition.schedule.is_empty() {
        advice.push("give it a `schedule` and apply it again".to_owned());
    }
    if definition.manual {
        advice.push(format!("`kapell job trigger {id}` has it run now"));
    }
    advice
}

/// What would change how a run stands.
pub fn of_run(run: &Run) -> Vec<String> {
    let id = &run.run_id;
    if run.state.is_final() {
        return vec![format!("`kapell run retry {id}` has it done once more")];
    }
    if run.cancel.is_some() {
        Vec::new()
    } else {
        vec![format!("`kapell run cancel {id}` ends it")]
    }
}

/// The values of a definition that its moments and runs go by.
pub fn inputs(definition: &JobDefinition) -> Vec<Input> {
    let input = |name: &str, value: String| Input { name: name.to_owned(), value };
    let mut inputs = vec![
        input("schedule", definition.schedule.join("; ")),
        input("timezone", definition.timezone.clone()),
        input("overlap", definition.overlap.name().to_owned()),
        input("max_concurrent_runs", definition.max_concurrent_runs.to_string()),
        input(
            "catch_up",
            format!("{} within {}", definition.catch_up.policy.name(), definition.catch_up.window),
        ),
    ];
    if let Some(jitter) = definition.jitter {
        inputs.push(input("jitter", jitter.to_string()));
    }
    if let Some(deadline) = definition.starting_deadline {
        inputs.push(input("starting_deadline", deadline.to_string()));
    }
    if let Some(group) = &definition.group {
        inputs.push(input("group", format!("{}, at most {}", group.name, group.limit)));
    }
    inputs
}
