//! `cargo xtask bench board`: the board at scale, beside floors of the same run.

use super::{Options, leadership};
use crate::error::Result;
use crate::workspace::Workspace;

const NAME: &str = "board-bench";
/// Whose take-over is measured besides that of the embedded store.
const SERVERS: [&str; 2] = ["etcd", "postgres"];

/// Measures and prints.
pub(crate) fn run(workspace: &Workspace, options: Options) -> Result<()> {
    leadership::run_on(workspace, options, NAME, &SERVERS)
}

/// The same on the embedded store alone.
pub(crate) fn run_alone(workspace: &Workspace, options: Options) -> Result<()> {
    leadership::run_alone(workspace, options, NAME)
}
