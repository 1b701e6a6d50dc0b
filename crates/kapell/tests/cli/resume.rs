//! Going on where an earlier run ended: `--resume`, `--from`, `--only`.

use crate::bench::{Bench, Ran};
use crate::gate::Gate;

/// Every step notes that it ran; `b` fails until `ready` is there.
const CHAIN: &str = "
workers: 1
params: [default]
steps:
  - {name: a, command: 'echo a $1 >> ran; echo from-a', output: FROM_A}
  - {name: doc, command: 'echo doc >> ran; echo ''{\"v\": [7]}''', depends: a}
  - {name: b, command: 'echo b $1 $FROM_A ${doc.v[0]} >> ran; test -f ready', depends: doc}
  - {name: c, command: 'echo c $1 $FROM_A ${doc.v[0]} >> ran', depends: b}
handlers: {exit: echo handler >> ran}
";

/// What ran in the last run of the chain.
fn ran(bench: &Bench) -> Vec<String> {
    let text = bench.read("ran");
    bench.write("ran", "");
    text.lines().map(str::to_owned).collect()
}

/// The id of the run that a run's output tells of.
fn id_of(ran: &Ran) -> String {
    let line = ran.stdout.lines().next().expect("a first line");
    line.rsplit(' ').next().expect("an id").to_owned()
}

#[test]
fn resume_keeps_what_succeeded_and_runs_the_rest() {
    let bench = Bench::with(CHAIN);
    bench.flow(&[]).expect(1);
    let first = ["a default", "doc", "b default from-a 7", "handler"];
    assert_eq!(ran(&bench), first);
    bench.run(&["process", "--resume", "flow.yaml"]).expect(1);
    assert_eq!(ran(&bench), ["b default from-a 7", "handler"], "still fails; handlers run again");
    bench.write("ready", "");
    let done = bench.run(&["process", "--resume", "flow.yaml"]).expect(0);
    assert_eq!(ran(&bench), ["b default from-a 7", "c default from-a 7", "handler"]);
    done.stderr_has("2 succeeded, 2 kept in TOOK\n");
    let shown = bench.run(&["workflow", "show"]).expect(0);
    shown.stdout_has("\nresumes  RUN\n").stdout_has("\na              kept\n");
    let again = bench.run(&["process", "--resume", "flow.yaml"]).expect(0);
    assert_eq!(again.err(), "nothing to resume: run RUN succeeded\n");
    assert_eq!(again.out(), "");
    assert_eq!(ran(&bench), [] as [&str; 0]);
}

#[test]
fn resume_of_a_chosen_run() {
    let bench = Bench::with(CHAIN);
    let first = id_of(&bench.flow(&[]).expect(1));
    bench.write("ready", "");
    bench.flow(&[]).expect(0);
    ran(&bench);
    bench.run(&["process", &format!("--resume={first}"), "flow.yaml"]).expect(0);
    assert_eq!(ran(&bench), ["b default from-a 7", "c default from-a 7", "handler"]);
    let part = &first[first.len() - 6..];
    bench.run(&["process", &format!("--resume={part}"), "flow.yaml"]).expect(0);
    assert_eq!(ran(&bench), ["b default from-a 7", "c default from-a 7", "handler"]);
    let (day, _) = first.split_once('-').expect("a dash");
    let many = bench.run(&["process", &format!("--resume={day}"), "flow.yaml"]).expect(2);
    many.stderr_has(&format!("error: `{day}` fits several runs: RUN, RUN"));
    let none = bench.run(&["process", "--resume=nope", "flow.yaml"]).expect(2);
    none.stderr_has("error: there is no run `nope`: `kapell workflow list` shows");
    assert_eq!(ran(&bench), [] as [&str; 0]);
}

#[test]
fn resume_keeps_parameters_unless_given_anew() {
    let bench = Bench::with(CHAIN);
    bench.flow(&["first"]).expect(1);
    ran(&bench);
    bench.run(&["process", "--resume", "flow.yaml"]).expect(1);
    assert_eq!(ran(&bench), ["b first from-a 7", "handler"]);
    bench.run(&["process", "--resume", "flow.yaml", "second"]).expect(1);
    assert_eq!(ran(&bench), ["b second from-a 7", "handler"]);
    let named = "
params: [{name: n}]
steps: [{name: a, command: 'echo $n >> ran; test -f ready'}]
";
    bench.write("named.yaml", named);
    bench.run(&["process", "-p", "n=1", "named.yaml"]).expect(1);
    bench.run(&["process", "--resume", "named.yaml"]).expect(1);
    bench.run(&["process", "--resume", "-p", "n=2", "named.yaml"]).expect(1);
    assert_eq!(ran(&bench), ["1", "1", "2"]);
}

#[test]
fn resume_without_an_earlier_run_is_refused() {
    let bench = Bench::with(CHAIN);
    let refused = bench.run(&["process", "--resume", "flow.yaml"]).expect(2);
    assert_eq!(refused.err(), "error: there is no earlier run of `flow.yaml`\n");
    assert!(!bench.exists("ran"));
    bench.write("other.yaml", "steps: [{name: x, command: exit 1}]\n");
    bench.run(&["process", "other.yaml"]).expect(1);
    let refused = bench.run(&["process", "--resume", "flow.yaml"]).expect(2);
    assert_eq!(refused.err(), "error: there is no earlier run of `flow.yaml`\n");
}

