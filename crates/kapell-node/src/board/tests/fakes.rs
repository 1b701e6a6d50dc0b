//! Cells and callbacks that do what a test says.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use kapell_api::v1::{Cancel, Problem, Stop, Work, WorkAnswer};
use kapell_core::board::{CellId, CellPresence, CellState, LrpKey, Resources, Task};
use kapell_core::seat::Epoch;

use crate::board::{CallbackOutcome, Callbacks};
use crate::link::{CellLink, LinkError};

/// How a cell behaves.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum Manner {
    #[default]
    Good,
    /// It never answers anything.
    Silent,
    /// It says how it stands, and does not answer when it is given work.
    SilentAtWork,
    /// It refuses each item.
    Refuses,
    /// It refuses the whole request.
    RefusesAll,
}

/// What a cell was told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Told {
    State,
    Lrp(LrpKey),
    Task(String),
    Stop(LrpKey),
    Cancel(String),
    Evacuate,
}

#[derive(Debug, Default)]
pub(crate) struct Cells {
    manners: Mutex<BTreeMap<CellId, Manner>>,
    available: Mutex<BTreeMap<CellId, Resources>>,
    starting: Mutex<BTreeMap<CellId, u32>>,
    /// How many units each request had that handed over work, and how long it was.
    parcels: Mutex<Vec<(usize, usize)>>,
    told: Mutex<Vec<(CellId, Epoch, Told)>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Cells {
    pub(crate) fn behave(&self, cell: &str, manner: Manner) {
        lock(&self.manners).insert(cell.into(), manner);
    }

    pub(crate) fn has(&self, cell: &str, available: Resources) {
        lock(&self.available).insert(cell.into(), available);
    }

    pub(crate) fn starts(&self, cell: &str, starting: u32) {
        lock(&self.starting).insert(cell.into(), starting);
    }

    pub(crate) fn parcels(&self) -> Vec<(usize, usize)> {
        lock(&self.parcels).clone()
    }

    pub(crate) fn told(&self) -> Vec<(CellId, Epoch, Told)> {
        lock(&self.told).clone()
    }

    pub(crate) fn count(&self, is: impl Fn(&Told) -> bool) -> usize {
        lock(&self.told).iter().filter(|(_, _, told)| is(told)).count()
    }

    /// All work that was handed over.
    pub(crate) fn work(&self) -> Vec<Told> {
        let told = lock(&self.told);
        let work = told.iter().map(|(_, _, told)| told.clone());
        work.filter(|told| matches!(told, Told::Lrp(_) | Told::Task(_))).collect()
    }

    fn note(&self, cell: &CellPresence, epoch: Epoch, told: Told) {
        lock(&self.told).push((cell.cell_id.clone(), epoch, told));
    }

    fn manner(&self, cell: &CellPresence) -> Manner {
        lock(&self.manners).get(&cell.cell_id).cloned().unwrap_or_default()
    }

    async fn answer(&self, cell: &CellPresence) -> Result<(), LinkError> {
        if self.manner(cell) == Manner::Silent { std::future::pending().await } else { Ok(()) }
    }
}

#[async_trait]
impl CellLink for Cells {
    async fn state(&self, cell: &CellPresence, epoch: Epoch) -> Result<CellState, LinkError> {
        self.note(cell, epoch, Told::State);
        self.answer(cell).await?;
        let available = lock(&self.available).get(&cell.cell_id).copied();
        Ok(CellState {
            available: available.unwrap_or(cell.capacity),
            starting: lock(&self.starting).get(&cell.cell_id).copied().unwrap_or_default(),
            evacuating: cell.evacuating,
            ..CellState::empty(cell.cell_id.clone(), cell.zone.clone(), cell.capacity)
        })
    }

    async fn work(
        &self,
        cell: &CellPresence,
        epoch: Epoch,
        work: &Work,
    ) -> Result<WorkAnswer, LinkError> {
        let bytes = serde_json::to_vec(work).unwrap().len();
        lock(&self.parcels).push((work.lrps.len() + work.tasks.len(), bytes));
        for lrp in &work.lrps {
            let process_guid = lrp.desired.process_guid.clone();
            self.note(cell, epoch, Told::Lrp(LrpKey { process_guid, index: lrp.index }));
        }
        for task in &work.tasks {
            self.note(cell, epoch, Told::Task(task.definition.task_guid.to_string()));
        }
        match self.manner(cell) {
            Manner::Good => Ok(WorkAnswer::default()),
            Manner::Silent | Manner::SilentAtWork => std::future::pending().await,
            Manner::RefusesAll => {
                let (code, message) = ("full".to_owned(), "no more".to_owned());
                Err(LinkError::Refused(Problem { code, message, details: ().into() }))
            }
            Manner::Refuses => {
                let lrps = work.lrps.iter().map(|lrp| {
                    let process_guid = lrp.desired.process_guid.clone();
                    (LrpKey { process_guid, index: lrp.index }, "no".to_owned())
                });
                let tasks = work.tasks.iter();
                let tasks = tasks.map(|task| (task.definition.task_guid.clone(), "no".to_owned()));
                Ok(WorkAnswer { refused_lrps: lrps.collect(), refused_tasks: tasks.collect() })
            }
        }
    }

    async fn stop(&self, cell: &CellPresence, epoch: Epoch, stop: &Stop) -> Result<(), LinkError> {
        self.note(cell, epoch, Told::Stop(stop.key.clone()));
        self.answer(cell).await
    }

    async fn cancel(
        &self,
        cell: &CellPresence,
        epoch: Epoch,
        cancel: &Cancel,
    ) -> Result<(), LinkError> {
        self.note(cell, epoch, Told::Cancel(cancel.task_guid.to_string()));
        self.answer(cell).await
    }

    async fn evacuate(&self, cell: &CellPresence, epoch: Epoch) -> Result<(), LinkError> {
        self.note(cell, epoch, Told::Evacuate);
        self.answer(cell).await
    }
}

/// Answers with these in turn, then with 200. Whose name begins with `hangs` never answers.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    pub(crate) answers: Mutex<Vec<CallbackOutcome>>,
    pub(crate) made: Mutex<Vec<(String, Task)>>,
    /// How long an answer takes.
    pub(crate) slow: Mutex<Duration>,
}

#[async_trait]
impl Callbacks for Calls {
    async fn call(&self, url: &str, body: &[u8]) -> CallbackOutcome {
        lock(&self.made).push((url.to_owned(), serde_json::from_slice(body).unwrap()));
        if url.starts_with("http://hangs") {
            std::future::pending::<()>().await;
        }
        let slow = *lock(&self.slow);
        if !slow.is_zero() {
            tokio::time::sleep(slow).await; // tidy: allow(sleep) a call takes time
        }
        let mut answers = lock(&self.answers);
        if answers.is_empty() { CallbackOutcome::Answered(200) } else { answers.remove(0) }
    }
}
