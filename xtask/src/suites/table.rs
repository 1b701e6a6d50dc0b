use std::time::Duration;

/// A named group of tests with a limit on how long they may take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Suite {
    pub(crate) name: &'static str,
    pub(crate) parts: &'static [Part],
    pub(crate) budget: Duration,
    /// Runs in `test quick` too; what wants a server skips itself there.
    pub(crate) quick: bool,
    /// Its servers are up for as long as it runs: they would take too much from the others.
    pub(crate) apart: bool,
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
    /// So many at once, where that is not as many as there are processors: they wait for most of their time.
    pub(crate) at_once: Option<&'static str>,
}

/// Which tests of a crate, by texts in their paths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Filter {
    only: Option<&'static str>,
    except: &'static [&'static str],
}

impl Filter {
    /// What a test binary is told. It looks for a text anywhere in a path.
    pub(crate) fn arguments(self) -> Vec<&'static str> {
        let except = self.except.iter().flat_map(|text| ["--skip", *text]);
        self.only.into_iter().chain(except).collect()
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
    except(crates, &[])
}

const fn except(crates: &'static [&'static str], except: &'static [&'static str]) -> Part {
    Part { crates, filter: Filter { only: None, except }, beside: false, at_once: None }
}

const fn only(crates: &'static [&'static str], text: &'static str) -> Part {
    Part { crates, filter: Filter { only: Some(text), except: &[] }, beside: false, at_once: None }
}

/// Those that want a cluster of Kubernetes, or a server that takes much, are in one suite, whatever else they are about.
const fn here(crates: &'static [&'static str], text: &'static str) -> Part {
    Part {
        crates,
        filter: Filter { only: Some(text), except: ELSEWHERE },
        beside: false,
        at_once: None,
    }
}

const ELSEWHERE: &[&str] = &[KUBERNETES, CASSANDRA, DYNAMODB];
const CASSANDRA: &str = "cassandra::";
const DYNAMODB: &str = "dynamodb::";
/// Many of them wait until something has run out.
const WITH_CASSANDRA: Part = Part {
    crates: &["xtask", "kapell-store", "kapell-node"],
    filter: Filter { only: Some(CASSANDRA), except: &[KUBERNETES] },
    beside: false,
    at_once: Some("4"),
};
/// Hosts whose take-over is timed, and then those of whom the interface is tested, which keep it busy.
const HOSTS_ON_CASSANDRA: Part = Part {
    crates: &["kapell"],
    filter: Filter { only: Some(CASSANDRA), except: &[KUBERNETES, API_OF_CASSANDRA] },
    beside: false,
    at_once: Some("3"),
};
const API_OF_CASSANDRA: &str = "on_databases::cassandra::";
const API_ON_CASSANDRA: Part = Part {
    filter: Filter { only: Some(API_OF_CASSANDRA), except: &[KUBERNETES] },
    ..HOSTS_ON_CASSANDRA
};
/// The driver and its elections. Beside those of Cassandra each would take time from the other; this suite has some to spare.
const WITH_DYNAMODB: Part = on_dynamodb(&["xtask", "kapell-store", "kapell-node"]);
/// Its server takes little, so it is up where other tests of hosts run. It does one transaction at a time: hosts whose
/// take-over is timed have it for themselves.
const HOSTS_ON_DYNAMODB: Part = Part { at_once: Some("1"), ..on_dynamodb(&["kapell"]) };

const fn on_dynamodb(crates: &'static [&'static str]) -> Part {
    let filter = Filter { only: Some(DYNAMODB), except: &[KUBERNETES, CASSANDRA] };
    Part { crates, filter, beside: false, at_once: None }
}

const KUBERNETES: &str = "kubernetes::";
const SPEAK_KUBERNETES: &[&str] =
    &["xtask", "kapell-store", "kapell-backend", "kapell-node", "kapell"];
/// Most of their time they wait for pods.
const WITH_KUBERNETES: Part = Part {
    crates: &["xtask", "kapell-store", "kapell-backend", "kapell-node"],
    filter: Filter { only: Some(KUBERNETES), except: &[ALONE] },
    beside: false,
    at_once: Some("4"),
};
/// Each has hosts of its own, which want a processor too.
const HOSTS_ON_KUBERNETES: Part =
    Part { crates: &["kapell"], at_once: Some("3"), ..WITH_KUBERNETES };
/// What happens there to the cluster itself would be in the way of the others: it comes after them.
const ALONE: &str = "alone_on_kubernetes::";
const ALONE_ON_KUBERNETES: Part = only(SPEAK_KUBERNETES, ALONE);
const LEADERSHIP: &str = "leadership::";
const WITH_LEADERSHIP: Part = here(&["kapell"], LEADERSHIP);
const PLATFORM: &str = "platform::";
const WITH_PLATFORM: Part = here(&["kapell"], PLATFORM);
const CELLS: &str = "fleets::";
const WITH_CELLS: Part = here(&["kapell"], CELLS);
const CHAOS: &str = "chaos::";
const WITH_CHAOS: Part = Part { beside: true, ..here(&["kapell"], CHAOS) };
const FLEET: &str = "fleet::";
/// Simulated platforms, which need nothing but a processor: in the suite whose other long part waits most of its time.
const WITH_FLEET: Part = only(&["kapell-sim"], FLEET);
const WITHOUT_FLEET: Part = except(&["kapell-sim"], &[FLEET]);
const JOBS: &str = "jobs::";
const WITH_JOBS: Part = here(&["kapell"], JOBS);
const SCHEDULER: &str = "scheduler::";
const WITH_SCHEDULER: Part = here(&["kapell-node"], SCHEDULER);
const WITHOUT_SCHEDULER: Part =
    except(&["kapell-node"], &[SCHEDULER, KUBERNETES, CASSANDRA, DYNAMODB]);
