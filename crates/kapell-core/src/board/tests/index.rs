//! Every index says what a look at all records would.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::world::*;
use crate::board::converge::{Pass, Place, converge, fresh, next_due, rescues};
use crate::board::*;
use crate::seams::Timestamp;

const GUIDS: [&str; 3] = ["p", "q", "r"];
const CELLS: [&str; 3] = ["a", "b", "c"];
const DOMAINS: [&str; 2] = ["d", "e"];

fn at(ms: i64) -> Timestamp {
    Timestamp(NOW.0 + ms * 1000)
}

fn arb_actual() -> impl Strategy<Value = ActualLrp> {
    let names = (0..3_usize, 0..4_u32, 0..2_usize, 0..3_usize);
    (names, 0..4_usize, -200..200_i64, 0..8_u32, any::<bool>()).prop_map(
        |((guid, index, domain, cell), state, since, crash_count, evacuating)| {
            let state = if evacuating { ActualState::Running } else { ActualState::ALL[state] };
            let lrp = match state {
                ActualState::Unclaimed => unclaimed(),
                ActualState::Claimed => claimed(CELLS[cell], "i"),
                ActualState::Running => running(CELLS[cell], "i"),
                ActualState::Crashed => crashed(crash_count),
            };
            ActualLrp {
                process_guid: GUIDS[guid].into(),
                index,
                domain: DOMAINS[domain].into(),
                since: at(since),
                evacuating,
                expires_at: evacuating.then(|| at(since + 50)),
                ..lrp
            }
        },
    )
}

fn arb_desired() -> impl Strategy<Value = DesiredLrp> {
    (0..3_usize, 0..2_usize, 0..5_u32, any::<bool>()).prop_map(
        |(guid, domain, instances, removing)| DesiredLrp {
            process_guid: GUIDS[guid].into(),
            domain: DOMAINS[domain].into(),
            instances,
            removing,
            retiring: removing,
            ..web()
        },
    )
}

fn arb_task() -> impl Strategy<Value = Task> {
    (0..4_usize, 0..2_usize, 0..3_usize, 0..4_usize).prop_map(|(guid, domain, cell, state)| {
        let state = TaskState::ALL[state];
        let cell = (state != TaskState::Pending).then_some(CELLS[cell]);
        let mut task = task(state, cell);
        task.definition.task_guid = format!("t{guid}").into();
        task.definition.domain = DOMAINS[domain].into();
        task
    })
}

fn arb_domain() -> impl Strategy<Value = Freshness> {
    (0..2_usize, prop::option::of(-200..200_i64)).prop_map(|(domain, until)| Freshness {
        domain: DOMAINS[domain].into(),
        expires_at: until.map(at),
        since: None,
    })
}

fn arb_record() -> impl Strategy<Value = Record> {
    prop_oneof![
        4 => arb_actual().prop_map(|lrp| Record::Actual(Box::new(lrp))),
        1 => arb_desired().prop_map(|lrp| Record::Desired(Box::new(lrp))),
        2 => arb_task().prop_map(|task| Record::Task(Box::new(task))),
        1 => arb_domain().prop_map(Record::Domain),
    ]
}

/// Records after some changes: three of four put something there, the others take it away.
fn arb_records() -> impl Strategy<Value = Records> {
    let changes = prop::collection::vec((arb_record(), 0..4_u8), 0..80);
    changes.prop_map(|changes| {
        let mut records = Records::default();
        for (record, dice) in changes {
            let key = record.key();
            drop(records.apply(&key, (dice > 0).then_some(record)));
        }
        records
    })
}

fn keys<'a>(lrps: impl Iterator<Item = &'a ActualLrp>) -> Vec<LrpKey> {
    lrps.map(ActualLrp::key).collect()
}

fn guids<'a>(tasks: impl Iterator<Item = &'a Task>) -> Vec<TaskGuid> {
    tasks.map(|task| task.guid().clone()).collect()
}

fn scanned_due(records: &Records, now: Timestamp, settings: &Settings) -> Option<Timestamp> {
    let crashed = records.instances.values().filter(|lrp| records.wants(lrp));
    let restarts = crashed.filter_map(|lrp| crash::restart_at(lrp, settings));
    let twins = records.evacuating.values().filter_map(|twin| twin.expires_at);
    let domains = records.domains.values().filter_map(|domain| domain.expires_at);
    restarts.chain(twins).chain(domains).filter(|at| *at > now).min()
}