#[test]
fn resume_of_a_run_that_goes_on_is_refused() {
    let bench = Bench::with("steps: [{name: a, command: 'echo x >> ran; read _ < gate'}]\n");
    let gate = Gate::new(&bench, "gate");
    let running = bench.start(&["process", "flow.yaml"]);
    let waiting = gate.reached();
    let refused = bench.run(&["process", "--resume", "flow.yaml"]).expect(2);
    let want = "error: run RUN is still running: wait for it or stop it first\n";
    assert_eq!(refused.err(), want);
    waiting.go_on();
    running.finish().expect(0);
    assert_eq!(ran(&bench), ["x"]);
}

#[test]
fn resume_after_an_interruption() {
    let bench = Bench::with(
        "
steps:
  - {name: a, command: echo a >> ran}
  - {name: b, command: 'echo b >> ran; test -f ready || read _ < gate', depends: a}
  - {name: c, command: echo c >> ran, depends: b}
",
    );
    let gate = Gate::new(&bench, "gate");
    let running = bench.start(&["process", "flow.yaml"]);
    let waiting = gate.reached();
    running.signal(nix::sys::signal::Signal::SIGINT);
    running.finish().expect(130);
    drop(waiting);
    bench.write("ready", "");
    bench.run(&["process", "--resume", "flow.yaml"]).expect(0);
    assert_eq!(ran(&bench), ["a", "b", "b", "c"]);
}

#[test]
fn resume_runs_tolerated_failures_again_and_decides_skips_anew() {
    let bench = Bench::with(
        "
workers: 1
steps:
  - {name: shaky, command: 'echo shaky >> ran; test -f ready', continue_on_error: true}
  - {name: child, command: echo child >> ran, depends: shaky}
  - {name: good, command: echo good >> ran}
",
    );
    bench.flow(&[]).expect(0);
    assert_eq!(ran(&bench), ["shaky", "good"]);
    bench.write("ready", "");
    bench.run(&["process", "--resume", "flow.yaml"]).expect(0);
    assert_eq!(ran(&bench), ["shaky", "child"]);
}

#[test]
fn resume_says_that_the_file_has_changed() {
    let bench = Bench::with(CHAIN);
    bench.flow(&[]).expect(1);
    ran(&bench);
    let changed = CHAIN.replace("test -f ready", "true");
    bench.write("flow.yaml", format!("{changed}\n# fixed\n"));
    let done = bench.run(&["process", "--resume", "flow.yaml"]).expect(0);
    done.stderr_has("note: flow.yaml has changed since run RUN; steps are matched by name\n");
    assert_eq!(ran(&bench), ["b default from-a 7", "c default from-a 7", "handler"]);
}

#[test]
fn resume_works_from_another_directory() {
    let bench = Bench::with("steps: [{name: a, command: 'echo x >> \"$HOME/ran\"; exit 1'}]\n");
    bench.flow(&[]).expect(1);
    bench.run(&["process", "--resume", "./home/../flow.yaml"]).expect(1);
    assert_eq!(bench.read("home/ran"), "x\nx\n");
}

#[test]
fn from_runs_a_step_and_all_downstream() {
    let bench = Bench::with(CHAIN);
    bench.write("ready", "");
    bench.flow(&[]).expect(0);
    ran(&bench);
    bench.run(&["process", "--from", "b", "flow.yaml"]).expect(0);
    assert_eq!(ran(&bench), ["b default from-a 7", "c default from-a 7", "handler"]);
    bench.run(&["process", "--from", "c", "flow.yaml", "param"]).expect(0);
    assert_eq!(ran(&bench), ["c param from-a 7", "handler"]);
    let both = bench.run(&["process", "--from", "c", "--from", "a", "flow.yaml"]).expect(0);
    both.stderr_has("4 succeeded in TOOK\n");
}

#[test]
fn from_without_an_earlier_run_trusts_the_caller() {
    let bench = Bench::with(
        "
steps:
  - {name: a, command: echo a >> ran}
  - {name: b, command: echo b >> ran, depends: a}
  - {name: c, command: echo c >> ran, depends: [a, b], requires: all}
",
    );
    bench.run(&["process", "--from", "b", "flow.yaml"]).expect(0);
    assert_eq!(ran(&bench), ["b", "c"]);
}

#[test]
fn only_runs_a_step_and_nothing_else() {
    let bench = Bench::with(CHAIN);
    bench.write("ready", "");
    bench.flow(&[]).expect(0);
    ran(&bench);
    bench.run(&["process", "--only", "b", "flow.yaml"]).expect(0);
    assert_eq!(ran(&bench), ["b default from-a 7", "handler"]);
    bench.run(&["process", "--only", "doc", "--only", "c", "flow.yaml"]).expect(0);
    assert_eq!(ran(&bench), ["doc", "c default from-a 7", "handler"]);
}

#[test]
fn from_and_only_of_a_chosen_run() {
    let bench = Bench::with(CHAIN);
    let first = id_of(&bench.flow(&["one"]).expect(1));
    bench.flow(&["two"]).expect(1);
    ran(&bench);
    let resume = format!("--resume={first}");
    bench.run(&["process", &resume, "--only", "c", "flow.yaml"]).expect(0);
    assert_eq!(ran(&bench), ["c one from-a 7", "handler"]);
}

#[test]
fn handlers_run_again_on_resume() {
    let bench = Bench::with(
        "steps: [{name: a, command: test -f ready}]\nhandlers: {exit: echo $KAPELL_STATUS >> handled}",
    );
    bench.flow(&[]).expect(1);
    bench.write("ready", "");
    bench.run(&["process", "--resume", "flow.yaml"]).expect(0);
    assert_eq!(bench.read("handled"), "failed\nsucceeded\n");
}
