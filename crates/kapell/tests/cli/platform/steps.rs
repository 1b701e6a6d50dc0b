//! Steps of workflows on cells.

use std::collections::BTreeMap;
use std::path::Path;

use nix::sys::signal::Signal;
use serde_json::Value;

use super::Site;
use crate::bench::{Bench, Ran, eventually};
use crate::leadership::cluster::free_port;

/// A platform, a directory where steps leave traces, and `flow.yaml` with it for `TRACES`.
fn site(flow: &str) -> Site {
    with(Site::up(), flow)
}

fn with(site: Site, flow: &str) -> Site {
    let traces = site.traces().display().to_string();
    site.bench.write("flow.yaml", flow.replace("TRACES", &traces));
    site
}

fn trace(site: &Site, name: &str) -> String {
    std::fs::read_to_string(site.traces().join(name)).unwrap_or_default()
}

/// Waits until a step has left this trace, whole.
#[track_caller]
fn until_traced(site: &Site, name: &str) -> String {
    eventually(name, || Some(trace(site, name)).filter(|text| text.ends_with('\n')))
}

/// How often steps have begun that make a file `name.…` each time: each runs as a user of its own.
fn begun(site: &Site) -> BTreeMap<String, usize> {
    let mut begun = BTreeMap::new();
    for entry in std::fs::read_dir(site.traces()).expect("a directory").flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if let Some((name, _)) = name.split_once('.') {
            *begun.entry(name.to_owned()).or_default() += 1;
        }
    }
    begun
}

fn leave(site: &Site, name: &str) {
    std::fs::write(site.traces().join(name), "").expect("a trace");
}

#[track_caller]
fn no_task_is_left(site: &Site) {
    let tasks = site.get("/v1/tasks");
    assert_eq!(tasks.as_array().map(Vec::len), Some(0), "{tasks}");
}

fn is_alive(pid: &str) -> bool {
    Path::new("/proc").join(pid.trim()).exists()
}

/// Kills `kapell process` without a word: the supervisor and the worker.
fn kill(running: crate::running::Running) {
    let worker = running.worker();
    crate::running::send(worker, Signal::SIGKILL);
    running.signal(Signal::SIGKILL);
    running.finish();
}

#[track_caller]
fn only_step(ran: &Ran, site: &Site) -> Value {
    let shown = site.kapell(&["workflow", "show", "flow.yaml", "--output", "json"]).expect(0);
    let shown: Value = serde_json::from_str(&shown.stdout).expect("JSON");
    assert_eq!(shown["steps"].as_array().map(Vec::len), Some(1), "{}", ran.stderr);
    shown["steps"][0].clone()
}

#[test]
fn outputs_pass_between_steps_on_cells_and_here() {
    let site = site(
        r#"
params: "first 'second one'"
env: {GREETING: hello}
steps:
  - {name: a, command: 'echo "{\"n\": [7]}"; echo aside >&2', executor: cell, output: {stdout: A, stderr: E}}
  - {name: b, command: 'printf "%s " "$KAPELL_TASK_GUID" | cut -c1-2', executor: cell, output: B}
  - {name: here, command: 'echo "here $E ${KAPELL_TASK_GUID:-nowhere}"', depends: a, output: HERE}
  - name: c
    command: 'printf "%s;" "$GREETING" "$1" "$2" "${A.n[0]}" "$B" "$HERE" "$OWN"; pwd >&2'
    env: {OWN: $GREETING there}
    dir: /
    depends: [a, b, here]
    requires: all
    executor: {type: cell, config: {memory_mb: 8, disk_mb: 1, domain: flows}}
    console: true
"#,
    );
    let ran = site.kapell(&["process", "flow.yaml"]).expect(0);
    ran.stdout_has("hello;first;second one;7;b-;here aside nowhere;hello there;");
    assert_eq!(ran.stderr.lines().next(), Some("/"));
    no_task_is_left(&site);
    let logs = site.kapell(&["workflow", "logs", "flow.yaml", "--step", "a"]).expect(0);
    assert_eq!(logs.stdout, "{\"n\": [7]}\naside\n");
}

#[test]
fn every_step_without_a_place_of_its_own_goes_to_the_named_hosts() {
    let site = site(
        "
steps:
  - {name: far, command: 'echo \"far ${KAPELL_TASK_GUID%-*}\"', console: true}
  - {name: near, command: 'echo \"near ${KAPELL_TASK_GUID:-here}\"', console: true, executor: local}
handlers: {exit: 'echo \"exit ${KAPELL_TASK_GUID%-*} $KAPELL_STATUS\" >> TRACES/exit'}
",
    );
    let dead = format!("http://127.0.0.1:{}", free_port());
    let on = format!("{dead},{}", site.url());
    let ran = site.bench.run(&["process", "--on", &on, "flow.yaml"]).expect(0);
    ran.stdout_has("far | far far\n").stdout_has("near | near here\n");
    assert_eq!(trace(&site, "exit"), "exit handlers-exit succeeded\n");
    no_task_is_left(&site);
    let plan = site.kapell(&["process", "--dry-run", "--on", &on, "flow.yaml"]).expect(0);
    plan.stdout_has("2 of 2 steps would run");
}

