//! Rounds of kills of hosts that lead runs of jobs.

use std::collections::BTreeMap;

use crate::backends::Session;
use crate::chaos::told;
use crate::command;
use crate::error::{Result, failed};
use crate::workspace::Workspace;

/// One kind of such rounds: a test that takes their number from its environment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Kills {
    name: &'static str,
    test: &'static str,
    variable: &'static str,
    /// What the hosts run on.
    pub(crate) servers: &'static [&'static str],
    /// So many, unless told otherwise.
    pub(crate) rounds: u64,
}

pub(crate) const JOBS: Kills = Kills {
    name: "jobs",
    test: "jobs::rounds::",
    variable: "KAPELL_JOBS_ROUNDS",
    servers: &["etcd", "postgres"],
    rounds: 200,
};
pub(crate) const KUBERNETES: Kills = Kills {
    name: "kubernetes",
    test: "jobs::kubernetes::rounds::",
    variable: "KAPELL_KUBERNETES_ROUNDS",
    servers: &["kubernetes"],
    rounds: 50,
};

impl Kills {
    /// Whether all was well, and what happened, as the page has it.
    pub(crate) fn run(
        &self,
        workspace: &Workspace,
        session: &Session,
        rounds: u64,
        seed: u64,
    ) -> Result<(bool, String)> {
        let mut cargo = command::cargo(&workspace.root);
        // As all tests are built: with the features of one crate alone everything would be compiled once more.
        cargo.args(["test", "--locked", "--workspace", "--test", "cli", self.test]);
        cargo.args(["--", "--nocapture"]);
        cargo.env(self.variable, rounds.to_string()).env("KAPELL_SIM_SEED", seed.to_string());
        session.equip(&mut cargo, self.servers);
        let mut happened = None;
        let passed = command::tee(&mut cargo, |line| {
            happened = told(line, &self.summary()).or_else(|| happened.take());
        })?;
        match happened {
            None if passed => Err(failed("no host was killed: see why that was skipped")),
            None => Ok((false, format!("up to {rounds} of {}", self.name))),
            Some(happened) => Ok((passed, self.show(&happened))),
        }
    }

    /// Before the seed and what happened, in what the test says.
    fn summary(&self) -> String {
        format!("{}: seed ", self.name)
    }

    fn show(&self, happened: &BTreeMap<String, u64>) -> String {
        let rounds = happened.get("rounds").copied().unwrap_or_default();
        let rest = happened.iter().filter(|(what, _)| *what != "rounds");
        let rest: Vec<String> = rest.map(|(what, count)| format!("{count} {what}")).collect();
        format!("{rounds} of {}: {}", self.name, rest.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_happened_is_shown_after_the_number_of_rounds() {
        let line = "test it ... jobs: seed 7: failovers 3, kills at a point 12, rounds 4\n";
        let happened = told(line, &JOBS.summary()).unwrap();
        assert_eq!(JOBS.show(&happened), "4 of jobs: 3 failovers, 12 kills at a point");
        assert_eq!(told("test result: ok. 1 passed", &JOBS.summary()), None);
        assert_eq!(told(line, &KUBERNETES.summary()), None);
    }
}
