//! Bad input: where, the text there, what would be right; nothing is executed.

use std::fs::File;
use std::time::Duration;

use crate::bench::{Bench, Ran};

/// Runs a bad file. Whatever it holds, `ran` must not appear, and nothing may be written down.
#[track_caller]
fn refused(bench: &Bench) -> Ran {
    let ran = bench.flow(&[]).expect(2);
    assert_eq!(ran.stdout, "");
    assert!(!bench.exists("ran"), "something was executed");
    assert!(!bench.exists("state"), "a run was written down");
    let validated = bench.run(&["workflow", "validate", "flow.yaml"]).expect(2);
    assert_eq!(validated.stderr, ran.stderr, "`validate` says the same");
    ran
}

#[track_caller]
fn refuses(flow: &str, want: &str) {
    assert_eq!(refused(&Bench::with(flow)).err(), want);
}

#[test]
fn bad_file_invalid_yaml() {
    refuses(
        "steps:\n  - name: a\n   command: touch ran\n",
        "\
error: invalid YAML: while parsing a block collection, did not find expected '-' indicator
 --> flow.yaml:3:4
  |
3 |    command: touch ran
  |    ^ check indentation, colons and quotes here and on the line before
",
    );
}

#[test]
fn bad_file_unknown_key() {
    refuses(
        "steps:\n  - name: a\n    comand: touch ran\n  - {name: b, command: touch ran}\n",
        "\
error: unknown key `comand` in a step
 --> flow.yaml:3:5
  |
3 |     comand: touch ran
  |     ^^^^^^ did you mean `command`?
",
    );
}

#[test]
fn bad_file_duplicate_step() {
    refuses(
        "steps:\n  - {name: a, command: touch ran}\n  - {name: a, command: touch ran}\n",
        "\
error: step `a` stands twice
 --> flow.yaml:3:12
  |
3 |   - {name: a, command: touch ran}
  |            ^ rename one: the other is on line 2
",
    );
}

#[test]
fn bad_file_missing_dependency() {
    refuses(
        "steps:\n  - {name: build, command: touch ran}\n  - {name: test, depends: [biuld]}\n",
        "\
error: step `test` waits for `biuld`, which does not exist
 --> flow.yaml:3:28
  |
3 |   - {name: test, depends: [biuld]}
  |                            ^^^^^ did you mean `build`?
",
    );
}

#[test]
fn bad_file_cycle() {
    let flow = "\
steps:
  - {name: free, command: touch ran}
  - {name: a, command: touch ran, depends: [free, c]}
  - {name: b, depends: a}
  - {name: c, depends: b}
";
    refuses(
        flow,
        "\
error: steps wait for each other: a → c → b → a
 --> flow.yaml:3:51
  |
3 |   - {name: a, command: touch ran, depends: [free, c]}
  |                                                   ^ `→` reads \"waits for\"; remove one of these dependencies
",
    );
}

#[test]
fn bad_file_step_that_waits_for_itself() {
    let ran = refused(&Bench::with("steps: [{name: a, command: touch ran, depends: a}]\n"));
    ran.stderr_has("error: steps wait for each other: a → a\n --> flow.yaml:1:");
}

#[test]
fn bad_file_mutual_after() {
    let flow = "steps:\n  - {name: a, command: touch ran, after: b}\n  - {name: b, after: a}\n";
    refuses(
        flow,
        "\
error: steps wait for each other: a → b → a
 --> flow.yaml:2:42
  |
2 |   - {name: a, command: touch ran, after: b}
  |                                          ^ `→` reads \"waits for\"; remove one of these dependencies
",
    );
}

