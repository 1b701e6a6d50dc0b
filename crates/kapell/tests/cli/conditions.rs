//! `when`, `preconditions`, retries and timeouts.

use std::time::Duration;

use crate::bench::Bench;

#[test]
fn when_compares_text_and_heeds_the_exit_code() {
    let bench = Bench::with(
        "
workers: 1
steps:
  - {name: number, command: touch n, when: {predicate: echo 100, expected: 100}}
  - {name: truth, command: touch t, when: {predicate: echo true, expected: true}}
  - {name: spaces, command: touch s, when: {predicate: echo '  x  ', expected: x}}
  - {name: bare, command: touch b, when: test -f flow.yaml}
  - {name: differs, command: touch never, when: {predicate: echo a, expected: b}}
  - {name: fails, command: touch never, when: {predicate: 'echo yes; exit 1', expected: yes}}
  - {name: killed, command: touch never, when: 'kill -9 $$'}
",
    );
    let ran = bench.flow(&[]).expect(0);
    for file in ["n", "t", "s", "b"] {
        assert!(bench.exists(file), "{file}");
    }
    assert!(!bench.exists("never"));
    for line in [
        "○ differs skipped: condition not met: expected 'b', got 'a'\n",
        "○ fails skipped: condition not met: expected 'yes', got 'yes', and the predicate failed\n",
        "○ killed skipped: condition not met: `kill -9 $$` failed\n",
    ] {
        ran.stdout_has(line);
    }
}

#[test]
fn when_is_checked_once_and_only_if_the_step_is_reached() {
    let bench = Bench::with(
        "
steps:
  - name: retried
    command: 'echo x >> tries; exit 1'
    when: 'echo x >> checks'
    retry_policy: {limit: 2}
    continue_on_error: true
  - {name: unreached, command: touch never, when: touch never, depends: retried}
",
    );
    bench.flow(&[]).expect(0).stdout_has("○ unreached skipped: `retried` failed\n");
    assert_eq!(bench.read("tries"), "x\nx\nx\n");
    assert_eq!(bench.read("checks"), "x\n");
    assert!(!bench.exists("never"));
}

#[test]
fn preconditions_that_are_not_met_fail_the_step() {
    let bench = Bench::with(
        "
on_failure: continue
workers: 1
steps:
  - name: met
    command: touch met
    preconditions: [{predicate: echo 1, expected: 1}, test -f flow.yaml]
  - name: differs
    command: touch never
    preconditions:
      - {predicate: echo 1, expected: 1}
      - {predicate: wc -l < flow.yaml | tr -d ' ', expected: 100}
      - touch never
  - name: fails
    command: touch never
    preconditions: ['echo why not >&2; exit 3']
",
    );
    let ran = bench.flow(&[]).expect(1);
    let lines = bench.read("flow.yaml").lines().count();
    ran.stdout_has(&format!(
        "✗ differs failed in TOOK: precondition failed: expected '100', got '{lines}'\n"
    ));
    ran.stdout_has(
        "✗ fails failed in TOOK: precondition failed: `echo why not >&2; exit 3` failed\n",
    );
    ran.stderr_has("  │ why not\n");
    assert!(bench.exists("met") && !bench.exists("never"));
}

#[test]
fn preconditions_are_checked_before_every_attempt() {
    let bench = Bench::with(
        "
steps:
  - name: a
    command: 'echo ran >> log; exit 1'
    preconditions: ['echo check >> log; test $(grep -c check log) -ge 2']
    retry_policy: {limit: 3}
    continue_on_error: true
",
    );
    let ran = bench.flow(&[]).expect(0);
    assert_eq!(bench.read("log"), "check\ncheck\nran\ncheck\nran\ncheck\nran\n");
    ran.stdout_has("↻ a failed: precondition failed: `");
    ran.stdout_has("⚠ a failed (continuing) in TOOK: exit status 1, failed after 4 attempts\n");
}

#[test]
fn only_listed_exit_codes_are_retried() {
    let bench = Bench::with(
        "
on_failure: continue
steps:
  - {name: listed, command: 'echo x >> listed; exit 75', retry_policy: &r {limit: 2, exit_codes: [75, 76]}}
  - {name: other, command: 'echo x >> other; exit 1', retry_policy: *r}
  - {name: killed, command: 'echo x >> killed; kill -9 $$', retry_policy: *r}
  - {name: old, command: 'echo x >> old; exit 1', retryPolicy: {limit: 1}}
",
    );
    bench.flow(&[]).expect(1);
    assert_eq!(bench.read("listed"), "x\nx\nx\n");
    assert_eq!(bench.read("other"), "x\n");
    assert_eq!(bench.read("killed"), "x\n");
    assert_eq!(bench.read("old"), "x\nx\n", "the key's other spelling");
}

#[test]
fn retries_wait_longer_each_time() {
    let bench = Bench::with(
        "
steps:
  - name: a
    command: 'date +%s%N >> times; exit 1'
    retry_policy: {limit: 3, delay: 100ms, backoff: 2, max_delay: 300ms}
",
    );
    let ran = bench.flow(&[]).expect(1);
    let delays: Vec<_> = ran.stdout.lines().filter_map(|line| line.split("4 in ").nth(1)).collect();
    assert_eq!(delays, ["100ms", "200ms", "300ms"]);
    let times: Vec<u64> = bench.read("times").lines().map(|line| line.parse().unwrap()).collect();
    let waited: Vec<_> = times.windows(2).map(|pair| (pair[1] - pair[0]) / 1_000_000).collect();
    for (waited, delay) in waited.iter().zip([100, 200, 300]) {
        assert!((delay..delay + 5_000).contains(waited), "{waited} for {delay}");
    }
}

