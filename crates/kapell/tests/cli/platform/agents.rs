//! kill -9 of a cell's agent: work runs on, logs are whole, and no exit status is lost.

use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use super::chance::Chance;
use super::fleet::{Fleet, counts_itself, guids, guids_of_processes, pids, starts};
use super::life::STAYS;
use crate::leadership::cluster::Kind;
use crate::leadership::rounds;
use crate::running::send;

/// A start that dies with the agent is asked for again soon.
const IMPATIENT: &[(&str, &str)] =
    &[("KAPELL_CONVERGE_EVERY", "1s"), ("KAPELL_STALE_UNCLAIMED", "1s")];

fn fleet(settings: &[(&'static str, &'static str)]) -> Fleet {
    Fleet::with(Kind::File, 1, settings).expect("no server is needed")
}

#[test]
fn logs_are_whole_however_often_the_agent_is_killed() {
    let mut fleet = fleet(&[]);
    let mut chance = Chance::new();
    fleet.desire("counts", 1, "i=0; while :; do i=$((i+1)); echo $i; sleep 0.005; done");
    let before = guids(&fleet.all_run("counts", 1));
    for _ in 0..rounds(4) {
        chance.moment(Duration::from_millis(80));
        fleet.kill_cell(0);
        chance.moment(Duration::from_millis(80));
        fleet.start_cell(0);
    }
    assert_eq!(guids(&fleet.all_run("counts", 1)), before, "it never stopped");
    // On a busy machine it counts slowly.
    let numbers = fleet.until("more than ten lines", || {
        let log = fleet.ask("GET", "/v1/logs/lrp/counts/0", None).expect(200).body;
        let numbers: Vec<u64> = log.lines().filter_map(|line| line.parse().ok()).collect();
        (numbers.len() > 10).then_some(numbers)
    });
    let whole: Vec<u64> = (1..=numbers.len() as u64).collect();
    assert_eq!(numbers, whole);
}

#[test]
fn what_ends_while_nobody_watches_is_known_with_its_exit_status() {
    let mut fleet = fleet(&[]);
    let end = fleet.traces().join("end");
    let waits = format!("while [ ! -e {} ]; do sleep 0.02; done", end.display());
    // An instance ends once, and then stays: a directory of its own tells the first from the next.
    let once = |name: &str, how: &str| {
        let mark = end.with_file_name(name);
        format!("mkdir {} 2>/dev/null || exec sleep 1000; {waits}; {how}", mark.display())
    };
    fleet.desire("exits", 1, &once("exits", "echo last words; exit 9"));
    fleet.desire("dies", 1, &once("dies", "kill -SEGV $$"));
    let mut good = fleet.task("good", &format!("{waits}; echo 42 > answer"));
    good["result_file"] = json!("answer");
    for task in [
        good,
        fleet.task("bad", &format!("{waits}; exit 4")),
        fleet.task("shot", &format!("{waits}; kill -KILL $$")),
    ] {
        fleet.ask("POST", "/v1/tasks", Some(&task)).expect(201);
    }
    fleet.all_run("exits", 1);
    fleet.all_run("dies", 1);
    fleet.until("all five to run", || {
        let mut all = guids_of_processes(&fleet.work());
        all.dedup();
        (all.len() == 5).then_some(())
    });
    fleet.kill_cell(0);
    std::fs::write(&end, "").expect("our own");
    fleet.until("all to have ended", || fleet.work().is_empty().then_some(()));
    fleet.start_cell(0);
    let reason = |guid: &str| {
        fleet.until(&format!("the crash of {guid} to be known"), || {
            let all = fleet.instances(guid);
            let lrp = all.first().filter(|lrp| lrp["crash_count"] == 1)?;
            lrp["crash_reason"].as_str().map(str::to_owned)
        })
    };
    assert_eq!(reason("exits"), "Exited with status 9: last words");
    assert_eq!(reason("dies"), "Killed by signal 11 (SIGSEGV)");
    let good = fleet.completed("good");
    assert_eq!((&good["failed"], &good["result"]), (&json!(false), &json!("42\n")), "{good}");
    let bad = fleet.completed("bad");
    assert_eq!((&bad["exit_code"], &bad["failed"]), (&json!(4), &json!(true)), "{bad}");
    let shot = fleet.completed("shot");
    assert_eq!(shot["failure_reason"], "Killed by signal 9 (SIGKILL)", "{shot}");
}

#[test]
fn an_agent_killed_while_many_start_and_while_many_stop_gets_it_right() {
    let mut fleet = fleet(IMPATIENT);
    let mut chance = Chance::new();
    fleet.desire("web", 0, STAYS);
    for _ in 0..rounds(3) {
        fleet.scale("web", 30);
        chance.moment(Duration::from_millis(150));
        fleet.kill_cell(0);
        fleet.start_cell(0);
        fleet.nothing_runs_twice("web", 30);
        fleet.scale("web", 3);
        chance.moment(Duration::from_millis(60));
        fleet.kill_cell(0);
        fleet.start_cell(0);
        fleet.nothing_runs_twice("web", 3);
    }
    let crashed = |lrp: &Value| lrp["crash_count"] != 0;
    let crashed: Vec<Value> = fleet.instances("web").into_iter().filter(crashed).collect();
    assert!(crashed.is_empty(), "{crashed:?}");
    // Deleted while they start.
    fleet.scale("web", 30);
    chance.moment(Duration::from_millis(100));
    fleet.ask("DELETE", "/v1/desired-lrps/web", None).expect(204);
    chance.moment(Duration::from_millis(40));
    fleet.kill_cell(0);
    fleet.start_cell(0);
    fleet.until("nothing to be left", || {
        let left = !fleet.instances("web").is_empty() || !fleet.work().is_empty();
        (!left && fleet.shims(0).is_empty()).then_some(())
    });
}

