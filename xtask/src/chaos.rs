//! Rounds of chaos on real fleets, each with a seed of its own, for as long as told.

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::backends::Session;
use crate::command;
use crate::error::{Result, failed};
use crate::workspace::Workspace;

/// What such a fleet runs on.
pub(crate) const SERVERS: &[&str] = &["etcd"];
/// Long enough for faults to meet, short enough to begin often with nothing.
const ROUND: Duration = Duration::from_mins(3);
const SHORTEST_ROUND: Duration = Duration::from_secs(20);
/// Below what is built: whoever cleans that up wants no logs either.
const LOGS: &str = "target/soak";
/// Before the seed and what happened, in what the test says.
const SUMMARY: &str = "chaos: seed ";

/// What all rounds came to.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Rounds {
    count: u64,
    from: u64,
    /// Seeds of those that failed.
    failed: Vec<u64>,
    happened: BTreeMap<String, u64>,
}

/// Rounds until the time is over; at least one.
pub(crate) fn run(
    workspace: &Workspace,
    session: &Session,
    minutes: u64,
    from: u64,
) -> Result<Rounds> {
    let logs = workspace.root.join(LOGS);
    fs::create_dir_all(&logs)?;
    let test = |more: &[&str]| {
        let mut cargo = command::cargo(&workspace.root);
        cargo.args(["test", "--locked", "-p", "kapell", "--test", "cli"]).args(more);
        cargo.env("KAPELL_CHAOS_LOGS", &logs);
        session.equip(&mut cargo, SERVERS);
        cargo
    };
    if !command::succeeds(&mut test(&["--no-run"]))? {
        return Err(failed("the chaos of fleets does not compile"));
    }
    let mut rounds = Rounds { from, ..Rounds::default() };
    let end = Instant::now() + Duration::from_mins(minutes);
    loop {
        let left = end.saturating_duration_since(Instant::now());
        if rounds.count > 0 && left < SHORTEST_ROUND {
            return Ok(rounds);
        }
        let seconds = left.clamp(SHORTEST_ROUND, ROUND).as_secs().to_string();
        let seed = from.wrapping_add(rounds.count);
        let mut round = test(&["chaos::", "--", "--nocapture"]);
        round.env("KAPELL_SIM_SEED", seed.to_string()).env("KAPELL_CHAOS_SECONDS", seconds);
        rounds.add(seed, &mut round)?;
    }
}

impl Rounds {
    pub(crate) fn passed(&self) -> bool {
        self.failed.is_empty()
    }

    fn add(&mut self, seed: u64, round: &mut Command) -> Result<()> {
        let mut told = false;
        let passed = command::tee(round, |line| told |= self.hear(line))?;
        self.count += 1;
        if passed && !told {
            return Err(failed("the chaos of fleets did not run: see why it was skipped"));
        }
        if !passed {
            println!("soak: the round with seed {seed} failed; its logs are in {LOGS}");
            self.failed.push(seed);
        }
        Ok(())
    }

    /// Whether this line tells what happened in a round.
    fn hear(&mut self, line: &str) -> bool {
        let Some(happened) = told(line, SUMMARY) else { return false };
        for (what, count) in happened {
            *self.happened.entry(what).or_default() += count;
        }
        true
    }

    /// As the page has it.
    pub(crate) fn show(&self) -> String {
        let last = self.from.wrapping_add(self.count.saturating_sub(1));
        let happened: Vec<String> =
            self.happened.iter().map(|(what, count)| format!("{count} {what}")).collect();
        let mut text = format!(
            "{} of chaos, seeds {} to {last}: {}",
            self.count,
            self.from,
            happened.join(", ")
        );
        if !self.failed.is_empty() {
            let seeds: Vec<String> = self.failed.iter().map(u64::to_string).collect();
            text += &format!("; failed: {}", seeds.join(", "));
        }
        text
    }
}

/// What a test says that happened, if this line says it: `…SUMMARY<seed>: what 3, else 12`.
pub(crate) fn told(line: &str, summary: &str) -> Option<BTreeMap<String, u64>> {
    let (_, rest) = line.split_once(summary)?;
    let (_, counts) = rest.split_once(": ")?;
    let parts = counts.trim_end().split(", ").filter_map(|part| part.rsplit_once(' '));
    Some(parts.map(|(what, count)| (what.to_owned(), count.parse().unwrap_or(0))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_happened_in_all_rounds_is_summed_up() {
        let mut rounds = Rounds { from: 7, ..Rounds::default() };
        assert!(rounds.hear("chaos: seed 7: agents killed 3, tasks 12"));
        assert!(rounds.hear("test chaos::it ... chaos: seed 8: agents killed 4"));
        assert!(!rounds.hear("test result: ok. 1 passed"));
        rounds.count = 2;
        assert_eq!(rounds.show(), "2 of chaos, seeds 7 to 8: 7 agents killed, 12 tasks");
        rounds.failed.push(8);
        assert!(!rounds.passed() && rounds.show().ends_with("; failed: 8"));
    }
}
