//! `kapell workflow list|show|logs`.

use serde_json::{Value, json};

use crate::bench::{Bench, Ran};
use crate::gate::Gate;

/// A table with its columns of time replaced, and the spaces between columns as one.
fn rows(ran: &Ran) -> Vec<String> {
    let squeeze = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    ran.out().lines().map(squeeze).map(|line| without_times(&line)).collect()
}

/// Replaces dates, times and durations that stand alone.
fn without_times(line: &str) -> String {
    let digits = |word: &str| word.bytes().filter(u8::is_ascii_digit).count();
    let word = |word: &str| match word {
        date if date.len() == 10 && digits(date) == 8 && date.contains('-') => "DATE".to_owned(),
        time if time.len() == 8 && digits(time) == 6 && time.contains(':') => "TIME".to_owned(),
        took if took.ends_with("ms") && digits(took) == took.len() - 2 => "TOOK".to_owned(),
        took if took.ends_with('s') && digits(took) == took.len() - 2 => "TOOK".to_owned(),
        other => other.to_owned(),
    };
    line.split(' ').map(word).collect::<Vec<_>>().join(" ")
}

#[test]
fn list_shows_past_runs_last_first() {
    let bench = Bench::with("name: first\nsteps: [{name: a, command: echo x}]\n");
    bench.write("bad.yaml", "name: second\nsteps: [{name: a, command: exit 1}]\n");
    let ran = bench.run(&["workflow", "list"]).expect(0);
    assert_eq!(rows(&ran), ["RUN STATUS STARTED TOOK WORKFLOW FILE"]);
    bench.flow(&[]).expect(0);
    bench.run(&["process", "bad.yaml"]).expect(1);
    let ran = bench.run(&["workflow", "list"]).expect(0);
    let want = [
        "RUN STATUS STARTED TOOK WORKFLOW FILE",
        "RUN failed DATE TIME TOOK second DIR/bad.yaml",
        "RUN succeeded DATE TIME TOOK first DIR/flow.yaml",
    ];
    assert_eq!(rows(&ran), want);
    let ran = bench.run(&["workflow", "list", "flow.yaml"]).expect(0);
    assert_eq!(rows(&ran), [want[0], want[2]]);
    let ran = bench.run(&["workflow", "list", "--limit", "1"]).expect(0);
    assert_eq!(rows(&ran), [want[0], want[1]]);
    let ran = bench.run(&["workflow", "list", "--output", "json"]).expect(0);
    let list: Value = serde_json::from_str(&ran.stdout).expect("JSON");
    assert_eq!(list.as_array().map(Vec::len), Some(2));
    assert_eq!((&list[0]["status"], &list[0]["workflow"]), (&json!("failed"), &json!("second")));
}

const MIXED: &str = "
name: mixed
workers: 1
steps:
  - {name: shaky, command: exit 4, continue_on_error: true}
  - {name: child, command: echo x, depends: shaky}
  - {name: flaky, command: 'test -f again || { touch again; exit 75; }', retry_policy: {limit: 1}}
  - {name: fatal, command: 'echo out; echo it broke >&2; exit 3', depends: flaky}
  - {name: last, command: echo x, depends: fatal}
";

#[test]
fn show_tells_how_a_run_went() {
    let bench = Bench::with(MIXED);
    bench.flow(&[]).expect(1);
    let ran = bench.run(&["workflow", "show"]).expect(0);
    let want = [
        "run RUN of mixed: failed",
        "file DIR/flow.yaml",
        "started DATE TIME",
        "took TOOK",
        "error step `fatal` failed: exit status 3",
        "",
        "STEP STATE ATTEMPTS TOOK WHY",
        "shaky failed_continue 1 TOOK exit status 4",
        "child skipped `shaky` failed",
        "flaky succeeded 2 TOOK",
        "fatal failed 1 TOOK exit status 3",
        "last cancelled `fatal` failed",
    ];
    assert_eq!(rows(&ran), want);
    let by_file = bench.run(&["workflow", "show", "flow.yaml"]).expect(0);
    assert_eq!(by_file.stdout, ran.stdout);
    let id = ran.stdout.split(' ').nth(1).expect("an id");
    let by_part = bench.run(&["workflow", "show", &id[id.len() - 6..]]).expect(0);
    assert_eq!(by_part.stdout, ran.stdout);
}

