use std::fs::OpenOptions;
use std::io::Write as _;

use kapell_store::testing::{Failures, Place};

/// Runs one group of the suite.
pub(crate) async fn passes(
    place: &dyn Place,
    group: impl AsyncFnOnce(&dyn Place) -> Result<(), Failures>,
) {
    if let Err(failures) = group(place).await {
        panic!("{failures}");
    }
}

/// The server that a variable names. Without one the test counts as skipped, not as passed.
pub(crate) fn server(test: &str, variable: &str) -> Option<String> {
    let server = std::env::var(variable).ok().filter(|server| !server.is_empty());
    if server.is_none() {
        skip(test, &format!("{variable} names no server"));
    }
    server
}

fn skip(test: &str, reason: &str) {
    let Some(path) = std::env::var_os("KAPELL_TEST_SKIPS") else { return };
    let file = OpenOptions::new().append(true).create(true).open(path);
    let mut file = file.expect("the file for skipped tests");
    writeln!(file, "SKIP {test}: {reason}").expect("the file for skipped tests");
}
