use std::fmt;

use async_trait::async_trait;
use kapell_api::v1::{Cancel, Problem, Stop, Work, WorkAnswer};
use kapell_backend::containers::{Error, Exec, Session};
use kapell_core::board::{CellId, CellState};
use kapell_core::seat::Epoch;
use kapell_node::cell::{Cell, ContainerLogs, LogOf};

/// What the routes ask of a cell: a seam, so that tests need no containers.
#[async_trait]
pub(crate) trait Rep: fmt::Debug + Send + Sync {
    fn id(&self) -> CellId;
    fn state(&self, epoch: Epoch) -> Result<CellState, Problem>;
    fn work(&self, epoch: Epoch, work: Work) -> Result<WorkAnswer, Problem>;
    fn stop(&self, epoch: Epoch, stop: &Stop) -> Result<(), Problem>;
    fn cancel(&self, epoch: Epoch, cancel: &Cancel) -> Result<(), Problem>;
    fn evacuate(&self, epoch: Epoch) -> Result<(), Problem>;
    /// Where it lies what containers wrote, the oldest container first. May read the disk.
    fn logs(&self, of: &LogOf) -> Vec<ContainerLogs>;
    fn is_live(&self, of: &LogOf) -> bool;
    async fn exec(&self, of: &LogOf, exec: Exec) -> Result<Session, Error>;
}

#[async_trait]
impl Rep for Cell {
    fn id(&self) -> CellId {
        Self::id(self).clone()
    }

    fn state(&self, epoch: Epoch) -> Result<CellState, Problem> {
        Self::state(self, epoch)
    }

    fn work(&self, epoch: Epoch, work: Work) -> Result<WorkAnswer, Problem> {
        Self::work(self, epoch, work)
    }

    fn stop(&self, epoch: Epoch, stop: &Stop) -> Result<(), Problem> {
        Self::stop(self, epoch, stop)
    }

    fn cancel(&self, epoch: Epoch, cancel: &Cancel) -> Result<(), Problem> {
        Self::cancel(self, epoch, cancel)
    }

    fn evacuate(&self, epoch: Epoch) -> Result<(), Problem> {
        Self::evacuate(self, epoch)
    }

    fn logs(&self, of: &LogOf) -> Vec<ContainerLogs> {
        Self::logs(self, of)
    }

    fn is_live(&self, of: &LogOf) -> bool {
        Self::is_live(self, of)
    }

    async fn exec(&self, of: &LogOf, exec: Exec) -> Result<Session, Error> {
        Self::exec(self, of, exec).await
    }
}