#[test]
fn jitter_stays_near_the_delay() {
    let bench = Bench::with(
        "
steps:
  - name: a
    command: exit 1
    retry_policy: {limit: 5, delay: 20ms, jitter: 0.5}
",
    );
    let ran = bench.flow(&[]).expect(1);
    let delays: Vec<u32> = ran
        .stdout
        .lines()
        .filter_map(|line| line.split("6 in ").nth(1)?.strip_suffix("ms")?.parse().ok())
        .collect();
    assert_eq!(delays.len(), 5, "{}", ran.stdout);
    assert!(delays.iter().all(|delay| (10..=30).contains(delay)), "{delays:?}");
}

#[test]
fn a_step_that_waits_for_its_retry_holds_no_worker() {
    let bench = Bench::with(
        "
workers: 1
steps:
  - name: flaky
    command: 'echo flaky >> order; test $(grep -c flaky order) -ge 2'
    retry_policy: {limit: 1, delay: 1s}
  - {name: other, command: echo other >> order}
  - {name: last, command: echo last >> order, depends: other}
",
    );
    bench.flow(&[]).expect(0);
    assert_eq!(bench.read("order"), "flaky\nother\nlast\nflaky\n");
}

#[test]
fn a_step_that_takes_too_long_is_ended() {
    let bench = Bench::with(
        "
steps:
  - {name: slow, command: 'echo started >&2; sleep 600; touch never', timeout: 200ms}
",
    );
    let ran = bench.flow(&[]).expect(1);
    ran.stdout_has("✗ slow failed in TOOK: timed out after 200ms\n");
    ran.stderr_has("✗ first failure: slow: timed out after 200ms\n  │ started\n");
    assert!(ran.took < Duration::from_secs(10), "{:?}", ran.took);
    bench.all_gone_within(Duration::from_secs(2));
}

#[test]
fn a_step_that_ignores_its_timeout_is_killed() {
    let bench = Bench::with(
        "steps: [{name: a, command: \"trap '' TERM; sleep 600; sleep 600\", timeout: 100ms}]\n",
    )
    .set("KAPELL_GRACE", "200ms");
    let ran = bench.flow(&[]).expect(1);
    ran.stdout_has("✗ a failed in TOOK: timed out after 100ms\n");
    assert!(ran.took < Duration::from_secs(10), "{:?}", ran.took);
    bench.all_gone_within(Duration::from_secs(2));
}

#[test]
fn every_attempt_has_its_own_timeout() {
    let bench = Bench::with(
        "
steps:
  - name: a
    command: 'echo x >> tries; test $(wc -l < tries) -ge 2 || sleep 600'
    timeout: 300ms
    retry_policy: {limit: 1}
  - {name: when, command: touch never, when: sleep 600, timeout: 100ms, continue_on_error: true}
",
    );
    let ran = bench.flow(&[]).expect(0);
    ran.stdout_has("↻ a failed: timed out after 300ms; retrying: attempt 2 of 2 in 0ms\n");
    ran.stdout_has("✓ a completed")
        .stdout_has("⚠ when failed (continuing): timed out after 100ms\n");
    assert!(!bench.exists("never"));
}

#[test]
fn a_workflow_that_takes_too_long_is_ended() {
    let bench = Bench::with(
        "
timeout: 300ms
steps:
  - {name: quick, command: echo x}
  - {name: slow, command: sleep 600, depends: quick}
  - {name: next, command: touch never, depends: slow}
handlers: {success: touch never, failure: 'echo \"$KAPELL_STATUS\" > handled'}
",
    );
    let ran = bench.flow(&[]).expect(1);
    let want = "the workflow timed out after 300ms";
    ran.stdout_has(&format!("⊘ next cancelled: {want}\n"));
    ran.stdout_has(&format!("⊘ slow cancelled: stopped: {want}\n"));
    ran.stdout_has(&format!("✗ flow failed in TOOK: {want}\n"));
    ran.stderr_has(want);
    assert_eq!(bench.read("handled"), "failed\n");
    assert!(!bench.exists("never"));
    bench.all_gone_within(Duration::from_secs(2));
}

#[test]
fn the_examples_of_the_original_run() {
    let bench = Bench::with(
        r#"
name: "workflow_name"
env:
  ENVIRONMENT: "production"
params: ["input.csv", "output.json"]
steps:
  - name: "process"
    description: "Human-readable"
    command: "cp $1 $2"
    preconditions:
      - predicate: "test -f input.csv"
        expected: ""
      - predicate: "wc -l < input.csv"
        expected: "100"
    retry_policy:
      limit: 3
  - name: "deploy"
    command: "touch deployed"
    depends: ["process"]
    when:
      predicate: "echo $ENVIRONMENT"
      expected: "production"
  - name: "staging"
    command: "touch never"
    when:
      predicate: "echo $ENVIRONMENT"
      expected: "staging"
"#,
    );
    bench.write("input.csv", "line\n".repeat(100));
    bench.flow(&[]).expect(0).stderr_has("2 succeeded, 1 skipped in TOOK\n");
    assert_eq!(bench.read("output.json"), bench.read("input.csv"));
    assert!(bench.exists("deployed") && !bench.exists("never"));
    bench.write("input.csv", "line\n");
    let ran = bench.flow(&[]).expect(1);
    let want = "precondition failed: expected '100', got '1', failed after 4 attempts\n";
    ran.stderr_has(&format!("✗ first failure: process: {want}"));
}
