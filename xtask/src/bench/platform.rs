//! `cargo xtask bench platform`: what `kapell up` costs, beside the parts that it is made of.

use super::{Options, leadership, program};
use crate::error::Result;
use crate::workspace::Workspace;

/// Measures and prints.
pub(crate) fn run(workspace: &Workspace, options: Options) -> Result<()> {
    leadership::report(workspace, options, program(workspace, "platform-bench", options)?)
}