#[test]
fn bad_file_without_steps() {
    let help = "write `steps:` and below it a list of `- name: …` with a `command:` each";
    refuses(
        "steps: []\n",
        &format!(
            "error: `steps` is empty\n --> flow.yaml:1:8\n  |\n1 | steps: []\n  |        ^ {help}\n"
        ),
    );
    refuses(
        "steps:\n",
        &format!(
            "error: `steps` is empty\n --> flow.yaml:1:1\n  |\n1 | steps:\n  | ^^^^^ {help}\n"
        ),
    );
    refuses(
        "name: x\n",
        &format!(
            "error: there are no `steps`\n --> flow.yaml:1:1\n  |\n1 | name: x\n  | ^ {help}\n"
        ),
    );
    for empty in ["", "# only a comment\n", "---\n", "~\n"] {
        let ran = refused(&Bench::with(empty));
        ran.stderr_has("error: the file is empty\n --> flow.yaml:1:1\n");
        ran.stderr_has("a workflow needs at least `steps:`");
    }
}

#[test]
fn bad_file_command_and_script() {
    refuses(
        "steps:\n  - name: a\n    command: touch ran\n    script: touch ran\n",
        "\
error: a step has both `command` and `script`
 --> flow.yaml:4:5
  |
4 |     script: touch ran
  |     ^^^^^^ keep one; two commands are two steps, or one script
",
    );
}

#[test]
fn bad_file_duration() {
    refuses(
        "steps:\n  - {name: a, command: touch ran, timeout: soon}\n",
        "\
error: timeout: `soon` is not a duration
 --> flow.yaml:2:44
  |
2 |   - {name: a, command: touch ran, timeout: soon}
  |                                            ^^^^ write for example `500ms`, `30s`, `1m30s` or `2h`
",
    );
    for duration in ["-1s", "1e9s", "'10 parsecs'", "99999999999", "''"] {
        let step = format!(
            "{{name: a, command: touch ran, retry_policy: {{limit: 1, delay: {duration}}}}}"
        );
        refused(&Bench::with(&format!("steps: [{step}]\n"))).stderr_has("is not a duration");
    }
}

#[test]
fn bad_file_all_problems_at_once() {
    let flow = "\
on_failure: maybe
workers: 0
steps:
  - {name: a, command: touch ran, retry_policy: {limit: many}}
  - {name: a, depends: nobody}
  - {command: touch ran}
  - {name: c, script: x, comand: y, continue_on_error: perhaps}
";
    let ran = refused(&Bench::with(flow));
    let places: Vec<_> = ran.stderr.lines().filter_map(|line| line.strip_prefix(" --> ")).collect();
    let want = [
        "flow.yaml:1:13",
        "flow.yaml:2:10",
        "flow.yaml:4:57",
        "flow.yaml:5:12",
        "flow.yaml:5:24",
        "flow.yaml:6:5",
        "flow.yaml:7:26",
        "flow.yaml:7:56",
    ];
    assert_eq!(places, want, "{}", ran.stderr);
    assert!(ran.stderr.ends_with("\nflow.yaml: 8 errors\n"), "{}", ran.stderr);
}

#[test]
fn bad_file_yaml_bomb() {
    let mut flow =
        String::from("steps: [{name: a, command: touch ran}]\na: &a [x, x, x, x, x, x]\n");
    for (this, before) in "bcdefghij".chars().zip("abcdefghi".chars()) {
        flow.push_str(&format!(
            "{this}: &{this} [*{before}, *{before}, *{before}, *{before}, *{before}]\n"
        ));
    }
    let ran = refused(&Bench::with(&flow));
    ran.stderr_has("error: aliases unfold into more than 100000 values\n --> flow.yaml:");
    ran.stderr_has("write the values out, or use fewer aliases of aliases");
    assert!(ran.took < Duration::from_secs(5), "{:?}", ran.took);
}

#[test]
fn bad_file_deep_nesting() {
    let ran = refused(&Bench::with(&format!("steps: {}\n", "[".repeat(100_000))));
    ran.stderr_has("error: nested more than 64 levels deep\n --> flow.yaml:1:");
}

#[test]
fn bad_file_of_200_mb() {
    let bench = Bench::with("");
    let file = File::create(bench.path("flow.yaml")).expect("a file");
    file.set_len(200 << 20).expect("a sparse file");
    let ran = refused(&bench);
    ran.stderr_has("error: the file is larger than 64 MiB\n --> flow.yaml:1:1\n");
    ran.stderr_has("is this a workflow file? split it if it is");
    assert!(ran.took < Duration::from_secs(2), "{:?}", ran.took);
}

