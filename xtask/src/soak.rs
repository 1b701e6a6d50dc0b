//! `cargo xtask soak`: the randomised tests, for much longer, with the outcome on record.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::backends::Session;
use crate::chaos;
use crate::command;
use crate::error::{Error, Result, failed};
use crate::kills::{self, Kills};
use crate::sim;
use crate::workspace::Workspace;

const PAGE: &str = "docs/soak.md";
const HEAD: &str =
    "| commit | date | seed | rounds | duration | result |\n|---|---|---|---|---|---|\n";
const DEFAULT_MINUTES: u64 = 5;
/// A round is a workflow that is killed and resumed, a few hundred milliseconds.
const ROUNDS_PER_MINUTE: u64 = 200;
/// Of tests that take the number of rounds from their environment.
const SERVERS: &[&str] = &["etcd", "etcd-tls", "postgres"];
const PROPERTY_CASES: &str = "20000";
/// Random schedules that are tried over ten years, in four zones each.
const SCHEDULES: u64 = 500;
/// Takes them from its environment.
const OF_SCHEDULES: &str =
    "test --locked --release -p kapell-core --test schedule ten_years -- --nocapture";
/// What the simulator of platforms says at its end, after how many there were.
const WORLDS: &str = " seeds from ";

/// One kind of long rounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Part {
    name: &'static str,
    does: Does,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Does {
    /// Tests that take the number of rounds from their environment.
    Tests { arguments: &'static str, heavy: bool },
    /// Simulated platforms, for as long as told.
    Worlds,
    /// Real fleets to which everything happens, for as long as told.
    Chaos,
    /// Real hosts that are killed while they lead runs, as often as told.
    Kills(Kills),
    /// Random schedules against the oracle, as many as told.
    Schedules,
}

const fn tests(name: &'static str, arguments: &'static str, heavy: bool) -> Part {
    Part { name, does: Does::Tests { arguments, heavy } }
}

const PARTS: &[Part] = &[
    tests("core", "test --locked --release --no-fail-fast -p kapell-core", false),
    tests("workflows", "test --locked --no-fail-fast -p kapell soak_", false),
    tests("hosts", "test --locked --no-fail-fast -p kapell-sim -- --skip fleet::", false),
    Part { name: "fleet", does: Does::Worlds },
    tests("leadership", "test --locked --no-fail-fast -p kapell leadership::", true),
    tests("platform", "test --locked --no-fail-fast -p kapell platform::", true),
    Part { name: "chaos", does: Does::Chaos },
    Part { name: "jobs", does: Does::Kills(kills::JOBS) },
    Part { name: "kubernetes", does: Does::Kills(kills::KUBERNETES) },
    Part { name: "schedules", does: Does::Schedules },
];

/// How long to soak, and from which seed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Options {
    minutes: u64,
    /// Of parts that count rounds instead of minutes; each has its own number otherwise.
    rounds: Option<u64>,
    seed: Option<u64>,
    /// One part alone.
    only: Option<Part>,
}

impl Options {
    pub(crate) fn parse(words: &[&str]) -> Result<Self> {
        let mut options = Self { minutes: DEFAULT_MINUTES, rounds: None, seed: None, only: None };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let value = words.next().copied().unwrap_or_default();
            let number = value.parse::<u64>().ok();
            match (*word, number) {
                ("--minutes", Some(minutes @ 1..)) => options.minutes = minutes,
                ("--rounds", Some(rounds @ 1..)) => options.rounds = Some(rounds),
                ("--seed", Some(seed)) => options.seed = Some(seed),
                ("--minutes" | "--rounds" | "--seed", _) => {
                    return Err(Error::Usage(format!("soak: {word} needs a number")));
                }
                ("--only", _) => options.only = Some(part(value)?),
                _ => return Err(Error::Usage(format!("soak: unknown option `{word}`"))),
            }
        }
        Ok(options)
    }
}

fn part(name: &str) -> Result<Part> {
    PARTS.iter().find(|part| part.name == name).copied().ok_or_else(|| {
        let names: Vec<&str> = PARTS.iter().map(|part| part.name).collect();
        Error::Usage(format!("soak: `{name}` is no part: {}", names.join(", ")))
    })
}

