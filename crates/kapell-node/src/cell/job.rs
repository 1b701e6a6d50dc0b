//! What takes time, and what comes of it.

use std::sync::Arc;

use kapell_api::v1::{CellRecords, ReportAnswer, Welcome};
use kapell_backend::containers::{Containers, Error, Exit};
use kapell_core::board::{CellId, InstanceGuid};
use kapell_core::rep::container::RunResult;
use kapell_core::seams::Moment;
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

use super::LogOf as Key;
use super::launch::Launch;
use super::outcome;
use super::rep::{Rep, Snapshot, Told};
use super::settings::CellSettings;
use super::tag::Tag;
use crate::link::LinkError;

/// What came of a job.
#[derive(Debug)]
pub(super) enum Done {
    Started(Box<Tag>, Result<(), String>),
    Ended(InstanceGuid, RunResult),
    Stopped(InstanceGuid, Result<(), Error>),
    Deleted(InstanceGuid, Result<(), Error>),
    Killed(InstanceGuid, Result<(), Error>),
    Reported(Vec<Told>, Result<Vec<ReportAnswer>, LinkError>),
    Polled(Snapshot, Result<CellRecords, LinkError>),
    Presented(Moment, Result<Welcome, LinkError>),
    Left(Result<(), LinkError>),
    Pruned,
}

/// Starts a container, when it is its turn.
pub(super) async fn start(
    containers: Arc<dyn Containers>,
    turns: Arc<Semaphore>,
    (tag, launch): (Tag, Launch),
    cell_id: CellId,
    settings: Arc<CellSettings>,
) -> Done {
    // The semaphore is never closed.
    let turn = turns.acquire_owned().await;
    let own_dir = containers.dir(tag.instance_guid.as_str());
    let of = tag.clone();
    let made = if launch.asks_for_user() {
        // Looking up a user may take long.
        let made = spawn_blocking(move || launch.spec(&of, &cell_id, own_dir, &settings)).await;
        made.unwrap_or_else(|error| Err(error.to_string()))
    } else {
        launch.spec(&of, &cell_id, own_dir, &settings)
    };
    let outcome = match made {
        Ok(spec) => containers.run(spec).await.map_err(|error| unstarted(&tag, &error)),
        Err(reason) => Err(reason),
    };
    drop(turn);
    Done::Started(Box::new(tag), outcome)
}

/// Why a container was not started. What is wrong with the machine concerns those who run it, too.
fn unstarted(tag: &Tag, error: &Error) -> String {
    let reason = told(error);
    if matches!(error, Error::Io { .. }) {
        let container = &tag.instance_guid;
        tracing::warn!(%container, key = ?tag.key, reason, "this machine could not start a container");
    }
    outcome::cut(reason)
}

/// An error with what caused it.
fn told(error: &Error) -> String {
    match std::error::Error::source(error) {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}

/// Waits for the end of a container and finds out what it left.
pub(super) async fn watch(containers: Arc<dyn Containers>, tag: Tag) -> Done {
    let guid = tag.instance_guid.clone();
    let result = match containers.ended(guid.as_str()).await {
        Ok(exit) => finish(&containers, tag, &exit).await,
        Err(error) => Rep::lost(&error),
    };
    Done::Ended(guid, result)
}

/// What a container that has ended came to.
pub(super) async fn finish(containers: &Arc<dyn Containers>, tag: Tag, exit: &Exit) -> RunResult {
    let result = outcome::result_of(&tag.key, exit);
    let is_task = matches!(tag.key, Key::Task(_));
    if !is_task || result.failed || result.stopped || tag.result_file.is_empty() {
        return result;
    }
    let (guid, file) = (tag.instance_guid.as_str(), &tag.result_file);
    match containers.read_own(guid, file, outcome::LONGEST_RESULT).await {
        Ok(bytes) => RunResult { result: String::from_utf8_lossy(&bytes).into_owned(), ..result },
        Err(error) => {
            let why = std::error::Error::source(&error).map(ToString::to_string);
            let why = why.unwrap_or_else(|| error.to_string());
            let reason = outcome::cut(format!("cannot read the result file `{file}`: {why}"));
            RunResult { exit_code: result.exit_code, ..RunResult::failed(reason) }
        }
    }
}
