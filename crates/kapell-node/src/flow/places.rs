//! Where the commands of a run go.

use std::collections::BTreeMap;
use std::sync::Arc;

use kapell_backend::executor::{Executor, Later};
use kapell_core::board::TaskGuid;
use kapell_core::flow::{Fate, Past};
use kapell_core::seams::Ids;
use kapell_core::workflow::{StepIx, Workflow};

use super::cells::{self, Cells};

/// The places of one run: this machine and, if there are any, cells.
#[derive(Debug)]
pub(super) struct Places {
    pub(super) executor: Arc<dyn Executor>,
    pub(super) cells: Option<Cells>,
    /// Steps that do not say where they run do so on cells.
    pub(super) on_cells: bool,
    pub(super) ids: Arc<dyn Ids>,
    /// Tasks that the run before began and that steps of this one are to go on with.
    pub(super) found: BTreeMap<StepIx, TaskGuid>,
}

/// Where one command goes.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) executor: Arc<dyn Executor>,
    /// The task that it becomes, if it leaves this machine.
    pub(super) task: Option<TaskGuid>,
}

impl Places {
    /// Decides where the next command of a step runs, and under what name.
    ///
    /// A task that was found belongs to the step's own command, which is its `main` one.
    pub(super) fn of(
        &mut self,
        workflow: &Workflow,
        ix: StepIx,
        main: bool,
    ) -> Result<Place, String> {
        let step = workflow.step(ix);
        let Some(wanted) = step.options.on_cell(self.on_cells) else {
            return Ok(Place { executor: Arc::clone(&self.executor), task: None });
        };
        let Some(cells) = &self.cells else {
            return Err("it runs on a cell, and this run has none: name a host".to_owned());
        };
        let found = if main { self.found.remove(&ix) } else { None };
        let task = found.unwrap_or_else(|| cells::name(&step.name, self.ids.draw()));
        // Not the run: a run that goes on with it must ask for the same.
        let annotation = format!("step {} of workflow {}", step.name, workflow.name);
        let executor = Arc::new(cells.errand(task.clone(), wanted, shortened(annotation)));
        Ok(Place { executor, task: Some(task) })
    }

    /// Ends the tasks that were found and that no step went on with.
    pub(super) fn abandon_found(&mut self) -> Vec<Later<()>> {
        let found = std::mem::take(&mut self.found);
        let Some(cells) = &self.cells else { return Vec::new() };
        found.into_values().map(|task| cells.abandon(task)).collect()
    }
}

/// Tasks of the run before: those that steps go on with, and those of steps that begin anew.
pub(super) fn found(
    workflow: &Workflow,
    fates: &[Fate],
    past: &Past,
) -> (BTreeMap<StepIx, TaskGuid>, Vec<TaskGuid>) {
    let (mut found, mut stale) = (BTreeMap::new(), Vec::new());
    for (ix, step) in workflow.proper_steps() {
        let task = past.steps.get(&*step.name).and_then(|before| before.task.clone());
        let Some(task) = task else { continue };
        match fates[ix.index()] {
            Fate::GoesOn => {
                found.insert(ix, task);
            }
            Fate::Run | Fate::Picked => stale.push(task),
            Fate::Counts(_) => {}
        }
    }
    (found, stale)
}

/// As long as a board takes.
fn shortened(mut text: String) -> String {
    text.truncate(text.floor_char_boundary(1024));
    text
}
