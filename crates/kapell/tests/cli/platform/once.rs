//! A task runs at most once, counted by itself, whatever dies at whatever moment.

use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::Value;

use super::chance::Chance;
use super::fleet::{ANY_PORT, Fleet, counts_itself, starts};
use crate::bench::skip;
use crate::leadership::cluster::{Kind, free_port};
use crate::leadership::proxy::{Mode, Proxy};
use crate::leadership::rounds;
use crate::running::send;

/// So that what is lost is noticed soon.
const IMPATIENT: &[(&str, &str)] = &[
    ("KAPELL_CONVERGE_EVERY", "500ms"),
    ("KAPELL_KICK_TASK", "500ms"),
    ("KAPELL_RESERVATION_EXPIRY", "2s"),
    ("KAPELL_CELL_POLL", "2s"),
];
/// From its start to its end, so that all moments of its life are hit.
const LIFE: Duration = Duration::from_millis(120);

/// Tasks that were acknowledged, and the traces that they leave.
struct Tasks {
    traces: PathBuf,
    guids: Vec<String>,
    asked: usize,
}

impl Tasks {
    fn new(fleet: &Fleet) -> Self {
        Self { traces: fleet.traces(), guids: Vec::new(), asked: 0 }
    }

    /// Asks for some more; whether anybody answers is another matter.
    fn ask_for(&mut self, fleet: &Fleet, count: usize) {
        for _ in 0..count {
            let guid = format!("task-{}", self.asked);
            self.asked += 1;
            let script = format!("{}; sleep 0.05", counts_itself(&self.traces, &guid));
            let answer = fleet.try_ask("POST", "/v1/tasks", Some(&fleet.task(&guid, &script)));
            if answer.is_some_and(|answer| answer.status == 201) {
                self.guids.push(guid);
            }
        }
    }

    /// All come to an end, none ran twice, and what is told of each is true.
    #[track_caller]
    fn check(&self, fleet: &Fleet) {
        for guid in &self.guids {
            let done = fleet.completed(guid);
            if done["failed"] == true {
                let reason = done["failure_reason"].as_str().unwrap_or_default();
                assert!(!reason.is_empty(), "{guid} failed without a reason: {done}");
                let told = fleet.get(&format!("/v1/explain/task/{guid}")).to_string();
                assert!(told.contains(&reason.replace('"', "\\\"")), "{told}");
            } else {
                let starts = starts(&self.traces, guid);
                assert_eq!(starts, 1, "{guid} is said to have succeeded: {done}");
            }
        }
        for number in 0..self.asked {
            let starts = starts(&self.traces, &format!("task-{number}"));
            assert!(starts <= 1, "task-{number} ran {starts} times");
        }
        assert!(fleet.work().is_empty(), "{:?}", fleet.work());
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Victim {
    Host,
    Agent,
    Both,
    Shims,
}

fn kill(fleet: &mut Fleet, victim: Victim) {
    match victim {
        Victim::Host => {
            fleet.kill_leader();
            fleet.start_hosts();
        }
        Victim::Agent => {
            fleet.kill_cell(0);
            fleet.start_cell(0);
        }
        Victim::Both => {
            fleet.kill_leader();
            fleet.kill_cell(0);
            fleet.start_hosts();
            fleet.begin_cell(0);
        }
        Victim::Shims => {
            for shim in fleet.shims(0) {
                send(shim.pid, Signal::SIGKILL);
            }
        }
    }
}

pub(super) const ALL_VICTIMS: [Victim; 4] =
    [Victim::Host, Victim::Agent, Victim::Both, Victim::Shims];

pub(super) fn tasks_run_at_most_once(kind: Kind, hosts: usize, victims: &[Victim], name: &str) {
    let mut fleet = match Fleet::with(kind, hosts, IMPATIENT) {
        Ok(fleet) => fleet,
        Err(reason) => return skip(&format!("platform::once::{name}"), &reason),
    };
    let mut chance = Chance::new();
    let mut tasks = Tasks::new(&fleet);
    for &victim in victims {
        // Somebody leads again.
        fleet.get("/v1/cells");
        tasks.ask_for(&fleet, 6);
        chance.moment(LIFE);
        kill(&mut fleet, victim);
    }
    tasks.check(&fleet);
}

#[test]
fn a_task_runs_at_most_once_whatever_is_killed() {
    let victims = ALL_VICTIMS.repeat(rounds(5));
    tasks_run_at_most_once(Kind::File, 1, &victims, "file");
}

#[test]
fn a_task_runs_at_most_once_with_a_standby_on_etcd() {
    let victims = ALL_VICTIMS.repeat(rounds(2));
    let name = "a_task_runs_at_most_once_with_a_standby_on_etcd";
    tasks_run_at_most_once(Kind::Etcd, 2, &victims, name);
}

/// Two cells, and nobody can rely on an answer: neither they on those of the host nor it on theirs.
#[test]
fn a_task_runs_at_most_once_when_answers_are_lost() {
    let mut fleet = Fleet::without_cells(Kind::File, 1, IMPATIENT).expect("no server is needed");
    let mut chance = Chance::new();
    let mut proxies = Vec::new();
    for _ in 0..2 {
        let to_host = Proxy::to(fleet.address(0));
        let listen = format!("127.0.0.1:{}", free_port());
        let to_cell = Proxy::to(&listen);
        let urls = format!("http://{}", to_host.address());
        let advertise = to_cell.address();
        let place = ["--listen", &listen, "--advertise", &advertise];
        fleet.add_cell_with(Some(urls), &[&place, ANY_PORT].concat());
        proxies.extend([to_host, to_cell]);
    }
    let mut tasks = Tasks::new(&fleet);
    for _ in 0..rounds(10) {
        let lossy = usize::try_from(chance.below(4)).expect("small");
        tasks.ask_for(&fleet, 3);
        proxies[lossy].set(Mode::Mute);
        tasks.ask_for(&fleet, 5);
        chance.moment(LIFE);
        proxies[lossy].set(Mode::Pass);
    }
    tasks.check(&fleet);
}

/// What it is that runs at most once: the counting itself is not lost.
#[test]
fn a_task_that_counts_itself_is_counted() {
    let fleet = Fleet::new(Kind::File, 1).expect("no server is needed");
    let mut tasks = Tasks::new(&fleet);
    tasks.ask_for(&fleet, 20);
    assert_eq!(tasks.guids.len(), 20);
    tasks.check(&fleet);
    let ran: usize = tasks.guids.iter().map(|guid| starts(&tasks.traces, guid)).sum();
    assert_eq!(ran, 20, "without any kill all succeed");
    let all = fleet.get("/v1/tasks");
    let failed = |task: &&Value| task["failed"] == true;
    assert_eq!(all.as_array().expect("a list").iter().filter(failed).count(), 0);
    assert!(Path::new(&tasks.traces).is_dir());
}
