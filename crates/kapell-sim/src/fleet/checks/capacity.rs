use super::Check;
use super::room::used;
use crate::fleet::fact::Fact;
use crate::fleet::view::View;

/// What runs on a machine never takes more memory, disk or containers than it has.
///
/// Looked at whenever a process begins.
#[derive(Debug, Default)]
pub(super) struct Capacity;

impl Check for Capacity {
    fn name(&self) -> &'static str {
        "capacity"
    }

    fn saw(&mut self, fact: &Fact, view: &View<'_>) -> Result<(), String> {
        let Fact::Began(process) = fact else { return Ok(()) };
        let cell = &process.cell;
        let Some(machine) = view.machines.get(cell) else {
            return Err(format!("{:?} began on {cell}, which is no machine", process.unit));
        };
        let (used, all) = (used(cell, view), machine.capacity);
        let fits = used.memory_mb <= all.memory_mb
            && used.disk_mb <= all.disk_mb
            && used.containers <= all.containers;
        if fits { Ok(()) } else { Err(format!("{cell} runs {used:?} and has {all:?}")) }
    }

    fn at_end(&mut self, _view: &View<'_>) -> Result<(), String> {
        Ok(())
    }
}
