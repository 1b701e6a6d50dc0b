//! `cargo xtask bench cell`: what starts on a cell cost, and what becomes of many instances.

use super::{Options, leadership, program};
use crate::error::Result;
use crate::tools;
use crate::workspace::Workspace;

/// Measures and prints. What needs root or a tool that is not there is left out by name.
pub(crate) fn run(workspace: &Workspace, options: Options) -> Result<()> {
    tools::provide(tools::FOR_CONTAINERS);
    leadership::report(workspace, options, program(workspace, "cell-bench", options)?)
}
