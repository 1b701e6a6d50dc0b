//! What a review found, so that nobody finds it again.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::fd::AsFd as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::process::Stdio;

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::bench::{Bench, Ran, eventually};
use crate::gate::Gate;

fn id_of(ran: &Ran) -> String {
    let line = ran.stdout.lines().next().expect("a first line");
    line.rsplit(' ').next().expect("an id").to_owned()
}

fn joins(number: usize) -> String {
    let steps: Vec<_> = (0..number).map(|at| format!("  - {{name: s{at}}}\n")).collect();
    format!("steps:\n{}", steps.concat())
}

/// The lines that come out of a pipe which does not block and whose reader is late.
fn lines_through_a_full_pipe(bench: &Bench, args: &[&str]) -> usize {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    fcntl(&writer, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).expect("a pipe that does not block");
    let ours = writer.try_clone().expect("a twin");
    let mut child = {
        let mut command = bench.kapell(args);
        command.stdout(writer).stderr(Stdio::null()).spawn().expect("it starts")
    };
    eventually("a full pipe", || {
        let mut asked = [PollFd::new(ours.as_fd(), PollFlags::POLLOUT)];
        (poll(&mut asked, PollTimeout::ZERO) == Ok(0)).then_some(())
    });
    drop(ours);
    let lines = BufReader::new(reader).lines().map_while(Result::ok).count();
    assert!(child.wait().expect("our child").success());
    lines
}

#[test]
fn a_pipe_that_does_not_block_loses_nothing() {
    let bench = Bench::with(&joins(2_000));
    let json = ["process", "-l", "json", "flow.yaml"];
    assert_eq!(lines_through_a_full_pipe(&bench, &json), 4_002);
    assert_eq!(lines_through_a_full_pipe(&bench, &["process", "flow.yaml"]), 4_002);
    assert_eq!(lines_through_a_full_pipe(&bench, &["workflow", "show"]), 2_006);
    bench.write("loud.yaml", "steps: [{name: a, console: true, command: seq 50000}]\n");
    assert_eq!(lines_through_a_full_pipe(&bench, &["process", "loud.yaml"]), 50_004);
    assert_eq!(lines_through_a_full_pipe(&bench, &["workflow", "logs"]), 50_000);
}

#[test]
fn many_output_variables_take_linear_time() {
    let flow = |output: bool| {
        let output = |at| if output { format!(", output: V_{at}") } else { String::new() };
        let steps: Vec<_> = (0..2_000)
            .map(|at| format!("  - {{name: s{at}, command: echo {at}{}}}\n", output(at)))
            .collect();
        format!("steps:\n{}handlers: {{exit: 'echo $V_0 $V_1999 > got'}}\n", steps.concat())
    };
    let bench = Bench::with(&flow(false));
    let without = seconds_of_a_run(&bench);
    bench.write("flow.yaml", flow(true));
    let with = seconds_of_a_run(&bench);
    assert_eq!(bench.read("got"), "0 1999\n");
    assert!(with < 5.0 * without, "{with} seconds, and {without} without variables");
}

/// How long processors worked on a run of `flow.yaml`, whatever else they did meanwhile.
fn seconds_of_a_run(bench: &Bench) -> f64 {
    let mut shell = bench.command("sh");
    let kapell = env!("CARGO_BIN_EXE_kapell");
    shell.args(["-c", &format!("'{kapell}' process -l none flow.yaml && times")]);
    let ran = bench.run_command(shell).expect(0);
    let seconds = |text: &str| {
        let (minutes, seconds) = text.trim_end_matches('s').split_once('m')?;
        Some(60.0 * minutes.parse::<f64>().ok()? + seconds.parse::<f64>().ok()?)
    };
    let children = ran.stdout.lines().last().expect("the times of its children");
    children.split(' ').map(|text| seconds(text).expect("a time")).sum()
}