const WORKFLOWS: Part = except(
    &["kapell"],
    &[LEADERSHIP, PLATFORM, CELLS, CHAOS, JOBS, KUBERNETES, CASSANDRA, DYNAMODB],
);
const TASKS: Part = except(&["xtask"], ELSEWHERE);
const BACKEND: Part = except(&["kapell-backend"], &[KUBERNETES]);
const STORE: Part = except(&["kapell-store"], ELSEWHERE);

/// All tests of the workspace. A member that stands in no line fails the run.
#[rustfmt::skip]
pub(crate) const SUITES: &[Suite] = &[
    Suite { name: "unit",       parts: &[all(&["kapell-core", "kapell-api", "kapell-shim"]), TASKS, BACKEND, WITHOUT_SCHEDULER], budget: minutes(3), quick: true, apart: false, backends: &["registry", "etcd", "etcd-tls", "postgres"] },
    Suite { name: "workflows",  parts: &[WORKFLOWS, WITH_DYNAMODB], budget: minutes(3), quick: true, apart: false, backends: &["dynamodb"] },
    Suite { name: "leadership", parts: &[STORE, WITHOUT_FLEET, WITH_LEADERSHIP], budget: minutes(5), quick: true, apart: false, backends: &["etcd", "etcd-tls", "postgres"] },
    Suite { name: "platform",   parts: &[WITH_PLATFORM, HOSTS_ON_DYNAMODB], budget: minutes(5), quick: true, apart: false, backends: &["etcd", "postgres", "dynamodb"] },
    Suite { name: "jobs",       parts: &[WITH_SCHEDULER, WITH_JOBS], budget: minutes(4), quick: true, apart: false, backends: &["etcd", "postgres"] },
    Suite { name: "cells",      parts: &[WITH_CHAOS, WITH_CELLS, WITH_FLEET], budget: minutes(5), quick: true, apart: false, backends: &["etcd", "registry"] },
    Suite { name: "kubernetes", parts: &[WITH_KUBERNETES, HOSTS_ON_KUBERNETES, ALONE_ON_KUBERNETES], budget: minutes(5), quick: true, apart: true, backends: &["kubernetes"] },
    Suite { name: "databases",  parts: &[WITH_CASSANDRA, HOSTS_ON_CASSANDRA, API_ON_CASSANDRA], budget: minutes(3), quick: true, apart: true, backends: &["cassandra", "dynamodb", "etcd", "postgres"] },
];

#[cfg(test)]
mod tests {
    use super::*;

    impl Filter {
        fn takes(self, path: &str) -> bool {
            let is_in = |text: &str| path.contains(text);
            self.only.is_none_or(is_in) && !self.except.iter().any(|text| is_in(text))
        }

        fn texts(self) -> impl Iterator<Item = &'static str> {
            self.only.into_iter().chain(self.except.iter().copied())
        }
    }

    #[test]
    fn a_test_is_in_one_suite_whatever_its_path() {
        let parts = || SUITES.iter().flat_map(|suite| suite.parts);
        for name in parts().flat_map(|part| part.crates) {
            let filters: Vec<Filter> =
                parts().filter(|part| part.crates.contains(name)).map(|part| part.filter).collect();
            let texts = filters.iter().flat_map(|filter| filter.texts());
            let mut paths = vec!["some::test".to_owned()];
            for text in texts {
                paths.push(format!("{text}test"));
                paths.push(format!("some::{text}test"));
                for other in ELSEWHERE {
                    paths.push(format!("{text}{other}test"));
                }
            }
            for path in paths {
                let count = filters.iter().filter(|filter| filter.takes(&path)).count();
                assert_eq!(count, 1, "{path} of {name}: {filters:?}");
            }
        }
    }

    #[test]
    fn a_filter_is_told_as_test_programs_take_it() {
        let filter = Filter { only: Some("a::"), except: &["b::", "c::"] };
        assert_eq!(filter.arguments(), ["a::", "--skip", "b::", "--skip", "c::"]);
        assert!(filter.takes("x::a::t") && !filter.takes("a::b::t") && !filter.takes("x::t"));
    }

    #[test]
    fn every_backend_of_a_suite_can_be_had() {
        for suite in SUITES.iter().filter(|suite| !suite.backends.is_empty()) {
            assert!(crate::backends::is_known(suite.backends), "{}", suite.name);
        }
    }
}
