//! `cargo xtask bench jobs`: schedules, runs at rest, runs that are due, beside controls of the same run.

use std::process::Command;

use super::{Options, build, leadership};
use crate::error::Result;
use crate::workspace::Workspace;

/// Measures and prints.
pub(crate) fn run(workspace: &Workspace, options: Options) -> Result<()> {
    let kapell = build(workspace, "kapell", options.smoke)?;
    build(workspace, "kapell-sim", options.smoke)?;
    let mut bench = Command::new(kapell.with_file_name("jobs-bench"));
    bench.arg(&kapell);
    leadership::report(workspace, options, bench)
}
