//! Work as tasks on cells: the board has the record, and its name is that of the attempt.
//!
//! The board keeps a completed task that is the work of a run until it is released, so a task that is not there was
//! never created.

mod order;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use arcstr::ArcStr;
use async_trait::async_trait;
use kapell_api::v1::Cancel;
use kapell_core::board::{
    CellPresence, Refusal, Reply, Request, RunTask, Task, TaskGuid, TaskState,
};
use kapell_core::log::{Frame, HEAD};
use kapell_core::run::is_of_run;
use kapell_core::run::{Evidence, StopKind, WorkEnd, task_guid};
use kapell_core::seams::Timestamp;
use kapell_core::seat::Epoch;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep, timeout};

use super::backend::{Attempt, Backend, Newsroom, Work};
use super::logs::{Fetched, MOST_FETCHED, RunLogs};
use super::teller::{End, Teller};
use crate::board::{Board, Declined};
use crate::link::CellLink;

/// Before a board is asked again that has too much to do.
const AGAIN: Duration = Duration::from_millis(50);
/// Between two looks whether a cell still has a container.
const LOOK: Duration = Duration::from_millis(100);
/// How long a cell may take to end a container. A grace time is part of it.
const GONE: Duration = Duration::from_secs(60);
/// How long a cell may take to say how it stands.
const STATE: Duration = Duration::from_secs(5);
/// How long the log of a task may take to be fetched. A cell that is lost has none to give.
const LOG: Duration = Duration::from_secs(30);

/// Reads what tasks wrote, from the cells that have it.
#[async_trait]
pub trait TaskLogs: fmt::Debug + Send + Sync {
    /// Hands each frame to `take`, until that says that it is enough. The error says why there is no more.
    async fn read(
        &self,
        cell: &CellPresence,
        epoch: Epoch,
        task_guid: &TaskGuid,
        take: &mut (dyn FnMut(Frame) -> bool + Send),
    ) -> Result<(), String>;
}

/// What tasks wrote is read from there, and kept here.
#[derive(Debug)]
pub struct Logs {
    pub of_tasks: Arc<dyn TaskLogs>,
    pub of_runs: RunLogs,
}

/// See the module.
#[derive(Debug)]
pub struct CellsBackend {
    board: Board,
    cells: Arc<dyn CellLink>,
    /// Without it nobody keeps what tasks write.
    logs: Option<Logs>,
    teller: Teller,
    names: Mutex<BTreeMap<TaskGuid, Attempt>>,
}

impl CellsBackend {
    pub fn new(
        board: Board,
        cells: Arc<dyn CellLink>,
        logs: Option<Logs>,
        newsroom: Newsroom,
    ) -> Self {
        let (teller, names) = (Teller::new(newsroom), Mutex::default());
        Self { board, cells, logs, teller, names }
    }

