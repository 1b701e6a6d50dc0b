//! Every index says what a look at all records would.

use std::collections::BTreeSet;
use std::sync::Arc;

use proptest::prelude::*;

use super::world::*;
use crate::board::converge::{Pass, Place, converge, fresh, next_due, rescues};
use crate::board::*;
use crate::job::{Definition, Job, JobDefinition};
use crate::run::{Run, RunId, RunState, Trigger};
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

const JOBS: [&str; 3] = ["j", "j-k", "jj"];

fn arb_job() -> impl Strategy<Value = Job> {
    (0..3_usize, 0..2_usize).prop_map(|(job, domain)| {
        let text = format!(
            r#"{{"job_id":"{}","domain":"{}","revision":1,"mark":5,"created_at":1,"updated_at":1,"version":1}}"#,
            JOBS[job], DOMAINS[domain]
        );
        serde_json::from_str(&text).unwrap()
    })
}

fn arb_run() -> impl Strategy<Value = Run> {
    let names = (0..3_usize, 0..2_usize, 7..13_i64, any::<bool>());
    (names, 0..RunState::ALL.len(), 0..3_u64, 0..5_i64).prop_map(
        |((job, domain, at, by_hand), state, revision, ended)| {
            let (job, at) = (JOBS[job].into(), Timestamp(at * 1000));
            let mut run = Run::unreadable(RunId::scheduled(&job, at));
            let state = RunState::ALL[state];
            run.completed_at = state.is_final().then_some(Timestamp(ended));
            Run {
                run_id: if by_hand { RunId::asked_for(&job, at, 1) } else { run.run_id.clone() },
                trigger: if by_hand {
                    Trigger::Manual { who: "ada".into() }
                } else {
                    Trigger::Schedule
                },
                domain: DOMAINS[domain].into(),
                state,
                revision,
                ..run
            }
        },
    )
}

fn arb_revision() -> impl Strategy<Value = Definition> {
    (0..3_usize, 0..3_u64).prop_map(|(job, revision)| {
        let text = format!(r#"{{"job_id":"{}","command":{{"command":"true"}}}}"#, JOBS[job]);
        let definition: JobDefinition = serde_json::from_str(&text).unwrap();
        Definition { revision, definition: Arc::new(definition) }
    })
}

fn arb_record() -> impl Strategy<Value = Record> {
    prop_oneof![
        4 => arb_actual().prop_map(|lrp| Record::Actual(Box::new(lrp))),
        1 => arb_desired().prop_map(|lrp| Record::Desired(Box::new(lrp))),
        2 => arb_task().prop_map(|task| Record::Task(Box::new(task))),
        1 => arb_domain().prop_map(Record::Domain),
        1 => arb_job().prop_map(|job| Record::Job(Box::new(job))),
        4 => arb_run().prop_map(|run| Record::Run(Arc::new(run))),
        1 => arb_revision().prop_map(Record::Definition),
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
        let jobs = records.jobs.values().cloned().map(|job| Record::Job(Box::new(job)));
        let runs = records.runs.values().cloned().map(Record::Run);
        let revisions = records.definitions.iter().map(|((_, revision), definition)| {
            Record::Definition(Definition { revision: *revision, definition: Arc::clone(definition) })
        });
        let mut again = Gathering::default();
        all.chain(desired).chain(tasks).chain(domains).for_each(|record| again.add(record));
        jobs.chain(runs).chain(revisions).for_each(|record| again.add(record));
        prop_assert_eq!(again.end(), records);
    }

    #[test]
    fn jobs_and_runs_are_found_as_a_scan_finds_them(records in arb_records()) {
        let ids = |runs: Vec<&Run>| runs.into_iter().map(|run| run.run_id.clone()).collect::<Vec<_>>();
        let all: Vec<&Run> = records.runs.values().map(AsRef::as_ref).collect();
        let of = |test: &dyn Fn(&Run) -> bool| ids(all.iter().copied().filter(|run| test(run)).collect());
        let is_active = |run: &Run| !run.state.is_final();
        prop_assert_eq!(ids(records.active_runs().collect()), of(&is_active));
        prop_assert_eq!(records.count_active_runs(), of(&is_active).len());
        for job in JOBS {
            let id = JobId::from(job);
            prop_assert_eq!(ids(records.runs_of(&id).collect()), of(&|run| run.run_id.job() == job));
            let active = of(&|run| run.run_id.job() == job && is_active(run));
            prop_assert_eq!(ids(records.active_runs_of(&id).collect()), active);
            let Some(stands) = records.jobs.get(&id).map(|job| records.stands(job)) else { continue };
            let scheduled = all.iter().filter(|run| run.run_id.job() == job && run.trigger.is_of_schedule());
            let newest = scheduled.map(|run| run.scheduled_at).max();
            prop_assert_eq!(stands, newest.map_or(Timestamp(5), |at| at.max(Timestamp(5))));
        }
        for domain in DOMAINS {
            let domain = Domain::from(domain);
            prop_assert_eq!(ids(records.runs_in(&domain).collect()), of(&|run| run.domain == domain));
            let jobs = records.jobs.values().filter(|job| job.domain == domain);
            prop_assert_eq!(records.jobs_in(&domain).collect::<Vec<_>>(), jobs.collect::<Vec<_>>());
        }
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
