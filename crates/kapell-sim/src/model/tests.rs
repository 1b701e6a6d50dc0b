use stateright::{Checker, HasDiscoveries, Model};

use super::*;

const NONE: Faults =
    Faults { any: 0, delays: 0, pauses: 0, crashes: 0, resigns: 0, starts: 0, commits: 0 };

/// Each kind of fault once or twice, so many of them together.
const fn any(any: u8) -> Faults {
    Faults { any, delays: any, pauses: 1, crashes: 1, resigns: 1, ..NONE }
}

/// A lease of four ticks, so that a quarter is one, the shortest wait of the rule.
const fn coarse(hosts: u8, horizon: u8) -> Bounds {
    Bounds { hosts, lease: 4, poll: 4, horizon, watch: false, calm: None }
}

const fn fine(hosts: u8, horizon: u8) -> Bounds {
    Bounds { hosts, lease: 8, poll: 8, horizon, watch: false, calm: None }
}

/// Whether to look further than a build has time for.
fn is_soak() -> bool {
    std::env::var_os("KAPELL_SOAK_ROUNDS").is_some()
}

/// Goes through every world and wants no rule broken, and these examples seen.
fn check(bounds: Bounds, faults: Faults, examples: &[&'static str]) {
    let model = Elections { bounds, faults, mutant: None };
    let properties = model.properties();
    let checker = model.checker().threads(2).spawn_dfs().join();
    for property in properties {
        if property.expectation.discovery_is_failure()
            && let Some(path) = checker.discovery(property.name)
        {
            panic!("not so: {}\n{:?}", property.name, path.into_actions());
        }
    }
    for example in examples {
        assert!(checker.discovery(example).is_some(), "never seen: {example}");
    }
    let (worlds, steps) = (checker.unique_state_count(), checker.state_count());
    assert!(checker.is_done() && steps >= worlds);
    report(worlds, steps);
}

#[expect(clippy::print_stdout, reason = "shown with --nocapture, to choose bounds by")]
fn report(worlds: usize, steps: usize) {
    println!("{worlds} worlds, {steps} steps");
}

#[test]
fn three_hosts_and_late_messages() {
    let soak = u8::from(is_soak());
    let faults = Faults { any: 2 + soak, delays: 2 + soak, ..NONE };
    check(fine(3, 17), faults, &[SUCCESSION, FOUND]);
}

#[test]
fn three_hosts_and_every_kind_of_fault() {
    let soak = u8::from(is_soak());
    let faults = Faults { starts: 1, ..any(1 + soak) };
    let examples = [AFTER_CRASH, AFTER_PAUSE, AFTER_RELEASE, AFTER_KILL, DEADLINE];
    check(coarse(3, 9), faults, &examples);
}

#[test]
fn three_hosts_and_two_faults() {
    let examples = [SUCCESSION, AFTER_CRASH, AFTER_PAUSE, AFTER_KILL, FOUND];
    check(coarse(3, if is_soak() { 11 } else { 8 }), any(2), &examples);
}

#[test]
fn two_hosts_and_two_faults() {
    let soak = u8::from(is_soak());
    let examples = [SUCCESSION, AFTER_CRASH, AFTER_PAUSE, FOUND, DEADLINE];
    check(fine(2, 11), any(2 + soak), &examples);
}

#[test]
fn two_hosts_that_commit() {
    let soak = u8::from(is_soak());
    let faults = Faults { commits: 1 + soak, ..any(2) };
    check(coarse(2, 8), faults, &[SUCCESSION, COMMITTED, LATE_COMMIT]);
}

#[test]
fn two_hosts_that_are_told_of_changes() {
    let soak = u8::from(is_soak());
    let bounds = Bounds { watch: true, ..coarse(2, 8) };
    check(bounds, any(2 + soak), &[SUCCESSION, AFTER_CRASH, AFTER_PAUSE, AFTER_RELEASE]);
}

/// Where a seat was taken again that had been given back: it needs a slow store, a pause and
/// three messages out of order, so nobody else is in the way.
#[test]
fn one_host_and_three_faults() {
    let bounds = Bounds { poll: 1, ..fine(1, 11) };
    let faults = Faults { any: 3, delays: 2, pauses: 1, ..NONE };
    check(bounds, faults, &[FOUND, DEADLINE]);
}

#[test]
fn in_calm_someone_leads_in_the_end() {
    let soak = u8::from(is_soak());
    let bounds = Bounds { calm: Some(5), ..coarse(2, 15) };
    check(bounds, any(2 + soak), &[SUCCESSION]);
}

/// Breaks a rule and wants the model to see it, and to see nothing where the rule is whole.
fn catches(mutant: Mutant, faults: Faults, broken: &'static str) {
    for mutant in [Some(mutant), None] {
        let model = Elections { bounds: coarse(3, 6), faults, mutant };
        let enough = HasDiscoveries::AnyOf([broken].into());
        let checker = model.checker().threads(2).finish_when(enough).spawn_bfs().join();
        report(checker.unique_state_count(), checker.state_count());
        assert_eq!(checker.discovery(broken).is_some(), mutant.is_some(), "{mutant:?}");
    }
}

#[test]
fn a_lease_counted_from_the_answer_makes_two_leaders() {
    let faults = Faults { any: 1, delays: 1, ..NONE };
    catches(Mutant::CountsFromAnswer, faults, ONE_LEADER);
}

#[test]
fn a_store_without_fences_lets_old_commits_in() {
    let faults = Faults { any: 2, delays: 1, crashes: 1, commits: 1, ..NONE };
    catches(Mutant::NoFence, faults, FENCED);
}

#[test]
fn a_store_without_generations_gives_an_epoch_twice() {
    let faults = Faults { any: 2, delays: 1, resigns: 1, ..NONE };
    catches(Mutant::NoGeneration, faults, EPOCHS);
}

#[test]
fn records_without_owners_make_two_leaders() {
    let faults = Faults { any: 1, delays: 1, ..NONE };
    catches(Mutant::NoOwner, faults, ONE_LEADER);
}
