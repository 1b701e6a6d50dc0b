#![expect(clippy::print_stdout, reason = "figures, for whoever asks to see them")]

mod planted;

use std::collections::BTreeMap;
use std::time::Duration;

use super::{Plan, Report, run, trace};
use crate::parts::search::{search, setting};

/// For how long seeds are tried, in seconds; `KAPELL_SIM_SECONDS` says otherwise.
const SECONDS: u64 = 20;

#[test]
fn every_rule_holds_in_every_world() {
    if let Some(seed) = setting("KAPELL_SIM_SEED") {
        let report = run(Plan::draw(seed)).unwrap_or_else(|failure| panic!("{failure}"));
        println!("{report:?}");
        return;
    }
    let time = Duration::from_secs(setting("KAPELL_SIM_SECONDS").unwrap_or(SECONDS));
    let reports = search(|seed| Some(Plan::draw(seed)), time, run);
    let reports = reports.unwrap_or_else(|failure| panic!("{failure}"));
    let sum = |figure: fn(&Report) -> u64| reports.iter().map(figure).sum::<u64>();
    let mut faults = BTreeMap::new();
    for (fault, count) in reports.iter().flat_map(|report| &report.faults) {
        *faults.entry(fault.name()).or_insert(0) += count;
    }
    let worlds = reports.len() as u64;
    println!(
        "{worlds} worlds in {time:?}: {} processes, {} commits, {} acknowledged, {} takeovers, \
         {} inconceivable, {} launches, {} runs; {faults:?}",
        sum(|it| it.processes),
        sum(|it| it.commits),
        sum(|it| it.acknowledged),
        sum(|it| it.takeovers),
        sum(|it| it.inconceivable),
        sum(|it| it.launches),
        sum(|it| it.runs),
    );
    // A world in which nothing happens proves nothing.
    assert!(sum(|it| it.processes) > 5 * worlds);
    assert!(sum(|it| it.acknowledged) > 5 * worlds);
    assert!(sum(|it| it.launches) > 2 * worlds);
    assert!(sum(|it| it.runs) > 2 * worlds);
}

#[test]
fn a_seed_gives_the_same_trace_byte_for_byte() {
    for seed in [1, 2, 5, 9, 74] {
        let (once, first) = trace(Plan::draw(seed));
        let (again, second) = trace(Plan::draw(seed));
        assert_eq!(first.map_err(|it| it.hash), second.map_err(|it| it.hash));
        assert!(once == again, "seed {seed} has two traces");
    }
}

/// Two hosts, two cells, and little time for anybody to want anything.
fn small() -> Plan {
    Plan {
        hosts: 2,
        cells: 2,
        faults: Vec::new(),
        lost: 0,
        duplicated: 0,
        late: 0,
        crashing_apps: false,
        scaling: true,
        evacuations: false,
        stale_domains: false,
        apps: true,
        jobs: false,
        modest: false,
        far_clocks: false,
        busy_for: Duration::from_secs(8),
        ..Plan::draw(3)
    }
}

#[test]
fn a_host_may_die_at_every_await() {
    dies_at_every_await(&small());
}

#[test]
fn a_host_with_jobs_may_die_at_every_await() {
    dies_at_every_await(&Plan { apps: false, jobs: true, modest: true, ..small() });
}

fn dies_at_every_await(plan: &Plan) {
    let exchanges = run(plan.clone()).unwrap_or_else(|failure| panic!("{failure}")).exchanges;
    assert!((50..=250).contains(&exchanges), "too little or too much happens: {exchanges}");
    let all = 2 * exchanges;
    let plans = |at: u64| (at < all).then(|| Plan { crash_at: Some(at), ..plan.clone() });
    let reports = search(plans, Duration::MAX, run).unwrap_or_else(|failure| panic!("{failure}"));
    println!("{all} awaits");
    assert_eq!(reports.len() as u64, all);
    // Whoever dies before its board is there has not taken over.
    assert!(reports.iter().all(|report| report.takeovers > 0));
    assert!(reports.iter().filter(|report| report.takeovers > 1).count() > reports.len() / 2);
}
