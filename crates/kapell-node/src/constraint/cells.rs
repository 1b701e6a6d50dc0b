//! What cells have room for.

use std::fmt;

use async_trait::async_trait;
use kapell_core::board::CellState;

use crate::auctioneer;
use crate::board::Board;

/// Asks the cells themselves.
#[async_trait]
pub trait Cells: fmt::Debug + Send + Sync {
    /// Those that answered, as they are now.
    async fn states(&self) -> Result<Vec<CellState>, String>;
}

/// The cells of a board.
#[derive(Debug, Clone)]
pub struct BoardCells(pub Board);

#[async_trait]
impl Cells for BoardCells {
    async fn states(&self) -> Result<Vec<CellState>, String> {
        if !self.0.may_act() {
            return Err("this host does not lead any more".to_owned());
        }
        let field = auctioneer::ask_cells(&self.0).await;
        if field.states.is_empty() && !field.cells.is_empty() {
            return Err(format!("none of {} cells answers", field.cells.len()));
        }
        Ok(field.states)
    }
}
