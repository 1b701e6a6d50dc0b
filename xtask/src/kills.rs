//! Rounds of kills of hosts that lead runs of jobs.

use std::collections::BTreeMap;

use crate::backends::Session;
use crate::chaos::told;
use crate::command;
use crate::error::{Result, failed};
use crate::workspace::Workspace;

/// What such hosts run on.
pub(crate) const SERVERS: &[&str] = &["etcd", "postgres"];
const TEST: &str = "jobs::rounds::";
/// Before the seed and what happened, in what the test says.
const SUMMARY: &str = "jobs: seed ";

/// Whether all was well, and what happened, as the page has it.
pub(crate) fn run(
    workspace: &Workspace,
    session: &Session,
    rounds: u64,
    seed: u64,
) -> Result<(bool, String)> {
    let mut cargo = command::cargo(&workspace.root);
    cargo.args(["test", "--locked", "-p", "kapell", "--test", "cli", TEST, "--", "--nocapture"]);
    cargo.env("KAPELL_JOBS_ROUNDS", rounds.to_string()).env("KAPELL_SIM_SEED", seed.to_string());
    cargo.envs(session.environment(SERVERS));
    let mut happened = None;
    let passed = command::tee(&mut cargo, |line| {
        happened = told(line, SUMMARY).or_else(|| happened.take());
    })?;
    match happened {
        None if passed => Err(failed("no host was killed: see why that was skipped")),
        None => Ok((false, format!("up to {rounds} of jobs"))),
        Some(happened) => Ok((passed, show(&happened))),
    }
}

fn show(happened: &BTreeMap<String, u64>) -> String {
    let rounds = happened.get("rounds").copied().unwrap_or_default();
    let rest = happened.iter().filter(|(what, _)| *what != "rounds");
    let rest: Vec<String> = rest.map(|(what, count)| format!("{count} {what}")).collect();
    format!("{rounds} of jobs: {}", rest.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_happened_is_shown_after_the_number_of_rounds() {
        let line = "test it ... jobs: seed 7: failovers 3, kills at a point 12, rounds 4\n";
        let happened = told(line, SUMMARY).unwrap();
        assert_eq!(show(&happened), "4 of jobs: 3 failovers, 12 kills at a point");
        assert_eq!(told("test result: ok. 1 passed", SUMMARY), None);
    }
}
