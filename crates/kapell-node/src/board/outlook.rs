//! What those who explain ask of the board: when it looks again, and what it knows of cells that are silent.

use std::time::Duration;

use kapell_api::v1::CellView;
use kapell_core::board::CellId;
use kapell_core::board::explain::Due;
use kapell_core::seams::Moment;

use super::handle::{Board, unheard};

impl Board {
    /// When the board looks again by itself, at the latest.
    pub fn due(&self) -> Due {
        let (now, wall) = (self.clock().now(), self.clock().wall());
        let at = |moment: Moment| wall.after(moment.since(now));
        let round = self.starts().due(now);
        Due { round: round.map(at), pass: self.alarm().next().map_or(wall, at) }
    }

    /// How long ago a cell was asked and did not answer, unless it has answered since.
    pub fn silent_since(&self, cell_id: &CellId) -> Option<Duration> {
        let at = self.starts().silent_since(cell_id)?;
        Some(self.clock().now().since(at))
    }

    /// What is left to say of a cell that was there or that records name, and that is gone.
    pub fn gone(&self, cell_id: &CellId) -> Option<CellView> {
        let gone = self.presences().gone(cell_id)?;
        let ago = |at| u64::try_from(self.clock().now().since(at).as_millis());
        let ago = gone.heard.map(|at| ago(at).unwrap_or(u64::MAX));
        Some(self.view(unheard(cell_id), "gone", ago))
    }
}
