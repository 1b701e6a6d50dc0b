use kapell_store::testing::skip;
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
