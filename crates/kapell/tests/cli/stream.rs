//! The stream logger, whole runs word for word.

use nix::sys::signal::Signal;

use crate::bench::Bench;
use crate::gate::Gate;

#[test]
fn stream_of_a_success() {
    let bench = Bench::with(
        "
name: hello
steps:
  - {name: one, command: echo out}
  - {name: two, command: /bin/true, depends: one}
  - {name: both, depends: [one, two]}
",
    );
    let ran = bench.flow(&[]).expect(0);
    let want = "\
[TIME] ▶ hello started: 3 steps, run RUN
[TIME] … one started
[TIME] ✓ one completed in TOOK
[TIME] … two started
[TIME] ✓ two completed in TOOK
[TIME] … both started
[TIME] ✓ both completed in TOOK
[TIME] ✓ hello completed in TOOK
";
    assert_eq!(ran.out(), want);
    assert_eq!(ran.err(), "3 succeeded in TOOK\n");
}

#[test]
fn stream_of_a_fatal_failure() {
    let bench = Bench::with(
        "
name: broken
steps:
  - {name: one, command: echo out}
  - {name: two, command: 'echo to stdout; echo it broke >&2; exit 3', depends: one}
  - {name: three, command: echo never, depends: two}
  - {name: four, command: echo never, depends: three}
",
    );
    let ran = bench.flow(&[]).expect(1);
    let want = "\
[TIME] ▶ broken started: 4 steps, run RUN
[TIME] … one started
[TIME] ✓ one completed in TOOK
[TIME] … two started
[TIME] ✗ two failed in TOOK: exit status 3
[TIME] ⊘ three cancelled: `two` failed
[TIME] ⊘ four cancelled: `two` failed
[TIME] ✗ broken failed in TOOK: step `two` failed: exit status 3
";
    assert_eq!(ran.out(), want);
    let want = "
✗ first failure: two: exit status 3
  │ it broke
1 succeeded, 1 failed, 2 cancelled in TOOK
resume with: kapell process --resume flow.yaml
";
    assert_eq!(ran.err(), want);
}

#[test]
fn stream_of_a_tolerated_failure() {
    let bench = Bench::with(
        "
workers: 1
steps:
  - {name: shaky, command: 'echo noise >&2; exit 4', continue_on_error: true}
  - {name: child, command: echo never, depends: shaky}
  - {name: other, command: echo fine}
",
    );
    let ran = bench.flow(&[]).expect(0);
    let want = "\
[TIME] ▶ flow started: 3 steps, run RUN
[TIME] … shaky started
[TIME] ⚠ shaky failed (continuing) in TOOK: exit status 4
[TIME] ○ child skipped: `shaky` failed
[TIME] … other started
[TIME] ✓ other completed in TOOK
[TIME] ✓ flow completed in TOOK
";
    assert_eq!(ran.out(), want);
    let want = "
⚠ tolerated: shaky: exit status 4
  │ noise
1 succeeded, 1 failed (tolerated), 1 skipped in TOOK
";
    assert_eq!(ran.err(), want);
}

#[test]
fn stream_of_a_skip() {
    let bench = Bench::with(
        "
workers: 1
steps:
  - {name: gate, command: touch never, when: {predicate: echo staging, expected: production}}
  - {name: behind, command: touch never, depends: gate}
  - {name: open, command: echo fine, when: {predicate: echo 1, expected: 1}}
  - {name: bare, command: touch never, when: test -f nothing}
",
    );
    let ran = bench.flow(&[]).expect(0);
    let want = "\
[TIME] ▶ flow started: 4 steps, run RUN
[TIME] ○ gate skipped: condition not met: expected 'production', got 'staging'
[TIME] ○ behind skipped: `gate` was skipped
[TIME] … open started
[TIME] ✓ open completed in TOOK
[TIME] ○ bare skipped: condition not met: `test -f nothing` failed
[TIME] ✓ flow completed in TOOK
";
    assert_eq!(ran.out(), want);
    assert_eq!(ran.err(), "1 succeeded, 3 skipped in TOOK\n");
    assert!(!bench.exists("never"));
}