proptest! {
    #[test]
    fn the_indexes_are_those_of_all_records(records in arb_records()) {
        prop_assert_eq!(records.index(), &records.indexed());
        let all = records.instances.values().chain(records.evacuating.values());
        let all = all.cloned().map(|lrp| Record::Actual(Box::new(lrp)));
        let desired = records.desired.values().cloned().map(|lrp| Record::Desired(Box::new(lrp)));
        let tasks = records.tasks.values().cloned().map(|task| Record::Task(Box::new(task)));
        let domains = records.domains.values().cloned().map(Record::Domain);
        let mut again = Gathering::default();
        all.chain(desired).chain(tasks).chain(domains).for_each(|record| again.add(record));
        prop_assert_eq!(again.end(), records);
    }

    #[test]
    fn by_cell_is_found_what_a_scan_finds(records in arb_records()) {
        let mut named = BTreeSet::new();
        for cell in CELLS {
            let cell = CellId::from(cell);
            let on = |lrp: &&ActualLrp| lrp.cell_id.as_ref() == Some(&cell);
            let instances = keys(records.instances.values().filter(on));
            let evacuating = keys(records.evacuating.values().filter(on));
            let its = |task: &&Task| task.cell_id.as_ref() == Some(&cell);
            let tasks = guids(records.tasks.values().filter(its));
            if instances.len() + evacuating.len() + tasks.len() > 0 {
                named.insert(cell.clone());
            }
            prop_assert_eq!(records.count_on(&cell), instances.len() + evacuating.len());
            prop_assert_eq!(keys(records.instances_on(&cell)), instances);
            prop_assert_eq!(keys(records.evacuating_on(&cell)), evacuating);
            prop_assert_eq!(guids(records.tasks_on(&cell)), tasks);
        }
        prop_assert_eq!(records.cells().cloned().collect::<BTreeSet<_>>(), named);
    }

    #[test]
    fn by_domain_is_found_what_a_scan_finds(records in arb_records()) {
        for domain in DOMAINS {
            let domain = Domain::from(domain);
            let within = |lrp: &&ActualLrp| lrp.domain == domain;
            let instances = keys(records.instances.values().filter(within));
            prop_assert_eq!(keys(records.instances_in(&domain)), instances);
            let evacuating = keys(records.evacuating.values().filter(within));
            prop_assert_eq!(keys(records.evacuating_in(&domain)), evacuating);
            let wanted: Vec<_> = records.desired_lrps().filter(|it| it.domain == domain).collect();
            prop_assert_eq!(records.desired_in(&domain).collect::<Vec<_>>(), wanted);
            let tasks = guids(records.tasks.values().filter(|it| it.definition.domain == domain));
            prop_assert_eq!(guids(records.tasks_in(&domain)), tasks);
        }
    }

    #[test]
    fn by_state_is_found_what_a_scan_finds(records in arb_records()) {
        for state in ActualState::ALL {
            let found = keys(records.instances.values().filter(|lrp| lrp.state == state));
            prop_assert_eq!(records.count_as(state), found.len());
            prop_assert_eq!(keys(records.instances_as(state)), found);
        }
        for state in TaskState::ALL {
            let found = guids(records.tasks.values().filter(|task| task.state == state));
            prop_assert_eq!(records.tasks_as(state).cloned().collect::<Vec<_>>(), found);
        }
    }

    #[test]
    fn the_next_due_moment_is_what_a_scan_finds(records in arb_records(), now in -300..400_i64) {
        let settings = Settings { most_crashes: 6, ..Settings::default() };
        let due = next_due(&[&records], at(now), &settings);
        prop_assert_eq!(due, scanned_due(&records, at(now), &settings));
    }

    #[test]
    fn what_lost_cells_held_is_found_as_by_a_pass(records in arb_records(), now in -300..400_i64) {
        let settings = Settings::default();
        let present = BTreeSet::from(["a".into()]);
        let gone = records.cells().filter(|cell| !present.contains(*cell)).cloned().collect();
        let is_over = |key: &LrpKey| {
            let twin = records.evacuating.get(key);
            twin.and_then(|twin| twin.expires_at).is_some_and(|until| until <= at(now))
        };
        let mut planned = converge(&[&records], &present, at(now), &settings);
        planned.retain(|request| matches!(request, Request::Rescue { .. } | Request::FailLostTask { .. }));
        let found = rescues(&records, &gone, &settings);
        for request in &planned {
            prop_assert!(found.contains(request), "{:?}", request);
        }
        for request in &found {
            // A twin whose time is over goes for that.
            let expires = matches!(request, Request::Rescue { key, .. } if is_over(key));
            prop_assert!(planned.contains(request) || expires, "{:?}", request);
        }
    }

    #[test]
    fn a_pass_in_slices_plans_what_a_whole_one_does(
        records in arb_records(),
        most in 1..10_usize,
        now in -300..400_i64,
    ) {
        let settings = Settings::default();
        let present = BTreeSet::from(["a".into()]);
        let fresh = fresh(&records, at(now)).collect();
        let pass = Pass { fresh: &fresh, now: at(now), settings: &settings };
        let gone = records.cells().filter(|cell| !present.contains(*cell)).cloned().collect();
        let mut planned = Vec::new();
        let mut from = Some(Place::Start);
        while let Some(place) = from {
            let slice = pass.slice(&records, &gone, &place, most);
            planned.extend(slice.requests);
            from = slice.next;
        }
        prop_assert_eq!(planned, converge(&[&records], &present, at(now), &settings));
    }
}
