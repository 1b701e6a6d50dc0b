//! No process outlives `kapell process`, whatever it did to set itself apart.

use std::os::unix::process::CommandExt as _;
use std::time::Duration;

use nix::sys::signal::Signal;

use crate::bench::{Bench, eventually};
use crate::census::children;
use crate::gate::Gate;
use crate::running::{Running, is_heeded, send};

const SOON: Duration = Duration::from_secs(2);

/// A step with a child, one in a session of its own, and a daemon that ignores every request.
const FAMILY: &str = r#"
  - name: family
    command: |
      sleep 600 &
      setsid sleep 600 &
      (setsid sh -c 'trap "" TERM INT HUP QUIT; while :; do sleep 600; done' &)
      read _ < gate
"#;

/// Starts a workflow of its own process group, and waits until the whole family is there.
fn start(bench: &Bench) -> (Running, Gate) {
    let gate = Gate::new(bench, "gate");
    let mut command = bench.kapell(&["process", "flow.yaml"]);
    command.process_group(0);
    let running = bench.start_command(command);
    eventually("three processes that sleep", || {
        let sleepers = bench.processes().iter().filter(|process| process.name == "sleep").count();
        (sleepers == 3).then_some(())
    });
    (running, gate)
}

#[test]
fn grandchildren_die_with_a_failed_workflow() {
    let flow = format!("steps:\n{FAMILY}  - {{name: fails, command: 'read _ < fail; exit 1'}}\n");
    let bench = Bench::with(&flow);
    let fail = Gate::new(&bench, "fail");
    let (running, _gate) = start(&bench);
    fail.open();
    running.finish().expect(1).stdout_has("⊘ family cancelled: stopped: `fails` failed\n");
    bench.all_gone_within(SOON);
}

#[test]
fn grandchildren_die_with_the_step_that_failed() {
    let flow = format!("steps:\n{FAMILY}      exit 7\n");
    let bench = Bench::with(&flow);
    let (running, gate) = start(&bench);
    gate.open();
    running.finish().expect(1).stdout_has("✗ family failed in TOOK: exit status 7\n");
    bench.all_gone_within(SOON);
}

#[test]
fn grandchildren_die_with_an_interrupted_workflow() {
    let signals = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP];
    for signal in signals.into_iter().filter(|signal| is_heeded(*signal)) {
        let bench = Bench::with(&format!("steps:\n{FAMILY}"));
        let (running, _gate) = start(&bench);
        running.signal(signal);
        running.finish().expect(128 + signal as i32);
        bench.all_gone_within(SOON);
    }
}

#[test]
fn grandchildren_die_with_a_step_that_timed_out() {
    let bench = Bench::with(&format!("steps:\n{FAMILY}    timeout: 2s\n"));
    let (running, _gate) = start(&bench);
    running.finish().expect(1).stdout_has("✗ family failed in TOOK: timed out after 2.0s\n");
    bench.all_gone_within(SOON);
}

#[test]
fn kill_9_of_the_supervisor_leaves_nothing() {
    let bench = Bench::with(&format!("steps:\n{FAMILY}"));
    let (running, _gate) = start(&bench);
    running.signal(Signal::SIGKILL);
    running.finish().expect(137);
    bench.all_gone_within(SOON);
}

#[test]
fn kill_9_of_the_worker_leaves_nothing() {
    let bench = Bench::with(&format!("steps:\n{FAMILY}"));
    let (running, _gate) = start(&bench);
    send(running.worker(), Signal::SIGKILL);
    let ran = running.finish().expect(137);
    let want = "kapell: the worker process was ended by SIGKILL; all its steps were ended too\n";
    assert_eq!(ran.err(), want);
    bench.all_gone_within(SOON);
}

#[test]
fn kill_9_of_the_whole_group_leaves_nothing() {
    // What `kill -9 %1` in a shell does, and `timeout -s KILL`.
    let bench = Bench::with(&format!("steps:\n{FAMILY}"));
    let (running, _gate) = start(&bench);
    send(-running.pid(), Signal::SIGKILL);
    running.finish().expect(137);
    bench.all_gone_within(SOON);
}

#[test]
fn other_deadly_signals_to_the_group_leave_nothing() {
    // Ctrl-\ on a terminal.
    for signal in [Signal::SIGQUIT, Signal::SIGABRT, Signal::SIGUSR1] {
        let bench = Bench::with(&format!("steps:\n{FAMILY}"));
        let (running, _gate) = start(&bench);
        send(-running.pid(), signal);
        let ran = running.finish();
        assert_ne!(ran.code(), 0);
        bench.all_gone_within(SOON);
    }
}

