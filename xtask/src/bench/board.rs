//! `cargo xtask bench board`: the board at scale, beside floors of the same run.

use std::process::Command;

use super::{Options, build, leadership};
use crate::backends::Session;
use crate::error::Result;
use crate::workspace::Workspace;

/// Whose take-over is measured besides that of the embedded store.
const SERVERS: [&str; 2] = ["etcd", "postgres"];

/// Measures and prints.
pub(crate) fn run(workspace: &Workspace, options: Options) -> Result<()> {
    let kapell = build(workspace, "kapell", options.smoke)?;
    build(workspace, "kapell-sim", options.smoke)?;
    let session = Session::begin(&SERVERS)?;
    let mut bench = Command::new(kapell.with_file_name("board-bench"));
    bench.arg(&kapell).envs(session.environment(&SERVERS));
    let reported = leadership::report(workspace, options, bench);
    for (name, why) in &session.missing {
        eprintln!("SKIPPED {name}: {why}");
    }
    session.end();
    reported
}
