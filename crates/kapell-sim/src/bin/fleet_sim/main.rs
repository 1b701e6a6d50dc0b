//! Simulates whole platforms. Run by `cargo xtask sim` and `cargo xtask soak`.
//!
//! `fleet-sim --seed N [--trace]` replays one world; `fleet-sim --minutes M [--from SEED]` runs as many as it
//! can, and fails with the first in which a rule is broken.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "it is for people to read")]

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use kapell_sim::fleet::{self, Failure, Plan, Report};

const USAGE: &str = "usage: fleet-sim --seed N [--trace] | --minutes M [--from SEED]";

/// What to do.
enum Job {
    Replay { seed: u64, traced: bool },
    Soak { time: Duration, from: u64 },
}

fn job(args: impl Iterator<Item = String>) -> Result<Job, String> {
    let mut args = args.peekable();
    let (mut seed, mut minutes, mut from, mut traced) = (None, None, 0, false);
    while let Some(arg) = args.next() {
        let mut number = || {
            let text = args.next().ok_or(USAGE)?;
            text.parse::<u64>().map_err(|error| format!("`{text}`: {error}"))
        };
        match arg.as_str() {
            "--seed" => seed = Some(number()?),
            "--minutes" => minutes = Some(number()?),
            "--from" => from = number()?,
            "--trace" => traced = true,
            _ => return Err(USAGE.to_owned()),
        }
    }
    match (seed, minutes) {
        (Some(seed), None) => Ok(Job::Replay { seed, traced }),
        (None, Some(minutes)) => {
            Ok(Job::Soak { time: Duration::from_secs(minutes.saturating_mul(60)), from })
        }
        (Some(_), Some(_)) | (None, None) => Err(USAGE.to_owned()),
    }
}

fn main() -> ExitCode {
    match job(std::env::args().skip(1)) {
        Ok(Job::Replay { seed, traced }) => replay(seed, traced),
        Ok(Job::Soak { time, from }) => soak(time, from),
        Err(problem) => {
            eprintln!("{problem}");
            ExitCode::from(2)
        }
    }
}

fn replay(seed: u64, traced: bool) -> ExitCode {
    let plan = Plan::draw(seed);
    let outcome = if traced {
        let (trace, outcome) = fleet::trace(plan);
        print!("{trace}");
        outcome
    } else {
        fleet::run(plan)
    };
    match outcome {
        Ok(report) => {
            println!("{report:?}");
            ExitCode::SUCCESS
        }
        Err(failure) if traced => {
            eprintln!("{}", failure.violation);
            ExitCode::FAILURE
        }
        Err(failure) => {
            eprintln!("{failure}");
            ExitCode::FAILURE
        }
    }
}

/// What all worlds together came to.
#[derive(Debug, Default)]
struct Sums {
    worlds: u64,
    quiet: u64,
    virtual_time: Duration,
    processes: u64,
    commits: u64,
    takeovers: u64,
    inconceivable: u64,
    launches: u64,
    runs: u64,
    faults: BTreeMap<&'static str, u64>,
}

impl Sums {
    fn add(&mut self, report: &Report, quiet: bool) {
        self.worlds += 1;
        self.quiet += u64::from(quiet);
        self.virtual_time += report.virtual_time;
        self.processes += report.processes;
        self.commits += report.commits;
        self.takeovers += report.takeovers;
        self.inconceivable += report.inconceivable;
        self.launches += report.launches;
        self.runs += report.runs;
        for (fault, count) in &report.faults {
            *self.faults.entry(fault.name()).or_default() += count;
        }
    }
}

fn soak(time: Duration, from: u64) -> ExitCode {
    let begun = Instant::now();
    let (next, failed) = (AtomicU64::new(from), AtomicBool::new(false));
    let sums = Mutex::new(Sums::default());
    let worker = || -> Result<(), Box<Failure>> {
        while begun.elapsed() < time && !failed.load(Ordering::Relaxed) {
            let plan = Plan::draw(next.fetch_add(1, Ordering::Relaxed));
            let quiet = plan.is_without_faults();
            let report = fleet::run(plan).inspect_err(|_| failed.store(true, Ordering::Relaxed))?;
            sums.lock().unwrap_or_else(std::sync::PoisonError::into_inner).add(&report, quiet);
        }
        Ok(())
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let outcomes: Vec<_> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(worker)).collect();
        workers.into_iter().map(std::thread::ScopedJoinHandle::join).collect()
    });
    let sums = sums.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    let elapsed = begun.elapsed();
    let Sums { worlds, quiet, virtual_time, processes, commits, takeovers, .. } = sums;
    let Sums { inconceivable, launches, runs, faults, .. } = sums;
    #[expect(clippy::cast_precision_loss, reason = "for people to read")]
    let speed = worlds as f64 / elapsed.as_secs_f64();
    println!(
        "{worlds} seeds from {from} in {elapsed:.1?}: {speed:.2} a second; {quiet} without faults"
    );
    println!("{virtual_time:.0?} of simulated time, {processes} processes, {commits} commits");
    println!("{takeovers} takeovers, {inconceivable} inconceivable rows");
    println!("{runs} runs of jobs ended, {launches} attempts launched");
    for (fault, count) in faults {
        println!("{count:>8} {fault}");
    }
    let mut code = ExitCode::SUCCESS;
    for outcome in outcomes {
        match outcome {
            Ok(Ok(())) => {}
            Ok(Err(failure)) => {
                eprintln!("{failure}");
                code = ExitCode::FAILURE;
            }
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
    code
}
