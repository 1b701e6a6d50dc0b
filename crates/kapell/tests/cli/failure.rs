//! What a failure does to the rest, and in which order things happen.

use crate::bench::{Bench, Ran};
use crate::gate::Gate;

/// A step that fails, one that runs beside it, one behind each, and one without a worker.
fn three_ways(on_failure: &str) -> (Bench, Ran) {
    let bench = Bench::with(&format!(
        "
on_failure: {on_failure}
workers: 2
steps:
  - {{name: fails, command: 'read _ < fail; exit 1'}}
  - {{name: beside, command: \"trap 'echo told > told; exit 0' TERM; sleep 600 & : > up; echo $! > pid; wait; touch beside\"}}
  - {{name: after-fails, command: touch after-fails, depends: fails}}
  - {{name: after-beside, command: touch after-beside, depends: beside}}
  - {{name: independent, command: touch independent}}
handlers: {{failure: touch handled}}
"
    ));
    let fail = Gate::new(&bench, "fail");
    let mut running = bench.start(&["process", "flow.yaml"]);
    crate::bench::eventually("the step beside", || bench.exists("pid").then_some(()));
    fail.open();
    running.until("✗ fails failed");
    if on_failure != "stop" {
        // Nobody told it to end: it ends as it would have.
        let pid = crate::bench::eventually("a pid", || bench.read("pid").trim().parse().ok());
        // Before it has become another program it still has its parent's traps.
        let name = format!("/proc/{pid}/comm");
        crate::bench::eventually("sleep", || {
            std::fs::read_to_string(&name).is_ok_and(|it| it == "sleep\n").then_some(())
        });
        crate::running::send(pid, nix::sys::signal::Signal::SIGTERM);
    }
    let ran = running.finish().expect(1);
    ran.stdout_has("✗ flow failed in TOOK: step `fails` failed: exit status 1\n");
    assert!(bench.exists("handled") && !bench.exists("after-fails"));
    (bench, ran)
}

#[test]
fn on_failure_stop_ends_what_runs() {
    let (bench, ran) = three_ways("stop");
    assert!(bench.exists("told") && !bench.exists("beside"));
    assert!(!bench.exists("after-beside") && !bench.exists("independent"));
    for line in [
        "⊘ after-fails cancelled: `fails` failed\n",
        "⊘ after-beside cancelled: `fails` failed\n",
        "⊘ independent cancelled: `fails` failed\n",
        "⊘ beside cancelled: stopped: `fails` failed\n",
    ] {
        ran.stdout_has(line);
    }
}

#[test]
fn on_failure_finish_lets_what_runs_end() {
    let (bench, ran) = three_ways("finish");
    assert!(!bench.exists("told") && bench.exists("beside"));
    assert!(!bench.exists("after-beside") && !bench.exists("independent"));
    ran.stdout_has("✓ beside completed").stdout_has("⊘ after-beside cancelled: `fails` failed\n");
    ran.stderr_has("1 succeeded, 1 failed, 3 cancelled in TOOK\n");
}

#[test]
fn on_failure_continue_runs_all_that_does_not_depend_on_it() {
    let (bench, ran) = three_ways("continue");
    assert!(!bench.exists("told") && bench.exists("beside"));
    assert!(bench.exists("after-beside") && bench.exists("independent"));
    ran.stdout_has("○ after-fails skipped: `fails` failed\n");
    ran.stderr_has("3 succeeded, 1 failed, 1 skipped in TOOK\n");
}

#[test]
fn a_join_behind_tolerated_failures_ends_the_same_way_whatever_the_timing() {
    // The original hung here, or skipped while a parent still ran.
    let flow = "
steps:
  - {name: a, command: 'read _ < a; exit 1', continue_on_error: true}
  - {name: b, command: 'read _ < b; exit $1', continue_on_error: true}
  - {name: any, command: echo any >> ran, depends: [a, b]}
  - {name: all, command: echo all >> ran, depends: [a, b], requires: all}
  - {name: behind, command: echo behind >> ran, depends: [any, all]}
";
    let outcome = |code: &str, order: [&str; 2]| {
        let bench = Bench::with(flow);
        let gates = order.map(|name| (name, Gate::new(&bench, name)));
        let mut running = bench.start(&["process", "flow.yaml", code]);
        for (name, gate) in &gates {
            gate.open();
            running.until(&format!(
                "{name} {}",
                if *name == "b" && code == "0" { "completed" } else { "failed" }
            ));
        }
        let ran = running.finish().expect(0);
        let mut lines: Vec<String> =
            ran.out().lines().filter(|line| !line.contains("started")).map(str::to_owned).collect();
        lines.sort();
        (lines, bench.exists("ran").then(|| bench.read("ran")))
    };
    for (code, want) in [("0", Some("any\nbehind\n")), ("1", None)] {
        let (lines, ran) = outcome(code, ["a", "b"]);
        assert_eq!(ran.as_deref(), want);
        assert_eq!((lines, ran), outcome(code, ["b", "a"]), "exit {code}");
    }
}

#[test]
fn requires_all_needs_every_dependency() {
    let bench = Bench::with(
        "
steps:
  - {name: good, command: echo x}
  - {name: bad, command: exit 1, continue_on_error: true}
  - {name: any, command: touch any, depends: [good, bad]}
  - {name: all, command: touch never, depends: [good, bad], requires: all}
  - {name: both, command: touch both, depends: [good, any], requires: all}
",
    );
    bench.flow(&[]).expect(0).stdout_has("○ all skipped: `bad` failed\n");
    assert!(bench.exists("any") && bench.exists("both") && !bench.exists("never"));
}

#[test]
fn dependencies_may_await_a_failure_a_skip_or_any_end() {
    let bench = Bench::with(
        "
steps:
  - {name: bad, command: exit 1}
  - {name: good, command: echo x}
  - {name: skipped, command: touch never, when: 'false'}
  - {name: rescue, command: touch rescue, depends: [{step: bad, on: failure}]}
  - {name: no-rescue, command: touch never, depends: [{step: good, on: failure}]}
  - {name: instead, command: touch instead, depends: [{step: skipped, on: skipped}]}
  - {name: always, command: touch always, requires: all,
     depends: [{step: bad, on: done}, {step: good, on: done}, {step: skipped, on: done}]}
  - {name: plain, command: touch plain, depends: [{step: good, on: success}]}
",
    );
    let ran = bench.flow(&[]).expect(0);
    ran.stdout_has("⚠ bad failed (continuing) in TOOK: exit status 1\n");
    ran.stdout_has("○ no-rescue skipped: `good` succeeded\n");
    for file in ["rescue", "instead", "always", "plain"] {
        assert!(bench.exists(file), "{file}");
    }
    assert!(!bench.exists("never"));
}

#[test]
fn after_waits_for_all_that_depends_on_the_step() {
    let bench = Bench::with(
        "
steps:
  - {name: cleanup, command: echo cleanup >> order, after: [start]}
  - {name: start, command: echo start >> order}
  - {name: middle, command: 'sleep 0.1; echo middle >> order', depends: start}
  - {name: end, command: 'sleep 0.1; echo end >> order', depends: middle}
",
    );
    bench.flow(&[]).expect(0);
    assert_eq!(bench.read("order"), "start\nmiddle\nend\ncleanup\n");
}

#[test]
fn higher_priority_goes_first() {
    let bench = Bench::with(
        "
workers: 1
defaults: {priority: 1}
steps:
  - {name: low, command: echo low >> order, priority: -5}
  - {name: first, command: echo first >> order}
  - {name: second, command: echo second >> order}
  - {name: high, command: echo high >> order, priority: 10}
  - {name: child, command: echo child >> order, priority: 5, depends: high}
",
    );
    bench.flow(&[]).expect(0);
    assert_eq!(bench.read("order"), "high\nchild\nfirst\nsecond\nlow\n");
}

#[test]
fn a_failing_handler_fails_the_run_and_the_last_one_still_runs() {
    let bench = Bench::with(
        "
steps: [{name: a, command: echo x}]
handlers: {success: 'echo oops >&2; exit 4', failure: touch never, exit: touch last}
",
    );
    let ran = bench.flow(&[]).expect(1);
    ran.stdout_has("✗ handlers.success failed in TOOK: exit status 4\n");
    ran.stderr_has("handlers.success: exit status 4\n  │ oops\n");
    assert!(bench.exists("last") && !bench.exists("never"));
}

#[test]
fn handlers_retry_and_time_out_like_steps() {
    let bench = Bench::with(
        "
steps: [{name: a, command: echo x}]
handlers:
  success: {command: 'echo x >> tries; test $(wc -l < tries) -ge 2', retry_policy: {limit: 1}}
  exit: {command: sleep 600, timeout: 100ms, continue_on_error: true}
",
    );
    let ran = bench.flow(&[]).expect(0);
    ran.stdout_has("✓ handlers.success completed");
    ran.stdout_has("⚠ handlers.exit failed (continuing) in TOOK: timed out after 100ms\n");
}

#[test]
fn defaults_apply_to_every_step() {
    let bench = Bench::with(
        "
defaults:
  retry_policy: {limit: 1}
  continue_on_error: true
  dir: home
  env: {A: default, B: default}
  console: true
steps:
  - {name: a, command: 'echo x >> tries; exit 1'}
  - {name: b, command: 'echo $A $B > env', env: {B: own}}
  - {name: c, command: 'echo x >> once; exit 1', retry_policy: {limit: 0}}
",
    );
    bench.flow(&[]).expect(0);
    assert_eq!(bench.read("home/tries"), "x\nx\n");
    assert_eq!(bench.read("home/env"), "default own\n");
    assert_eq!(bench.read("home/once"), "x\n");
}

#[test]
fn ten_thousand_steps_are_no_problem() {
    let mut flow = String::from("workers: 8\nsteps:\n  - {name: s0, command: /bin/true}\n");
    for number in 1..10_000 {
        let parents = [number - 1, number / 2].map(|parent| format!("s{parent}")).join(", ");
        flow.push_str(&format!("  - {{name: s{number}, depends: [{parents}]}}\n"));
    }
    let bench = Bench::with(&flow);
    let ran = bench.run(&["process", "-l", "json", "flow.yaml"]).expect(0);
    assert_eq!(ran.stdout.lines().count(), 20_002);
    ran.stderr_has("10000 succeeded in TOOK\n");
}
