//! Who has room for what.

use kapell_core::board::{CellId, Resources};

use crate::fleet::view::View;

/// What runs on a machine, together.
pub(super) fn used(cell: &CellId, view: &View<'_>) -> Resources {
    let mut used = Resources::default();
    for process in view.running.values().filter(|process| process.cell == *cell) {
        used.memory_mb += process.memory_mb;
        used.disk_mb += process.disk_mb;
        used.containers += 1;
    }
    used
}

/// Whether some machine that takes work could run this as well.
pub(super) fn is_there_for(memory_mb: u32, disk_mb: u32, view: &View<'_>) -> bool {
    let takes = view.machines.iter().filter(|(_, it)| it.is_up && it.has_agent && !it.evacuating);
    takes.into_iter().any(|(cell, machine)| {
        let (used, all) = (used(cell, view), machine.capacity);
        used.memory_mb + memory_mb <= all.memory_mb
            && used.disk_mb + disk_mb <= all.disk_mb
            && used.containers < all.containers
    })
}
