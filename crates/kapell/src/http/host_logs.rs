//! `GET /v1/host/logs/{run_id}/{attempt}`: what this host keeps of a run, for the host that leads.
//!
//! Every host answers it itself, whoever leads: a log lies where its run was led.

use std::sync::Arc;

use hyper::header::HeaderValue;
use hyper::{Method, StatusCode};
use kapell_core::access::Role;
use kapell_core::percent;
use kapell_core::run::RunId;
use kapell_node::cell::ContainerLogs;
use tokio::task::spawn_blocking;

use super::Face;
use super::answer::{self, Answer, Problem};
use super::body::Body;
use super::cell::{Files, Reading};
use super::door::By;
use super::query::Query;
use super::route::{not_allowed, not_found};
use super::site::{Tools, Visit};

const PREFIX: &str = "/v1/host/logs/";

/// Whether a request is for this host and not for the leader.
pub(super) fn is_meant(path: &str) -> bool {
    path.starts_with(PREFIX)
}

/// Where the log of an attempt is asked for.
pub(super) fn path(run_id: &RunId, attempt: u32, follow: bool, tail: Option<u64>) -> String {
    let tail = tail.map(|lines| format!("&tail={lines}")).unwrap_or_default();
    format!("{PREFIX}{run_id}/{attempt}?follow={follow}{tail}")
}

pub(super) async fn answer(
    visit: &Visit,
    face: Arc<dyn Face>,
    tools: &Tools,
) -> Result<Answer, Box<Problem>> {
    let uri = visit.request.uri();
    if *visit.request.method() != Method::GET {
        return Err(not_allowed("GET"));
    }
    let is_host = match &visit.entry.by {
        By::Token => true,
        By::Certificate => visit.entry.who.role == Role::Host,
        By::Session(_) | By::Signed(_) => false,
    };
    if !is_host {
        let text = "this is for hosts of the cluster: ask for the log of the run";
        return Err(Problem::new(StatusCode::FORBIDDEN, "forbidden", text));
    }
    let of = read(uri.path()).ok_or_else(|| not_found(uri.path()))?;
    let query = Query::parse(uri.query().unwrap_or_default(), &["follow", "tail"])?;
    let (follow, tail) = (query.switch("follow")?, query.number::<u64>("tail")?);
    let files = Arc::new(Lying { face, run_id: of.0, attempt: of.1 });
    let has = {
        let files = Arc::clone(&files);
        spawn_blocking(move || !files.logs().is_empty()).await.unwrap_or(false)
    };
    if !has {
        let text = "nothing of it is kept on this host";
        return Err(Problem::new(StatusCode::NOT_FOUND, "not_found", text));
    }
    let place = follow.then(|| tools.stream()).transpose()?;
    let reading = Reading::of(files, false);
    let kind = HeaderValue::from_static("application/octet-stream");
    let body = Body::fed(move |pipe| async move {
        reading.tell(&pipe, follow, tail, Ok).await;
        drop(place);
    });
    Ok(answer::stream(kind, body))
}

fn read(path: &str) -> Option<(RunId, u32)> {
    let (run_id, attempt) = path.strip_prefix(PREFIX)?.split_once('/')?;
    Some((RunId::parse(&percent::decode(run_id).ok()?)?, attempt.parse().ok()?))
}

/// What lies on this host. Whether more comes only the leader knows, and hangs up when none does.
struct Lying {
    face: Arc<dyn Face>,
    run_id: RunId,
    attempt: u32,
}

impl Files for Lying {
    fn is_live(&self) -> bool {
        true
    }

    fn logs(&self) -> Vec<ContainerLogs> {
        self.face.run_log(&self.run_id, self.attempt).into_iter().collect()
    }

    fn ends(&self) -> bool {
        true
    }
}