#[test]
fn bad_file_that_never_ends() {
    let bench = Bench::new();
    let ran = bench.run(&["process", "/dev/zero"]).expect(2);
    ran.stderr_has("error: the file is larger than 64 MiB\n --> /dev/zero:1:1\n");
}

#[test]
fn bad_file_named_parameter_without_value() {
    let flow = "\
params:
  - {name: mode, default: fast}
  - name: target
  - {name: other}
steps: [{name: a, command: touch ran}]
";
    let bench = Bench::with(flow);
    let ran = bench.flow(&[]).expect(2);
    let want = "\
error: parameter `target` has no value
 --> flow.yaml:3:11
  |
3 |   - name: target
  |           ^^^^^^ give one with `-p target=VALUE`
error: parameter `other` has no value
 --> flow.yaml:4:12
  |
4 |   - {name: other}
  |            ^^^^^ give one with `-p other=VALUE`

flow.yaml: 2 errors
";
    assert_eq!(ran.err(), want);
    assert!(!bench.exists("ran") && !bench.exists("state"));
    bench.run(&["process", "-p", "target=x", "-p", "other=", "flow.yaml"]).expect(0);
    assert!(bench.exists("ran"));
}

#[test]
fn bad_file_that_is_not_text() {
    let bench = Bench::new();
    bench.write("flow.yaml", b"steps:\n  - {name: a, command: touch ran}\n  # caf\xe9\n");
    let ran = refused(&bench);
    let want = "\
error: the file is not UTF-8 text
 --> flow.yaml:3:8
  |
3 |   # caf\u{fffd}
  |        ^ save it as UTF-8
";
    assert_eq!(ran.err(), want);
}

#[test]
fn bad_file_that_is_a_directory() {
    let bench = Bench::new();
    let ran = bench.run(&["process", "home"]).expect(2);
    assert_eq!(ran.err(), "error: cannot read `home`: Is a directory (os error 21)\n");
    assert!(!bench.exists("state"));
}

#[test]
fn bad_file_that_is_not_there() {
    let bench = Bench::new();
    for args in [
        &["process", "nope.yaml"][..],
        &["process", "--dry-run", "nope.yaml"],
        &["workflow", "validate", "nope.yaml"],
        &["workflow", "graph", "nope.yaml"],
    ] {
        let ran = bench.run(args).expect(2);
        let want = "error: cannot read `nope.yaml`: No such file or directory (os error 2)\n";
        assert_eq!(ran.err(), want);
    }
    assert!(!bench.exists("state"));
}

#[test]
fn bad_file_in_a_dry_run_and_a_drawing() {
    let bench = Bench::with("stpes: []\n");
    let want = bench.flow(&[]).expect(2).stderr;
    for args in [&["process", "--dry-run", "flow.yaml"][..], &["workflow", "graph", "flow.yaml"]] {
        let ran = bench.run(args).expect(2);
        assert_eq!((ran.stdout.as_str(), &ran.stderr), ("", &want));
    }
}

#[test]
fn odd_but_good_files_are_taken() {
    let good = [
        "\u{feff}steps: [{name: a, command: touch ran}]\n",
        "steps:\r\n  - name: a\r\n    command: touch ran\r\n",
        "kind: workflow\nsteps: [{name: ä ö/ü, command: touch ran, depends: []}]\n",
        "base: &b {}\n",
    ];
    for flow in &good[..3] {
        let bench = Bench::with(flow);
        bench.flow(&[]).expect(0);
        assert!(bench.exists("ran"), "{flow}");
    }
    refused(&Bench::with(good[3])).stderr_has("unknown key `base`");
}

#[test]
fn a_file_may_come_through_a_pipe() {
    let bench = Bench::with("steps: [{name: a, command: touch ran}]\n");
    let kapell = env!("CARGO_BIN_EXE_kapell");
    let mut shell = bench.command("sh");
    shell.args(["-c", &format!("cat flow.yaml | '{kapell}' process /dev/stdin")]);
    bench.run_command(shell).expect(0).stdout_has("▶ stdin started: 1 step");
    assert!(bench.exists("ran"));
}