pub(crate) fn run(workspace: &Workspace, options: &Options) -> Result<()> {
    let seed = options.seed.unwrap_or_else(seed_from_time);
    let parts = options.only.as_ref().map_or(PARTS, std::slice::from_ref);
    println!("soak: seed {seed}, {} min", options.minutes);
    let commit = command::commit(&workspace.root);
    let start = Instant::now();
    let mut failures = Vec::new();
    let mut rounds = Vec::new();
    let is_tests = |part: &Part| matches!(part.does, Does::Tests { .. });
    let wanted = wanted(parts);
    let session = if wanted.is_empty() { Session::default() } else { Session::begin(&wanted)? };
    if parts.iter().any(is_tests) {
        rounds.push((options.minutes * ROUNDS_PER_MINUTE).to_string());
    }
    for part in parts {
        let passed = match part.does {
            Does::Tests { arguments, heavy } => {
                let mut cargo = long_tests(workspace, options, seed, arguments, heavy);
                session.equip(&mut cargo, SERVERS);
                command::succeeds(&mut cargo)?
            }
            Does::Worlds => {
                let (passed, count) = worlds(workspace, options.minutes, seed)?;
                rounds.push(format!("{count} worlds"));
                passed
            }
            Does::Chaos => {
                let done = chaos::run(workspace, &session, options.minutes, seed)?;
                rounds.push(done.show());
                done.passed()
            }
            Does::Kills(kills) => {
                let count = options.rounds.unwrap_or(kills.rounds);
                let (passed, done) = kills.run(workspace, &session, count, seed)?;
                rounds.push(done);
                passed
            }
            Does::Schedules => {
                let count = options.rounds.unwrap_or(SCHEDULES);
                rounds.push(format!("{count} schedules, ten years in four zones each"));
                command::succeeds(&mut schedules(workspace, count, seed))?
            }
        };
        if !passed {
            failures.push(part.name);
        }
    }
    if let Err(error) = session.end() {
        eprintln!("xtask: {error}");
        failures.push("servers");
    }
    let result = if failures.is_empty() {
        "passed".to_owned()
    } else {
        format!("FAILED: {}", failures.join(", "))
    };
    let (date, duration, rounds) = (command::today(), show(start.elapsed()), rounds.join(", "));
    let row = format!("| {commit} | {date} | {seed} | {rounds} | {duration} | {result} |\n");
    print!("\n{HEAD}{row}");
    record(workspace, &row)?;
    if failures.is_empty() { Ok(()) } else { Err(Error::Reported) }
}

/// The servers of all these parts.
fn wanted(parts: &[Part]) -> Vec<&'static str> {
    let of = |part: &Part| match part.does {
        Does::Tests { .. } => SERVERS,
        Does::Chaos => chaos::SERVERS,
        Does::Kills(kills) => kills.servers,
        Does::Worlds | Does::Schedules => &[],
    };
    let wanted: BTreeSet<&str> = parts.iter().flat_map(of).copied().collect();
    wanted.into_iter().collect()
}

fn schedules(workspace: &Workspace, count: u64, seed: u64) -> Command {
    let mut cargo = command::cargo(&workspace.root);
    cargo.args(OF_SCHEDULES.split(' '));
    cargo.env("KAPELL_SCHEDULES", count.to_string()).env("PROPTEST_RNG_SEED", seed.to_string());
    cargo
}

fn long_tests(
    workspace: &Workspace,
    options: &Options,
    seed: u64,
    arguments: &str,
    heavy: bool,
) -> Command {
    let rounds = options.minutes * ROUNDS_PER_MINUTE;
    // What a round is differs: a seed of the simulation takes as long as a killed workflow.
    let own_rounds = if heavy { (rounds / 50).max(3) } else { rounds };
    let mut cargo = command::cargo(&workspace.root);
    cargo
        .args(arguments.split(' '))
        .env("KAPELL_SOAK_ROUNDS", own_rounds.to_string())
        .env("KAPELL_SOAK_SLEEP_S", "60")
        .env("KAPELL_SIM_SEEDS", rounds.to_string())
        .env("KAPELL_SIM_SCHEDULES", rounds.saturating_mul(20).to_string())
        .env("KAPELL_SOAK_SEED", seed.to_string())
        .env("PROPTEST_RNG_SEED", seed.to_string())
        .env("PROPTEST_CASES", PROPERTY_CASES);
    cargo
}

/// Whether all rules held, and in how many worlds.
fn worlds(workspace: &Workspace, minutes: u64, from: u64) -> Result<(bool, u64)> {
    let mut program = sim::program(workspace, &sim::Options::Many { minutes, from });
    let mut count = 0;
    let passed = command::tee(&mut program, |line| {
        let told = line.split_once(WORLDS).and_then(|(before, _)| before.parse().ok());
        count = told.unwrap_or(count);
    })?;
    Ok((passed, count))
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
    fn reads_minutes_seed_and_part() {
        let minutes = DEFAULT_MINUTES;
        let usual = || Options { minutes, rounds: None, seed: None, only: None };
        assert_eq!(Options::parse(&[]).unwrap(), usual());
        let options = Options::parse(&["--seed", "7", "--minutes", "10"]).unwrap();
        assert_eq!(options, Options { minutes: 10, seed: Some(7), ..usual() });
        let options = Options::parse(&["--only", "jobs", "--rounds", "20"]).unwrap();
        let (does, rounds) = (options.only.unwrap().does, options.rounds);
        assert_eq!((does, rounds), (Does::Kills(kills::JOBS), Some(20)));
        assert!(matches!(Options::parse(&["--rounds", "0"]), Err(Error::Usage(_))));
        let options = Options::parse(&["--only", "fleet"]).unwrap();
        assert_eq!(options.only.unwrap().does, Does::Worlds);
        let options = Options::parse(&["--only", "chaos", "--minutes", "60"]).unwrap();
        assert_eq!((options.only.unwrap().does, options.minutes), (Does::Chaos, 60));
        assert!(matches!(Options::parse(&["--minutes"]), Err(Error::Usage(_))));
        assert!(matches!(Options::parse(&["--only", "other"]), Err(Error::Usage(_))));
        assert!(matches!(Options::parse(&["--hours", "1"]), Err(Error::Usage(_))));
    }

    #[test]
    fn the_newest_row_comes_first() {
        let page = with_row("# Soak\n\ntext\n", "| a |\n");
        assert_eq!(page, format!("# Soak\n\ntext\n\n{HEAD}| a |\n"));
        assert_eq!(with_row(&page, "| b |\n"), format!("# Soak\n\ntext\n\n{HEAD}| b |\n| a |\n"));
    }
}
