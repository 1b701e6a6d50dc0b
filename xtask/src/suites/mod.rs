//! `cargo xtask test`: everything that must hold before a change goes in.

mod counts;
mod report;
mod skip;
mod table;

use std::fs;
use std::process::Command;
use std::time::Instant;

use crate::bench;
use crate::command;
use crate::error::{Error, Result};
use crate::scratch::Scratch;
use crate::tidy;
use crate::tools;
use crate::workspace::Workspace;
use counts::Counts;
use report::{Check, Done, Report};
use skip::Skip;
use table::{SUITES, Suite};

/// How much of the tests to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    /// What needs no server and installs nothing.
    Quick,
    Full,
}

pub(crate) fn run(workspace: &Workspace, extent: Extent) -> Result<()> {
    let scratch = Scratch::new("test")?;
    let mut run = Run { workspace, scratch: &scratch, report: Report::default() };
    run.check("every crate has a suite", || Ok(all_have_a_suite(workspace)));
    run.cargo("fmt", &["fmt", "--all", "--check"]);
    let clippy = "clippy --workspace --all-targets --locked -- -D warnings";
    run.cargo("clippy", &words(clippy));
    run.check("tidy", || verdict(tidy::run(workspace)));
    if extent == Extent::Full {
        run.cargo("small build", &words("check --locked -p kapell --no-default-features"));
        tools::provide(tools::FOR_TESTS);
    }
    for suite in SUITES.iter().filter(|suite| suite.quick || extent == Extent::Full) {
        run.suite(suite)?;
    }
    if extent == Extent::Full {
        run.bench_smoke();
    }
    print!("{}", run.report.render());
    if run.report.total().failed > 0 { Err(Error::Reported) } else { Ok(()) }
}

fn words(text: &str) -> Vec<&str> {
    text.split(' ').collect()
}

/// False, and says why, if the tests of a member of the workspace would never run.
fn all_have_a_suite(workspace: &Workspace) -> bool {
    let is_left_out = |name: &str| !SUITES.iter().any(|suite| suite.crates.contains(&name));
    let names = workspace.packages.iter().map(|package| package.name.as_str());
    let left_out: Vec<&str> = names.filter(|name| is_left_out(name)).collect();
    if !left_out.is_empty() {
        println!("no suite runs the tests of: {}", left_out.join(", "));
    }
    left_out.is_empty()
}

/// A problem that was already told is an answer here, not an error.
fn verdict(result: Result<()>) -> Result<bool> {
    match result {
        Ok(()) => Ok(true),
        Err(Error::Reported) => Ok(false),
        Err(error @ (Error::Failed(_) | Error::Usage(_))) => Err(error),
    }
}

struct Run<'a> {
    workspace: &'a Workspace,
    scratch: &'a Scratch,
    report: Report,
}

impl Run<'_> {
    fn check(&mut self, name: &str, work: impl FnOnce() -> Result<bool>) -> bool {
        println!("\n== {name}");
        let start = Instant::now();
        let ok = work().unwrap_or_else(|error| {
            println!("{name}: {error}");
            false
        });
        let time = start.elapsed();
        println!("== {name}: {}, {:.1} s", if ok { "ok" } else { "FAILED" }, time.as_secs_f64());
        self.report.checks.push(Check { name: name.to_owned(), ok, time });
        ok
    }

    fn cargo(&mut self, name: &str, arguments: &[&str]) -> bool {
        let mut cargo = command::cargo(&self.workspace.root);
        cargo.args(arguments);
        self.check(name, || command::succeeds(&mut cargo))
    }

    fn suite(&mut self, suite: &Suite) -> Result<()> {
        // Compiled first, so that the budget is about the tests and not about a cold cache.
        let mut build = self.test_command(suite);
        build.arg("--no-run");
        if !self.check(&format!("build {}", suite.name), || command::succeeds(&mut build)) {
            return Ok(());
        }
        println!("\n== suite {}", suite.name);
        let skips = self.scratch.path().join(format!("skips-{}", suite.name));
        fs::write(&skips, "")?;
        let mut counts = Counts::default();
        let start = Instant::now();
        let mut tests = self.test_command(suite);
        tests.arg("--no-fail-fast").env(skip::VARIABLE, &skips);
        let ok = command::tee(&mut tests, |line| {
            counts += Counts::parse(line).unwrap_or_default();
        })?;
        let time = start.elapsed();
        if !ok && counts.failed == 0 {
            // A test binary that dies leaves no count.
            counts.failed = 1;
        }
        let skips = skip::parse(&fs::read_to_string(&skips)?);
        counts.move_to_skipped(skips.len());
        self.report.skips.extend(skips);
        self.report.suites.push(Done { name: suite.name, counts, time, budget: suite.budget });
        Ok(())
    }

    fn test_command(&self, suite: &Suite) -> Command {
        let mut cargo = command::cargo(&self.workspace.root);
        cargo.args(["test", "--locked"]);
        for name in suite.crates {
            cargo.args(["-p", name]);
        }
        cargo
    }

    fn bench_smoke(&mut self) {
        let mut left_out = Vec::new();
        let workspace = self.workspace;
        self.check("bench smoke", || {
            let options = bench::Options { smoke: true, ..bench::Options::default() };
            for name in bench::run(workspace, options)? {
                let reason = "a tool is missing".to_owned();
                left_out.push(Skip { name: format!("bench workflow, {name}"), reason });
            }
            Ok(true)
        });
        self.report.left_out.extend(left_out);
    }
}