#[test]
fn values_too_large_together_are_named_with_their_sizes() {
    let mut flow = String::from("workers: 1\nsteps:\n");
    for number in 0..40 {
        let make = format!("head -c {} /dev/zero | tr ''\\0'' x", 120_000 - number);
        flow.push_str(&format!("  - {{name: s{number}, command: '{make}', output: V{number}}}\n"));
    }
    let bench = Bench::with(&flow);
    bench.flow(&[]).expect(1).stdout_has(
        "arguments and environment of `sh` are too large; the largest: variable `V0` (120000 \
         bytes), variable `V1` (119999 bytes), variable `V2` (119998 bytes): pass it in a file\n",
    );
}

#[test]
fn a_relative_state_directory_serves_scripts_that_run_elsewhere() {
    let flow = "steps: [{name: a, dir: home, script: 'echo x >> ran'}]\n";
    let bench = Bench::with(flow).set("KAPELL_STATE_DIR", "relative");
    bench.flow(&[]).expect(0);
    bench.run(&["process", "--state-dir", "./other", "flow.yaml"]).expect(0);
    assert_eq!(bench.read("home/ran"), "x\nx\n");
    assert!(bench.exists("relative/runs") && bench.exists("other/runs"));
}

#[test]
fn metrics_that_cannot_be_written_are_refused_before_the_run() {
    let bench = Bench::with("steps: [{name: a, command: echo x >> ran}]\n");
    for (path, why) in [("no/such/m.prom", "No such file or directory"), ("home", "is a directory")]
    {
        let ran = bench.run(&["process", "--metrics", path, "flow.yaml"]).expect(2);
        ran.stderr_has(&format!("error: cannot write `{path}`: {why}"));
        assert!(!bench.exists("ran") && !bench.exists("state"), "nothing was executed");
    }
}

#[test]
fn metrics_that_cannot_be_written_any_more_do_not_change_the_exit_code() {
    let bench = Bench::with("steps: [{name: a, command: 'rmdir there; exit $1'}]\n");
    for code in [0, 1] {
        fs::create_dir(bench.path("there")).expect("a directory");
        let args = ["process", "--metrics", "there/m.prom", "flow.yaml", &code.to_string()];
        let ran = bench.run(&args).expect(code);
        ran.stderr_has("warning: cannot write `there/m.prom`: No such file or directory");
    }
}

#[test]
fn a_step_that_runs_again_does_not_lend_its_old_output() {
    let bench = Bench::with(
        "
steps:
  - {name: a, command: 'test ! -f bad && echo old', output: V, continue_on_error: true}
  - {name: b, command: 'echo \"[$V]\" > got', depends: [{step: a, on: failure}]}
",
    );
    bench.flow(&[]).expect(0);
    assert!(!bench.exists("got"));
    bench.write("bad", "");
    bench.run(&["process", "--from", "a", "flow.yaml"]).expect(0);
    assert_eq!(bench.read("got"), "[]\n");
}

#[test]
fn a_run_of_another_file_cannot_be_resumed() {
    let bench = Bench::with("steps: [{name: a, command: touch ran}]\n");
    bench.write("other.yaml", "steps: [{name: a, command: exit 1}]\n");
    let id = id_of(&bench.run(&["process", "other.yaml"]).expect(1));
    let ran = bench.run(&["process", &format!("--resume={id}"), "flow.yaml"]).expect(2);
    assert_eq!(ran.err(), "error: run RUN is one of `DIR/other.yaml`, not of `DIR/flow.yaml`\n");
    assert!(!bench.exists("ran"));
}

