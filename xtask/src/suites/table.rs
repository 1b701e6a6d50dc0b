use std::time::Duration;

/// A named group of tests with a limit on how long they may take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Suite {
    pub(crate) name: &'static str,
    pub(crate) crates: &'static [&'static str],
    pub(crate) budget: Duration,
    /// Needs no server, so it runs in `test quick` too.
    pub(crate) quick: bool,
}

const fn minutes(count: u64) -> Duration {
    Duration::from_mins(count)
}

/// All tests of the workspace. A member that stands in no line fails the run.
#[rustfmt::skip]
pub(crate) const SUITES: &[Suite] = &[
    Suite { name: "unit",      crates: &["kapell-core", "kapell-store", "kapell-backend", "kapell-node", "xtask"], budget: minutes(3), quick: true },
    Suite { name: "workflows", crates: &["kapell"], budget: minutes(3), quick: true },
];
