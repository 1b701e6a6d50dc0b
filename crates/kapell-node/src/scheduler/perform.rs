//! Carries out what runs ask for, each in a short task.

use std::sync::Arc;
use std::time::Duration;

use kapell_core::job::{JobDefinition, Length, params};
use kapell_core::run::{Evidence, Happened, Run, StopKind, WorkEnd};
use kapell_core::seams::Timestamp;
use tokio::time::timeout;

use super::backend::{Attempt, Backend, Work};
use super::checker::{Checker, Subject};
use super::logs::RunLogs;
use crate::constraint::Pulse;
use crate::failpoint;

/// How long it may take to say what it knows, until it is asked again.
const FIND_LIMIT: Duration = Duration::from_secs(30);
const FIND_PAUSE: Duration = Duration::from_secs(1);
/// How often it is asked to end work, and how long it is left alone between.
const STOP_TRIES: u32 = 5;
const STOP_PAUSE: Duration = Duration::from_secs(2);
/// What work has to end by itself, where its job does not say.
const USUAL_GRACE: Duration = Duration::from_secs(30);

/// What a deed needs to know.
#[derive(Debug, Clone)]
pub(super) struct Case {
    pub(super) definition: Arc<JobDefinition>,
    pub(super) run: Arc<Run>,
    pub(super) attempt: u32,
    pub(super) started_at: Option<Timestamp>,
    pub(super) pulse: Pulse,
}

impl Case {
    fn name(&self) -> Attempt {
        Attempt { run_id: self.run.run_id.clone(), number: self.attempt }
    }

    fn subject(&self) -> Subject {
        Subject {
            definition: Arc::clone(&self.definition),
            run: self.run.clone(),
            attempt: self.attempt,
            started_at: self.started_at,
        }
    }
}

pub(super) async fn check(case: Case, checker: Arc<dyn Checker>) -> Happened {
    failpoint::pass("check");
    let seen = checker.check(&case.subject(), &case.pulse).await;
    failpoint::pass("checked");
    Happened::Checked { attempt: case.attempt, checked: seen }
}

pub(super) async fn act(case: Case, checker: Arc<dyn Checker>) -> Happened {
    failpoint::pass("act");
    let done = checker.act(&case.subject(), &case.pulse).await;
    failpoint::pass("acted");
    Happened::ActionsDone { attempt: case.attempt, done }
}

pub(super) async fn check_post(case: Case, checker: Arc<dyn Checker>, work: WorkEnd) -> Happened {
    failpoint::pass("check-post");
    let done = checker.check_post(&case.subject(), &work, &case.pulse).await;
    failpoint::pass("checked-post");
    Happened::PostChecked { attempt: case.attempt, done }
}

pub(super) async fn launch(case: Case, backend: Option<Arc<dyn Backend>>) -> Happened {
    let attempt = case.attempt;
    let Some(backend) = backend else {
        let why = "its job has nothing that could be run: apply it again".to_owned();
        return Happened::LaunchFailed { attempt, why };
    };
    let work = Work {
        attempt: case.name(),
        definition: Arc::clone(&case.definition),
        parameters: params::of_run(&case.definition, &case.run.parameters),
        scheduled_at: case.run.scheduled_at,
    };
    failpoint::pass("launch");
    let launch = case.pulse.during(backend.launch(&work));
    let launched = match backend.launch_limit() {
        None => launch.await,
        Some(limit) => timeout(limit, launch).await.unwrap_or_else(|_| {
            Err(format!("backend `{}` did not take it within {limit:?}", backend.name()))
        }),
    };
    failpoint::pass("launched");
    match launched {
        Ok(()) => Happened::Launched { attempt },
        Err(why) => Happened::LaunchFailed { attempt, why },
    }
}

