//! Hosts that are stopped, killed and cut off from their store.

use std::io::Read as _;
use std::process::Stdio;
use std::time::{Duration, Instant};

use kapell_core::seams::Ids as _;
use kapell_node::system::SystemIds;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::signal::Signal;

use super::cluster::{Cluster, Host, Kind, LEASE, free_port};
use super::direct::{Direct, Recorder};
use super::proxy::{Mode, Proxy};
use super::{on_each_server, on_each_store, rounds};
use crate::bench::{eventually, pause, try_eventually};

const SECOND: Duration = Duration::from_secs(1);
/// What a busy machine may take to run a process that is due, and a test to see it.
const SLACK: Duration = Duration::from_millis(500);

/// Any time up to this.
fn below(limit: Duration) -> Duration {
    limit.mul_f64(f64::from(u16::try_from(SystemIds.draw() % 1000).unwrap_or(0)) / 1000.0)
}

on_each_server! {
    a_leader_that_was_stopped_is_succeeded_and_knows_it:
        a_leader_that_was_stopped_is_succeeded_and_knows_it_etcd,
        a_leader_that_was_stopped_is_succeeded_and_knows_it_postgres;
    a_leader_that_slept_past_a_deadline_is_out_when_it_wakes:
        a_leader_that_slept_past_a_deadline_is_out_when_it_wakes_etcd,
        a_leader_that_slept_past_a_deadline_is_out_when_it_wakes_postgres;
    a_leader_whose_store_hangs_is_out_in_time:
        a_leader_whose_store_hangs_is_out_in_time_etcd,
        a_leader_whose_store_hangs_is_out_in_time_postgres;
    a_leader_that_cannot_even_log_is_killed_in_time:
        a_leader_that_cannot_even_log_is_killed_in_time_etcd,
        a_leader_that_cannot_even_log_is_killed_in_time_postgres;
    a_store_that_is_away_for_a_moment_costs_nothing:
        a_store_that_is_away_for_a_moment_costs_nothing_etcd,
        a_store_that_is_away_for_a_moment_costs_nothing_postgres;
    a_store_that_is_away_for_long_costs_the_seat_until_it_is_back:
        a_store_that_is_away_for_long_costs_the_seat_until_it_is_back_etcd,
        a_store_that_is_away_for_long_costs_the_seat_until_it_is_back_postgres;
}

pub(super) fn a_leader_that_was_stopped_is_succeeded_and_knows_it(cluster: &Cluster) {
    let listen = [(); 2].map(|()| format!("127.0.0.1:{}", free_port()));
    // Both say that they are in the same place.
    let start = |at: usize| cluster.host_at(&cluster.url, &listen[at], &listen[0], &[]);
    let mut first = start(0);
    assert_eq!(first.leads(1), 1);
    let recorder = Recorder::start(&cluster.url);
    let mut second = start(1);
    second.listens();
    // Where leases run out by what each has seen itself, it counts from its first look.
    eventually("the second to see who leads", || {
        second.get(cluster, "/leader").stdout.contains("\"epoch\":1").then_some(())
    });
    let stopped = Instant::now();
    first.running.signal(Signal::SIGSTOP);
    assert_eq!(second.leads(1), 2);
    let took = stopped.elapsed();
    assert!(took <= LEASE + SECOND, "took over after {took:?}");
    pause(Duration::from_millis(200));
    first.running.signal(Signal::SIGCONT);
    first.is_out(SECOND);
    // Long enough for the second to renew, and for the first to do what it should not.
    pause(SECOND + SLACK);
    let here = second.get(cluster, "/leader").stdout;
    assert!(here.contains("\"here\":true") && here.contains("\"epoch\":2"), "{here}");
    let history = recorder.finish();
    assert!(history.stands_from(2), "{history:?}");
    if first.running.stderr_so_far().contains("kapell host: killed: ") {
        first.running.finish().expect(70).stderr_has("killed: the seat was not renewed in time");
    } else {
        let there = eventually("the first to be a standby", || {
            let answer = first.get(cluster, "/leader").stdout;
            answer.contains("\"epoch\":2").then_some(answer)
        });
        assert!(there.contains("\"here\":false"), "{there}");
        assert_eq!(first.reigns().len(), 1);
    }
}

