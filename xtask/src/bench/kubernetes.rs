//! `cargo xtask bench kubernetes`: runs on a cluster, beside the same Jobs without Kapell.

use super::{Options, leadership, program};
use crate::backends::Session;
use crate::error::Result;
use crate::workspace::Workspace;

const SERVERS: [&str; 1] = ["kubernetes"];

/// Measures and prints; why not, if there is no cluster to be had.
pub(crate) fn run(workspace: &Workspace, options: Options) -> Result<Option<String>> {
    let session = Session::begin(&SERVERS)?;
    if let Some((_, why)) = session.missing.first() {
        let why = why.lines().next().unwrap_or_default().to_owned();
        eprintln!("SKIPPED kubernetes: {why}");
        return Ok(Some(why));
    }
    let mut bench = program(workspace, "kubernetes-bench", options)?;
    session.equip(&mut bench, &SERVERS);
    let reported = leadership::report(workspace, options, bench);
    session.end()?;
    reported.map(|()| None)
}
