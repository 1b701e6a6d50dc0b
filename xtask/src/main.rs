//! Development tasks of the workspace, run as `cargo xtask COMMAND`.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command-line tool speaks on its streams"
)]

mod backends;
mod bench;
mod chaos;
mod command;
mod error;
mod kills;
mod scratch;
mod sim;
mod soak;
mod suites;
mod tables;
mod tidy;
mod tools;
mod workspace;

use std::process::ExitCode;

use error::{Error, Result};
use workspace::Workspace;

const USAGE: &str = "\
usage: cargo xtask COMMAND

  tidy                              check dependency arrows, limits, banned calls, coverage
  tables                            write docs/tables anew, from the code
  test [quick]                      fmt, clippy, tidy and every test suite
  bench workflow [--json] [--smoke] [--rounds N]
                                    measure `kapell process` beside the floor, make and ninja
  bench leadership [--json] [--smoke]
                                    measure seats and stores beside raw calls of the same clients
  bench platform [--json] [--smoke]
                                    measure `kapell up` beside the parts that it is made of
  bench board [--json] [--smoke]    measure the board at scale beside floors of the same run
  bench cell [--json] [--smoke]     measure cells: starts beside `runc`, crashes, failover, an agent at rest
  bench jobs [--json] [--smoke]     measure jobs: schedules, runs at rest and runs that are due, beside controls
  bench kubernetes [--json] [--smoke]
                                    measure runs on a cluster beside the same Jobs without Kapell
  bench stores [--json] [--smoke]   measure the drivers of all stores side by side, beside minimal clients
  sim --seed N [--trace]            replay one simulated platform
  sim --minutes M [--seed N]        simulate platforms for a while
  soak [--minutes N] [--rounds N] [--seed S] [--only PART]
                                    long randomised rounds, recorded in docs/soak.md; PART is core, workflows,
                                    hosts, fleet, leadership, platform or chaos, or what counts rounds: jobs,
                                    kubernetes, schedules
  backends up|down|status [NAME…]   servers that tests run against
";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match dispatch(&words) {
        Ok(()) => ExitCode::SUCCESS,
        Err(Error::Failed(text)) => {
            eprintln!("xtask: {text}");
            ExitCode::FAILURE
        }
        Err(Error::Reported) => ExitCode::FAILURE,
        Err(Error::Usage(text)) => {
            eprint!("xtask: {text}\n\n{USAGE}");
            ExitCode::from(2)
        }
    }
}

fn dispatch(words: &[&str]) -> Result<()> {
    match words {
        [] | ["help"] => {
            print!("{USAGE}");
            Ok(())
        }
        words if words.iter().any(|word| matches!(*word, "-h" | "--help")) => {
            print!("{USAGE}");
            Ok(())
        }
        ["tidy"] => tidy::run(&Workspace::load()?),
        ["tables"] => tables::run(&Workspace::load()?),
        ["test"] => suites::run(&Workspace::load()?, suites::Extent::Full),
        ["test", "quick"] => suites::run(&Workspace::load()?, suites::Extent::Quick),
        ["test", suite] => suites::run(&Workspace::load()?, suites::Extent::one(suite)?),
        ["bench", "workflow", options @ ..] => {
            let options = bench::Options::parse(options)?;
            bench::run(&Workspace::load()?, options).map(drop)
        }
        ["bench", "leadership", options @ ..] => {
            let options = bench::Options::parse(options)?;
            bench::leadership::run(&Workspace::load()?, options)
        }
        ["bench", "platform", options @ ..] => {
            let options = bench::Options::parse(options)?;
            bench::platform::run(&Workspace::load()?, options)
        }
        ["sim", options @ ..] => {
            let options = sim::Options::parse(options)?;
            sim::run(&Workspace::load()?, &options)
        }
        ["bench", "board", options @ ..] => {
            let options = bench::Options::parse(options)?;
            bench::board::run(&Workspace::load()?, options)
        }
        ["bench", "cell", options @ ..] => {
            let options = bench::Options::parse(options)?;
            bench::cell::run(&Workspace::load()?, options)
        }
        ["bench", "jobs", options @ ..] => {
            let options = bench::Options::parse(options)?;
            bench::jobs::run(&Workspace::load()?, options)
        }
        ["bench", "stores", options @ ..] => {
            let options = bench::Options::parse(options)?;
            bench::stores::run(&Workspace::load()?, options)
        }
        ["bench", "kubernetes", options @ ..] => {
            let options = bench::Options::parse(options)?;
            bench::kubernetes::run(&Workspace::load()?, options).map(drop)
        }
        ["soak", options @ ..] => {
            let options = soak::Options::parse(options)?;
            soak::run(&Workspace::load()?, &options)
        }
        ["backends", rest @ ..] => backends::run(rest),
        [backends::GUARD] => backends::guard(),
        [bench::FLOOR, rest @ ..] => bench::floor(rest),
        _ => Err(Error::Usage(format!("unknown command `{}`", words.join(" ")))),
    }
}
