//! kill -9 of a host that leads runs, with another one that stands by.

use std::thread::ScopedJoinHandle;

use serde_json::json;

use super::duo::{Duo, Machines};
use super::work::{POINTS, Where};
use crate::bench::{LIMIT, skip};
use crate::leadership::cluster::Kind;

/// Each host dies at its point while a run comes to it, and the next one leads on; in the end nothing is lost or done twice.
fn dies_at(place: Where, kind: Kind, machines: Machines, points: &[&str]) -> Result<(), String> {
    let mut duo = Duo::new(kind, machines, points)?;
    for point in points {
        duo.trigger(place);
        assert!(duo.falls(LIMIT), "{point}: nobody came to this point");
        duo.bury();
        duo.replace();
    }
    let about = format!("{place:?} on {kind:?}");
    let runs = duo.all_is_well(&about);
    assert!(!runs.is_empty(), "{about}");
    for run in &runs {
        assert_eq!(run["state"], "Completed", "{about}: {run}");
    }
    duo.both_tell_the_same();
    Ok(())
}

/// All points, in so many lines side by side: hosts wait for each other's leases most of the time.
fn dies_at_every_point(name: &str, lines: usize, kind: Kind, play: &[(Where, Machines)]) {
    let results: Vec<Result<(), String>> = std::thread::scope(|scope| {
        let mut threads = Vec::new();
        for &(place, machines) in play {
            for line in 0..lines {
                threads.push(scope.spawn(move || {
                    let points: Vec<&str> =
                        POINTS.iter().skip(line).step_by(lines).copied().collect();
                    dies_at(place, kind, machines, &points)
                }));
            }
        }
        let joined = threads.into_iter().map(ScopedJoinHandle::join);
        joined.map(|it| it.unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
    });
    if let Some(Err(reason)) = results.into_iter().find(Result::is_err) {
        skip(&format!("jobs::failover::{name}"), &reason);
    }
}

#[test]
fn runs_of_every_kind_outlive_a_failover_at_every_point_on_a_file_store() {
    let name = "runs_of_every_kind_outlive_a_failover_at_every_point_on_a_file_store";
    let play = Where::ALL.map(|place| (place, Machines::One));
    dies_at_every_point(name, 1, Kind::File, &play);
}

#[test]
fn runs_on_hosts_and_cells_outlive_a_failover_at_every_point_on_etcd() {
    let name = "runs_on_hosts_and_cells_outlive_a_failover_at_every_point_on_etcd";
    let play = [(Where::Host, Machines::Two), (Where::Cell, Machines::Two)];
    dies_at_every_point(name, 3, Kind::Etcd, &play);
}

#[test]
fn workflows_outlive_a_failover_at_every_point_on_postgres() {
    let name = "workflows_outlive_a_failover_at_every_point_on_postgres";
    dies_at_every_point(name, 3, Kind::Postgres, &[(Where::Workflow, Machines::One)]);
}

/// Every second has its run, and its work was done once.
fn every_moment_once(kind: Kind) -> Result<(), String> {
    let mut duo = Duo::new(kind, Machines::One, &["advance:2", "advanced:2", "advanced:3"])?;
    let mut job = duo.ledger.job(Where::Host);
    job["job_id"] = json!("tick");
    job["schedule"] = json!(["* * * * * *"]);
    job["catch_up"] = json!({"policy": "all", "window": "1h"});
    drop(duo.fleet.try_ask("POST", "/v1/jobs", Some(&job)));
    for _ in 0..3 {
        assert!(duo.falls(LIMIT), "nobody came to this point");
        duo.bury();
        duo.replace();
    }
    duo.fleet.ask("POST", "/v1/jobs/tick/pause", Some(&json!({}))).expect(200);
    let runs = duo.all_is_well(&format!("{kind:?}"));
    let mut moments: Vec<i64> =
        runs.iter().filter_map(|run| run["scheduled_at"].as_i64()).collect();
    moments.sort_unstable();
    let steps: Vec<i64> = moments.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(steps.len() >= 5 && steps.iter().all(|step| *step == 1000), "{moments:?}");
    duo.both_tell_the_same();
    Ok(())
}

fn every_moment_once_on(kind: Kind, name: &str) {
    if let Err(reason) = every_moment_once(kind) {
        skip(&format!("jobs::failover::{name}"), &reason);
    }
}

#[test]
fn every_moment_is_run_once_over_failovers_on_a_file_store() {
    let name = "every_moment_is_run_once_over_failovers_on_a_file_store";
    every_moment_once_on(Kind::File, name);
}

#[test]
fn every_moment_is_run_once_over_failovers_on_etcd() {
    every_moment_once_on(Kind::Etcd, "every_moment_is_run_once_over_failovers_on_etcd");
}

#[cfg(feature = "cassandra")]
mod cassandra {
    use super::{Kind, every_moment_once_on};

    #[test]
    fn every_moment_is_run_once_over_failovers_on_cassandra() {
        let name = "cassandra::every_moment_is_run_once_over_failovers_on_cassandra";
        every_moment_once_on(Kind::Cassandra, name);
    }
}

#[cfg(feature = "dynamodb")]
mod dynamodb {
    use super::{Kind, every_moment_once_on};

    #[test]
    fn every_moment_is_run_once_over_failovers_on_dynamodb() {
        let name = "dynamodb::every_moment_is_run_once_over_failovers_on_dynamodb";
        every_moment_once_on(Kind::DynamoDb, name);
    }
}