#[test]
fn without_a_host_nothing_is_run() {
    let bench = Bench::with(
        "steps: [{name: here, command: 'touch ran'}, {name: far, command: x, executor: cell}]",
    );
    let port = free_port();
    let mut command = bench.kapell(&["process", "flow.yaml"]);
    command.env("KAPELL_URL", format!("http://127.0.0.1:{port}"));
    let ran = bench.run_command(command).expect(2);
    ran.stderr_has(&format!(
        "step `far` runs on a cell, but no host answers at http://127.0.0.1:{port}: start one with `kapell up`, or \
         name yours by --on or KAPELL_URL; nothing was run"
    ));
    assert!(!bench.exists("ran"));
    let listed = bench.run(&["workflow", "list"]).expect(0);
    assert_eq!(listed.stdout.lines().count(), 1, "no run has begun: {}", listed.stdout);
    // A step that is not asked for needs no host.
    bench.run(&["process", "flow.yaml", "--only", "here"]).expect(0);
    assert!(bench.exists("ran"));
    let ran = bench.run(&["process", "--on", "nonsense", "flow.yaml"]).expect(2);
    ran.stderr_has("`nonsense` is no URL of a host");
}

#[test]
fn a_wrong_token_is_told_before_anything_runs() {
    let site = site("steps: [{name: far, command: x, executor: cell}]");
    let mut command = site.bench.kapell(&["process", "flow.yaml"]);
    command.env("KAPELL_URL", site.url()).env("KAPELL_TOKEN", "wrong");
    let ran = site.bench.run_command(command).expect(2);
    ran.stderr_has("its host cannot be used").stderr_has("the token is not that of this host");
}

#[test]
fn a_failed_attempt_is_retried_and_told_as_here() {
    let site = site(
        "
on_failure: continue
steps:
  - name: again
    command: 'mktemp TRACES/again.XXXXXX; [ $(ls TRACES/again.* | wc -l) = 3 ] || exit 75'
    executor: cell
    retry_policy: {limit: 5, exit_codes: [75]}
  - {name: final, command: 'mktemp TRACES/final.XXXXXX; exit 3', executor: cell, retry_policy: {limit: 5, exit_codes: [75]}}
  - {name: shot, command: 'kill -9 $$', executor: cell}
  - {name: none, command: /no/such/program, args: [x], executor: cell}
  - {name: huge, command: x, executor: {type: cell, config: {memory_mb: 4000000000}}}
  - {name: late, command: 'echo $$ > TRACES/late; exec sleep 1000', executor: cell, timeout: 1s}
  - {name: odd, command: x, dir: $PLACE, env: {PLACE: some/where}, executor: cell}
",
    );
    let ran = site.kapell(&["process", "flow.yaml", "--workers", "7"]).expect(1);
    ran.stdout_has("✓ again completed")
        .stdout_has("✗ final failed")
        .stdout_has(": exit status 3\n")
        .stdout_has("killed by SIGKILL")
        .stdout_has("`/no/such/program` is not there")
        .stdout_has("insufficient resources: memory")
        .stdout_has("timed out after 1.0s")
        .stdout_has("`dir: some/where` is relative, which is nowhere on a cell");
    let begun = begun(&site);
    assert_eq!((begun["again"], begun["final"]), (3, 1));
    assert!(!is_alive(&trace(&site, "late")), "what timed out is gone");
    no_task_is_left(&site);
}

#[test]
fn conditions_are_checked_where_the_step_runs() {
    let site = site(
        "
defaults: {executor: cell}
steps:
  - {name: yes, command: 'echo ran', when: 'test -n \"$KAPELL_TASK_GUID\"', preconditions: [{predicate: 'echo 5', expected: 5}]}
  - {name: 'no', command: 'echo ran', when: {predicate: 'echo $KAPELL_TASK_GUID', expected: ''}}
",
    );
    let ran = site.kapell(&["process", "flow.yaml"]).expect(0);
    ran.stdout_has("✓ yes completed").stdout_has("○ no skipped: condition not met: expected ''");
    no_task_is_left(&site);
}

