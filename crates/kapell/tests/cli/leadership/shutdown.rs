use nix::sys::signal::Signal;

use super::cluster::{Cluster, Kind};

#[test]
fn sigint_stops_in_order_too() {
    let cluster = Cluster::new(Kind::File).expect("no server needed");
    let mut host = cluster.host(&[]);
    host.leads(1);
    host.running.signal(Signal::SIGINT);
    let ran = host.running.finish().expect(0);
    assert_eq!(ran.stderr.lines().last(), Some("kapell host: stopped on SIGINT"));
    assert!(ran.stderr.contains("no longer leading"), "{}", ran.stderr);
}

#[test]
fn a_host_that_waits_stops_at_once() {
    let cluster = Cluster::new(Kind::File).expect("no server needed");
    let mut first = cluster.host(&[]);
    first.leads(1);
    let mut second = cluster.host(&[]);
    second.listens();
    second.stop().expect(0).stderr_has("kapell host: stopped on SIGTERM");
    assert_eq!(cluster.seat().expect("a seat").epoch, 1);
}

#[test]
fn once_ends_when_no_seat_is_free() {
    let cluster = Cluster::new(Kind::File).expect("no server needed");
    let mut first = cluster.host(&[]);
    first.leads(1);
    let second = cluster.host(&["--once", "--window", "500ms"]);
    let ran = second.running.finish().expect(1);
    assert_eq!(
        ran.stderr.lines().last(),
        Some("kapell host: the seat was not acquired: no seat was free within 500ms")
    );
}
