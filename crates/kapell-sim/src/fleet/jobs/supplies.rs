//! What a simulated host gives its scheduler: tasks on its cells, processes on its machine, moody constraints.

use std::sync::Arc;

use async_trait::async_trait;
use kapell_core::board::{CellPresence, TaskGuid};
use kapell_core::log::Frame;
use kapell_core::seat::Epoch;
use kapell_node::scheduler::cells::{CellsBackend, TaskLogs};
use kapell_node::scheduler::{Backends, Opening, Supplies, Supply};
use tokio::task::JoinSet;

use super::checker::Moody;
use super::place::Place;
use super::yard::Yard;
use crate::fleet::desk::Desk;
use crate::fleet::links::Cells;
use crate::parts::chance::{Chance, Names};
use kapell_core::seams::Ids as _;

#[derive(Debug)]
pub(in crate::fleet) struct HostSupplies {
    pub(in crate::fleet) desk: Arc<Desk>,
    pub(in crate::fleet) yard: Arc<Yard>,
    pub(in crate::fleet) chance: Names,
}

/// Nobody in the simulation reads what tasks write.
#[derive(Debug)]
struct NoLogs;

#[async_trait]
impl TaskLogs for NoLogs {
    async fn read(
        &self,
        _: &CellPresence,
        _: Epoch,
        _: &TaskGuid,
        _: &mut (dyn FnMut(Frame) -> bool + Send),
    ) -> Result<(), String> {
        Ok(())
    }
}

#[async_trait]
impl Supplies for HostSupplies {
    async fn open(&self, opening: Opening) -> Result<Supply, String> {
        let Opening { board, newsroom, .. } = opening;
        self.yard.open(newsroom.clone());
        let cells = Arc::new(Cells(Arc::clone(&self.desk)));
        let cells = CellsBackend::new(board.clone(), cells, Arc::new(NoLogs), None, newsroom);
        let host = Place::new(board, Arc::clone(&self.desk), Arc::clone(&self.yard));
        Ok(Supply {
            backends: Backends::new(Arc::new(host), Arc::new(cells)),
            checker: Arc::new(Moody::new(Chance::new(self.chance.draw()))),
            webhooks: None,
            errands: JoinSet::new(),
        })
    }
}
