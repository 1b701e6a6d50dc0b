//! A cell: runs containers, and keeps the board's records of them true.

use std::path::PathBuf;
use std::sync::Arc;

use kapell_api::v1::{Cancel, Problem, Stop, Work, WorkAnswer};
use kapell_core::board::{CellId, CellState, LrpKey, TaskGuid};
use kapell_core::seat::Epoch;

/// A way to ask a cell. Cheap to clone. Whatever bears an older epoch than the highest seen is refused.
#[derive(Debug, Clone)]
pub struct Cell {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared;

/// What a log is about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogOf {
    Lrp(LrpKey),
    Task(TaskGuid),
}

impl Cell {
    pub fn id(&self) -> &CellId {
        unimplemented!()
    }

    pub fn state(&self, _epoch: Epoch) -> Result<CellState, Problem> {
        unimplemented!()
    }

    pub fn work(&self, _epoch: Epoch, _work: Work) -> Result<WorkAnswer, Problem> {
        unimplemented!()
    }

    pub fn stop(&self, _epoch: Epoch, _stop: &Stop) -> Result<(), Problem> {
        unimplemented!()
    }

    pub fn cancel(&self, _epoch: Epoch, _cancel: &Cancel) -> Result<(), Problem> {
        unimplemented!()
    }

    pub fn evacuate(&self, _epoch: Epoch) -> Result<(), Problem> {
        unimplemented!()
    }

    /// The directories that hold what containers of this one have written, the oldest container
    /// first; none if nothing is kept. Each holds segments named by growing numbers.
    pub fn logs(&self, _of: &LogOf) -> Vec<PathBuf> {
        unimplemented!()
    }

    /// Whether a container of this one is there now, so that more may be written.
    pub fn is_live(&self, _of: &LogOf) -> bool {
        unimplemented!()
    }
}