/// It wakes when services have to stop, when it has to be gone, or when another may lead.
pub(super) fn a_leader_that_slept_past_a_deadline_is_out_when_it_wakes(cluster: &Cluster) {
    let recorder = Recorder::start(&cluster.url);
    let mut first = cluster.host(&[]);
    for round in 0..rounds(1) {
        let epoch = first.leads(1);
        let mut second = cluster.host(&[]);
        second.listens();
        let stopped = Instant::now();
        first.running.signal(Signal::SIGSTOP);
        pause(LEASE / 2 + below(LEASE / 2));
        first.running.signal(Signal::SIGCONT);
        first.is_out(SECOND);
        // The record stands until its time is over, so a first that starts over has no advantage.
        let next = eventually("a successor", || {
            let led = first.reigns().len() > 1;
            if led { Some(first.leads(2)) } else { second.has_led().then(|| second.leads(1)) }
        });
        let took = stopped.elapsed();
        assert!(took <= LEASE + SECOND, "a successor after {took:?} in round {round}");
        assert_eq!(next, epoch + 1);
        first.kill();
        first = second;
    }
    recorder.finish();
}

pub(super) fn a_leader_whose_store_hangs_is_out_in_time(cluster: &Cluster) {
    let proxy = Proxy::to(&cluster.server());
    let url = proxy.instead_of_server(&cluster.url);
    let mut first = cluster.host_on(&url, free_port(), &[]);
    assert_eq!(first.leads(1), 1);
    let mut second = cluster.host(&[]);
    second.listens();
    let recorder = Recorder::start(&cluster.url);
    proxy.set(Mode::Hang);
    let hung = Instant::now();
    first.running.until_told("\"message\":\"no longer leading\"", 1);
    let stopped = hung.elapsed();
    assert!(stopped <= LEASE / 2 + SLACK, "services stopped after {stopped:?}");
    let left = (LEASE * 3 / 4 + SLACK).saturating_sub(hung.elapsed());
    first.is_out(left);
    assert_eq!(second.leads(1), 2);
    let took = hung.elapsed();
    assert!(took <= LEASE + SECOND, "took over after {took:?}");
    let (former, latter) = (first.reigns(), second.reigns());
    let [(_, Some(end))] = &former[..] else { panic!("{former:?}") };
    let [(begin, None)] = &latter[..] else { panic!("{latter:?}") };
    assert!(end < begin, "{end} is not before {begin}");
    let history = recorder.finish();
    assert!(history.stands_from(2), "{history:?}");
    // It is the loser, so it is not the one that deleted the record.
    assert!(history.stood(1, hung).is_some_and(|stood| stood >= stopped), "{history:?}");
    // What hung lands late, if at all, and changes nothing.
    proxy.set(Mode::Pass);
    pause(SECOND);
    let seat = cluster.seat().expect("a seat");
    assert_eq!((seat.epoch, seat.address.as_deref()), (2, Some(&*second.address)));
    assert_eq!(first.reigns().len(), 1);
}

/// Nobody reads what it writes, so every thread that has something to say is blocked.
pub(super) fn a_leader_that_cannot_even_log_is_killed_in_time(cluster: &Cluster) {
    let proxy = Proxy::to(&cluster.server());
    let url = proxy.instead_of_server(&cluster.url);
    let address = format!("127.0.0.1:{}", free_port());
    let (_bench, mut command) = cluster.host_command(&url, &address, &address, &[]);
    let (mut reader, writer) = std::io::pipe().expect("a pipe");
    command.stdout(Stdio::null()).stderr(writer.try_clone().expect("a handle"));
    let mut child = command.spawn().expect("the host starts");
    fcntl(&reader, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).expect("a pipe that does not block");
    let mut log = Vec::new();
    eventually("it to lead", || {
        let mut buffer = [0; 4096];
        let length = reader.read(&mut buffer).unwrap_or(0);
        log.extend_from_slice(&buffer[..length]);
        String::from_utf8_lossy(&log).contains("\"message\":\"leading\"").then_some(())
    });
    fcntl(&writer, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).expect("a pipe that does not block");
    while nix::unistd::write(&writer, b".").is_ok() {}
    fcntl(&writer, FcntlArg::F_SETFL(OFlag::empty())).expect("a pipe that blocks");
    proxy.set(Mode::Hang);
    let hung = Instant::now();
    let limit = LEASE * 3 / 4 + SLACK;
    let status = try_eventually(limit, || child.try_wait().expect("it is our child"));
    let took = hung.elapsed();
    if status.is_none() {
        let _killed = (child.kill(), child.wait());
    }
    assert_eq!(status.and_then(|status| status.code()), Some(70), "after {took:?}");
}