#[test]
fn an_agent_killed_while_many_end_loses_no_end() {
    let mut fleet = fleet(IMPATIENT);
    let mut chance = Chance::new();
    let traces = fleet.traces();
    let end = traces.join("end");
    let waits = format!("while [ ! -e {} ]; do sleep 0.02; done", end.display());
    let once = format!("mkdir {}/$INSTANCE_INDEX 2>/dev/null || exec sleep 1000", traces.display());
    fleet.desire("web", 8, &format!("{once}; {waits}; exit 3"));
    for code in 0..16 {
        let task = fleet.task(&format!("task-{code}"), &format!("{waits}; exit {code}"));
        fleet.ask("POST", "/v1/tasks", Some(&task)).expect(201);
    }
    fleet.all_run("web", 8);
    fleet.until("all to run", || {
        let mut all = guids_of_processes(&fleet.work());
        all.dedup();
        (all.len() == 24).then_some(())
    });
    std::fs::write(&end, "").expect("our own");
    for _ in 0..3 {
        chance.moment(Duration::from_millis(25));
        fleet.kill_cell(0);
        fleet.start_cell(0);
    }
    for code in 0..16 {
        let done = fleet.completed(&format!("task-{code}"));
        assert_eq!(done["failed"], code != 0, "{done}");
        assert_eq!(done["exit_code"], code, "{done}");
    }
    // A record may be gone by now, with its count: that of an agent which died between claiming the
    // next instance and starting it. What happened has been told all the same.
    fleet.until("all ends to be told", || {
        let told = fleet.kapell(&["events", "--output", "json"]).expect(0).stdout;
        let crashed = |index: u64| {
            told.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()).any(|line| {
                let after = &line["event"]["after"];
                after["process_guid"] == "web"
                    && after["index"] == index
                    && after["crash_count"] == 1
                    && after["crash_reason"] == "Exited with status 3"
            })
        };
        (0..8).all(crashed).then_some(())
    });
    fleet.all_run("web", 8);
    fleet.nothing_runs_twice("web", 8);
}

#[test]
fn a_task_whose_shim_is_killed_has_failed_and_never_runs_again() {
    let fleet = fleet(&[]);
    let traces = fleet.traces();
    let script = format!("{}; exec sleep 1000", counts_itself(&traces, "task"));
    fleet.ask("POST", "/v1/tasks", Some(&fleet.task("task", &script))).expect(201);
    fleet.until("it to run", || (starts(&traces, "task") == 1).then_some(()));
    for shim in fleet.shims(0) {
        send(shim.pid, Signal::SIGKILL);
    }
    let done = fleet.completed("task");
    assert_eq!(done["failed"], true);
    let told = "its shim was killed";
    assert!(done["failure_reason"].as_str().unwrap_or_default().contains(told), "{done}");
    fleet.kapell(&["explain", "task/task"]).expect(0).stdout_has(told);
    fleet.until("all of it to be gone", || fleet.work().is_empty().then_some(()));
    assert_eq!(starts(&traces, "task"), 1);
}

#[test]
fn a_frozen_agent_finds_its_work_done_elsewhere_and_stops_it() {
    let mut fleet = fleet(&[("KAPELL_PRESENCE_TTL", "2s"), ("KAPELL_CONVERGE_EVERY", "1s")]);
    let traces = fleet.traces();
    fleet.desire("web", 3, STAYS);
    let script = format!("{}; exec sleep 1000", counts_itself(&traces, "task"));
    fleet.ask("POST", "/v1/tasks", Some(&fleet.task("task", &script))).expect(201);
    let before = fleet.all_run("web", 3);
    fleet.until("the task to run", || (starts(&traces, "task") == 1).then_some(()));
    let first = pids(&fleet.work());
    assert_eq!(first.len(), 4);
    let frozen = fleet.cells[0].running.as_ref().expect("it runs").pid();
    send(frozen, Signal::SIGSTOP);
    // Nobody else could take them before; now somebody can.
    fleet.add_cell();
    fleet.until("all to run on the other cell", || {
        let all = fleet.instances("web");
        let moved = |lrp: &Value| lrp["state"] == "RUNNING" && lrp["cell_id"] == "cell-1";
        (all.len() == 3 && all.iter().all(moved)).then_some(())
    });
    assert!(pids(&fleet.work()).is_superset(&first), "what is frozen cannot stop its work");
    let done = fleet.completed("task");
    assert_eq!(done["failed"], true);
    assert!(done["failure_reason"].as_str().unwrap_or_default().contains("cell-0"), "{done}");
    let returned = std::time::Instant::now();
    send(frozen, Signal::SIGCONT);
    fleet.until("the first ones to be gone", || {
        pids(&fleet.work()).is_disjoint(&first).then_some(())
    });
    assert!(returned.elapsed() < Duration::from_secs(10), "took {:?}", returned.elapsed());
    fleet.nothing_runs_twice("web", 3);
    assert!(guids(&fleet.instances("web")).is_disjoint(&guids(&before)));
    assert_eq!(starts(&traces, "task"), 1, "a task is never tried again");
    // It takes work again.
    fleet.until("both cells", || {
        let cells = fleet.get("/v1/cells");
        (cells.as_array()?.len() == 2).then_some(())
    });
}
