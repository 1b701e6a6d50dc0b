//! What pages have done: forms of browsers, each the same as a route of the API.

use std::collections::BTreeMap;

use hyper::StatusCode;
use hyper::header::{HeaderValue, LOCATION};
use kapell_api::v1::{CancelWanted, PauseWanted, TriggerWanted};
use kapell_core::job::{JobDefinition, JobRequest};
use kapell_core::seams::Ids;

use super::super::answer::{Answer, Problem};
use super::super::route::{Gives, Route, Verb};
use super::super::session;
use super::call::{Asked, Call, intend_job};
use super::jobs::{ask, definition, job_of, pause_with, trigger_with};
use super::runs::{cancel_with, retry_with};
use super::table::Op;

/// What the names of the values of a run begin with.
const PARAMETER: &str = "param.";

/// What a form does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Pause,
    Resume,
    Trigger,
    Cancel,
    Retry,
}

impl Form {
    /// What the API calls it.
    pub(super) const fn op(self) -> Op {
        match self {
            Self::Pause => Op::PauseJob,
            Self::Resume => Op::ResumeJob,
            Self::Trigger => Op::TriggerJob,
            Self::Cancel => Op::CancelRun,
            Self::Retry => Op::RetryRun,
        }
    }
}

const fn form(path: &'static str, does: Form) -> Route<Form> {
    let (method, gives) = (Verb::Post, Gives::Nothing);
    Route { method, path, does, query: &[], about: "", takes: None, gives }
}

pub(super) const FORMS: &[Route<Form>] = &[
    form("/job/{job_id}/pause", Form::Pause),
    form("/job/{job_id}/resume", Form::Resume),
    form("/job/{job_id}/trigger", Form::Trigger),
    form("/run/{run_id}/cancel", Form::Cancel),
    form("/run/{run_id}/retry", Form::Retry),
];

/// Does it, and shows the browser the page of what it was done to.
pub(super) async fn perform(form: Form, call: Call, ids: &dyn Ids) -> Result<Answer, Box<Problem>> {
    let now = call.now;
    let (fields, asked) = call.form().await?;
    let field = |name: &str| {
        fields.iter().find(|(it, _)| it == name).map(|(_, value)| value.clone()).unwrap_or_default()
    };
    let place = match form {
        Form::Pause => {
            pause_with(&asked, PauseWanted { note: field("note") }).await?;
            format!("/job/{}", job_of(&asked)?)
        }
        Form::Resume => {
            let job_id = job_of(&asked)?;
            intend_job(&asked.note, &*asked.desk, &job_id).await?;
            ask(&*asked.desk, JobRequest::Resume { job_id: job_id.clone() }).await?;
            format!("/job/{job_id}")
        }
        Form::Trigger => {
            let parameters = parameters(&asked, &fields)?;
            let run_id = trigger_with(&asked, TriggerWanted { parameters }, ids, now).await?;
            format!("/run/{run_id}")
        }
        Form::Cancel => {
            cancel_with(&asked, CancelWanted { at_once: field("at_once") == "yes" }).await?;
            format!("/run/{}", asked.params.get("run_id"))
        }
        Form::Retry => format!("/run/{}", retry_with(&asked, ids, now).await?),
    };
    let mut answer = session::html(StatusCode::SEE_OTHER, String::new());
    if let Ok(place) = HeaderValue::try_from(place) {
        answer.headers_mut().insert(LOCATION, place);
    }
    Ok(answer)
}

/// The values that were filled in. A field that was left empty says something only where there is a default.
fn parameters(
    asked: &Asked,
    fields: &[(String, String)],
) -> Result<BTreeMap<String, String>, Box<Problem>> {
    let definition = definition(&*asked.desk, &job_of(asked)?)?;
    let given = fields.iter().filter_map(|(name, value)| {
        let name = name.strip_prefix(PARAMETER)?;
        (!value.is_empty() || has_default(&definition, name))
            .then(|| (name.to_owned(), value.clone()))
    });
    Ok(given.collect())
}

fn has_default(definition: &JobDefinition, name: &str) -> bool {
    definition.parameters.iter().any(|it| it.name == name && it.default.is_some())
}
