//! `cargo xtask test`: everything that must hold before a change goes in.

mod counts;
pub(crate) mod programs;
mod report;
mod skip;
mod table;

use std::fs;
use std::process::Command;
use std::thread;
use std::time::Instant;

use crate::backends::{self, Session};
use crate::bench;
use crate::command;
use crate::error::{Error, Result, failed};
use crate::scratch::Scratch;
use crate::tidy;
use crate::tools;
use crate::workspace::Workspace;
use counts::Counts;
use programs::Programs;
use report::{Check, Done, Report};
use skip::Skip;
use table::{Part, SUITES, Suite};

/// For how long platforms are simulated.
const SIM_SECONDS: &str = "120";
/// For how long everything happens to a real one.
const CHAOS_SECONDS: &str = "180";

/// How much of the tests to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    /// What needs no server; tests that do skip themselves. Installs only what builds need.
    Quick,
    Full,
}

pub(crate) fn run(workspace: &Workspace, extent: Extent) -> Result<()> {
    let scratch = Scratch::new("test")?;
    let mut run = Run { workspace, scratch: &scratch, report: Report::default() };
    tools::provide(tools::FOR_BUILDS);
    run.check("every crate has a suite", || Ok(all_have_a_suite(workspace)));
    run.cargo("fmt", &["fmt", "--all", "--check"]);
    let clippy = "clippy --workspace --all-targets --locked -- -D warnings";
    run.cargo("clippy", &words(clippy));
    run.check("tidy", || verdict(tidy::run(workspace)));
    if extent == Extent::Full {
        run.cargo("small build", &words("check --locked -p kapell --no-default-features"));
        tools::provide(tools::FOR_TESTS);
    }
    let suites = SUITES.iter().filter(|suite| suite.quick || extent == Extent::Full);
    // Compiled first, so that a budget is about the tests and not about a cold cache.
    let programs = run.build();
    let suites: Vec<&Suite> = suites.filter(|_| programs.is_some()).collect();
    let programs = programs.unwrap_or_default();
    let session = match extent {
        Extent::Quick => Session::default(),
        Extent::Full => run.servers(&suites),
    };
    for suite in suites {
        run.suite(suite, &programs, &session)?;
    }
    session.end();
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
    let is_left_out = |name: &str| !SUITES.iter().any(|suite| suite.covers(name));
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

/// Runs some one after the other and, from the first moment on, `beside` at the same time. What those say is shown
/// when they are done.
fn side_by_side(beside: Vec<Command>, rest: Vec<Command>) -> Result<Counts> {
    thread::scope(|scope| {
        let collect = |mut tests: Command| {
            scope.spawn(move || {
                let mut said = Vec::new();
                let ok = command::each_line(&mut tests, |line| said.extend_from_slice(line))?;
                Ok::<_, Error>((ok, String::from_utf8_lossy(&said).into_owned()))
            })
        };
        let beside: Vec<_> = beside.into_iter().map(collect).collect();
        let mut counts = Counts::default();
        for mut tests in rest {
            let mut own = Counts::default();
            let ok =
                command::tee(&mut tests, |line| own += Counts::parse(line).unwrap_or_default())?;
            counts += own.or_dead(ok);
        }
        for tests in beside {
            let (ok, said) = tests.join().map_err(|_| failed("cannot read what tests say"))??;
            print!("{said}");
            let mut own = Counts::default();
            said.lines().for_each(|line| own += Counts::parse(line).unwrap_or_default());
            counts += own.or_dead(ok);
        }
        Ok(counts)
    })
}

/// One command a program; none for a crate that the workspace does not have yet.
fn test_commands(programs: &Programs, part: &Part) -> Vec<Command> {
    let mut commands = programs.commands(part.crates);
    for command in &mut commands {
        command.args(part.filter.arguments());
        for variable in backends::variables() {
            command.env_remove(variable);
        }
    }
    commands
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

    /// None if something does not compile: then no test runs.
    fn build(&mut self) -> Option<Programs> {
        let (mut built, workspace) = (None, self.workspace);
        self.check("build", || {
            built = Programs::build(workspace)?;
            Ok(built.is_some())
        });
        built
    }

    /// Never fails: a server that cannot be had is a skip, and so are the tests that want it.
    fn servers(&mut self, suites: &[&Suite]) -> Session {
        let names: Vec<&str> = suites.iter().flat_map(|suite| suite.backends).copied().collect();
        let mut session = Session::default();
        if names.is_empty() {
            return session;
        }
        self.check("servers", || {
            session = Session::begin(&names)?;
            Ok(true)
        });
        for (name, reason) in &session.missing {
            println!("SKIP backend {name}: {reason}");
            // The list at the end has a line for each.
            let reason = reason.lines().next().unwrap_or_default().to_owned();
            self.report.left_out.push(Skip { name: format!("backend {name}"), reason });
        }
        session
    }

    fn suite(&mut self, suite: &Suite, programs: &Programs, session: &Session) -> Result<()> {
        println!("\n== suite {}", suite.name);
        let skips = self.scratch.path().join(format!("skips-{}", suite.name));
        fs::write(&skips, "")?;
        let start = Instant::now();
        let commands = |beside: bool| {
            let parts = suite.parts.iter().filter(move |part| part.beside == beside);
            parts.flat_map(|part| test_commands(programs, part)).map(|mut tests| {
                tests.env(skip::VARIABLE, &skips).envs(session.environment(suite.backends));
                tests.env("KAPELL_SIM_SECONDS", SIM_SECONDS);
                tests.env("KAPELL_CHAOS_SECONDS", CHAOS_SECONDS);
                tests
            })
        };
        let (beside, rest): (Vec<_>, Vec<_>) =
            (commands(true).collect(), commands(false).collect());
        let mut counts = side_by_side(beside, rest)?;
        let time = start.elapsed();
        let skips = skip::parse(&fs::read_to_string(&skips)?);
        counts.move_to_skipped(skips.len());
        self.report.skips.extend(skips);
        self.report.suites.push(Done { name: suite.name, counts, time, budget: suite.budget });
        Ok(())
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
            bench::board::run_with(workspace, options, &Session::default())?;
            bench::cell::run(workspace, options)?;
            bench::jobs::run(workspace, options)?;
            Ok(true)
        });
        self.report.left_out.extend(left_out);
    }
}
