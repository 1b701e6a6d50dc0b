//! Tells whoever wanted to know that a task is complete, and then deletes the task.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use kapell_core::board::{Request, Task, TaskGuid};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::handle::Board;
use super::meters::Meters;

/// How many calls are made at once.
const AT_ONCE: usize = 16;
/// How many may wait. Convergence calls again what found no place.
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
    let mut calls: JoinSet<TaskGuid> = JoinSet::new();
    let mut under_way = BTreeSet::new();
    loop {
        tokio::select! {
            biased;
            Some(done) = calls.join_next() => {
                if let Ok(guid) = done {
                    under_way.remove(&guid);
                }
            }
            task = asked.recv(), if calls.len() < AT_ONCE => {
                let Some(task) = task else { return };
                // One that had to wait may have been resolved by another call meanwhile.
                let waits = board.may_act() && version(&board, &task) == Some(task.version);
                if !waits || !under_way.insert(task.guid().clone()) {
                    continue;
                }
                let (board, callbacks) = (board.clone(), Arc::clone(&callbacks));
                calls.spawn(async move {
                    let outcome = call(&board, callbacks.as_ref(), &task).await;
                    settle(&board, &task, outcome).await;
                    task.guid().clone()
                });
            }
        }
    }
}

/// At which version a task stands now; another task of its name does not count.
fn version(board: &Board, task: &Task) -> Option<u64> {
    let same = |stands: &&Task| stands.instance_guid == task.instance_guid;
    board.look(task.guid().as_str(), |records| {
        records.tasks.get(task.guid()).filter(same).map(|stands| stands.version)
    })
}

/// Deletes a task whose call went well, and waits for that. What is not resolved stays RESOLVING:
/// convergence gives it another chance.
async fn settle(board: &Board, task: &Task, outcome: Result<(), String>) {
    let task_guid = task.guid().clone();
    match outcome {
        Ok(()) => {
            Meters::add(&board.meters().callbacks_done, 1);
            if version(board, task).is_some() {
                // No answer: the seat is lost, and the next leader finds it.
                drop(board.ask_inside(Request::DeleteTask { task_guid }).await);
            }
        }
        Err(why) => {
            Meters::add(&board.meters().callbacks_failed, 1);
            tracing::warn!(%task_guid, why, "the completion callback failed");
        }
    }
}
