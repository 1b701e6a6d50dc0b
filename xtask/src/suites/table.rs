use std::time::Duration;

/// A named group of tests with a limit on how long they may take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Suite {
    pub(crate) name: &'static str,
    pub(crate) parts: &'static [Part],
    pub(crate) budget: Duration,
    /// Runs in `test quick` too; what wants a server skips itself there.
    pub(crate) quick: bool,
    /// The servers that its tests run against, by their names in `cargo xtask backends`.
    pub(crate) backends: &'static [&'static str],
}

/// Tests that one command runs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Part {
    /// One that is not in the workspace yet is passed over.
    pub(crate) crates: &'static [&'static str],
    pub(crate) filter: Filter,
    /// Runs while the other parts of its suite do: it takes long and waits for most of that.
    pub(crate) beside: bool,
}

/// Which tests of a crate, by a text in their paths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Filter {
    All,
    Only(&'static str),
    ExceptAll(&'static [&'static str]),
}

impl Filter {
    /// What a test binary is told. It looks for the text anywhere in a path, both ways alike, so
    /// `Only` of some texts and `ExceptAll` of the same are all tests and none twice.
    pub(crate) fn arguments(self) -> Vec<&'static str> {
        match self {
            Self::All => vec![],
            Self::Only(text) => vec![text],
            Self::ExceptAll(texts) => texts.iter().flat_map(|text| ["--skip", *text]).collect(),
        }
    }
}

impl Suite {
    pub(crate) fn covers(&self, name: &str) -> bool {
        self.parts.iter().any(|part| part.crates.contains(&name))
    }
}

const fn minutes(count: u64) -> Duration {
    Duration::from_mins(count)
}

const fn all(crates: &'static [&'static str]) -> Part {
    part(crates, Filter::All)
}

const fn part(crates: &'static [&'static str], filter: Filter) -> Part {
    Part { crates, filter, beside: false }
}

const LEADERSHIP: &str = "leadership::";
const WITH_LEADERSHIP: Part = part(&["kapell"], Filter::Only(LEADERSHIP));
const PLATFORM: &str = "platform::";
const WITH_PLATFORM: Part = part(&["kapell"], Filter::Only(PLATFORM));
const CELLS: &str = "fleets::";
const WITH_CELLS: Part = part(&["kapell"], Filter::Only(CELLS));
const CHAOS: &str = "chaos::";
const WITH_CHAOS: Part = Part { beside: true, ..part(&["kapell"], Filter::Only(CHAOS)) };
const FLEET: &str = "fleet::";
/// Simulated platforms, which need nothing but a processor: in the suite whose other long part waits most of its time.
const WITH_FLEET: Part = part(&["kapell-sim"], Filter::Only(FLEET));
const WITHOUT_FLEET: Part = part(&["kapell-sim"], Filter::ExceptAll(&[FLEET]));
const JOBS: &str = "jobs::";
const WITH_JOBS: Part = part(&["kapell"], Filter::Only(JOBS));
const SCHEDULER: &str = "scheduler::";
const WITH_SCHEDULER: Part = part(&["kapell-node"], Filter::Only(SCHEDULER));
const WITHOUT_SCHEDULER: Part = part(&["kapell-node"], Filter::ExceptAll(&[SCHEDULER]));
const WORKFLOWS: Part =
    part(&["kapell"], Filter::ExceptAll(&[LEADERSHIP, PLATFORM, CELLS, CHAOS, JOBS]));

/// All tests of the workspace. A member that stands in no line fails the run.
#[rustfmt::skip]
pub(crate) const SUITES: &[Suite] = &[
    Suite { name: "unit",       parts: &[all(&["kapell-core", "kapell-api", "kapell-shim", "kapell-backend", "xtask"]), WITHOUT_SCHEDULER], budget: minutes(3), quick: true, backends: &["registry", "etcd", "etcd-tls", "postgres"] },
    Suite { name: "workflows",  parts: &[WORKFLOWS], budget: minutes(3), quick: true, backends: &[] },
    Suite { name: "leadership", parts: &[all(&["kapell-store"]), WITHOUT_FLEET, WITH_LEADERSHIP], budget: minutes(5), quick: true, backends: &["etcd", "etcd-tls", "postgres"] },
    Suite { name: "platform",   parts: &[WITH_PLATFORM], budget: minutes(5), quick: true, backends: &["etcd", "postgres"] },
    Suite { name: "jobs",       parts: &[WITH_SCHEDULER, WITH_JOBS], budget: minutes(4), quick: true, backends: &["etcd", "postgres"] },
    Suite { name: "cells",      parts: &[WITH_CHAOS, WITH_CELLS, WITH_FLEET], budget: minutes(5), quick: true, backends: &["etcd", "registry"] },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crate_that_one_part_filters_has_its_other_tests_in_another() {
        let parts = || SUITES.iter().flat_map(|suite| suite.parts);
        for name in parts().flat_map(|part| part.crates) {
            let of_it = parts().filter(|part| part.crates.contains(name));
            let filters: Vec<Filter> = of_it.map(|part| part.filter).collect();
            let mut only = Vec::new();
            let mut others = Vec::new();
            for filter in &filters {
                match filter {
                    Filter::All => {}
                    Filter::Only(text) => only.push(*text),
                    Filter::ExceptAll(texts) => others.extend_from_slice(texts),
                }
            }
            only.sort_unstable();
            others.sort_unstable();
            let is_whole = filters == [Filter::All] || (!only.is_empty() && only == others);
            assert!(is_whole, "{name}: {filters:?}");
        }
    }

    #[test]
    fn every_backend_of_a_suite_can_be_had() {
        for suite in SUITES.iter().filter(|suite| !suite.backends.is_empty()) {
            assert!(crate::backends::is_known(suite.backends), "{}", suite.name);
        }
    }
}
