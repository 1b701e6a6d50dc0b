//! `cargo xtask soak`: the randomised tests, for much longer, with the outcome on record.

use std::fs;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::backends::Session;
use crate::command;
use crate::error::{Error, Result, failed};
use crate::workspace::Workspace;

const PAGE: &str = "docs/soak.md";
const HEAD: &str =
    "| commit | date | seed | rounds | duration | result |\n|---|---|---|---|---|---|\n";
const DEFAULT_ROUNDS: u64 = 1000;
/// A round is a workflow that is killed and resumed, a few hundred milliseconds.
const ROUNDS_PER_MINUTE: u64 = 200;
const PROPERTY_CASES: &str = "20000";

/// How long to soak, and from which seed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Options {
    rounds: u64,
    seed: Option<u64>,
}

impl Options {
    pub(crate) fn parse(words: &[&str]) -> Result<Self> {
        let mut options = Self { rounds: DEFAULT_ROUNDS, seed: None };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let value = words.next().and_then(|value| value.parse::<u64>().ok());
            match (*word, value) {
                ("--minutes", Some(minutes @ 1..)) => {
                    options.rounds = minutes.saturating_mul(ROUNDS_PER_MINUTE);
                }
                ("--seed", Some(seed)) => options.seed = Some(seed),
                ("--minutes" | "--seed", _) => {
                    return Err(Error::Usage(format!("soak: {word} needs a number")));
                }
                _ => return Err(Error::Usage(format!("soak: unknown option `{word}`"))),
            }
        }
        Ok(options)
    }
}

pub(crate) fn run(workspace: &Workspace, options: &Options) -> Result<()> {
    let seed = options.seed.unwrap_or_else(seed_from_time);
    let rounds = options.rounds.to_string();
    println!("soak: seed {seed}, {rounds} rounds");
    let commit = command::commit(&workspace.root);
    let start = Instant::now();
    let mut failures = Vec::new();
    let servers = ["etcd", "etcd-tls", "postgres"];
    let session = Session::begin(&servers)?;
    // What a round is differs: a seed of the simulation takes as long as a killed workflow.
    let heavy = ["leadership", "platform"];
    let heavy_rounds = (options.rounds / 50).max(3).to_string();
    for (name, arguments) in [
        ("kapell-core", "test --locked --release --no-fail-fast -p kapell-core"),
        ("kapell", "test --locked --no-fail-fast -p kapell soak_"),
        ("kapell-sim", "test --locked --no-fail-fast -p kapell-sim"),
        ("leadership", "test --locked --no-fail-fast -p kapell leadership::"),
        ("platform", "test --locked --no-fail-fast -p kapell platform::"),
    ] {
        let mut cargo = command::cargo(&workspace.root);
        cargo
            .args(arguments.split(' '))
            .env("KAPELL_SOAK_ROUNDS", if heavy.contains(&name) { &heavy_rounds } else { &rounds })
            .env("KAPELL_SOAK_SLEEP_S", "60")
            .env("KAPELL_SIM_SEEDS", &rounds)
            .env("KAPELL_SIM_SCHEDULES", options.rounds.saturating_mul(20).to_string())
            .envs(session.environment(&servers))
            .env("KAPELL_SOAK_SEED", seed.to_string())
            .env("PROPTEST_RNG_SEED", seed.to_string())
            .env("PROPTEST_CASES", PROPERTY_CASES);
        if !command::succeeds(&mut cargo)? {
            failures.push(name);
        }
    }
    session.end();
    let result = if failures.is_empty() {
        "passed".to_owned()
    } else {
        format!("FAILED: {}", failures.join(", "))
    };
    let (date, duration) = (command::today(), show(start.elapsed()));
    let row = format!("| {commit} | {date} | {seed} | {rounds} | {duration} | {result} |\n");
    print!("\n{HEAD}{row}");
    record(workspace, &row)?;
    if failures.is_empty() { Ok(()) } else { Err(Error::Reported) }
}

fn seed_from_time() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    since.as_secs() ^ u64::from(since.subsec_nanos())
}

fn show(time: Duration) -> String {
    let seconds = time.as_secs();
    format!("{} min {} s", seconds / 60, seconds % 60)
}

fn record(workspace: &Workspace, row: &str) -> Result<()> {
    let path = workspace.root.join(PAGE);
    let page = fs::read_to_string(&path).unwrap_or_else(|_| "# Soak runs\n".to_owned());
    fs::write(&path, with_row(&page, row)).map_err(|error| failed(format!("{PAGE}: {error}")))
}

/// The page with `row` as the first of its table, whatever hand laid out the table's head.
fn with_row(page: &str, row: &str) -> String {
    let mut lines: Vec<&str> = page.split_inclusive('\n').collect();
    let head = lines.iter().position(|line| line.starts_with("| commit "));
    match head.filter(|at| lines.get(at + 1).is_some_and(|rule| rule.starts_with('|'))) {
        Some(at) => {
            lines.insert(at + 2, row);
            lines.concat()
        }
        None => format!("{}\n\n{HEAD}{row}", page.trim_end()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_minutes_and_seed() {
        assert_eq!(Options::parse(&[]).unwrap(), Options { rounds: 1000, seed: None });
        let options = Options::parse(&["--seed", "7", "--minutes", "10"]).unwrap();
        assert_eq!(options, Options { rounds: 2000, seed: Some(7) });
        assert!(matches!(Options::parse(&["--minutes"]), Err(Error::Usage(_))));
        assert!(matches!(Options::parse(&["--hours", "1"]), Err(Error::Usage(_))));
    }

    #[test]
    fn the_newest_row_comes_first() {
        let page = with_row("# Soak\n\ntext\n", "| a |\n");
        assert_eq!(page, format!("# Soak\n\ntext\n\n{HEAD}| a |\n"));
        assert_eq!(with_row(&page, "| b |\n"), format!("# Soak\n\ntext\n\n{HEAD}| b |\n| a |\n"));
    }
}
