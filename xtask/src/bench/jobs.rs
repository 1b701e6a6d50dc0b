//! `cargo xtask bench jobs`: schedules, runs at rest, runs that are due, beside controls of the same run.

use super::{Options, leadership, program};
use crate::error::Result;
use crate::workspace::Workspace;

/// Measures and prints.
pub(crate) fn run(workspace: &Workspace, options: Options) -> Result<()> {
    leadership::report(workspace, options, program(workspace, "jobs-bench", options)?)
}