#[test]
fn scripts_reach_cells_as_text() {
    let site = site(
        r##"
defaults: {executor: cell}
params: "p 'q r'"
steps:
  - {name: plain, script: "echo \"$# $2\"\nfor i in 1 2; do echo $i; done\n", output: PLAIN}
  - {name: sharp, script: "#!/bin/sh -e\nfalse\necho never\n", continue_on_error: true}
  - {name: awk, script: "#!/usr/bin/awk -f\nBEGIN { print ENVIRON[\"PARAM_2\"], \"`$x`\" }\n", output: AWK}
  - {name: shell, shell: 'sh -eu', script: 'echo "$-" | tr -cd eu'}
  - {name: last, command: 'echo "$PLAIN; $AWK"', depends: [plain, awk], console: true}
"##,
    );
    let ran = site.kapell(&["process", "flow.yaml"]).expect(0);
    ran.stdout_has("2 q r\n1\n2; q r `$x`\n").stdout_has("sharp failed (continuing)");
    let long =
        format!("steps: [{{name: long, executor: cell, script: ': {}'}}]", "x".repeat(140 << 10));
    site.bench.write("flow.yaml", long);
    let ran = site.kapell(&["process", "flow.yaml"]).expect(1);
    ran.stdout_has("are too large; the largest: the arguments").stdout_has("pass it in a file");
    no_task_is_left(&site);
}

#[test]
fn output_comes_while_the_step_runs() {
    let site = site(
        "
steps:
  - name: slow
    command: 'echo first; echo aside >&2; until [ -e TRACES/go ]; do sleep 0.05; done; seq 20000; printf end'
    executor: cell
    console: true
",
    );
    let mut running = site.begin(&["process", "flow.yaml"]);
    running.until("first\n");
    running.until_told("aside", 1);
    leave(&site, "go");
    let ran = running.finish().expect(0);
    let numbers = ran.stdout.lines().filter(|line| line.parse::<u32>().is_ok());
    assert!(numbers.eq((1..=20_000).map(|number| number.to_string())), "in order, and all of it");
    ran.stdout_has("\nend\n");
    let kept = site.kapell(&["workflow", "logs", "flow.yaml", "--step", "slow"]).expect(0);
    assert!(kept.stdout.ends_with("19999\n20000\nend"), "and its end is kept");
}

#[test]
fn an_interrupt_ends_the_processes_and_removes_the_task() {
    for (signal, code) in [(Signal::SIGINT, 130), (Signal::SIGTERM, 143)] {
        let site = site(
            "
steps:
  - {name: long, command: 'trap \"echo bye > TRACES/bye; exit\" TERM; echo $$ > TRACES/pid; while :; do sleep 0.1; done', executor: cell}
  - {name: never, command: 'touch TRACES/never', depends: long, executor: cell}
",
        );
        let running = site.begin(&["process", "flow.yaml"]);
        let pid = until_traced(&site, "pid");
        assert!(is_alive(&pid));
        running.signal(signal);
        let ran = running.finish().expect(code);
        ran.stdout_has("long cancelled").stdout_has("never cancelled");
        assert!(!is_alive(&pid), "it is waited for");
        assert_eq!(trace(&site, "bye"), "bye\n", "it had its grace");
        no_task_is_left(&site);
    }
}

#[test]
fn one_that_does_not_want_to_end_is_killed() {
    let bench = Bench::new().set("KAPELL_GRACE", "3s").set("KAPELL_STOP_GRACE", "500ms");
    let site = with(
        Site::with(bench, &[]),
        "steps: [{name: deaf, command: 'trap \"\" TERM; echo $$ > TRACES/pid; while :; do sleep 0.1; done', executor: cell}]",
    );
    let running = site.begin(&["process", "flow.yaml"]);
    let pid = until_traced(&site, "pid");
    running.signal(Signal::SIGINT);
    running.finish().expect(130);
    assert!(!is_alive(&pid));
    no_task_is_left(&site);
}

#[test]
fn a_run_that_was_killed_goes_on_with_the_task_it_had_begun() {
    let flow = "
steps:
  - {name: before, command: 'mktemp TRACES/before.XXXXXX', executor: cell}
  - name: long
    command: 'mktemp TRACES/long.XXXXXX >&2; echo up > TRACES/up; echo early; until [ -e TRACES/go ]; do sleep 0.05; done; echo late; echo done > TRACES/done'
    when: 'mktemp TRACES/when.XXXXXX'
    depends: before
    executor: cell
    output: LONG
  - {name: after, command: 'echo \"got $LONG\"', depends: long, console: true}
";
    for over_by_then in [false, true] {
        let site = site(flow);
        let running = site.begin(&["process", "flow.yaml"]);
        until_traced(&site, "up");
        kill(running);
        if over_by_then {
            leave(&site, "go");
            until_traced(&site, "done");
        }
        let plan = site.kapell(&["process", "--resume", "--dry-run", "flow.yaml"]).expect(0);
        plan.stdout_has("goes on: begun on a cell in run");
        // Killed once more, in the middle of taking it up.
        if !over_by_then {
            let mut again = site.begin(&["process", "--resume", "flow.yaml"]);
            again.until("long started");
            kill(again);
            leave(&site, "go");
        }
        let ran = site.kapell(&["process", "--resume", "flow.yaml"]).expect(0);
        ran.stdout_has("got early\nlate\n");
        let begun = begun(&site);
        let counts = ["before", "when", "long"].map(|name| begun[name]);
        assert_eq!(counts, [1, 1, 1], "over by then: {over_by_then}");
        no_task_is_left(&site);
    }
}

