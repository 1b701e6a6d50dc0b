//! What applying something would come to, asked of the cells as they stand.

use std::collections::BTreeSet;

use kapell_core::board::plan::{self, Cells, Plan, Wishes};
use kapell_core::board::{CellId, ProcessGuid, TaskGuid};

use super::handle::Board;
use crate::auctioneer;

impl Board {
    /// Plans without changing anything. Cells are asked anew, so it is as slow as the slowest of them.
    pub async fn plan(&self, wishes: &Wishes) -> Plan {
        let field = auctioneer::ask_cells(self).await;
        let answered: BTreeSet<&CellId> = field.states.iter().map(|it| &it.cell_id).collect();
        let silent: Vec<CellId> =
            field.cells.keys().filter(|id| !answered.contains(id)).cloned().collect();
        let (now, settings) = (self.clock().wall(), self.settings());
        let mut outlines = Vec::with_capacity(wishes.lrps.len() + wishes.tasks.len());
        for lrp in &wishes.lrps {
            let guid = &lrp.process_guid;
            let keeps = wishes.keep_instances.contains(guid);
            outlines.push(
                self.look(guid.as_str(), |records| {
                    plan::of_lrp(records, lrp, keeps, now, settings)
                }),
            );
        }
        for task in &wishes.tasks {
            outlines.push(self.look(task.task_guid.as_str(), |records| {
                plan::of_task(records, task, now, settings)
            }));
        }
        let lrps: BTreeSet<&ProcessGuid> = wishes.lrps.iter().map(|it| &it.process_guid).collect();
        let tasks: BTreeSet<&TaskGuid> = wishes.tasks.iter().map(|it| &it.task_guid).collect();
        let mut waiting = Vec::new();
        self.look_at_all(|records| waiting.extend(plan::waiting(records, &lrps, &tasks)));
        plan::drawn(outlines, waiting, Cells { states: field.states, silent })
    }
}
