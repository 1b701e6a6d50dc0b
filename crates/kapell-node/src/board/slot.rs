//! Where the board of this host is to be found, while there is one.

use std::sync::{Arc, PoisonError, RwLock};

use super::handle::Board;

/// Cheap to clone; all clones are the same place.
#[derive(Debug, Clone, Default)]
pub struct BoardSlot(Arc<RwLock<Option<Board>>>);

impl BoardSlot {
    /// The board, if this host leads right now.
    pub fn get(&self) -> Option<Board> {
        let board = self.0.read().unwrap_or_else(PoisonError::into_inner);
        board.as_ref().filter(|board| board.may_act()).cloned()
    }

    /// Shows a board for as long as the guard lives.
    pub(super) fn show(&self, board: Board) -> Shown {
        let epoch = board.epoch();
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Some(board);
        Shown { slot: self.clone(), epoch }
    }
}

/// Takes the board away again.
#[derive(Debug)]
pub(super) struct Shown {
    slot: BoardSlot,
    epoch: kapell_core::seat::Epoch,
}

impl Drop for Shown {
    fn drop(&mut self) {
        let mut shown = self.slot.0.write().unwrap_or_else(PoisonError::into_inner);
        if shown.as_ref().is_some_and(|board| board.epoch() == self.epoch) {
            *shown = None;
        }
    }
}