pub(super) fn a_store_that_is_away_for_a_moment_costs_nothing(cluster: &Cluster) {
    let proxy = Proxy::to(&cluster.server());
    let url = proxy.instead_of_server(&cluster.url);
    // At the worst a quarter of the lease has gone when the store goes away.
    let mut host = cluster.host_on(&url, free_port(), &["--lease", "8s"]);
    assert_eq!(host.leads(1), 1);
    let recorder = Recorder::start(&cluster.url);
    proxy.set(Mode::Cut);
    pause(SECOND);
    proxy.set(Mode::Pass);
    // Beyond half of the lease: without a renewal it would have lost it.
    pause(Duration::from_secs(4));
    let here = host.get(cluster, "/leader").stdout;
    assert!(here.contains("\"here\":true") && here.contains("\"epoch\":1"), "{here}");
    assert!(recorder.finish().stands_from(1));
    host.stop().expect(0);
}

pub(super) fn a_store_that_is_away_for_long_costs_the_seat_until_it_is_back(cluster: &Cluster) {
    let proxy = Proxy::to(&cluster.server());
    let url = proxy.instead_of_server(&cluster.url);
    let mut host = cluster.host_on(&url, free_port(), &[]);
    assert_eq!(host.leads(1), 1);
    let store = Direct::open(&cluster.url);
    proxy.set(Mode::Cut);
    let away = Instant::now();
    // Where whoever looks counts by what it saw, this is what it saw.
    store.holder();
    host.is_out(LEASE * 3 / 4 + SLACK);
    let log = host.running.stderr_so_far();
    assert!(log.contains("the seat was lost: store errors: "), "{log}");
    let record = store.holder();
    assert!(record.is_some_and(|record| record.epoch.0 == 1), "deleted on loss");
    // Longer than it takes to find that there is no store.
    host.running.until_told("\"message\":\"the store failed; trying again\"", 2);
    pause((LEASE + SECOND).saturating_sub(away.elapsed()));
    assert_eq!(store.holder(), None);
    proxy.set(Mode::Pass);
    assert_eq!(host.leads(2), 2);
    host.stop().expect(0).stderr_has("kapell host: stopped on SIGTERM");
    assert_eq!(store.holder(), None);
}

on_each_store! {
    kill_9_at_any_moment: kill_9_at_any_moment_file, kill_9_at_any_moment_etcd, kill_9_at_any_moment_postgres;
}

pub(super) fn kill_9_at_any_moment(cluster: &Cluster) {
    let recorder = (cluster.kind != Kind::File).then(|| Recorder::start(&cluster.url));
    let mut last = 0;
    for round in 0..rounds(3) {
        let mut host = cluster.host(&[]);
        let wait = match round % 3 {
            0 => below(Duration::from_millis(200)),
            moment => {
                let epoch = host.leads(1);
                assert!(epoch > last, "{epoch} after {last} in round {round}");
                last = epoch;
                if moment == 1 { Duration::ZERO } else { below(SECOND) }
            }
        };
        pause(wait);
        host.kill();
    }
    let mut hosts = [cluster.host(&[]), cluster.host(&[])];
    let leads = eventually("one of two to lead", || hosts.iter_mut().position(Host::has_led));
    let epoch = hosts[leads].leads(1);
    assert!(epoch > last, "{epoch} after {last}");
    hosts[1 - leads].listens();
    let seat = cluster.seat().expect("a seat");
    assert_eq!((seat.epoch, seat.address.as_deref()), (epoch, Some(&*hosts[leads].address)));
    assert!(!hosts[1 - leads].has_led());
    recorder.map(Recorder::finish);
    let [one, other] = hosts;
    one.stop().expect(0);
    other.stop().expect(0);
}
