//! What a person reads at the end of a run.

use crate::bench::Bench;

#[test]
fn summary_puts_the_first_failure_first() {
    let bench = Bench::with(
        "
on_failure: continue
workers: 1
steps:
  - {name: shaky, command: 'echo shaken >&2; exit 1', continue_on_error: true}
  - {name: second, command: 'echo ignored; echo two >&2; exit 2', depends: first2}
  - {name: first, command: 'echo one >&2; exit 3'}
  - {name: first2}
  - {name: good, command: echo fine}
",
    );
    let ran = bench.flow(&[]).expect(1);
    let want = "
✗ first failure: first: exit status 3
  │ one
✗ second: exit status 2
  │ two
⚠ tolerated: shaky: exit status 1
  │ shaken
2 succeeded, 2 failed, 1 failed (tolerated) in TOOK
resume with: kapell process --resume flow.yaml
";
    assert_eq!(ran.err(), want);
    ran.stdout_has("✗ flow failed in TOOK: step `first` failed: exit status 3\n");
}

#[test]
fn summary_shows_the_last_lines_of_stderr() {
    let bench =
        Bench::with("steps: [{name: long, command: 'seq 1 100 >&2; echo not this; exit 1'}]\n");
    let ran = bench.flow(&[]).expect(1);
    let lines: Vec<String> = (81..=100).map(|number| format!("  │ {number}\n")).collect();
    let lines = lines.concat();
    let want = format!(
        "\n✗ first failure: long: exit status 1\n{lines}1 failed in TOOK\n\
         resume with: kapell process --resume flow.yaml\n"
    );
    assert_eq!(ran.err(), want);
}

#[test]
fn summary_shows_stdout_if_there_is_no_stderr() {
    let bench = Bench::with("steps: [{name: a, command: 'echo only this; exit 1'}]\n");
    bench.flow(&[]).expect(1).stderr_has("✗ first failure: a: exit status 1\n  │ only this\n");
}

#[test]
fn summary_cannot_be_used_to_write_to_the_terminal() {
    let text = r"printf '\033[2J\033]0;title\007red\033[0m\n10%%\r100%%\n' >&2; exit 1";
    let bench = Bench::with(&format!(
        "steps: [{{name: a, command: \"{}\"}}]\n",
        text.replace('\\', "\\\\")
    ));
    let ran = bench.flow(&[]).expect(1);
    let controls: Vec<char> = ran.stderr.chars().filter(|c| c.is_control() && *c != '\n').collect();
    assert_eq!(controls, [] as [char; 0], "{:?}", ran.stderr);
    ran.stderr_has("  │ 100%\n");
}

#[test]
fn summary_limits_the_number_of_failures() {
    let steps: Vec<String> = (1..=8)
        .map(|number| format!("  - {{name: s{number}, command: exit {number}}}\n"))
        .collect();
    let steps = steps.concat();
    let bench = Bench::with(&format!("on_failure: continue\nworkers: 1\nsteps:\n{steps}"));
    let ran = bench.flow(&[]).expect(1);
    let want = "
✗ first failure: s1: exit status 1
✗ s2: exit status 2
✗ s3: exit status 3
✗ s4: exit status 4
✗ s5: exit status 5
… and 3 more failures
8 failed in TOOK
resume with: kapell process --resume flow.yaml
";
    assert_eq!(ran.err(), want);
}

#[test]
fn summary_says_how_to_resume_in_a_way_that_works() {
    let bench = Bench::new();
    let name = "it's a flow; really.yaml";
    bench.write(name, "steps: [{name: a, command: test -f ready}]\n");
    let ran = bench.run(&["process", name]).expect(1);
    let line = ran.stderr.lines().last().expect("a line");
    let advice = line.strip_prefix("resume with: ").expect("how to resume");
    let advice = advice.replace("kapell", env!("CARGO_BIN_EXE_kapell"));
    bench.write("ready", "");
    let mut shell = bench.command("sh");
    shell.args(["-c", &advice]);
    bench.run_command(shell).expect(0).stderr_has("1 succeeded in TOOK\n");
}

#[test]
fn summary_tells_of_killed_and_missing_programs() {
    let bench = Bench::with(
        "
on_failure: continue
workers: 1
steps:
  - {name: killed, command: 'kill -9 $$'}
  - {name: segv, command: 'kill -SEGV $$'}
  - {name: missing, command: no-such-program, args: [x]}
  - {name: missing2, command: no-such-program x}
  - {name: forbidden, command: ./flow.yaml, args: []}
  - {name: nowhere, command: echo x, dir: no/such/dir}
  - {name: interpreter, script: \"#!/no/such/interpreter\\n\"}
",
    );
    let ran = bench.flow(&[]).expect(1);
    for line in [
        "✗ killed failed in TOOK: killed by SIGKILL\n",
        "✗ segv failed in TOOK: killed by SIGSEGV\n",
        "✗ missing failed in TOOK: `no-such-program`: no such program in PATH\n",
        "✗ missing2 failed in TOOK: exit status 127\n",
        "✗ forbidden failed in TOOK: `./flow.yaml` may not be executed\n",
        "✗ nowhere failed in TOOK: directory `no/such/dir` does not exist or may not be entered\n",
        ": no such program; its interpreter (the `#!` line) does not exist\n",
    ] {
        ran.stdout_has(line);
    }
}

#[test]
fn summary_shows_what_is_not_text_as_well_as_it_can() {
    let bench = Bench::with(r#"steps: [{name: a, command: "printf 'caf\\351 !' >&2; exit 1"}]"#);
    bench.flow(&[]).expect(1).stderr_has("  │ caf\u{fffd} !\n");
}