#[test]
fn stream_of_a_retry() {
    let bench = Bench::with(
        "
steps:
  - name: flaky
    command: 'echo x >> tries; test $(wc -l < tries) -ge 3 || { echo not yet >&2; exit 75; }'
    retry_policy: {limit: 3, delay: 20ms, backoff: 2}
",
    );
    let ran = bench.flow(&[]).expect(0);
    let want = "\
[TIME] ▶ flow started: 1 step, run RUN
[TIME] … flaky started
[TIME] ↻ flaky failed: exit status 75; retrying: attempt 2 of 4 in 20ms
[TIME] … flaky started (attempt 2)
[TIME] ↻ flaky failed: exit status 75; retrying: attempt 3 of 4 in 40ms
[TIME] … flaky started (attempt 3)
[TIME] ✓ flaky completed in TOOK
[TIME] ✓ flow completed in TOOK
";
    assert_eq!(ran.out(), want);
    assert_eq!(ran.err(), "1 succeeded in TOOK\n");
}

#[test]
fn stream_of_an_exhausted_retry() {
    let bench = Bench::with(
        "steps: [{name: hopeless, command: 'echo why >&2; exit 9', retry_policy: {limit: 1}}]\n",
    );
    let ran = bench.flow(&[]).expect(1);
    let want = "\
[TIME] ▶ flow started: 1 step, run RUN
[TIME] … hopeless started
[TIME] ↻ hopeless failed: exit status 9; retrying: attempt 2 of 2 in 0ms
[TIME] … hopeless started (attempt 2)
[TIME] ✗ hopeless failed in TOOK: exit status 9, failed after 2 attempts
[TIME] ✗ flow failed in TOOK: step `hopeless` failed: exit status 9, failed after 2 attempts
";
    assert_eq!(ran.out(), want);
    let want = "
✗ first failure: hopeless: exit status 9, failed after 2 attempts
  │ why
1 failed in TOOK
resume with: kapell process --resume flow.yaml
";
    assert_eq!(ran.err(), want);
}

#[test]
fn stream_of_an_interruption() {
    let bench = Bench::with(
        "
steps:
  - {name: long, command: read _ < gate}
  - {name: next, command: touch never, depends: long}
handlers: {success: touch never, failure: touch never, exit: 'echo $KAPELL_STATUS > status'}
",
    );
    let gate = Gate::new(&bench, "gate");
    let running = bench.start(&["process", "flow.yaml"]);
    let _waiting = gate.reached();
    running.signal(Signal::SIGINT);
    let ran = running.finish().expect(130);
    let want = "\
[TIME] ▶ flow started: 2 steps, run RUN
[TIME] … long started
[TIME] ⊘ next cancelled: interrupted by SIGINT
[TIME] ⊘ long cancelled: stopped: interrupted by SIGINT
[TIME] … handlers.exit started
[TIME] ✓ handlers.exit completed in TOOK
[TIME] ✗ flow failed in TOOK: interrupted by SIGINT
";
    assert_eq!(ran.out(), want);
    assert_eq!(bench.read("status"), "interrupted\n");
    assert!(!bench.exists("never"));
    let want = "
2 cancelled in TOOK
resume with: kapell process --resume flow.yaml
";
    assert_eq!(ran.err(), want);
}

