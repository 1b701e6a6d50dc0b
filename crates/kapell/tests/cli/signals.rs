//! Interruptions: who asks, how the steps learn of it, and what the exit code says.

use std::os::unix::process::CommandExt as _;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use crate::bench::{Bench, eventually, pause};
use crate::gate::Gate;
use crate::running::{Running, is_heeded, send};

/// A step that takes its time to end when asked, so that an impatient end would show, and one behind
/// it whose cancellation shows that the signal was heard.
const PATIENT: &str = "
steps:
  - {name: patient, command: \"trap 'sleep 0.2; echo asked >> asked; exit 0' TERM; sleep 600 & : > up; wait\"}
  - {name: next, command: touch never, depends: patient}
handlers: {exit: echo $KAPELL_STATUS >> handled}
";

/// A step that does not care to be asked.
const STUBBORN: &str = "
steps:
  - {name: stubborn, command: \"trap '' TERM INT HUP; read _ < gate\"}
  - {name: next, command: touch never, depends: stubborn}
handlers: {exit: touch handled}
";

/// How long a person takes at least to press the same keys again.
const TWICE: Duration = Duration::from_millis(300);

/// Starts the workflow in a process group of its own.
fn start(bench: &Bench) -> (Running, Gate) {
    let gate = Gate::new(bench, "gate");
    let mut command = bench.kapell(&["process", "flow.yaml"]);
    command.process_group(0);
    (bench.start_command(command), gate)
}

/// Starts `PATIENT`, and returns when it is ready to be asked.
fn start_patient(bench: &Bench) -> Running {
    let running = start(bench).0;
    eventually("the step", || bench.exists("up").then_some(()));
    running
}

#[test]
fn signals_become_exit_codes() {
    let signals = [(Signal::SIGINT, 130), (Signal::SIGTERM, 143), (Signal::SIGHUP, 129)];
    for (signal, code) in signals.into_iter().filter(|(signal, _)| is_heeded(*signal)) {
        let bench = Bench::with(PATIENT);
        let running = start_patient(&bench);
        running.signal(signal);
        let ran = running.finish().expect(code);
        ran.stdout_has(&format!("⊘ next cancelled: interrupted by {}\n", signal.as_str()));
        assert_eq!(bench.read("asked"), "asked\n", "the step was asked to end");
        assert_eq!(bench.read("handled"), "interrupted\n");
        assert!(!bench.exists("never"));
        bench.all_gone_within(Duration::from_secs(2));
    }
}

#[test]
fn ctrl_c_reaches_the_whole_group_and_counts_once() {
    let bench = Bench::with(PATIENT);
    let running = start_patient(&bench);
    // As a terminal does it.
    send(-running.pid(), Signal::SIGINT);
    running.finish().expect(130);
    assert_eq!(bench.read("asked"), "asked\n");
    assert_eq!(bench.read("handled"), "interrupted\n", "handlers run: it was one signal");
}

#[test]
fn a_signal_sent_twice_at_once_counts_once() {
    // `timeout` sends its signal to the process and then to the group.
    let bench = Bench::with(PATIENT);
    let running = start_patient(&bench);
    running.signal(Signal::SIGTERM);
    send(-running.pid(), Signal::SIGTERM);
    running.finish().expect(143);
    assert_eq!(bench.read("asked"), "asked\n");
    assert_eq!(bench.read("handled"), "interrupted\n", "handlers run: it was one wish");
}

#[test]
fn a_signal_to_both_of_our_processes_counts_once() {
    // Who stops a service signals all of its processes.
    let bench = Bench::with(PATIENT);
    let running = start_patient(&bench);
    let worker = running.worker();
    running.signal(Signal::SIGTERM);
    send(worker, Signal::SIGTERM);
    running.finish().expect(143);
    assert_eq!(bench.read("asked"), "asked\n");
    assert_eq!(bench.read("handled"), "interrupted\n", "handlers run: it was one wish");
}

#[test]
fn a_second_signal_kills_at_once() {
    for (first, second, code) in
        [(Signal::SIGINT, Signal::SIGINT, 130), (Signal::SIGTERM, Signal::SIGINT, 143)]
    {
        let bench = Bench::with(STUBBORN).set("KAPELL_GRACE", "60s");
        let (mut running, gate) = start(&bench);
        let _waiting = gate.reached();
        running.signal(first);
        running.until("next cancelled");
        pause(TWICE);
        let asked = Instant::now();
        running.signal(second);
        let ran = running.finish().expect(code);
        assert!(asked.elapsed() < Duration::from_secs(5), "{:?}", asked.elapsed());
        assert!(!bench.exists("handled"), "no handler keeps an impatient person");
        ran.stdout_has("⊘ stubborn cancelled: stopped: interrupted by");
        bench.all_gone_within(Duration::from_secs(2));
    }
}

#[test]
fn who_does_not_end_when_asked_is_ended_after_the_grace() {
    let bench = Bench::with(STUBBORN).set("KAPELL_GRACE", "300ms");
    let (running, gate) = start(&bench);
    let _waiting = gate.reached();
    let asked = Instant::now();
    running.signal(Signal::SIGTERM);
    running.finish().expect(143);
    let took = asked.elapsed();
    assert!((Duration::from_millis(300)..Duration::from_secs(10)).contains(&took), "{took:?}");
    bench.all_gone_within(Duration::from_secs(2));
}

#[test]
fn a_signal_to_the_worker_alone_works_too() {
    for (signal, code) in [(Signal::SIGTERM, 143), (Signal::SIGINT, 130)] {
        let bench = Bench::with(PATIENT);
        let running = start_patient(&bench);
        send(running.worker(), signal);
        running.finish().expect(code);
        assert_eq!(bench.read("asked"), "asked\n");
        assert_eq!(bench.read("handled"), "interrupted\n");
        bench.all_gone_within(Duration::from_secs(2));
    }
}

#[test]
fn a_second_signal_to_the_worker_alone_kills_at_once() {
    let bench = Bench::with(STUBBORN).set("KAPELL_GRACE", "60s");
    let (mut running, gate) = start(&bench);
    let _waiting = gate.reached();
    let worker = running.worker();
    send(worker, Signal::SIGTERM);
    running.until("next cancelled");
    pause(TWICE);
    let asked = Instant::now();
    send(worker, Signal::SIGTERM);
    running.finish().expect(143);
    assert!(asked.elapsed() < Duration::from_secs(5), "{:?}", asked.elapsed());
}

#[test]
fn a_signal_ends_a_wait_for_a_retry() {
    let bench =
        Bench::with("steps: [{name: a, command: exit 1, retry_policy: {limit: 1, delay: 1h}}]\n");
    let (mut running, _gate) = start(&bench);
    running.until("attempt 2 of 2 in 1h00m");
    running.signal(Signal::SIGTERM);
    running.finish().expect(143).stdout_has("⊘ a cancelled: interrupted by SIGTERM\n");
}

#[test]
fn a_signal_ends_a_handler() {
    let bench = Bench::with(
        "
steps: [{name: a, command: echo x}]
handlers: {success: read _ < gate, exit: echo $KAPELL_STATUS > cleaned}
",
    );
    let (running, gate) = start(&bench);
    let _waiting = gate.reached();
    running.signal(Signal::SIGINT);
    running.finish().expect(130).stdout_has("⊘ handlers.success cancelled: ");
    assert_eq!(bench.read("cleaned"), "interrupted\n", "one signal leaves the last handler");
}

#[test]
fn a_stopped_step_can_be_interrupted() {
    let bench = Bench::with("steps: [{name: a, command: 'kill -STOP $$; touch never'}]\n");
    let (running, _gate) = start(&bench);
    eventually("a stopped process", || {
        bench.processes().iter().any(|process| process.state == 'T').then_some(())
    });
    running.signal(Signal::SIGINT);
    running.finish().expect(130);
    assert!(!bench.exists("never"));
    bench.all_gone_within(Duration::from_secs(2));
}

#[test]
fn a_signal_before_the_first_step_is_not_lost() {
    // Whenever it comes, the run ends soon and says that it was interrupted.
    for delay_ms in [0, 1, 2, 3, 5, 8, 13] {
        let bench = Bench::with("steps: [{name: a, command: sleep 600}]\n");
        let running = bench.start(&["process", "flow.yaml"]);
        pause(Duration::from_millis(delay_ms));
        running.signal(Signal::SIGTERM);
        running.finish().expect(143);
        bench.all_gone_within(Duration::from_secs(2));
    }
}
