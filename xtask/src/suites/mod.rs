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

use crate::backends::Session;
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

/// A suite that takes so many times its budget does not end by itself.
const PATIENCE: u32 = 3;

/// How much of the tests to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    /// What needs no server; tests that do skip themselves. Installs only what builds need.
    Quick,
    Full,
    /// One suite with its servers, and nothing else: for whoever works on that.
    One(&'static str),
}

impl Extent {
    /// The suite of this name alone.
    pub(crate) fn one(name: &str) -> Result<Self> {
        let found = SUITES.iter().find(|suite| suite.name == name);
        let known = || SUITES.iter().map(|suite| suite.name).collect::<Vec<_>>().join(", ");
        let unknown = || Error::Usage(format!("unknown suite `{name}`; known: {}", known()));
        found.map(|suite| Self::One(suite.name)).ok_or_else(unknown)
    }

    fn takes(self, suite: &Suite) -> bool {
        match self {
            Self::Quick => suite.quick,
            Self::Full => true,
            Self::One(name) => suite.name == name,
        }
    }

    /// Whether servers are there.
    const fn serves(self) -> bool {
        !matches!(self, Self::Quick)
    }
}

pub(crate) fn run(workspace: &Workspace, extent: Extent) -> Result<()> {
    let scratch = Scratch::new("test")?;
    let mut run = Run { workspace, scratch: &scratch, report: Report::default() };
    tools::provide(tools::FOR_BUILDS);
    if !matches!(extent, Extent::One(_)) {
        run.lint(extent);
    }
    if extent.serves() {
        tools::provide(tools::FOR_TESTS);
    }
    // Compiled first, so that a budget is about the tests and not about a cold cache.
    if let Some(programs) = run.build() {
        run.suites(extent, &programs)?;
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

/// Runs some one after the other and, from the first moment on, those of each part of `beside` likewise. What those say
/// is shown when they are done. What still runs at `end` is killed: a test that waits for ever is to be named, not to take
/// the verdict on all others with it.
fn side_by_side(beside: Vec<Vec<Command>>, rest: Vec<Command>, end: Instant) -> Result<Counts> {
    let end = Some(end);
    thread::scope(|scope| {
        let collect = |part: Vec<Command>| {
            scope.spawn(move || {
                let mut all = Vec::new();
                for mut tests in part {
                    let mut said = Vec::new();
                    let hear = |line: &[u8]| said.extend_from_slice(line);
                    let ok = command::each_line_until(&mut tests, end, hear)?;
                    all.push((ok, String::from_utf8_lossy(&said).into_owned()));
                }
                Ok::<_, Error>(all)
            })
        };
        let beside: Vec<_> = beside.into_iter().map(collect).collect();
        let mut counts = Counts::default();
        for mut tests in rest {
            let mut own = Counts::default();
            let hear = |line: &str| own += Counts::parse(line).unwrap_or_default();
            let ok = command::tee_until(&mut tests, end, hear)?;
            counts += own.or_dead(ok);
        }
        for part in beside {
            for (ok, said) in part.join().map_err(|_| failed("cannot read what tests say"))?? {
                print!("{said}");
                let mut own = Counts::default();
                said.lines().for_each(|line| own += Counts::parse(line).unwrap_or_default());
                counts += own.or_dead(ok);
            }
        }
        Ok(counts)
    })
}

/// One command a program; none for a crate that the workspace does not have yet.
fn test_commands(programs: &Programs, part: &Part) -> Vec<Command> {
    let mut commands = programs.commands(part.crates);
    for command in &mut commands {
        command.args(part.filter.arguments());
        command.args(part.at_once.into_iter().flat_map(|count| ["--test-threads", count]));
    }
    commands
}

struct Run<'a> {
    workspace: &'a Workspace,
    scratch: &'a Scratch,
    report: Report,
}

impl Run<'_> {
    /// All that is told without running a test.
    fn lint(&mut self, extent: Extent) {
        let workspace = self.workspace;
        self.check("every crate has a suite", || Ok(all_have_a_suite(workspace)));
        self.cargo("fmt", &["fmt", "--all", "--check"]);
        let clippy = "clippy --workspace --all-targets --locked -- -D warnings";
        self.cargo("clippy", &words(clippy));
        self.check("tidy", || verdict(tidy::run(workspace)));
        if extent == Extent::Full {
            self.cargo("small build", &words("check --locked -p kapell --no-default-features"));
        }
    }

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

    fn suites(&mut self, extent: Extent, programs: &Programs) -> Result<()> {
        let suites = SUITES.iter().filter(|suite| extent.takes(suite));
        let (apart, together): (Vec<&Suite>, Vec<&Suite>) = suites.partition(|suite| suite.apart);
        self.group("servers", &together, extent, programs)?;
        for suite in apart {
            self.group(&format!("{} servers", suite.name), &[suite], extent, programs)?;
        }
        Ok(())
    }

    /// Runs suites while the servers of all of them are up.
    fn group(
        &mut self,
        servers: &str,
        suites: &[&Suite],
        extent: Extent,
        programs: &Programs,
    ) -> Result<()> {
        if suites.is_empty() {
            return Ok(());
        }
        let session =
            if extent.serves() { self.servers(servers, suites) } else { Session::default() };
        for suite in suites {
            self.suite(suite, programs, &session)?;
        }
        if extent.serves() {
            self.check(&format!("{servers} down"), || session.end().map(|()| true));
        }
        Ok(())
    }

    /// Never fails: a server that cannot be had is a skip, and so are the tests that want it.
    fn servers(&mut self, check: &str, suites: &[&Suite]) -> Session {
        let names: Vec<&str> = suites.iter().flat_map(|suite| suite.backends).copied().collect();
        let mut session = Session::default();
        if names.is_empty() {
            return session;
        }
        self.check(check, || {
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
        let commands = |part: &Part| -> Vec<Command> {
            let mut all = test_commands(programs, part);
            for tests in &mut all {
                session.equip(tests, suite.backends);
                tests.env(skip::VARIABLE, &skips);
                tests.env("KAPELL_SIM_SECONDS", SIM_SECONDS);
                tests.env("KAPELL_CHAOS_SECONDS", CHAOS_SECONDS);
            }
            all
        };
        let (beside, rest): (Vec<&Part>, Vec<&Part>) =
            suite.parts.iter().partition(|part| part.beside);
        let beside = beside.into_iter().map(commands).collect();
        let rest = rest.into_iter().flat_map(commands).collect();
        let mut counts = side_by_side(beside, rest, start + PATIENCE * suite.budget)?;
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
            bench::board::run_alone(workspace, options)?;
            bench::cell::run(workspace, options)?;
            bench::jobs::run(workspace, options)?;
            bench::stores::run_alone(workspace, options)?;
            if let Some(reason) = bench::kubernetes::run(workspace, options)? {
                left_out.push(Skip { name: "bench kubernetes".to_owned(), reason });
            }
            Ok(true)
        });
        self.report.left_out.extend(left_out);
    }
}