#[test]
fn stream_of_handlers() {
    let handlers = "
handlers:
  success: echo good >> told
  failure: {command: 'echo \"bad: $KAPELL_FAILED_STEP: $KAPELL_ERROR\" >> told'}
  exit: {script: 'echo \"$KAPELL_WORKFLOW $KAPELL_STATUS\" >> told'}
";
    let bench = Bench::with(&format!("steps: [{{name: a, command: echo x}}]\n{handlers}"));
    let ran = bench.flow(&[]).expect(0);
    let want = "\
[TIME] ▶ flow started: 1 step, run RUN
[TIME] … a started
[TIME] ✓ a completed in TOOK
[TIME] … handlers.success started
[TIME] ✓ handlers.success completed in TOOK
[TIME] … handlers.exit started
[TIME] ✓ handlers.exit completed in TOOK
[TIME] ✓ flow completed in TOOK
";
    assert_eq!(ran.out(), want);
    assert_eq!(bench.read("told"), "good\nflow succeeded\n");

    let bench = Bench::with(&format!("steps: [{{name: a, command: exit 5}}]\n{handlers}"));
    let ran = bench.flow(&[]).expect(1);
    let want = "\
[TIME] ▶ flow started: 1 step, run RUN
[TIME] … a started
[TIME] ✗ a failed in TOOK: exit status 5
[TIME] … handlers.failure started
[TIME] ✓ handlers.failure completed in TOOK
[TIME] … handlers.exit started
[TIME] ✓ handlers.exit completed in TOOK
[TIME] ✗ flow failed in TOOK: step `a` failed: exit status 5
";
    assert_eq!(ran.out(), want);
    assert_eq!(bench.read("told"), "bad: a: exit status 5\nflow failed\n");
}

#[test]
fn output_of_a_step_is_shown_while_it_runs_if_the_file_says_so() {
    let bench = Bench::with(
        "
steps:
  - name: loud
    command: 'echo heard; echo also >&2; read _ < gate'
    console: {stdout: true}
  - {name: quiet, command: echo unheard, depends: loud}
",
    );
    let gate = Gate::new(&bench, "gate");
    let mut running = bench.start(&["process", "flow.yaml"]);
    running.until("heard\n");
    gate.open();
    let ran = running.finish().expect(0);
    let want = "\
[TIME] ▶ flow started: 2 steps, run RUN
[TIME] … loud started
heard
[TIME] ✓ loud completed in TOOK
[TIME] … quiet started
[TIME] ✓ quiet completed in TOOK
[TIME] ✓ flow completed in TOOK
";
    assert_eq!(ran.out(), want);
    assert_eq!(ran.err(), "2 succeeded in TOOK\n");
}

#[test]
fn a_tree_becomes_a_stream_where_there_is_no_terminal() {
    let bench = Bench::with("steps: [{name: a, command: echo x}]\n");
    let tree = bench.run(&["process", "--logger", "tree", "flow.yaml"]).expect(0);
    let stream = bench.run(&["process", "--logger", "stream", "flow.yaml"]).expect(0);
    assert_eq!(tree.out(), stream.out());
    assert_eq!(tree.err(), stream.err());
}

#[test]
fn colour_goes_to_terminals_only() {
    let bench = Bench::with("steps: [{name: a, command: exit 1}]\n").set("TERM", "xterm-256color");
    bench.write("bad.yaml", "stpes: []\n");
    for args in [&["process", "flow.yaml"][..], &["process", "bad.yaml"], &["workflow", "list"]] {
        let ran = bench.run(args);
        assert!(!ran.stdout.contains('\x1b') && !ran.stderr.contains('\x1b'), "{ran:?}");
    }
}

#[test]
fn nobody_reading_the_events_does_not_end_the_run() {
    let bench = Bench::with(
        "
steps:
  - {name: a, command: read _ < gate, console: true}
  - {name: b, command: 'echo x; touch done', depends: a, console: true}
",
    );
    let gate = Gate::new(&bench, "gate");
    let mut command = bench.command("sh");
    let kapell = env!("CARGO_BIN_EXE_kapell");
    command.args(["-c", &format!("{{ '{kapell}' process flow.yaml; echo $? > code; }} | true")]);
    let running = bench.start_command(command);
    // `true` may still be there when this opens, but not when the next line is written.
    gate.open();
    running.finish();
    assert_eq!(bench.read("code"), "0\n");
    assert!(bench.exists("done"));
}