pub(super) async fn find(case: Case, backend: Option<Arc<dyn Backend>>) -> Happened {
    let attempt = case.attempt;
    let Some(backend) = backend else {
        let why = "its job has nothing that could be run".to_owned();
        return Happened::Found { attempt, evidence: Evidence::Unknown { why } };
    };
    let name = case.name();
    loop {
        failpoint::pass("find");
        let found = case.pulse.during(backend.find(&name, &case.run.place));
        if let Ok(evidence) = timeout(FIND_LIMIT, found).await {
            failpoint::pass("found");
            return Happened::Found { attempt, evidence };
        }
        tracing::warn!(run_id = %name.run_id, attempt, backend = backend.name(), "no word of the work of a run: asking again");
        case.pulse.during(tokio::time::sleep(FIND_PAUSE)).await;
    }
}

pub(super) async fn stop(
    case: Case,
    backend: Option<Arc<dyn Backend>>,
    kind: StopKind,
) -> Happened {
    let attempt = case.attempt;
    let Some(backend) = backend else { return Happened::Stopped { attempt, left: None } };
    let name = case.name();
    let (mut left, mut kind) = (None, kind);
    for _ in 0..STOP_TRIES {
        let limit = grace(&case.definition, kind) + backend.stop_limit();
        failpoint::pass("stop");
        let stopping = backend.stop(&name, &case.run.place, kind);
        let stopped = timeout(limit, case.pulse.during(stopping)).await;
        failpoint::pass("stopped");
        match stopped {
            Ok(Ok(())) => return Happened::Stopped { attempt, left: None },
            Ok(Err(why)) => left = Some(why),
            Err(_) => {
                left = Some(unended(&*backend, limit));
                // It has had its grace.
                kind = StopKind::AtOnce;
            }
        }
        case.pulse.during(tokio::time::sleep(STOP_PAUSE)).await;
    }
    Happened::Stopped { attempt, left }
}

/// How long work may take to end by itself.
fn grace(definition: &JobDefinition, kind: StopKind) -> Duration {
    match kind {
        StopKind::AtOnce => Duration::ZERO,
        StopKind::Graceful => {
            let own = definition.command.as_ref().and_then(|command| command.stop_grace);
            own.map_or(USUAL_GRACE, Length::get)
        }
    }
}

fn unended(backend: &dyn Backend, limit: Duration) -> String {
    format!("it may still run: backend `{}` did not end it within {limit:?}", backend.name())
}

/// Lets go of attempts whose outcome is stored or that nobody needs, ended first if they may still run.
pub(super) async fn discharge(
    backend: Arc<dyn Backend>,
    attempts: Vec<Attempt>,
    stops: bool,
    logs: Option<RunLogs>,
) {
    let place = backend.place();
    let limit = backend.stop_limit();
    let stop = async |attempt: &Attempt| {
        let stopped = timeout(limit, backend.stop(attempt, &place, StopKind::AtOnce)).await;
        stopped.unwrap_or_else(|_| Err(unended(&*backend, limit)))
    };
    for attempt in attempts {
        if stops && let Err(why) = stop(&attempt).await {
            let run_id = &attempt.run_id;
            tracing::error!(%run_id, attempt = attempt.number, why, "work that nobody needs could not be ended");
            if !backend.may_be_forgotten(&attempt) {
                continue;
            }
        }
        failpoint::pass("release");
        backend.release(&attempt).await;
        failpoint::pass("released");
        if let Some(logs) = &logs {
            keep(logs.clone(), attempt).await;
        }
    }
}

/// Copies what an attempt wrote to where it outlives this host. If that fails it lies here as before.
async fn keep(logs: RunLogs, attempt: Attempt) {
    let (run_id, number) = (attempt.run_id.clone(), attempt.number);
    let kept = tokio::task::spawn_blocking(move || logs.keep(&attempt)).await;
    if let Ok(Err(error)) = kept {
        tracing::warn!(%run_id, attempt = number, %error, "the log of a run cannot be copied to `blobs`: it stays on this host");
    }
}
