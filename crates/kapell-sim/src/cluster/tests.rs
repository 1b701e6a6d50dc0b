#![expect(clippy::print_stdout, reason = "figures, for whoever asks to see them")]

use std::time::Duration;

use super::{Failure, Flaw, Plan, Report, run};
use crate::parts::search::{self, setting};

/// How many seeds one run of the tests takes; `KAPELL_SIM_SEEDS` asks for more.
const SEEDS: u64 = 300;

/// Runs all seeds below `seeds` until one fails.
fn search(seeds: u64, flaw: Flaw) -> Result<Vec<Report>, Box<Failure>> {
    let plan = |seed| (seed < seeds).then(|| Plan::draw(seed, flaw));
    search::search(plan, Duration::MAX, run)
}

#[test]
fn every_rule_holds_under_faults() {
    if let Some(seed) = setting("KAPELL_SIM_SEED") {
        let report =
            run(Plan::draw(seed, Flaw::None)).unwrap_or_else(|failure| panic!("{failure}"));
        println!("{report:?}");
        return;
    }
    let seeds = setting("KAPELL_SIM_SEEDS").unwrap_or(SEEDS);
    let reports = search(seeds, Flaw::None).unwrap_or_else(|failure| panic!("{failure}"));
    let sum = |figure: fn(&Report) -> u64| reports.iter().map(figure).sum::<u64>();
    let time: Duration = reports.iter().map(|report| report.virtual_time).sum();
    println!(
        "{seeds} seeds, {time:?} of virtual time: {} faults, {} kills, {} losses, \
         {} acquisitions, {} commits, {} lines",
        sum(|it| it.faults),
        sum(|it| it.kills),
        sum(|it| it.losses),
        sum(|it| it.acquisitions),
        sum(|it| it.commits),
        sum(|it| it.lines),
    );
    // A world in which nothing happens proves nothing.
    assert!(sum(|it| it.acquisitions) > 3 * seeds);
    assert!(sum(|it| it.commits) > 30 * seeds);
}

#[test]
fn a_seed_replays_exactly() {
    for seed in 0..8 {
        let plan = Plan::draw(seed, Flaw::None);
        let (once, again) = (run(plan), run(plan));
        assert_eq!(once.map_err(|it| it.hash).ok(), again.map_err(|it| it.hash).ok());
    }
    let plan = Plan::draw(0, Flaw::Endless);
    let (once, again) = (run(plan).err(), run(plan).err());
    assert_eq!(once.map(|it| it.hash), again.map(|it| it.hash));
}

fn catches(flaw: Flaw, rules: &[&str]) {
    let failure = search(SEEDS, flaw).expect_err("no rule noticed");
    println!("seed {}: {}", failure.plan.seed, failure.violation);
    assert!(rules.contains(&failure.violation.rule), "{failure}");
}

#[test]
fn a_store_without_fences_is_caught() {
    catches(Flaw::Fenceless, &["fenced", "counted"]);
}

#[test]
fn a_store_that_forgets_epochs_is_caught() {
    catches(Flaw::Epochless, &["fenced"]);
}

#[test]
fn a_store_that_expires_early_is_caught() {
    catches(Flaw::HastyStore, &["one leader", "one stage"]);
}

#[test]
fn a_clock_at_half_speed_is_caught() {
    catches(Flaw::SlowClock, &["one leader", "one stage"]);
}

#[test]
fn a_leader_that_is_never_told_is_caught() {
    catches(Flaw::Endless, &["one leader", "one stage", "fenced"]);
}