#[test]
fn a_stopped_worker_does_not_save_the_steps() {
    let bench = Bench::with(&format!("steps:\n{FAMILY}"));
    let (running, _gate) = start(&bench);
    let worker = running.worker();
    send(worker, Signal::SIGSTOP);
    send(worker, Signal::SIGKILL);
    running.finish().expect(137);
    bench.all_gone_within(SOON);
}

#[test]
fn a_pipe_held_open_by_a_daemon_does_not_block_the_end() {
    let bench = Bench::with(
        "
steps:
  - {name: daemon, command: '(setsid sleep 600 &); echo said', output: SAID}
  - {name: next, command: 'echo $SAID > said', depends: daemon}
",
    );
    let ran = bench.flow(&[]).expect(0);
    assert!(ran.took < Duration::from_secs(5), "{:?}", ran.took);
    assert_eq!(bench.read("said"), "said\n");
    ran.stderr_has("ended 1 background process that steps had left behind\n");
    bench.all_gone_within(SOON);
}

#[test]
fn a_pipe_held_open_does_not_block_a_failure() {
    let bench = Bench::with("steps: [{name: a, command: '(setsid sleep 600 &); exit 3'}]\n");
    let ran = bench.flow(&[]).expect(1);
    assert!(ran.took < Duration::from_secs(5), "{:?}", ran.took);
    bench.all_gone_within(SOON);
}

#[test]
fn a_background_process_lives_until_the_run_ends() {
    let bench = Bench::with(
        "
steps:
  - {name: server, command: 'sleep 600 & echo $! > pid'}
  - {name: client, command: 'kill -0 $(cat pid) && echo yes > served', depends: server}
",
    );
    let ran = bench.flow(&[]).expect(0);
    assert_eq!(bench.read("served"), "yes\n");
    ran.stderr_has("ended 1 background process that steps had left behind\n");
    bench.all_gone_within(SOON);
}

#[test]
fn what_a_lingering_process_writes_is_kept() {
    let bench = Bench::with(
        "
steps:
  - {name: server, command: '(read _ < gate; echo late; touch wrote) & echo early'}
  - {name: client, command: 'read _ < held; while ! test -f wrote; do sleep 0.01; done', depends: server}
",
    );
    let (gate, held) = (Gate::new(&bench, "gate"), Gate::new(&bench, "held"));
    let running = bench.start(&["process", "flow.yaml"]);
    let client = held.reached();
    gate.open();
    client.go_on();
    running.finish().expect(0);
    let ran = bench.run(&["workflow", "logs", "--step", "server"]).expect(0);
    assert_eq!(ran.stdout, "early\nlate\n");
}

#[test]
fn zombies_do_not_pile_up() {
    let bench = Bench::with(
        "
steps:
  - name: forks
    command: 'for i in $(seq 200); do (/bin/true &); done; read _ < gate'
",
    );
    let gate = Gate::new(&bench, "gate");
    let running = bench.start(&["process", "flow.yaml"]);
    let waiting = gate.reached();
    let worker = running.worker();
    let zombies = || children(worker).iter().filter(|child| child.is_dead()).count();
    // The step still runs, so what is reaped now is reaped while it runs.
    eventually("almost no zombies", || (zombies() < 10).then_some(()));
    waiting.go_on();
    running.finish().expect(0);
    bench.all_gone_within(SOON);
}

#[test]
fn a_step_sees_no_descriptors_of_ours() {
    let bench = Bench::with("steps: [{name: a, command: 'ls /proc/self/fd > ours'}]\n");
    bench.flow(&[]).expect(0);
    let mut shell = bench.command("sh");
    shell.args(["-c", "ls /proc/self/fd > plain"]);
    bench.run_command(shell).expect(0);
    assert_eq!(bench.read("ours"), bench.read("plain"));
}

#[test]
fn a_step_starts_with_the_usual_signals() {
    let look = "grep ^Sig[BI] /proc/self/status";
    let bench = Bench::with(&format!("steps: [{{name: a, command: '{look} > ours'}}]\n"));
    bench.flow(&[]).expect(0);
    let mut shell = bench.command("sh");
    shell.args(["-c", &format!("{look} > plain")]);
    bench.run_command(shell).expect(0);
    // Two signals belong to the C library, which does with them what it likes.
    let signals = |name: &str| -> Vec<u64> {
        let number = |line: &str| u64::from_str_radix(line.split_once('\t').expect("a tab").1, 16);
        bench.read(name).lines().map(|line| number(line).expect("a set") & 0x7fff_ffff).collect()
    };
    assert_eq!(signals("ours"), signals("plain"), "blocked, ignored");
}

#[test]
fn a_step_that_reads_its_input_gets_its_end() {
    let bench = Bench::with("steps: [{name: a, command: 'cat > got; echo done >> got'}]\n");
    bench.flow(&[]).expect(0);
    assert_eq!(bench.read("got"), "done\n");
}
