use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use super::cluster::{Cluster, Kind, LEASE, free_port, seat_becomes};
use super::on_each_store;
use crate::bench::pause;

on_each_store! {
    a_waiting_host_takes_over_after_kill_9:
        a_waiting_host_takes_over_after_kill_9_file, a_waiting_host_takes_over_after_kill_9_etcd, a_waiting_host_takes_over_after_kill_9_postgres;
    two_instances_hand_the_seat_to_and_fro:
        two_instances_hand_the_seat_to_and_fro_file, two_instances_hand_the_seat_to_and_fro_etcd, two_instances_hand_the_seat_to_and_fro_postgres;
}

pub(super) fn a_waiting_host_takes_over_after_kill_9(cluster: &Cluster) {
    let mut first = cluster.host(&[]);
    assert_eq!(first.leads(1), 1);
    let mut second = cluster.host(&[]);
    second.listens();
    let held = cluster.seat().expect("a seat");
    assert_eq!(held.address.as_deref(), Some(&*first.address));
    if cluster.kind != Kind::File {
        // Renewed: it stands for longer than one lease, and its time grows again.
        let begun = Instant::now();
        let mut grew = 0;
        let mut last = held.expires_in_ms.expect("a lease");
        while begun.elapsed() < LEASE + Duration::from_secs(1) {
            let row = cluster.seat().expect("a seat");
            assert_eq!((row.epoch, row.owner), (held.epoch, held.owner.clone()));
            let left = row.expires_in_ms.expect("a lease");
            assert!(left <= u64::try_from(LEASE.as_millis()).unwrap(), "{left}");
            grew += usize::from(left > last);
            last = left;
            pause(Duration::from_millis(100));
        }
        // etcd tells whole seconds, of which a renewal each quarter never lets one pass. On DynamoDB whoever looks for the
        // first time finds a whole lease left, and each of these does.
        let tells = !matches!(cluster.kind, Kind::Etcd | Kind::DynamoDb);
        assert!(grew >= 2 || !tells, "renewed {grew} times");
    }
    assert!(!second.has_led());
    let killed = first.kill();
    assert_eq!(second.leads(1), 2);
    let took = killed.elapsed();
    let bound = match cluster.kind {
        Kind::File => Duration::from_secs(1),
        Kind::Etcd | Kind::Postgres | Kind::Cassandra | Kind::DynamoDb => {
            LEASE + Duration::from_secs(1)
        }
    };
    assert!(took <= bound, "took over after {took:?}");
    let row = cluster.seat().expect("a seat");
    assert_eq!((row.epoch, row.address.as_deref()), (2, Some(&*second.address)));
    second.stop().expect(0).stderr_has("kapell host: stopped on SIGTERM");
}

/// The flow that the specification has a person do by hand.
pub(super) fn two_instances_hand_the_seat_to_and_fro(cluster: &Cluster) {
    let ports = [free_port(), free_port()];
    let start = |at: usize| cluster.host_on(&cluster.url, ports[at], &[]);
    let mut first = start(0);
    assert_eq!(first.leads(1), 1);
    let mut second = start(1);
    second.listens();
    first.stop().expect(0);
    assert_eq!(second.leads(1), 2);
    let mut first = start(0);
    first.listens();
    let row = seat_becomes(cluster, "the second to hold the seat", |row| row.owner.is_some());
    assert_eq!(row.address.as_deref(), Some(&*second.address));
    assert!(!first.has_led());
    second.stop().expect(0);
    assert_eq!(first.leads(1), 3);
    first.stop().expect(0);
    let vacant = cluster.seat().expect("a seat");
    assert_eq!((vacant.epoch, vacant.owner), (3, None));
}

on_each_store! {
    the_standby_forwards_and_says_who_leads:
        the_standby_forwards_and_says_who_leads_file, the_standby_forwards_and_says_who_leads_etcd, the_standby_forwards_and_says_who_leads_postgres;
}

pub(super) fn the_standby_forwards_and_says_who_leads(cluster: &Cluster) {
    let mut first = cluster.host(&[]);
    first.leads(1);
    let mut second = cluster.host(&[]);
    second.listens();
    let leader = crate::bench::eventually("the standby to see the leader", || {
        let answer = second.get(cluster, "/leader");
        answer.stdout.contains("\"epoch\":1").then_some(answer.stdout)
    });
    assert!(leader.contains(&format!("\"address\":\"{}\"", first.address)), "{leader}");
    assert!(leader.contains("\"here\":false"), "{leader}");
    assert!(first.get(cluster, "/leader").stdout.contains("\"here\":true"));
    assert!(second.get(cluster, "/healthz").stdout.contains("\"status\":\"standby\""));
    assert!(first.get(cluster, "/healthz").stdout.contains("\"status\":\"leading\""));
    let metrics = first.get(cluster, "/metrics").stdout;
    assert!(metrics.contains("\nkapell_leading 1\n"), "{metrics}");
    // Nothing of its own is there yet: the leader's answer comes through the standby.
    let served = second.get(cluster, "/v1/nothing").stdout;
    assert!(served.contains("\"code\":\"not_found\""), "{served}");
}

#[test]
fn a_laptop_that_slept_goes_on() {
    let cluster = Cluster::new(Kind::File).expect("no server needed");
    // The soak run sleeps for a minute.
    let asleep = std::env::var("KAPELL_SOAK_SLEEP_S").ok().and_then(|text| text.parse().ok());
    let mut host = cluster.host(&[]);
    host.leads(1);
    let mut standby = cluster.host(&[]);
    standby.listens();
    host.running.signal(Signal::SIGSTOP);
    pause(Duration::from_secs(asleep.unwrap_or(5)));
    assert!(!standby.has_led(), "the lock is the seat");
    host.running.signal(Signal::SIGCONT);
    let woken = Instant::now();
    let answer = host.get(&cluster, "/leader").stdout;
    assert!(answer.contains("\"here\":true"), "{answer}");
    assert!(woken.elapsed() < Duration::from_secs(2), "{:?}", woken.elapsed());
    assert_eq!(cluster.seat().expect("a seat").epoch, 1);
}