    fn names(&self) -> MutexGuard<'_, BTreeMap<TaskGuid, Attempt>> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn task(&self, guid: &TaskGuid) -> Option<Task> {
        self.board.look(guid.as_str(), |records| records.tasks.get(guid).cloned())
    }

    fn add(&self, attempt: &Attempt, guid: &TaskGuid) {
        self.names().insert(guid.clone(), attempt.clone());
        self.teller.add(attempt);
    }

    fn forget(&self, attempt: &Attempt, guid: &TaskGuid) {
        self.names().remove(guid);
        self.teller.forget(attempt);
    }

    /// Takes in how the task of an attempt stands. One that was never seen has not been created yet.
    fn look(&self, attempt: &Attempt, guid: &TaskGuid) {
        let Some(task) = self.task(guid) else { return };
        match task.state {
            TaskState::Pending => {}
            TaskState::Running => self.teller.started(attempt, self.on_the_wall(task.since)),
            TaskState::Completed | TaskState::Resolving => {
                let at = self.on_the_wall(task.first_completed_at.unwrap_or(task.since));
                let began = task.started_at.map(|began| self.on_the_wall(began));
                self.teller.ended(attempt, end(&task, began, at));
            }
        }
    }

    /// The board's time goes on when a clock is set back, while runs go by the clock: what is so long ago for the one is so
    /// long ago for the other.
    fn on_the_wall(&self, at: Timestamp) -> Timestamp {
        let age = self.board.now().0.saturating_sub(at.0).max(0);
        Timestamp(self.board.wall().0.saturating_sub(age))
    }

    /// Asks until the board has decided.
    async fn insist(&self, request: Request) -> Result<Reply, Declined> {
        loop {
            match self.board.ask(request.clone()).await {
                Err(Declined::Busy | Declined::ReadOnly(_) | Declined::Unsettled(_)) => {
                    sleep(AGAIN).await;
                }
                decided @ (Ok(_) | Err(Declined::Refused(_) | Declined::NotLeading)) => {
                    return decided;
                }
            }
        }
    }

    /// Has the cell of a task that is cancelled end it without its time to stop. One that does not answer lets it have that.
    async fn hurry(&self, task: &Task) {
        let Some(cell) = task.cell_id.as_ref().and_then(|cell_id| self.board.cell(cell_id)) else {
            return;
        };
        let (task_guid, instance_guid) = (task.guid().clone(), task.instance_guid.clone());
        let cancel = Cancel { task_guid, instance_guid, at_once: true };
        let told = timeout(STATE, self.cells.cancel(&cell, self.board.epoch(), &cancel)).await;
        if let Ok(Err(error)) = told {
            tracing::debug!(task = %task.guid(), %error, "a cell was not told to end a task at once");
        }
    }

    /// Waits until the cell of a task has no container of it any more.
    async fn gone(&self, task: &Task) -> Result<(), String> {
        let Some(cell_id) = &task.cell_id else { return Ok(()) };
        let end = Instant::now() + GONE;
        loop {
            let trouble = match self.board.cell(cell_id) {
                None => format!("cell `{cell_id}` is not present"),
                Some(cell) => {
                    match timeout(STATE, self.cells.state(&cell, self.board.epoch())).await {
                        Ok(Ok(state)) if state.tasks.iter().all(|it| it.key != *task.guid()) => {
                            return Ok(());
                        }
                        Ok(Ok(_)) => format!("cell `{cell_id}` still has its container"),
                        Ok(Err(error)) => format!("cell `{cell_id}` does not say: {error}"),
                        Err(_) => format!("cell `{cell_id}` does not answer"),
                    }
                }
            };
            if Instant::now() >= end {
                return Err(format!("it may still run: {trouble}"));
            }
            sleep(LOOK).await;
        }
    }

    /// Copies what the task wrote to where the logs of runs are.
    async fn keep_log(&self, attempt: &Attempt, task: &Task) -> Result<(), String> {
        let (Some(cell_id), Some(Logs { of_tasks, of_runs })) = (&task.cell_id, &self.logs) else {
            return Ok(());
        };
        // A disk may take its time: others write. No more waits for them than a log may be long.
        let (frames, queue) = std::sync::mpsc::channel::<Frame>();
        let (logs, name) = (of_runs.clone(), attempt.clone());
        let writer = spawn_blocking(move || -> io::Result<Fetched> {
            let mut kept = logs.fetch(&name)?;
            for frame in queue {
                kept.take(&frame)?;
            }
            Ok(kept)
        });
        let mut length = 0;
        let read = match self.board.cell(cell_id) {
            None => Err(format!("cell `{cell_id}` is not present")),
            Some(cell) => {
                let mut take = |frame: Frame| {
                    length += HEAD + frame.bytes.len();
                    let enough = u64::try_from(length).is_ok_and(|length| length > MOST_FETCHED);
                    frames.send(frame).is_ok() && !enough
                };
                let epoch = self.board.epoch();
                let read = of_tasks.read(&cell, epoch, task.guid(), &mut take);
                let silent = |_| Err(format!("cell `{cell_id}` took too long"));
                timeout(LOG, read).await.unwrap_or_else(silent)
            }
        };
        drop(frames);
        let now = self.board.now();
        let finished = writer.await.map(|kept| {
            kept.map(|mut kept| {
                spawn_blocking(move || -> io::Result<()> {
                    if let Err(why) = read {
                        kept.remark(now, &format!("the log is not whole: {why}"))?;
                    }
                    kept.finish()
                })
            })
        });
        let failed = |error: &dyn fmt::Display| format!("cannot keep the log: {error}");
        let finished = finished.map_err(|error| failed(&error))?.map_err(|error| failed(&error))?;
        let finished = finished.await.map_err(|error| failed(&error))?;
        finished.map_err(|error| failed(&error))
    }

    /// Has the board forget the task of an attempt.
    async fn remove(&self, guid: &TaskGuid) -> Result<(), Declined> {
        loop {
            let Some(task) = self.task(guid) else { return Ok(()) };
            let task_guid = guid.clone();
            let request = match task.state {
                TaskState::Pending | TaskState::Running => RunTask::Cancel { task_guid },
                TaskState::Completed | TaskState::Resolving => RunTask::Delete { task_guid },
            };
            match self.insist(Request::RunTask(request)).await {
                Ok(_)
                | Err(Declined::Refused(Refusal::State { .. } | Refusal::NotFound { .. })) => {}
                Err(declined) => return Err(declined),
            }
        }
    }
}

