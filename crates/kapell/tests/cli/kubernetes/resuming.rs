use nix::sys::signal::Signal;

use super::lab::Lab;
use crate::running::{Running, send};

/// Kills `kapell process` without a word: the supervisor and the worker.
fn kill(running: Running) {
    send(running.worker(), Signal::SIGKILL);
    running.signal(Signal::SIGKILL);
    running.finish();
}

#[test]
fn a_run_that_was_killed_goes_on_with_the_job_it_had_begun() {
    let flow = "
name: NAME
steps:
  - {name: before, command: 'echo x >> TRACES/before'}
  - name: long
    command: 'echo up > /traces/up; echo early; until [ -e /traces/go ]; do sleep 0.05; done; echo late; echo done > /traces/done'
    when: 'echo x >> TRACES/when'
    depends: before
    executor: POD
    output: LONG
  - {name: after, command: 'echo \"got $LONG\"', depends: long, console: true}
";
    let test = "resuming::a_run_that_was_killed_goes_on_with_the_job_it_had_begun";
    let begun = [false, true].map(|over_by_then| {
        let lab = Lab::new(test, flow)?;
        let running = lab.bench.start(&["process", "flow.yaml"]);
        Some((over_by_then, lab, running))
    });
    for (over_by_then, lab, running) in begun.into_iter().flatten() {
        lab.until_traced("up");
        kill(running);
        assert_eq!(lab.jobs().len(), 1, "it goes on");
        if over_by_then {
            lab.leave("go");
            lab.until_traced("done");
        }
        let plan = lab.bench.run(&["process", "--resume", "--dry-run", "flow.yaml"]).expect(0);
        plan.stdout_has("goes on: begun on Kubernetes in run");
        // Killed once more, in the middle of taking it up.
        if !over_by_then {
            let mut again = lab.bench.start(&["process", "--resume", "flow.yaml"]);
            again.until("long started");
            kill(again);
            lab.leave("go");
        }
        let ran = lab.bench.run(&["process", "--resume", "flow.yaml"]).expect(0);
        ran.stdout_has("got early\nlate\n");
        assert_eq!((lab.trace("before"), lab.trace("when")), ("x\n".to_owned(), "x\n".to_owned()));
        assert_eq!(lab.pods_made("long"), 1, "over by then: {over_by_then}");
        lab.nothing_is_left();
    }
}

#[test]
fn a_step_that_has_changed_begins_anew_after_its_old_job_was_deleted() {
    let flow = "
name: NAME
steps: [{name: s, command: 'echo up > /traces/up; exec sleep 1000', executor: POD}]
";
    let test = "resuming::a_step_that_has_changed_begins_anew_after_its_old_job_was_deleted";
    let Some(lab) = Lab::new(test, flow) else { return };
    let running = lab.bench.start(&["process", "flow.yaml"]);
    lab.until_traced("up");
    kill(running);
    lab.write(
        "name: NAME\nsteps: [{name: s, command: 'echo new', executor: POD, console: true}]\n",
    );
    let ran = lab.bench.run(&["process", "--resume", "flow.yaml"]).expect(0);
    ran.stdout_has("\nnew\n").stderr_has("did something else: deleted");
    assert_eq!(lab.pods_made("s"), 2);
    lab.nothing_is_left();
    // One that runs elsewhere now leaves nothing there.
    lab.write(flow);
    std::fs::remove_file(lab.bench.path("traces/up")).expect("a trace");
    let running = lab.bench.start(&["process", "flow.yaml"]);
    lab.until_traced("up");
    kill(running);
    lab.write(
        "name: NAME\nsteps: [{name: s, command: 'echo here'}, {name: other, command: 'true', executor: POD}]\n",
    );
    lab.bench.run(&["process", "--resume", "flow.yaml"]).expect(0).stdout_has("✓ s completed");
    lab.nothing_is_left();
}
