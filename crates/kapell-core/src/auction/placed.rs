//! What became of a batch.

use std::sync::Arc;

use super::Work;
use super::unplaced::Unplaced;
use crate::board::CellId;

/// Where each unit goes, or why it goes nowhere; in the order in which it was decided.
///
/// There are very many: work stays where it lies, and what was decided names it by number.
#[derive(Debug, Default)]
pub struct Placed {
    pub(super) work: Vec<Work>,
    pub(super) cells: Vec<CellId>,
    /// Numbers of work and of its cell.
    pub(super) assigned: Vec<(u32, u32)>,
    pub(super) failed: Vec<Failed>,
}

/// Many have the same reason, and share its text.
#[derive(Debug)]
pub(super) struct Failed {
    pub(super) work: u32,
    pub(super) why: Unplaced,
    pub(super) text: Arc<str>,
}

impl Placed {
    /// What goes where.
    pub fn assigned(&self) -> impl ExactSizeIterator<Item = (&CellId, &Work)> {
        self.assigned.iter().map(|(work, cell)| (&self.cells[*cell as usize], self.unit(*work)))
    }

    /// What goes nowhere, the reason, and what that rests on.
    pub fn failed(&self) -> impl ExactSizeIterator<Item = (&Work, &Arc<str>, Unplaced)> {
        self.failed.iter().map(|failed| (self.unit(failed.work), &failed.text, failed.why))
    }

    fn unit(&self, number: u32) -> &Work {
        &self.work[number as usize]
    }
}
