//! Between the leader and the cells: seams, so that a simulator can own them.

mod http;

#[cfg(test)]
mod tests;

use std::fmt;

use async_trait::async_trait;
use kapell_api::v1::{
    Cancel, CellRecords, Problem, RecordsWanted, ReportAnswer, SecretGiven, Stop, Welcome, Work,
    WorkAnswer,
};
use kapell_core::board::request::Report;
use kapell_core::board::secrets::Holder;
use kapell_core::board::{CellId, CellPresence, CellState};
use kapell_core::seat::Epoch;

pub use http::{HttpBoard, HttpCallbacks, HttpCells};

/// The code of the refusal that a cell gets whose id another one uses.
pub const CELL_ID_IN_USE: &str = "cell_id_in_use";

/// The code of the refusal that a cell gets for work that refers to a secret which is not there.
pub const SECRET_NOT_SET: &str = "secret_not_set";
/// The same for one that the host cannot open.
pub const SECRET_SEALED: &str = "secret_sealed";
/// The same for work that the board does not have on this cell.
pub const NOT_PLACED: &str = "not_placed";

/// Why a call across a link has no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LinkError {
    /// The other side said no, and nothing happened.
    #[error("{0}")]
    Refused(Problem),
    /// Nobody knows whether something happened.
    #[error("{0}")]
    NoAnswer(String),
}

/// What the leader asks of cells.
#[async_trait]
pub trait CellLink: fmt::Debug + Send + Sync {
    async fn state(&self, cell: &CellPresence, epoch: Epoch) -> Result<CellState, LinkError>;

    /// Hands over work. Whatever is not refused is reserved there.
    async fn work(
        &self,
        cell: &CellPresence,
        epoch: Epoch,
        work: &Work,
    ) -> Result<WorkAnswer, LinkError>;

    async fn stop(&self, cell: &CellPresence, epoch: Epoch, stop: &Stop) -> Result<(), LinkError>;

    async fn cancel(
        &self,
        cell: &CellPresence,
        epoch: Epoch,
        cancel: &Cancel,
    ) -> Result<(), LinkError>;

    async fn evacuate(&self, cell: &CellPresence, epoch: Epoch) -> Result<(), LinkError>;
}

/// What a cell asks of the board.
#[async_trait]
pub trait BoardLink: fmt::Debug + Send + Sync {
    async fn present(&self, presence: &CellPresence) -> Result<Welcome, LinkError>;

    /// This cell goes away for good, and nothing of it runs any more.
    async fn leave(&self, cell_id: &CellId) -> Result<(), LinkError>;

    /// Each report is answered on its own, in order.
    async fn reports(
        &self,
        cell_id: &CellId,
        reports: &[Report],
    ) -> Result<Vec<ReportAnswer>, LinkError>;

    async fn records(
        &self,
        cell_id: &CellId,
        wanted: &RecordsWanted,
    ) -> Result<CellRecords, LinkError>;

    /// The secrets that a container of this cell refers to.
    async fn secrets(
        &self,
        cell_id: &CellId,
        holder: &Holder,
    ) -> Result<Vec<SecretGiven>, LinkError>;
}
