//! How the board's refusals read over HTTP.

use hyper::StatusCode;
use hyper::header::{HeaderName, HeaderValue, LOCATION};
use kapell_api::v1::DomainView;
use kapell_core::board::{Freshness, Refusal, Reply};
use kapell_core::seams::Timestamp;
use kapell_node::board::Declined;
use kapell_node::link::LinkError;
use serde_json::json;

use super::super::answer::{self, Answer, Problem};

pub(super) const EVENT_ID: HeaderName = HeaderName::from_static(kapell_api::v1::EVENT_ID);

pub(super) fn declined(why: Declined) -> Box<Problem> {
    match why {
        Declined::Refused(refusal) => refused(&refusal),
        Declined::Busy => {
            Problem::new(StatusCode::TOO_MANY_REQUESTS, "busy", why.to_string()).passing()
        }
        Declined::ReadOnly(_) => {
            Problem::new(StatusCode::SERVICE_UNAVAILABLE, "read_only", why.to_string()).passing()
        }
        Declined::Unsettled(_) => {
            let text = why.to_string();
            Problem::new(StatusCode::SERVICE_UNAVAILABLE, "store_unavailable", text).passing()
        }
        Declined::NotLeading => {
            let text = "this host does not lead any more; whether it was done is not known";
            Problem::new(StatusCode::SERVICE_UNAVAILABLE, "not_leading", text).passing()
        }
    }
}

pub(super) fn refused(refusal: &Refusal) -> Box<Problem> {
    let (status, code, details) = match refusal {
        Refusal::Invalid { problems } => {
            (StatusCode::UNPROCESSABLE_ENTITY, "invalid", json!({ "problems": problems }))
        }
        Refusal::NotFound { what, name } => {
            (StatusCode::NOT_FOUND, "not_found", json!({ "what": what, "name": name }))
        }
        Refusal::Exists { fields, .. } => {
            (StatusCode::CONFLICT, "exists", json!({ "fields": fields }))
        }
        Refusal::Version { stands, asked } => {
            (StatusCode::CONFLICT, "version", json!({ "stands": stands, "asked": asked }))
        }
        Refusal::State { .. } => (StatusCode::CONFLICT, "state", json!({})),
    };
    Problem::new(status, code, refusal.to_string()).details(details)
}

pub(super) fn missing(what: &str, name: &str) -> Box<Problem> {
    refused(&Refusal::NotFound { what: what.to_owned(), name: name.to_owned() })
}

pub(super) fn invalid(problem: String) -> Box<Problem> {
    refused(&Refusal::Invalid { problems: vec![problem] })
}

/// Why a cell did not do what it was told.
pub(super) fn unlinked(error: LinkError) -> Box<Problem> {
    match error {
        LinkError::Refused(problem) => {
            let details = problem.details;
            Problem::new(StatusCode::CONFLICT, problem.code, problem.message).details(details)
        }
        LinkError::NoAnswer(text) => {
            let text = format!("the cell gave no answer: {text}");
            Problem::new(StatusCode::BAD_GATEWAY, "cell_silent", text)
        }
    }
}

/// Shows what a request was answered with. What was made is at `place`.
pub(super) fn reply(reply: Reply, place: &str, now: Timestamp) -> Answer {
    let made = |created| if created { StatusCode::CREATED } else { StatusCode::OK };
    let (mut answer, created) = match reply {
        Reply::Done => (answer::nothing(), false),
        Reply::Domain(freshness) => {
            (answer::value(StatusCode::OK, &domain(&freshness, now)), false)
        }
        Reply::Desired { lrp, created } => (answer::value(made(created), &lrp), created),
        Reply::Task { task, created } => (answer::value(made(created), &task), created),
        Reply::Instance(lrp) => (answer::value(StatusCode::OK, &lrp), false),
        Reply::Job { job, created } => (answer::value(made(created), &job), created),
        Reply::Run { run, created } => (answer::value(made(created), &run), created),
    };
    if created && let Ok(place) = HeaderValue::try_from(place) {
        answer.headers_mut().insert(LOCATION, place);
    }
    answer
}

pub(super) fn domain(freshness: &Freshness, now: Timestamp) -> DomainView {
    DomainView {
        domain: freshness.domain.to_string(),
        fresh: freshness.is_fresh(now),
        expires_at: freshness.expires_at,
    }
}
