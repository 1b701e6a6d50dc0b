//! What hosts are put to on every store, on DynamoDB.

use super::kills::hosts_die_under_load;
use super::load::Load;
use super::once::{ALL_VICTIMS, tasks_run_at_most_once};
use super::site::ask;
use crate::bench::{eventually, skip};
use crate::leadership::cluster::{Cluster, Kind, LEASE, free_port};
use crate::leadership::throttle::{Share, Throttle};

#[test]
fn hosts_are_killed_under_load_and_nothing_is_lost() {
    hosts_die_under_load(Kind::DynamoDb, 2, 2, "dynamodb::hosts_are_killed_under_load");
}

#[test]
fn a_task_runs_at_most_once_with_a_standby() {
    tasks_run_at_most_once(Kind::DynamoDb, 2, &ALL_VICTIMS, "dynamodb::a_task_runs_at_most_once");
}

/// What is turned away is sent again: it takes longer, and nothing else comes of it.
#[test]
fn a_leader_that_is_throttled_now_and_then_goes_on_leading_and_loses_nothing() {
    let test = "a_leader_that_is_throttled_now_and_then_goes_on_leading_and_loses_nothing";
    let cluster = match Cluster::new(Kind::DynamoDb) {
        Ok(cluster) => cluster,
        Err(reason) => return skip(&format!("platform::dynamodb::{test}"), &reason),
    };
    let (throttle, ports) = (Throttle::before(&cluster.server()), [free_port(), free_port()]);
    let mut first = cluster.host_on(&throttle.instead_of_server(&cluster.url), ports[0], &[]);
    let epoch = first.leads(1);
    throttle.set(Share::EverySecond);
    let token = std::fs::read_to_string(cluster.token()).expect("the token").trim().to_owned();
    let (since, mut load) = (std::time::Instant::now(), Load::start(4, &ports[..1], &token));
    // Longer than a lease without one renewal would last.
    eventually("the writers and the lease to go on", || {
        (load.count() >= 30 && since.elapsed() > LEASE + LEASE / 4).then_some(())
    });
    load.end();
    assert_eq!(first.reigns().len(), 1, "it led all the time");
    assert_eq!(cluster.seat().expect("a seat").epoch, epoch);
    assert!(throttle.turned_away() > 30, "{}", throttle.turned_away());
    first.stop().expect(0);
    let mut second = cluster.host_on(&cluster.url, ports[1], &[]);
    assert_eq!(second.leads(1), epoch + 1);
    let there = ask(ports[1], &token, "GET", "/v1/desired-lrps", None).expect("an answer");
    load.check(&there.expect(200).json());
    second.stop().expect(0);
}
