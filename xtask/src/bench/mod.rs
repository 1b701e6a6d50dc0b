//! `cargo xtask bench workflow`: what `kapell process` costs, beside the floor, make and ninja.

pub(crate) mod board;
pub(crate) mod cell;
mod contest;
mod files;
mod floor;
pub(crate) mod jobs;
pub(crate) mod kubernetes;
mod lab;
pub(crate) mod leadership;
mod memory;
mod mode;
pub(crate) mod platform;
mod row;
mod shape;
mod single;
pub(crate) mod stores;
mod sys;

use std::cell::Cell;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::thread;

use crate::command;
use crate::error::{Error, Result, failed};
use crate::scratch::Scratch;
use crate::suites::programs::BUILD;
use crate::tools;
use crate::workspace::Workspace;
use contest::Contest;
pub(crate) use floor::{FLOOR, floor};
use lab::Lab;
use row::Row;
use shape::Shape;

/// How to run and how to print.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Options {
    pub(crate) json: bool,
    /// Only see that every figure can be measured: tiny graphs, debug builds, no judgement.
    pub(crate) smoke: bool,
    /// Instead of what the plan says: more of them for a busy machine.
    pub(crate) rounds: Option<usize>,
}

impl Options {
    pub(crate) fn parse(words: &[&str]) -> Result<Self> {
        let mut options = Self::default();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            match *word {
                "--json" => options.json = true,
                "--smoke" => options.smoke = true,
                "--rounds" => {
                    let rounds = words.next().and_then(|count| count.parse().ok());
                    let rounds = rounds.filter(|count| *count > 0);
                    let missing = || Error::Usage("bench: --rounds needs a number".to_owned());
                    options.rounds = Some(rounds.ok_or_else(missing)?);
                }
                _ => return Err(Error::Usage(format!("bench: unknown option `{word}`"))),
            }
        }
        Ok(options)
    }
}

/// What to measure.
struct Plan {
    contests: [Contest; 4],
    memory_steps: usize,
    validate_steps: usize,
    validate_rounds: usize,
    start_rounds: usize,
}

const fn contest(shape: Shape, plain_rounds: usize, shell_rounds: usize) -> Contest {
    Contest { shape, plain_rounds, shell_rounds }
}

const FULL: Plan = Plan {
    contests: [
        contest(Shape::independent(1000), 5, 5),
        contest(Shape::independent(10_000), 3, 1),
        contest(Shape::chain(1000), 5, 5),
        contest(Shape::layers(10, 100), 5, 5),
    ],
    memory_steps: 10_000,
    validate_steps: 100_000,
    validate_rounds: 5,
    start_rounds: 50,
};

const SMOKE: Plan = Plan {
    contests: [
        contest(Shape::independent(20), 1, 1),
        contest(Shape::independent(40), 1, 1),
        contest(Shape::chain(20), 1, 1),
        contest(Shape::layers(4, 5), 1, 1),
    ],
    memory_steps: 20,
    validate_steps: 20,
    validate_rounds: 1,
    start_rounds: 1,
};

/// Measures and prints; returns the names of figures that a missing tool left out.
pub(crate) fn run(workspace: &Workspace, options: Options) -> Result<Vec<String>> {
    tools::provide(&[tools::MAKE, tools::NINJA]);
    let lab = lab(workspace, options.smoke)?;
    let mut plan = if options.smoke { SMOKE } else { FULL };
    if let Some(rounds) = options.rounds {
        for contest in &mut plan.contests {
            (contest.plain_rounds, contest.shell_rounds) = (rounds, rounds);
        }
    }
    let rows = measure(&lab, &plan)?;
    let judged = !options.smoke;
    if options.json {
        println!("{:#}", row::to_json(&rows, judged));
    } else {
        println!("{}\n", header(workspace, &plan));
        let goals = rows.iter().filter(|row| row.has_goal());
        print!("{}", row::to_markdown(goals, judged));
        if judged {
            let context = rows.iter().filter(|row| !row.has_goal());
            println!("\nBehind them:\n\n{}", row::to_markdown(context, judged));
        }
    }
    for missed in rows.iter().filter_map(Row::missed).filter(|_| judged) {
        eprintln!("MISSED {missed}");
    }
    let left_out: Vec<String> = rows
        .into_iter()
        .filter(|row| row.has_goal() && row.value().is_none())
        .map(|row| row.name)
        .collect();
    for name in &left_out {
        eprintln!("SKIPPED {name}");
    }
    Ok(left_out)
}

fn measure(lab: &Lab, plan: &Plan) -> Result<Vec<Row>> {
    // The first start of a program reads it from disk.
    single::start_up(lab, 2)?;
    let mut rows = vec![single::start_up(lab, plan.start_rounds)?];
    rows.push(single::validate(lab, plan.validate_steps, plan.validate_rounds)?);
    rows.extend(single::memory(lab, plan.memory_steps)?);
    for contest in &plan.contests {
        rows.extend(contest.hold(lab)?);
    }
    Ok(rows)
}

fn lab(workspace: &Workspace, smoke: bool) -> Result<Lab> {
    let kapell = build(workspace, &["kapell"], smoke)?.join("kapell");
    // For a smoke test this very program will do. Not by its path: cargo may have replaced it.
    let floor = if smoke {
        PathBuf::from("/proc/self/exe")
    } else {
        build(workspace, &["xtask"], smoke)?.join("xtask")
    };
    Ok(Lab {
        scratch: Scratch::new("bench")?,
        kapell,
        floor,
        make: command::find(tools::MAKE.program),
        ninja: command::find(tools::NINJA.program),
        runs: Cell::new(0),
    })
}

/// Builds the simulator's program of this name and kapell, which it is told of.
fn program(workspace: &Workspace, name: &str, options: Options) -> Result<Command> {
    // At once: one by one, each would have dependencies with other features, and they would be compiled twice.
    let dir = build(workspace, &["kapell", "kapell-sim"], options.smoke)?;
    let mut program = Command::new(dir.join(name));
    program.arg(dir.join("kapell"));
    Ok(program)
}

/// Tells in which directory they are.
fn build(workspace: &Workspace, packages: &[&str], debug: bool) -> Result<PathBuf> {
    let mut cargo = command::cargo(&workspace.root);
    if debug {
        // As tests are, which have been compiled just before.
        cargo.args(BUILD);
    } else {
        cargo.args(["build", "--locked", "--release"]);
        for package in packages {
            cargo.args(["-p", package]);
        }
    }
    if !command::succeeds(&mut cargo)? {
        return Err(failed(format!("cannot build {}", packages.join(", "))));
    }
    Ok(workspace.target.join(if debug { "debug" } else { "release" }))
}

fn header(workspace: &Workspace, plan: &Plan) -> String {
    let cores = thread::available_parallelism().map_or(0, usize::from);
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let rounds: Vec<String> = plan
        .contests
        .iter()
        .map(|each| format!("{} {}/{}", each.shape.name(), each.plain_rounds, each.shell_rounds))
        .collect();
    format!(
        "commit {}, {}, {cores} cores, Linux {}, rounds plain/sh: {}",
        command::commit(&workspace.root),
        command::today(),
        kernel.trim(),
        rounds.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_its_options() {
        assert_eq!(
            Options::parse(&["--json"]).unwrap(),
            Options { json: true, ..Options::default() }
        );
        assert_eq!(Options::parse(&["--rounds", "9"]).unwrap().rounds, Some(9));
        assert!(matches!(Options::parse(&["--rounds", "0"]), Err(Error::Usage(_))));
        assert!(matches!(Options::parse(&["--fast"]), Err(Error::Usage(_))));
    }
}