#[test]
fn show_for_programs() {
    let bench = Bench::with(MIXED);
    bench.flow(&[]).expect(1);
    let ran = bench.run(&["workflow", "show", "--output", "json"]).expect(0);
    let run: Value = serde_json::from_str(&ran.out()).expect("JSON");
    assert_eq!(run["run"], "RUN");
    assert_eq!(run["status"], "failed");
    assert_eq!(run["workflow"], "mixed");
    assert_eq!(run["error"], "step `fatal` failed: exit status 3");
    let mut fatal = run["steps"][3].clone();
    fatal["duration_ms"] = json!(0);
    let want = json!({
        "node": "fatal", "state": "failed", "attempt": 0, "exit_code": 3,
        "duration_ms": 0, "reason": null, "error": "exit status 3",
    });
    assert_eq!(fatal, want);
}

#[test]
fn show_and_list_know_a_run_that_goes_on() {
    let bench = Bench::with("steps: [{name: a, command: read _ < gate}, {name: b, depends: a}]\n");
    let gate = Gate::new(&bench, "gate");
    let running = bench.start(&["process", "flow.yaml"]);
    let waiting = gate.reached();
    let ran = bench.run(&["workflow", "list"]).expect(0);
    assert_eq!(rows(&ran)[1], "RUN running DATE TIME flow DIR/flow.yaml");
    let ran = bench.run(&["workflow", "show"]).expect(0);
    ran.stdout_has("run RUN of flow: running\n").stdout_has("\na     running");
    ran.stdout_has("\n1 step was never reached\n");
    waiting.go_on();
    running.finish().expect(0);
    bench.run(&["workflow", "show"]).expect(0).stdout_has("run RUN of flow: succeeded\n");
}

#[test]
fn logs_show_what_steps_wrote() {
    let bench = Bench::with(
        "
workers: 1
steps:
  - {name: one, command: 'echo a; echo b >&2; printf c'}
  - {name: quiet, command: /bin/true}
  - {name: two, command: 'echo d; exit 1'}
",
    );
    bench.flow(&[]).expect(1);
    let ran = bench.run(&["workflow", "logs"]).expect(0);
    let mut lines: Vec<_> = ran.stdout.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["one | a", "one | b", "one | c", "two | d"]);
    let ran = bench.run(&["workflow", "logs", "--step", "two"]).expect(0);
    assert_eq!(ran.stdout, "d\n", "one step comes as it was");
    let ran = bench.run(&["workflow", "logs", "flow.yaml", "--step", "quiet"]).expect(0);
    assert_eq!(ran.stdout, "");
    let ran = bench.run(&["workflow", "logs", "--step", "three"]).expect(2);
    ran.stderr_has("has no step `three`: `kapell workflow show RUN` lists them");
}

#[test]
fn logs_keep_bytes_as_they_were() {
    let bench =
        Bench::with("steps: [{name: a, command: 'head -c 300000 /dev/urandom | tee copy'}]\n");
    bench.flow(&[]).expect(0);
    let command = bench.kapell(&["workflow", "logs", "--step", "a"]).output().expect("it runs");
    let copy = std::fs::read(bench.path("copy")).expect("a file");
    assert!(command.stdout == copy, "{} of {} bytes", command.stdout.len(), copy.len());
}

#[test]
fn logs_of_a_killed_run_are_there() {
    let bench = Bench::with("steps: [{name: a, command: 'echo said; read _ < gate'}]\n");
    let gate = Gate::new(&bench, "gate");
    let running = bench.start(&["process", "flow.yaml"]);
    let _waiting = gate.reached();
    running.signal(nix::sys::signal::Signal::SIGKILL);
    running.finish().expect(137);
    bench.all_gone_within(std::time::Duration::from_secs(2));
    assert_eq!(bench.run(&["workflow", "logs"]).expect(0).stdout, "a | said\n");
    let ran = bench.run(&["workflow", "list"]).expect(0);
    assert_eq!(rows(&ran)[1], "RUN killed DATE TIME flow DIR/flow.yaml");
}

#[test]
fn looking_back_at_nothing_says_so() {
    let bench = Bench::with("steps: [{name: a, command: echo x}]\n");
    for command in ["show", "logs"] {
        let ran = bench.run(&["workflow", command]).expect(2);
        assert_eq!(ran.err(), "error: there are no runs yet: `kapell process FILE` makes one\n");
        let ran = bench.run(&["workflow", command, "nope"]).expect(2);
        let want =
            "error: there is no run `nope`: `kapell workflow list` shows those that there are\n";
        assert_eq!(ran.err(), want);
        let ran = bench.run(&["workflow", command, "flow.yaml"]).expect(2);
        assert_eq!(ran.err(), "error: there is no earlier run of `flow.yaml`\n");
    }
}