#[async_trait]
impl Backend for CellsBackend {
    fn name(&self) -> &'static str {
        "cells"
    }

    fn place(&self) -> ArcStr {
        ArcStr::new()
    }

    async fn launch(&self, work: &Work) -> Result<(), String> {
        let (attempt, definition) = (&work.attempt, order::of(work)?);
        let guid = definition.task_guid.clone();
        self.add(attempt, &guid);
        self.teller.want(attempt);
        let instance_guid = self.board.draw_instance_guid();
        let request = RunTask::Create { definition: Box::new(definition), instance_guid };
        match self.insist(Request::RunTask(request)).await {
            // Whatever it is that is there by this name, it is this attempt.
            Ok(_) | Err(Declined::Refused(Refusal::Exists { .. })) => {
                self.look(attempt, &guid);
                Ok(())
            }
            Err(declined) => {
                self.forget(attempt, &guid);
                Err(declined.to_string())
            }
        }
    }

    async fn find(&self, attempt: &Attempt, _place: &str) -> Evidence {
        let guid = task_guid(&attempt.run_id, attempt.number);
        if self.task(&guid).is_none() {
            return Evidence::Absent;
        }
        self.add(attempt, &guid);
        self.look(attempt, &guid);
        self.teller.evidence(attempt).unwrap_or(Evidence::Launched)
    }

    async fn stop(&self, attempt: &Attempt, _place: &str, kind: StopKind) -> Result<(), String> {
        let guid = task_guid(&attempt.run_id, attempt.number);
        // Behind a creation that is under way: the board decides in the order in which it is asked.
        match self.insist(Request::RunTask(RunTask::Cancel { task_guid: guid.clone() })).await {
            Ok(_) | Err(Declined::Refused(Refusal::State { .. } | Refusal::NotFound { .. })) => {}
            Err(declined) => return Err(declined.to_string()),
        }
        self.look(attempt, &guid);
        let Some(task) = self.task(&guid) else { return Ok(()) };
        if kind == StopKind::AtOnce {
            self.hurry(&task).await;
        }
        self.gone(&task).await
    }

    /// The board is asked first, and the cell may take as long as it may.
    fn stop_limit(&self) -> Duration {
        GONE * 2
    }

    async fn release(&self, attempt: &Attempt) {
        let guid = task_guid(&attempt.run_id, attempt.number);
        let run = &attempt.run_id;
        self.forget(attempt, &guid);
        if let Some(task) = self.task(&guid)
            && let Err(error) = self.keep_log(attempt, &task).await
        {
            tracing::warn!(%run, %error, "the log of a run on a cell is lost");
        }
        if let Err(error) = self.remove(&guid).await {
            tracing::warn!(%run, %error, "the task of a run stays on the board for now");
        }
    }

    /// A cell that comes back ends what is not on the board. One that never does would keep the record there for ever.
    fn may_be_forgotten(&self, attempt: &Attempt) -> bool {
        let task = self.task(&task_guid(&attempt.run_id, attempt.number));
        task.is_none_or(|task| matches!(task.state, TaskState::Completed | TaskState::Resolving))
    }

    fn task_changed(&self, guid: &TaskGuid) {
        let attempt = self.names().get(guid).cloned();
        if let Some(attempt) = attempt {
            self.look(&attempt, guid);
        }
    }

    async fn known(&self) -> Result<Vec<Attempt>, String> {
        let mut found = Vec::new();
        self.board.look_at_all(|records| {
            let ours = |task: &&Task| is_of_run(task.guid());
            found.extend(records.tasks.values().filter(ours).filter_map(order::attempt));
        });
        Ok(found)
    }
}

/// How a task ended. One that no cell ever had has not run.
fn end(task: &Task, began: Option<Timestamp>, at: Timestamp) -> End {
    if task.failed && task.cell_id.is_none() {
        return End::Unstartable { why: task.failure_reason.clone() };
    }
    End::Ended(WorkEnd {
        began,
        at,
        exit_code: task.exit_code,
        failure: task.failed.then(|| task.failure_reason.clone()),
    })
}
