//! What applying something would come to, asked of the cells as they stand.

use std::collections::BTreeSet;

use kapell_core::board::plan::{self, Cells, Drawing, Plan, Wishes};
use kapell_core::board::{CellId, ProcessGuid, Records, TaskGuid};
use kapell_store::model::SHARDS;
use tokio::task::yield_now;

use super::handle::Board;
use crate::auctioneer::{self, SLICE};

impl Board {
    /// Plans without changing anything. Cells are asked anew, so it is as slow as the slowest of them.
    pub async fn plan(&self, wishes: &Wishes) -> Plan {
        let field = auctioneer::ask_cells(self).await;
        let answered: BTreeSet<&CellId> = field.states.iter().map(|it| &it.cell_id).collect();
        let silent: Vec<CellId> =
            field.cells.keys().filter(|id| !answered.contains(id)).cloned().collect();
        let (now, settings) = (self.clock().wall(), self.settings());
        let asked = wishes.in_order();
        let mut outlines = Vec::with_capacity(asked.len());
        for asked in &asked {
            let outline = |records: &Records| plan::outline(records, asked, now, settings);
            outlines.push(self.look(asked.partition(), outline));
            yield_now().await;
        }
        let lrps: BTreeSet<&ProcessGuid> = wishes.lrps.iter().map(|it| &it.process_guid).collect();
        let tasks: BTreeSet<&TaskGuid> = wishes.tasks.iter().map(|it| &it.task_guid).collect();
        let mut waiting = Vec::new();
        for shard in 0..SHARDS {
            waiting.extend(plan::waiting(self.sheet(shard).records(), &lrps, &tasks));
            yield_now().await;
        }
        let mut drawing = Drawing::new(outlines, waiting, Cells { states: field.states, silent });
        while drawing.step(SLICE) {
            yield_now().await;
        }
        drawing.finish()
    }
}
