//! `cargo xtask bench cell`: what starts on a cell cost, and what becomes of many instances.

use std::process::Command;

use super::{Options, build, leadership};
use crate::error::Result;
use crate::tools;
use crate::workspace::Workspace;

/// Measures and prints. What needs root or a tool that is not there is left out by name.
pub(crate) fn run(workspace: &Workspace, options: Options) -> Result<()> {
    tools::provide(tools::FOR_CONTAINERS);
    let kapell = build(workspace, "kapell", options.smoke)?;
    build(workspace, "kapell-sim", options.smoke)?;
    let mut bench = Command::new(kapell.with_file_name("cell-bench"));
    bench.arg(&kapell);
    leadership::report(workspace, options, bench)
}
