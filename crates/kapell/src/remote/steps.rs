//! The way to the cells that steps of a workflow run on.

use std::time::Duration;

use anyhow::{anyhow, bail};
use kapell_api::client::{Client, Error, Options};
use kapell_core::flow::Fate;
use kapell_core::workflow::Step;
use kapell_node::flow::{Cells, Orchestrator};

use super::args::Reach;
use super::hint;
use super::reach::Resolved;
use crate::config::Config;
use crate::store::block_on;

/// A step waits for its hosts itself, for much longer, and says so.
const PATIENCE: Duration = Duration::from_secs(1);
const ANSWER: Duration = Duration::from_secs(10);

/// The name of a step that this run has on a cell, if there is one.
pub(crate) fn needs_cells(orchestrator: &Orchestrator, all: bool) -> Option<&str> {
    steps_of(orchestrator).find(|step| step.options.on_cell(all).is_some()).map(|step| &*step.name)
}

/// All steps that may run, handlers too.
pub(crate) fn steps_of(orchestrator: &Orchestrator) -> impl Iterator<Item = &Step> {
    let fates = orchestrator.fates();
    let runs = move |at: usize| match fates.get(at) {
        // A handler has no fate.
        None | Some(Fate::Run | Fate::GoesOn | Fate::Picked) => true,
        Some(Fate::Counts(_)) => false,
    };
    let steps = orchestrator.workflow().steps.iter().enumerate();
    steps.filter(move |(at, _)| runs(*at)).map(|(_, step)| step)
}

/// The cells of the hosts that are named, or else of those that other commands would ask. Somebody there answers.
pub(crate) fn cells_for(step: &str, on: Option<&str>, config: &Config) -> anyhow::Result<Cells> {
    let reach = Reach { url: on.map(str::to_owned), ..Reach::default() };
    let resolve = || Resolved::new(&reach, &config.state_dir, |name| std::env::var_os(name));
    let has_token = resolve()?.token.is_some();
    let make = || -> anyhow::Result<Client> {
        resolve()?.client(&Options { patience: PATIENCE, answer: ANSWER, ..Options::default() })
    };
    // Of its own: a connection lives only as long as its runtime.
    let asked = make()?;
    match block_on(async { Ok(asked.cells().await) })? {
        Ok(_) => Ok(Cells::new(make()?, config.host_patience)),
        Err(Error::Unreachable { url, .. }) => bail!(
            "step `{step}` runs on a cell, but no host answers at {url}: start one with `kapell up`, or name yours by --on or KAPELL_URL; nothing was run"
        ),
        Err(error) => {
            let hint = hint(&error, has_token).map(|hint| format!(" ({hint})")).unwrap_or_default();
            let error = anyhow::Error::new(error);
            Err(anyhow!(
                "step `{step}` runs on a cell, and its host cannot be used: {error:#}{hint}; nothing was run"
            ))
        }
    }
}