#[test]
fn a_step_that_has_changed_begins_anew_after_its_old_task_was_cancelled() {
    let site = site(
        "steps: [{name: s, command: 'echo $$ > TRACES/pid; exec sleep 1000', executor: cell}]",
    );
    let running = site.begin(&["process", "flow.yaml"]);
    let pid = until_traced(&site, "pid");
    kill(running);
    assert!(is_alive(&pid), "a task does not end with whoever asked for it");
    site.bench.write(
        "flow.yaml",
        "steps: [{name: s, command: 'echo new', executor: cell, console: true}]",
    );
    let ran = site.kapell(&["process", "--resume", "flow.yaml"]).expect(0);
    ran.stdout_has("\nnew\n").stderr_has("did something else: cancelled");
    site.until("the old one to end", || (!is_alive(&pid)).then_some(()));
    no_task_is_left(&site);
}

#[test]
fn a_step_goes_on_while_its_host_is_killed_and_started_again() {
    let mut site = site(
        "
steps:
  - name: long
    command: 'mktemp TRACES/long.XXXXXX >&2; echo early; until [ -e TRACES/go ]; do sleep 0.05; done; seq 1000; exit 7'
    executor: cell
    console: true
",
    );
    let mut running = site.begin(&["process", "flow.yaml"]);
    running.until("early\n");
    site.kill();
    // What it writes while nobody listens is not lost.
    running.until_told("no host answers at", 1);
    assert!(running.stderr_so_far().contains("waiting for at most 5m"));
    leave(&site, "go");
    site.start(&[]);
    let ran = running.finish().expect(1);
    ran.stdout_has(": exit status 7\n").stderr_has("a host answers again");
    let numbers = ran.stdout.lines().filter(|line| line.parse::<u32>().is_ok());
    assert!(numbers.eq((1..=1000).map(|number| number.to_string())), "{}", ran.stdout);
    assert_eq!((begun(&site)["long"], ran.stdout.matches("early\n").count()), (1, 1));
    assert_eq!(only_step(&ran, &site)["exit_code"], 7);
    no_task_is_left(&site);
}

#[test]
fn a_host_that_stays_away_fails_the_step_in_the_end() {
    let bench = Bench::new().set("KAPELL_HOST_PATIENCE", "3s");
    let mut site = with(
        Site::with(bench, &[]),
        "steps: [{name: long, command: 'echo $$ > TRACES/pid; exec sleep 1000', executor: cell}]",
    );
    let running = site.begin(&["process", "flow.yaml"]);
    let pid = until_traced(&site, "pid");
    site.kill();
    let ran = running.finish().expect(1);
    ran.stdout_has("no host answered for 3.0s: no host answers at")
        .stderr_has("could not be cancelled and may still run: `kapell task cancel long-");
    crate::running::send(pid.trim().parse().expect("a process id"), Signal::SIGKILL);
}

#[test]
fn two_hundred_steps_run_at_once() {
    let steps: String = (0..200)
        .map(|number| format!("  - {{name: s{number}, command: 'mktemp TRACES/s{number}.XXXXXX >&2; echo out {number}', output: O{number}}}\n"))
        .collect();
    let sum: Vec<String> = (0..200).map(|number| format!("$O{number}")).collect();
    let site = site(&format!(
        "workers: 200\nsteps:\n{steps}  - {{name: sum, executor: local, command: 'echo \"{}\" > TRACES/sum', after: [{}]}}\n",
        sum.join(" "),
        (0..200).map(|number| format!("s{number}")).collect::<Vec<_>>().join(", "),
    ));
    let ran = site.bench.run(&["process", "--on", &site.url(), "flow.yaml"]).expect(0);
    ran.stderr_has("201 succeeded");
    let begun = begun(&site);
    assert_eq!((begun.len(), begun.values().sum::<usize>()), (200, 200), "each once");
    let want: Vec<String> = (0..200).map(|number| format!("out {number}")).collect();
    assert_eq!(trace(&site, "sum").trim(), want.join(" "));
    no_task_is_left(&site);
}
