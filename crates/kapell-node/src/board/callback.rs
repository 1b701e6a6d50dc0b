//! Tells whoever wanted to know that a task is complete, and then deletes the task.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use kapell_core::board::{Reply, Request, Task, TaskState};
use kapell_core::planted::Flaw;
use tokio::sync::mpsc;
use tokio::task::{Id, JoinSet};

use super::handle::Board;
use super::meters::Meters;
use super::receivers::{Due, Receivers};

/// How many may come in at once. Convergence asks again for what found no place.
pub(super) const WAITING: usize = 4096;
const TRIES: u32 = 3;
/// All tries together end before convergence takes a task for stuck.
const LIMIT: Duration = Duration::from_secs(8);
const PAUSE: Duration = Duration::from_millis(500);

/// How a call ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallbackOutcome {
    /// The status of the answer.
    Answered(u16),
    /// No answer came. It may have been called.
    NoAnswer(String),
    /// It may not be called: trying again does not help.
    Refused(String),
}

/// The way out to those who want to be told.
#[async_trait]
pub trait Callbacks: fmt::Debug + Send + Sync {
    /// POSTs a task, as JSON. Whoever calls gives up by dropping the future.
    async fn call(&self, url: &str, body: &[u8]) -> CallbackOutcome;
}

enum Step {
    Resolved,
    Again(String),
    GivenUp(String),
}

/// Any answer resolves a task, except those that say that somebody was not there to take it.
fn judge(outcome: CallbackOutcome) -> Step {
    match outcome {
        CallbackOutcome::Answered(status @ (503 | 504)) => {
            Step::Again(format!("the answer was {status}"))
        }
        CallbackOutcome::Answered(_) => Step::Resolved,
        CallbackOutcome::NoAnswer(why) => Step::Again(why),
        CallbackOutcome::Refused(why) => Step::GivenUp(why),
    }
}

async fn call(board: &Board, callbacks: &dyn Callbacks, task: &Task) -> Result<(), String> {
    let url = &task.definition.completion_callback_url;
    let body = serde_json::to_vec(task).map_err(|error| error.to_string())?;
    let mut pause = PAUSE;
    let mut last = String::new();
    for tried in 0..TRIES {
        if tried > 0 {
            tokio::time::sleep(pause).await;
            pause *= 2;
            if !board.may_act() {
                return Err("this host does not lead any more".to_owned());
            }
        }
        let outcome = match tokio::time::timeout(LIMIT, callbacks.call(url, &body)).await {
            Ok(outcome) => outcome,
            Err(_) => CallbackOutcome::NoAnswer(format!("no answer within {LIMIT:?}")),
        };
        match judge(outcome) {
            Step::Resolved => return Ok(()),
            Step::Again(why) => last = why,
            Step::GivenUp(why) => return Err(why),
        }
    }
    Err(last)
}

/// Makes the calls that are asked for, until it is dropped.
pub(super) async fn run(
    board: Board,
    callbacks: Arc<dyn Callbacks>,
    mut asked: mpsc::Receiver<Box<Task>>,
) {
    let mut receivers = Receivers::default();
    let mut calls: JoinSet<()> = JoinSet::new();
    let mut under_way: Vec<(Id, Due)> = Vec::new();
    loop {
        while let Some(due) = receivers.next() {
            let (board, callbacks, it) = (board.clone(), Arc::clone(&callbacks), due.clone());
            let call = calls.spawn(async move { serve(&board, callbacks.as_ref(), &it).await });
            under_way.push((call.id(), due));
        }
        tokio::select! {
            biased;
            Some(done) = calls.join_next_with_id() => {
                let id = done.map_or_else(|error| error.id(), |(id, ())| id);
                under_way.retain(|(of, due)| {
                    if *of == id {
                        receivers.done(due);
                    }
                    *of != id
                });
            }
            task = asked.recv() => {
                let Some(task) = task else { return };
                receivers.add(Due::of(&task), |due| state(&board, due).is_some());
            }
        }
    }
}

/// Calls for a task, if it is still to be called for.
async fn serve(board: &Board, callbacks: &dyn Callbacks, due: &Due) {
    let Some(task) = resolve(board, due).await else { return };
    let outcome = call(board, callbacks, &task).await;
    settle(board, due, outcome).await;
}

/// Sets it to RESOLVING: whoever does that may call, and nobody else.
async fn resolve(board: &Board, due: &Due) -> Option<Box<Task>> {
    let completed = state(board, due) == Some(TaskState::Completed);
    if !completed || !board.may_act() {
        return None;
    }
    let task_guid = due.task_guid.clone();
    if board.settings().planted.has(Flaw::TwoCallers) {
        let task = board.look(task_guid.as_str(), |it| it.tasks.get(&task_guid).cloned());
        return task.map(Box::new);
    }
    match board.ask_inside(Request::ResolveTask { task_guid }).await {
        Ok(Ok(Reply::Task { task, .. })) => Some(task).filter(|_| board.may_act()),
        // Somebody deletes it, or the seat is lost and the next leader finds it.
        Ok(Ok(_) | Err(_)) | Err(_) => None,
    }
}

/// How a task stands now; another task of its name does not count.
fn state(board: &Board, due: &Due) -> Option<TaskState> {
    let same = |stands: &&Task| stands.instance_guid == due.instance_guid;
    board.look(due.task_guid.as_str(), |records| {
        records.tasks.get(&due.task_guid).filter(same).map(|stands| stands.state)
    })
}

/// Deletes a task whose call went well, and waits for that. What is not resolved stays RESOLVING:
/// convergence gives it another chance.
async fn settle(board: &Board, due: &Due, outcome: Result<(), String>) {
    let task_guid = due.task_guid.clone();
    match outcome {
        Ok(()) => {
            Meters::add(&board.meters().callbacks_done, 1);
            // No answer: the seat is lost, and the next leader finds it.
            if state(board, due) == Some(TaskState::Completed) {
                // So slow was the store that convergence has taken it for stuck.
                let resolve = Request::ResolveTask { task_guid: task_guid.clone() };
                drop(board.ask_inside(resolve).await);
            }
            if state(board, due).is_some() {
                drop(board.ask_inside(Request::DeleteTask { task_guid }).await);
            }
        }
        Err(why) => {
            Meters::add(&board.meters().callbacks_failed, 1);
            tracing::warn!(%task_guid, why, "the completion callback failed");
        }
    }
}

/// Tells of a task that was deleted before anybody could be told of it.
pub(super) fn untold(board: &Board, task: &Task) {
    let (task_guid, url) = (task.guid(), &task.definition.completion_callback_url);
    Meters::add(&board.meters().callbacks_untold, 1);
    tracing::warn!(%task_guid, url, "a task grew too old and is deleted: nobody was told of it");
}
