//! What cells ask of the board, and the leader of cells.

use std::time::Duration;

use kapell_core::board::request::Report;
use kapell_core::board::secrets::Holder;
use kapell_core::board::{CellId, CellPresence, CellState, TaskGuid};
use kapell_core::seat::Epoch;

use super::call::Call;
use super::routes::path;
use super::{Client, Error, Logs};
use crate::v1::{
    Cancel, CellRecords, EPOCH, LogQuery, RecordsWanted, ReportAnswer, SecretGiven, Stop, Welcome,
    Work, WorkAnswer,
};

/// How long a cell may take to answer its leader.
const CELL: Duration = Duration::from_secs(5);

impl Client {
    pub async fn present(&self, presence: &CellPresence) -> Result<Welcome, Error> {
        let path = path(&["cells", presence.cell_id.as_str()]);
        self.ask(Call::put(path).json(presence).within(CELL)).await
    }

    /// A cell goes for good. Once or twice is the same.
    pub async fn leave(&self, cell_id: &CellId) -> Result<(), Error> {
        let call = Call::delete(path(&["cells", cell_id.as_str()])).repeatable(true).within(CELL);
        self.send(&call).await.map(drop)
    }

    /// Every report names the container it is about, so one that comes twice changes nothing.
    pub async fn reports(
        &self,
        cell_id: &CellId,
        reports: &[Report],
    ) -> Result<Vec<ReportAnswer>, Error> {
        let path = path(&["cells", cell_id.as_str(), "reports"]);
        self.ask(Call::post(path).json(&reports).repeatable(true)).await
    }

    pub async fn records(
        &self,
        cell_id: &CellId,
        wanted: &RecordsWanted,
    ) -> Result<CellRecords, Error> {
        let path = path(&["cells", cell_id.as_str(), "records"]);
        self.ask(Call::post(path).json(wanted).repeatable(true)).await
    }

    /// What the secrets are that a container on this cell refers to.
    pub async fn take_secrets(
        &self,
        cell_id: &CellId,
        holder: &Holder,
    ) -> Result<Vec<SecretGiven>, Error> {
        let path = path(&["cells", cell_id.as_str(), "secrets"]);
        self.ask(Call::post(path).json(holder).repeatable(true).within(CELL)).await
    }

    pub async fn cell_state(&self, epoch: Epoch) -> Result<CellState, Error> {
        self.ask(under(epoch, Call::get("/v1/cell/state"))).await
    }

    pub async fn cell_work(&self, epoch: Epoch, work: &Work) -> Result<WorkAnswer, Error> {
        self.ask(under(epoch, Call::post("/v1/cell/work")).json(work)).await
    }

    pub async fn cell_stop(&self, epoch: Epoch, stop: &Stop) -> Result<(), Error> {
        self.send(&under(epoch, Call::post("/v1/cell/stop")).json(stop)).await.map(drop)
    }

    pub async fn cell_cancel(&self, epoch: Epoch, cancel: &Cancel) -> Result<(), Error> {
        self.send(&under(epoch, Call::post("/v1/cell/cancel")).json(cancel)).await.map(drop)
    }

    /// What a task wrote on this cell, as far as it is there now.
    pub async fn cell_task_logs(&self, epoch: Epoch, task_guid: &TaskGuid) -> Result<Logs, Error> {
        let path = path(&["cell", "logs", "task", task_guid.as_str()]);
        self.logs(&path, LogQuery::default(), Some(epoch)).await
    }

    pub async fn cell_evacuate(&self, epoch: Epoch) -> Result<(), Error> {
        self.send(&under(epoch, Call::post("/v1/cell/evacuate"))).await.map(drop)
    }
}

fn under(epoch: Epoch, call: Call) -> Call {
    call.header(EPOCH, &epoch.0.to_string()).within(CELL)
}
