//! `cargo xtask bench stores`: all drivers side by side, beside minimal clients of the same servers.

use super::{Options, leadership};
use crate::error::Result;
use crate::workspace::Workspace;

const NAME: &str = "stores-bench";
const SERVERS: [&str; 4] = ["etcd", "postgres", "cassandra", "dynamodb"];

/// Measures and prints.
pub(crate) fn run(workspace: &Workspace, options: Options) -> Result<()> {
    leadership::run_on(workspace, options, NAME, &SERVERS)
}

/// The same on the embedded store alone.
pub(crate) fn run_alone(workspace: &Workspace, options: Options) -> Result<()> {
    leadership::run_alone(workspace, options, NAME)
}
