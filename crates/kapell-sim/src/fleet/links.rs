//! The seams of the real code, over the simulated network.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use kapell_api::v1::{
    Cancel, CellRecords, RecordsWanted, ReportAnswer, SecretGiven, Stop, Welcome, Work, WorkAnswer,
};
use kapell_core::board::request::Report;
use kapell_core::board::secrets::Holder;
use kapell_core::board::{CellId, CellPresence, CellState};
use kapell_core::seat::Epoch;
use kapell_node::board::{CallbackOutcome, Callbacks};
use kapell_node::link::{BoardLink, CellLink, LinkError};

use super::desk::{Desk, Seen};
use super::fact::Fact;
use super::mail::{Answer, Answered, Ask, Failed, Party};
use super::timing::PATIENCE;

macro_rules! expect {
    ($answer:expr, $kind:pat => $it:expr) => {
        match $answer {
            Ok($kind) => Ok($it),
            Ok(other) => unreachable!("answered in another kind: {other:?}"),
            Err(failed) => Err(LinkError::from(failed)),
        }
    };
}

/// The name of a simulated cell.
pub(super) fn cell_id(at: usize) -> CellId {
    CellId::new(format!("cell-{at}"))
}

/// A cell's or client's way to whichever host leads.
#[derive(Debug)]
pub(super) struct Hosts {
    pub(super) desk: Arc<Desk>,
    pub(super) count: usize,
    /// Who answered last.
    pub(super) last: AtomicUsize,
}

impl Hosts {
    pub(super) fn new(desk: &Arc<Desk>, count: usize) -> Self {
        Self { desk: Arc::clone(desk), count, last: AtomicUsize::new(0) }
    }

    /// Asks one host after the other. What nobody knows the end of may be asked again.
    async fn ask(&self, ask: Ask) -> Answered {
        let mut worst = Failed::NotLeading;
        for _ in 0..self.count {
            let host = self.last.load(Ordering::Relaxed) % self.count;
            match self.desk.ask(Party::Host(host), ask.clone(), PATIENCE).await {
                Ok(answer) => return Ok(answer),
                Err(failed @ Failed::Refused(_)) => return Err(failed),
                Err(failed @ (Failed::Broken | Failed::Declined(_))) => worst = failed,
                Err(Failed::NotLeading | Failed::Unreachable) => {}
            }
            self.last.store(host + 1, Ordering::Relaxed);
        }
        Err(worst)
    }
}

impl Hosts {
    fn heard_of(&self, cell: &CellId, epoch: Epoch) {
        let cell = cell.clone();
        self.desk.see(Seen::Fact(Fact::HeardOf { cell, epoch }));
    }
}

#[async_trait]
impl BoardLink for Hosts {
    async fn present(&self, presence: &CellPresence) -> Result<Welcome, LinkError> {
        let answer = self.ask(Ask::Present(Box::new(presence.clone()))).await;
        let welcome = expect!(answer, Answer::Welcome(it) => it)?;
        self.heard_of(&presence.cell_id, welcome.epoch);
        Ok(welcome)
    }

    async fn leave(&self, cell_id: &CellId) -> Result<(), LinkError> {
        expect!(self.ask(Ask::Leave(cell_id.clone())).await, Answer::Nothing => ())
    }

    async fn reports(
        &self,
        cell_id: &CellId,
        reports: &[Report],
    ) -> Result<Vec<ReportAnswer>, LinkError> {
        let answer = self.ask(Ask::Reports(cell_id.clone(), reports.to_vec())).await;
        expect!(answer, Answer::Reports(it) => it)
    }

    async fn records(
        &self,
        cell_id: &CellId,
        wanted: &RecordsWanted,
    ) -> Result<CellRecords, LinkError> {
        let answer = self.ask(Ask::Records(cell_id.clone(), wanted.clone())).await;
        let records = expect!(answer, Answer::Records(it) => it)?;
        self.heard_of(cell_id, records.epoch);
        Ok(records)
    }

    /// Nothing that is simulated refers to one.
    async fn secrets(&self, _: &CellId, _: &Holder) -> Result<Vec<SecretGiven>, LinkError> {
        Ok(Vec::new())
    }
}

/// The leader's way to every cell.
#[derive(Debug)]
pub(super) struct Cells(pub(super) Arc<Desk>);

impl Cells {
    async fn ask(&self, cell: &CellPresence, ask: Ask) -> Answered {
        let at = cell.url.parse().expect("a cell gives its number as its address");
        self.0.ask(Party::Cell(at), ask, PATIENCE).await
    }
}

#[async_trait]
impl CellLink for Cells {
    async fn state(&self, cell: &CellPresence, epoch: Epoch) -> Result<CellState, LinkError> {
        expect!(self.ask(cell, Ask::State(epoch)).await, Answer::State(it) => *it)
    }

    async fn work(
        &self,
        cell: &CellPresence,
        epoch: Epoch,
        work: &Work,
    ) -> Result<WorkAnswer, LinkError> {
        let answer = self.ask(cell, Ask::Work(epoch, Box::new(work.clone()))).await;
        expect!(answer, Answer::Work(it) => it)
    }

    async fn stop(&self, cell: &CellPresence, epoch: Epoch, stop: &Stop) -> Result<(), LinkError> {
        expect!(self.ask(cell, Ask::Stop(epoch, stop.clone())).await, Answer::Nothing => ())
    }

    async fn cancel(
        &self,
        cell: &CellPresence,
        epoch: Epoch,
        cancel: &Cancel,
    ) -> Result<(), LinkError> {
        expect!(self.ask(cell, Ask::Cancel(epoch, cancel.clone())).await, Answer::Nothing => ())
    }

    async fn evacuate(&self, cell: &CellPresence, epoch: Epoch) -> Result<(), LinkError> {
        expect!(self.ask(cell, Ask::EvacuateNow(epoch)).await, Answer::Nothing => ())
    }
}

/// The leader's way to those who want to be told.
#[derive(Debug)]
pub(super) struct Receivers(pub(super) Arc<Desk>);

#[async_trait]
impl Callbacks for Receivers {
    async fn call(&self, _url: &str, body: &[u8]) -> CallbackOutcome {
        match self.0.ask(Party::Receiver, Ask::Call(body.to_vec()), PATIENCE * 10).await {
            Ok(Answer::Status(status)) => CallbackOutcome::Answered(status),
            Ok(other) => unreachable!("answered in another kind: {other:?}"),
            Err(failed) => CallbackOutcome::NoAnswer(LinkError::from(failed).to_string()),
        }
    }
}