#[test]
fn half_a_first_line_is_as_if_the_run_never_was() {
    let bench = Bench::with("steps: [{name: a, command: 'echo x >> ran; test -f ready'}]\n");
    let id = id_of(&bench.flow(&[]).expect(1));
    let folder = fs::read_dir(bench.path("state/runs")).expect("runs").flatten().next();
    let torn = folder.expect("a folder").path().join("99990101-000000000-abcdef");
    fs::create_dir(&torn).expect("a directory");
    fs::write(torn.join("journal.jsonl"), r#"{"kind":"run","v":1,"id":"9999"#).expect("a file");
    let listed = bench.run(&["workflow", "list"]).expect(0);
    assert_eq!((listed.stdout.lines().count(), listed.stderr.as_str()), (2, ""));
    let shown = bench.run(&["workflow", "show"]).expect(0);
    assert!(shown.stdout.starts_with(&format!("run {id} of flow: failed\n")), "{}", shown.stdout);
    bench.write("ready", "");
    let ran = bench.run(&["process", "--resume", "flow.yaml"]).expect(0);
    assert_eq!(ran.err(), "1 succeeded in TOOK\n");
}

#[test]
fn without_a_home_history_is_kept_where_nobody_else_can_write() {
    let bench = Bench::with("steps: [{name: a, script: 'echo $0 > where'}]\n");
    let run = |args: &[&str]| {
        let mut command = bench.kapell(args);
        command.env_remove("HOME").env_remove("KAPELL_STATE_DIR");
        bench.run_command(command)
    };
    let state = bench.path("tmp").join(format!("kapell-{}", nix::unistd::geteuid()));
    let ran = run(&["process", "flow.yaml"]).expect(0);
    assert_eq!(ran.err(), "1 succeeded in TOOK\n");
    let mode = fs::metadata(&state).expect("the directory").permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
    assert!(bench.read("where").starts_with(&state.display().to_string()));
    fs::set_permissions(&state, fs::Permissions::from_mode(0o777)).expect("our directory");
    let ran = run(&["process", "flow.yaml"]).expect(0);
    ran.stderr_has("warning: cannot keep history in `").stderr_has(": others may write to `");
    ran.stderr_has("this run cannot be resumed");
    let place = bench.read("where");
    let inside = place.trim().strip_prefix(&format!("{}/", bench.path("tmp").display()));
    let (dir, name) = inside.and_then(|inside| inside.split_once('/')).expect("its own directory");
    assert!(dir.starts_with("kapell-") && !state.ends_with(dir) && name == "script-0", "{place}");
    assert_eq!(fs::read_dir(bench.path("tmp")).expect("a directory").count(), 1, "it is removed");
    assert_eq!(
        run(&["workflow", "list"]).expect(0).stdout.lines().count(),
        1,
        "nothing is trusted"
    );
}

#[test]
fn console_lines_of_several_steps_do_not_mix() {
    let bench = Bench::with(
        "
steps:
  - {name: a, command: 'printf ha; touch begun; read _ < gate; echo lf; printf end', console: true}
  - {name: b, command: 'read _ < first; echo one; printf two', console: true}
",
    );
    let (gate, first) = (Gate::new(&bench, "gate"), Gate::new(&bench, "first"));
    let mut running = bench.start(&["process", "flow.yaml"]);
    eventually("half a line", || bench.exists("begun").then_some(()));
    first.open();
    running.until("✓ b completed");
    gate.open();
    let ran = running.finish().expect(0);
    let out = ran.out();
    let lines: Vec<_> = out.lines().skip(3).collect();
    let want = [
        "b | one",
        "b | two",
        "[TIME] ✓ b completed in TOOK",
        "a | half",
        "a | end",
        "[TIME] ✓ a completed in TOOK",
        "[TIME] ✓ flow completed in TOOK",
    ];
    assert_eq!(lines, want, "{out}");
}

#[test]
fn the_only_step_on_the_console_comes_without_its_name() {
    let bench = Bench::with("steps: [{name: a, command: 'echo one; printf two', console: true}]\n");
    bench.flow(&[]).expect(0).stdout_has("\none\ntwo\n[TIME] ✓ a completed in TOOK\n");
}

#[test]
fn the_hint_repeats_where_the_run_is_kept() {
    let bench = Bench::with("steps: [{name: a, command: test -f ready}]\n");
    bench.write("set.yaml", "workers: 2\n");
    let flags = ["--config", "set.yaml", "--state-dir", "over there"];
    let ran = bench.run(&[&flags[..], &["process", "flow.yaml"]].concat()).expect(1);
    let line = ran.stderr.lines().last().expect("a line").to_owned();
    let want =
        "resume with: kapell process --config set.yaml --state-dir 'over there' --resume flow.yaml";
    assert_eq!(line, want);
    bench.write("ready", "");
    let advice = line.replace("resume with: kapell", env!("CARGO_BIN_EXE_kapell"));
    let mut shell = bench.command("sh");
    shell.args(["-c", &advice]);
    bench.run_command(shell).expect(0).stderr_has("1 succeeded in TOOK\n");
}

#[test]
fn a_step_can_be_picked_while_another_run_goes_on() {
    let bench = Bench::with(
        "
params: [default]
steps:
  - {name: a, command: 'test $1 != wait || read _ < gate'}
  - {name: b, command: 'echo $1 >> ran', depends: a}
",
    );
    bench.flow(&["one"]).expect(0);
    let gate = Gate::new(&bench, "gate");
    let running = bench.start(&["process", "flow.yaml", "wait"]);
    let waiting = gate.reached();
    let ran = bench.run(&["process", "--only", "b", "flow.yaml"]).expect(0);
    assert_eq!(ran.err(), "note: using the parameters of run RUN\n1 succeeded, 1 kept in TOOK\n");
    let ran = bench.run(&["process", "--from", "b", "flow.yaml", "two"]).expect(0);
    assert_eq!(ran.err(), "1 succeeded, 1 kept in TOOK\n");
    waiting.go_on();
    running.finish().expect(0);
    assert_eq!(bench.read("ran"), "one\none\ntwo\nwait\n");
}

#[test]
fn show_does_not_count_handlers_among_the_steps() {
    let steps = "steps: [{name: a}, {name: b}, {name: c}]\n";
    let bench = Bench::with(&format!("{steps}handlers: {{exit: echo x, success: echo x}}\n"));
    bench.run(&["process", "--only", "a", "flow.yaml"]).expect(0);
    bench.run(&["workflow", "show"]).expect(0).stdout_has("\n2 steps were never reached\n");
    bench.run(&["process", "--only", "a", "--only", "b", "flow.yaml"]).expect(0);
    bench.run(&["workflow", "show"]).expect(0).stdout_has("\n1 step was never reached\n");
    let ran = bench.run(&["process", "--dry-run", "--only", "c", "flow.yaml"]).expect(0);
    ran.stdout_has("keep  a  kept").stdout_has("run   c  selected\n");
}

#[test]
fn dry_run_skips_what_never_ran() {
    let bench = Bench::with("steps: [{name: a, command: touch ran}, {name: b}]\n");
    let ran = bench.run(&["process", "--dry-run", "--only", "a", "flow.yaml"]).expect(0);
    assert_eq!(ran.out(), "run   a  selected\nskip  b  not selected\n1 of 2 steps would run\n");
}

#[test]
fn validate_goes_on_after_a_file_that_cannot_be_read() {
    let bench = Bench::with("steps: [{name: a}, {name: b, depends: a}]\n");
    bench.write("one.yaml", "steps: [{name: a}]\n");
    let ran = bench.run(&["workflow", "validate", "gone.yaml", "flow.yaml", "one.yaml"]).expect(2);
    let want = "flow.yaml: ok, 2 steps, 1 dependency\none.yaml: ok, 1 step, 0 dependencies\n";
    assert_eq!(ran.out(), want);
    ran.stderr_has("error: cannot read `gone.yaml`: No such file or directory");
}

#[test]
fn an_empty_variable_counts_as_unset() {
    let names = ["KAPELL_WORKERS", "KAPELL_CONFIG", "KAPELL_LOGGER", "KAPELL_STATE_DIR"];
    let bench = names.iter().fold(Bench::new(), |bench, name| bench.set(name, ""));
    let ran = bench.run(&["config", "show"]).expect(0);
    let settings: Vec<&str> = ran.stdout.lines().skip(1).collect();
    assert!(settings.len() >= 22, "{}", ran.stdout);
    for setting in settings {
        assert!(setting.ends_with("  default"), "{setting}");
    }
}

#[test]
fn a_link_to_a_file_shares_its_history() {
    let bench = Bench::with("steps: [{name: a, command: test -f ready}]\n");
    bench.flow(&[]).expect(1);
    symlink("flow.yaml", bench.path("link.yaml")).expect("a link");
    bench.write("ready", "");
    let ran = bench.run(&["process", "--resume", "link.yaml"]).expect(0);
    assert_eq!(ran.err(), "1 succeeded in TOOK\n");
    let listed = bench.run(&["workflow", "list", "flow.yaml"]).expect(0);
    assert_eq!(listed.stdout.lines().count(), 3);
}
