//! Where the commands of a run go.

use std::collections::BTreeMap;
use std::sync::Arc;

use kapell_backend::executor::{Executor, Later};
use kapell_core::flow::{Fate, Past, Phase, Placed};
use kapell_core::kubernetes::JobPlace;
use kapell_core::seams::Ids;
use kapell_core::workflow::{OnCell, OnKubernetes, StepIx, Workflow};

use super::cells::{self, Cells};
use super::context::Context;
use super::kubernetes::Jobs;

/// The places of one run: this machine and, if there are any, cells and clusters.
#[derive(Debug)]
pub(super) struct Places {
    pub(super) executor: Arc<dyn Executor>,
    pub(super) cells: Option<Cells>,
    pub(super) jobs: Option<Arc<Jobs>>,
    /// Steps that do not say where they run do so on cells.
    pub(super) on_cells: bool,
    pub(super) ids: Arc<dyn Ids>,
    /// What the run before began and steps of this one are to go on with.
    pub(super) found: BTreeMap<StepIx, Placed>,
}

/// Where one command goes.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) executor: Arc<dyn Executor>,
    /// What it becomes, if it leaves this machine.
    pub(super) placed: Option<Placed>,
}

/// A command that is to start.
#[derive(Debug, Clone, Copy)]
pub(super) struct Command {
    pub(super) step: StepIx,
    pub(super) phase: Phase,
    pub(super) attempt: u32,
}

impl Places {
    /// Decides where the next command of a step runs, and under what name.
    ///
    /// What was found belongs to the step's own command. Conditions of a step on a cluster are checked here: its image may
    /// have no shell.
    pub(super) fn of(
        &mut self,
        workflow: &Workflow,
        command: Command,
        context: &Context,
    ) -> Result<Place, String> {
        let step = workflow.step(command.step);
        let is_main = command.phase == Phase::Main;
        let found = if is_main { self.found.remove(&command.step) } else { None };
        if let Some(wanted) = step.options.on_kubernetes().filter(|_| is_main) {
            let wanted = context.on_kubernetes(step, wanted).map_err(|error| error.to_string())?;
            return self.on_kubernetes(workflow, command, wanted, found);
        }
        if let Some(wanted) = step.options.on_cell(self.on_cells) {
            return self.on_cell(workflow, command, wanted, found);
        }
        Ok(Place { executor: Arc::clone(&self.executor), placed: None })
    }

    fn on_cell(
        &self,
        workflow: &Workflow,
        command: Command,
        wanted: OnCell,
        found: Option<Placed>,
    ) -> Result<Place, String> {
        let step = workflow.step(command.step);
        let Some(cells) = &self.cells else {
            return Err("it runs on a cell, and this run has none: name a host".to_owned());
        };
        let task = match found {
            Some(Placed::Task(task)) => task,
            Some(Placed::Job(_)) | None => cells::name(&step.name, self.ids.draw()),
        };
        // Not the run: a run that goes on with it must ask for the same.
        let annotation = format!("step {} of workflow {}", step.name, workflow.name);
        let executor = Arc::new(cells.errand(task.clone(), wanted, shortened(annotation)));
        Ok(Place { executor, placed: Some(Placed::Task(task)) })
    }

    fn on_kubernetes(
        &self,
        workflow: &Workflow,
        command: Command,
        wanted: OnKubernetes,
        found: Option<Placed>,
    ) -> Result<Place, String> {
        let step = workflow.step(command.step);
        let Some(jobs) = &self.jobs else {
            return Err("it runs on Kubernetes, and this run has no cluster".to_owned());
        };
        let place = match found {
            Some(Placed::Job(place)) => place,
            Some(Placed::Task(_)) | None => jobs.place(&step.name, command.attempt, &wanted)?,
        };
        let executor = jobs.errand(place.clone(), wanted, (workflow, step, command.attempt));
        Ok(Place { executor: Arc::new(executor), placed: Some(Placed::Job(place)) })
    }

    /// Ends what was found and no step went on with.
    pub(super) fn abandon_found(&mut self) -> Vec<Later<()>> {
        let found = std::mem::take(&mut self.found);
        self.abandon(found.into_values().collect())
    }

    /// Ends what the run before began and nobody goes on with.
    pub(super) fn abandon(&self, stale: Vec<Placed>) -> Vec<Later<()>> {
        let abandon = |placed| match placed {
            Placed::Task(task) => self.cells.as_ref().map(|cells| cells.abandon(task)),
            Placed::Job(place) => self.jobs.as_ref().map(|jobs| jobs.abandon(place)),
        };
        stale.into_iter().filter_map(abandon).collect()
    }
}

/// What the run before began: that which steps go on with, and that of steps that begin anew.
pub(super) fn found(
    workflow: &Workflow,
    fates: &[Fate],
    past: &Past,
) -> (BTreeMap<StepIx, Placed>, Vec<Placed>) {
    let (mut found, mut stale) = (BTreeMap::new(), Vec::new());
    for (ix, step) in workflow.proper_steps() {
        let placed = past.steps.get(&*step.name).and_then(|before| before.task.clone());
        let Some(placed) = placed else { continue };
        match fates[ix.index()] {
            Fate::GoesOn => {
                found.insert(ix, placed);
            }
            Fate::Run | Fate::Picked => stale.push(placed),
            Fate::Counts(_) => {}
        }
    }
    (found, stale)
}

/// The Jobs among these.
pub(super) fn jobs<'p>(placed: impl IntoIterator<Item = &'p Placed>) -> Vec<JobPlace> {
    let job = |placed: &Placed| match placed {
        Placed::Job(place) => Some(place.clone()),
        Placed::Task(_) => None,
    };
    placed.into_iter().filter_map(job).collect()
}

/// As long as a board takes.
fn shortened(mut text: String) -> String {
    text.truncate(text.floor_char_boundary(1024));
    text
}
