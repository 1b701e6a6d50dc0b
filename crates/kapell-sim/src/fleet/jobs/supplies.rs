//! What a simulated host gives its scheduler: tasks on its cells, processes on its machine, moody constraints.

use std::sync::Arc;

use async_trait::async_trait;
use kapell_node::scheduler::cells::CellsBackend;
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

#[async_trait]
impl Supplies for HostSupplies {
    async fn open(&self, opening: Opening) -> Result<Supply, String> {
        let Opening { board, newsroom, .. } = opening;
        self.yard.open(newsroom.clone());
        let cells = Arc::new(Cells(Arc::clone(&self.desk)));
        let cells = CellsBackend::new(board.clone(), cells, None, newsroom);
        let host = Place::new(board, Arc::clone(&self.desk), Arc::clone(&self.yard));
        Ok(Supply {
            backends: Backends::new(Arc::new(host), Arc::new(cells)),
            checker: Arc::new(Moody::new(Chance::new(self.chance.draw()))),
            webhooks: None,
            errands: JoinSet::new(),
        })
    }
}
