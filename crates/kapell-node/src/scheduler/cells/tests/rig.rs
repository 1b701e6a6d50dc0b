//! A board, and a cell that does what a test says.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use kapell_api::v1::{Cancel, Stop, Work as Handed, WorkAnswer};
use kapell_core::board::request::Report;
use kapell_core::board::{CellPresence, CellState, Held, Request, Task, TaskGuid, TaskState};
use kapell_core::log::Frame;
use kapell_core::run::task_guid;
use kapell_core::seat::Epoch;
use serde_json::json;
use tempfile::TempDir;
use tokio::sync::mpsc::{self, UnboundedReceiver};

use crate::board::tests::theatre::{Show, Theatre, presence};
use crate::link::{CellLink, LinkError};
use crate::scheduler::backend::{Attempt, Backend, News, Work};
use crate::scheduler::cells::{CellsBackend, Logs, TaskLogs};
use crate::scheduler::conformance::Rig;
use crate::scheduler::local::tests::work;
use crate::scheduler::logs::RunLogs;

pub(super) const CELL: &str = "c1";

/// The cell as the backend sees it.
#[derive(Debug, Default)]
pub(super) struct FakeCell {
    pub(super) held: Mutex<Vec<TaskGuid>>,
    pub(super) asked: Mutex<u32>,
    /// Told to end them at once.
    pub(super) hurried: Mutex<Vec<TaskGuid>>,
    pub(super) frames: Mutex<Vec<Frame>>,
    pub(super) breaks: Mutex<bool>,
}

#[async_trait]
impl CellLink for FakeCell {
    async fn state(&self, cell: &CellPresence, _epoch: Epoch) -> Result<CellState, LinkError> {
        *self.asked.lock().unwrap() += 1;
        let held = |key| Held { key, instance_guid: "i".into(), memory_mb: 0, disk_mb: 0 };
        let empty = CellState::empty(cell.cell_id.clone(), cell.zone.clone(), cell.capacity);
        let tasks = self.held.lock().unwrap().clone().into_iter().map(held).collect();
        Ok(CellState { tasks, ..empty })
    }

    async fn work(&self, _: &CellPresence, _: Epoch, _: &Handed) -> Result<WorkAnswer, LinkError> {
        Err(LinkError::NoAnswer("nobody hands over work here".to_owned()))
    }

    async fn stop(&self, _: &CellPresence, _: Epoch, _: &Stop) -> Result<(), LinkError> {
        Ok(())
    }

    async fn cancel(&self, _: &CellPresence, _: Epoch, to: &Cancel) -> Result<(), LinkError> {
        if to.at_once {
            self.hurried.lock().unwrap().push(to.task_guid.clone());
        }
        Ok(())
    }

    async fn evacuate(&self, _: &CellPresence, _: Epoch) -> Result<(), LinkError> {
        Ok(())
    }
}

#[async_trait]
impl TaskLogs for FakeCell {
    async fn read(
        &self,
        _cell: &CellPresence,
        _epoch: Epoch,
        _guid: &TaskGuid,
        take: &mut (dyn FnMut(Frame) -> bool + Send),
    ) -> Result<(), String> {
        let frames = self.frames.lock().unwrap().clone();
        for frame in frames {
            if !take(frame) {
                return Ok(());
            }
        }
        if *self.breaks.lock().unwrap() { Err("the cell broke off".to_owned()) } else { Ok(()) }
    }
}

pub(super) struct Stage {
    theatre: Theatre,
    show: Show,
    dir: TempDir,
    pub(super) cell: Arc<FakeCell>,
    pub(super) backend: CellsBackend,
    pub(super) news: UnboundedReceiver<News>,
    started: Mutex<BTreeMap<Attempt, u32>>,
}

impl Stage {
    pub(super) async fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        Self::on(Theatre::new(), dir, Arc::default(), Mutex::default()).await
    }

    async fn on(
        theatre: Theatre,
        dir: TempDir,
        cell: Arc<FakeCell>,
        started: Mutex<BTreeMap<Attempt, u32>>,
    ) -> Self {
        let show = theatre.open().await;
        show.board.present(presence(CELL)).unwrap();
        let (newsroom, news) = mpsc::unbounded_channel();
        let (link, of_tasks) = (Arc::clone(&cell), Arc::clone(&cell));
        let logs = Logs { of_tasks, of_runs: RunLogs::below(dir.path()) };
        let backend = CellsBackend::new(show.board.clone(), link, Some(logs), newsroom);
        Self { theatre, show, dir, cell, backend, news, started }
    }

    pub(super) fn logs(&self) -> RunLogs {
        RunLogs::below(self.dir.path())
    }

    pub(super) fn task(&self, attempt: &Attempt) -> Option<Task> {
        self.show.task(task_guid(&attempt.run_id, attempt.number).as_str())
    }

    pub(super) fn leaves(&self) {
        self.show.board.leave(&CELL.into());
    }

    pub(super) async fn fail_placement(&self, attempt: &Attempt, last: bool) {
        let task_guid = task_guid(&attempt.run_id, attempt.number);
        let reason = "insufficient resources".to_owned();
        let request = Request::FailTaskPlacement { task_guid: task_guid.clone(), reason, last };
        self.show.board.ask(request).await.unwrap();
        self.backend.task_changed(&task_guid);
    }
}

#[async_trait]
impl Rig for Stage {
    fn backend(&self) -> &dyn Backend {
        &self.backend
    }

    fn news(&mut self) -> &mut UnboundedReceiver<News> {
        &mut self.news
    }

    fn work(&self, attempt: &Attempt) -> Work {
        work(attempt, &json!({"task": {"action": {"run": {"path": "true"}}}}))
    }

    fn unstartable(&self, attempt: &Attempt) -> Work {
        self.work(attempt)
    }

    async fn start(&self, attempt: &Attempt) {
        if attempt.run_id.job() == "unstartable" {
            return self.fail_placement(attempt, true).await;
        }
        let task = self.task(attempt).unwrap();
        let (task_guid, instance_guid) = (task.guid().clone(), task.instance_guid);
        let (of, reservation) = (task_guid.clone(), None);
        let report = Report::StartTask { task_guid: of, instance_guid, reservation };
        self.show.report(CELL, report).await;
        *self.started.lock().unwrap().entry(attempt.clone()).or_default() += 1;
        self.backend.task_changed(&task_guid);
    }

    async fn end(&self, attempt: &Attempt, code: i32) {
        let task = self.task(attempt).unwrap();
        let (task_guid, instance_guid) = (task.guid().clone(), task.instance_guid);
        let report = Report::CompleteTask {
            task_guid: task_guid.clone(),
            instance_guid,
            failed: code != 0,
            failure_reason: format!("Exited with status {code}"),
            result: String::new(),
            exit_code: Some(code),
        };
        self.show.report(CELL, report).await;
        self.backend.task_changed(&task_guid);
        self.backend.task_changed(&task_guid);
    }

    fn launches(&self, attempt: &Attempt) -> u32 {
        self.started.lock().unwrap().get(attempt).copied().unwrap_or_default()
    }

    fn is_under_way(&self, attempt: &Attempt) -> bool {
        let under_way = [TaskState::Pending, TaskState::Running];
        self.task(attempt).is_some_and(|task| under_way.contains(&task.state))
    }

    async fn reopen(self) -> Self {
        let Self { theatre, show, dir, cell, started, .. } = self;
        show.close().await;
        Self::on(theatre, dir, cell, started).await
    }

    async fn close(self) {
        self.show.close().await;
    }
}
