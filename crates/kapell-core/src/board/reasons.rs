//! Why tasks fail, where the board or a cell decides it and not the task's own program.

use super::ids::CellId;

pub const CANCELLED: &str = "cancelled";
pub const EVACUATION_TIMED_OUT: &str = "timed out during cell evacuation";
/// The board has the task running on a cell that has no container for it.
pub const CONTAINER_LOST: &str = "its container is gone from the cell";
pub const STOPPED_BEFORE_START: &str = "stopped before it was started";
pub const STOPPED_BEFORE_END: &str = "stopped before it ended";
const NOT_TAKEN: &str = "no cell has taken it";

pub fn cell_lost(cell_id: &CellId) -> String {
    format!("cell `{cell_id}` disappeared before completion")
}

/// Says why a task waited in vain: its last placement error, if it had one.
pub fn not_started(placement_error: Option<&str>) -> String {
    format!("not started in time: {}", placement_error.unwrap_or(NOT_TAKEN))
}
