//! `cargo xtask bench board`: the board at scale, beside floors of the same run.

use std::process::Command;

use super::{Options, build, leadership};
use crate::backends::{self, Session};
use crate::error::Result;
use crate::workspace::Workspace;

/// Whose take-over is measured besides that of the embedded store.
const SERVERS: [&str; 2] = ["etcd", "postgres"];

/// Measures and prints.
pub(crate) fn run(workspace: &Workspace, options: Options) -> Result<()> {
    let session = Session::begin(&SERVERS)?;
    let reported = run_with(workspace, options, &session);
    for (name, why) in &session.missing {
        eprintln!("SKIPPED {name}: {why}");
    }
    session.end();
    reported
}

/// The same with the servers that are there; without any, on the embedded store alone.
pub(crate) fn run_with(workspace: &Workspace, options: Options, session: &Session) -> Result<()> {
    let kapell = build(workspace, "kapell", options.smoke)?;
    build(workspace, "kapell-sim", options.smoke)?;
    let mut bench = Command::new(kapell.with_file_name("board-bench"));
    for variable in backends::variables() {
        bench.env_remove(variable);
    }
    bench.arg(&kapell).envs(session.environment(&SERVERS));
    leadership::report(workspace, options, bench)
}
