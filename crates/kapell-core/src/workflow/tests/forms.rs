//! Every form of every key that is accepted.

use std::time::Duration;

use super::{loaded, options, workflow};
use crate::workflow::{
    Condition, Console, Executor, On, OnCell, OnFailure, Output, Requires, Retry, Work,
};

fn pairs(list: &[(&str, &str)]) -> Vec<(String, String)> {
    list.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect()
}

#[test]
fn a_workflow_takes_all_its_keys() {
    let workflow = workflow(
        "kind: workflow
name: nightly build
description: what it is for
env: {A: 1}
params: x
workers: 3
timeout: 1h
on_failure: finish
handlers: {exit: x}
defaults: {dir: /tmp}
steps: [{name: a, command: x}]",
    );
    assert_eq!(workflow.name, "nightly build");
    assert_eq!(workflow.description.as_deref(), Some("what it is for"));
    assert_eq!((workflow.workers, workflow.on_failure), (Some(3), OnFailure::Finish));
    assert_eq!(workflow.timeout, Some(Duration::from_secs(3_600)));
    assert_eq!((workflow.len(), workflow.steps.len()), (1, 2), "handlers follow the steps");
}

#[test]
fn what_is_not_said_has_a_default() {
    let workflow = workflow("steps: [{name: a, command: x}]");
    assert_eq!(workflow.name, "stem", "the file's own name");
    assert_eq!((workflow.workers, workflow.timeout), (None, None));
    assert_eq!(workflow.on_failure, OnFailure::Stop);
    assert_eq!(*workflow.steps[0].options, super::Options::default());
    assert_eq!(workflow.steps[0].options.requires, Requires::Any);
    assert_eq!(workflow.steps[0].options.retry.limit, 0);
}

#[test]
fn params_are_a_string_a_list_or_named() {
    let params = |text: &str| workflow(&format!("params: {text}\nsteps: [{{name: a}}]")).params;
    assert_eq!(params("in.csv  out.json").positional, ["in.csv", "out.json"]);
    assert_eq!(params(r#""a 'b c' d""#).positional, ["a", "b c", "d"]);
    assert_eq!(params("[in.csv, 2, true, 'a b']").positional, ["in.csv", "2", "true", "a b"]);
    assert_eq!(params("7").positional, ["7"]);
    assert!(params("").positional.is_empty());
    let mixed = params("[first, {name: mode, default: fast}, second, {name: target}]");
    assert_eq!(mixed.positional, ["first", "second"]);
    let mode = ("mode".to_owned(), Some("fast".to_owned()));
    assert_eq!(mixed.named, [mode, ("target".to_owned(), None)]);
    assert_eq!(params("{name: n, default: ''}").named, [("n".to_owned(), Some(String::new()))]);
}

#[test]
fn env_is_a_map_or_a_list() {
    let want = pairs(&[("A", "1"), ("B", "x=y"), ("C", ""), ("D", "true")]);
    for env in [
        "{A: 1, B: x=y, C: , D: true}",
        "[A=1, 'B=x=y', 'C=', D=true]",
        "[{A: 1}, {B: x=y, C: ''}, D=true]",
    ] {
        let workflow = workflow(&format!("env: {env}\nsteps: [{{name: a, env: {env}}}]"));
        assert_eq!(workflow.env, want, "{env}");
        assert_eq!(workflow.steps[0].options.env, want, "{env}");
    }
}

#[test]
fn work_is_a_shell_command_a_program_a_script_or_nothing() {
    let workflow = workflow(
        "steps:
  - {name: shell, command: 'echo hi | cat'}
  - {name: program, command: ls, args: [-l, 5, 'a b']}
  - {name: one, command: ls, args: -l}
  - {name: none, command: ls, args: []}
  - name: script
    script: |
      #!/usr/bin/env python3
      print(1)
  - {name: join}",
    );
    let exec = |program: &str, args: &[&str]| Work::Exec {
        program: program.into(),
        args: args.iter().map(|&arg| arg.into()).collect(),
    };
    let work: Vec<_> = workflow.steps.iter().map(|step| step.work.clone()).collect();
    let want = [
        Work::Shell("echo hi | cat".into()),
        exec("ls", &["-l", "5", "a b"]),
        exec("ls", &["-l"]),
        exec("ls", &[]),
        Work::Script("#!/usr/bin/env python3\nprint(1)\n".into()),
        Work::Join,
    ];
    assert_eq!(work, want);
}

#[test]
fn depends_is_a_name_a_list_or_conditional() {
    let workflow = workflow(
        "steps:
  - {name: a}
  - {name: b, depends: a}
  - {name: c, depends: [a, b]}
  - {name: d, depends: {step: a, on: failure}}
  - {name: e, depends: [a, {step: b, on: skipped}, {step: c, on: done}, {step: d}]}
  - {name: f, depends: []}
  - {name: '5', depends: }
  - {name: g, depends: 5}",
    );
    let parents = |name: &str| -> Vec<(String, On)> {
        let step = workflow.find(name).unwrap();
        let edges = workflow.graph.parents(step).iter();
        edges.map(|edge| (workflow.step(edge.step).name.to_string(), edge.on)).collect()
    };
    let own = |name: &str, on| (name.to_owned(), on);
    assert_eq!(parents("b"), [own("a", On::Success)]);
    assert_eq!(parents("c"), [own("a", On::Success), own("b", On::Success)]);
    assert_eq!(parents("d"), [own("a", On::Failure)]);
    let want =
        [own("a", On::Success), own("b", On::Skipped), own("c", On::Done), own("d", On::Success)];
    assert_eq!(parents("e"), want);
    assert!(parents("f").is_empty() && parents("5").is_empty());
    assert_eq!(parents("g"), [own("5", On::Success)]);
}

#[test]
fn conditions_are_a_command_or_a_predicate_with_what_is_expected() {
    let condition = |predicate: &str, expected: Option<&str>| Condition {
        predicate: predicate.to_owned(),
        expected: expected.map(str::to_owned),
    };
    assert_eq!(options("when: test -f x").when, Some(condition("test -f x", None)));
    let full = options("when: {predicate: echo 1, expected: '1'}");
    assert_eq!(full.when, Some(condition("echo 1", Some("1"))));
    assert_eq!(options("when: {predicate: p}").when, Some(condition("p", None)));
    assert_eq!(options("when:").when, None);
    let several = options(
        "preconditions: [test -f x, {predicate: p, expected: ''}, {predicate: q, expected: ~}]",
    );
    let want = [condition("test -f x", None), condition("p", Some("")), condition("q", None)];
    assert_eq!(several.preconditions, want);
    assert_eq!(options("preconditions: test -f x").preconditions, [condition("test -f x", None)]);
    let one = options("preconditions: {predicate: p, expected: x}");
    assert_eq!(one.preconditions, [condition("p", Some("x"))]);
}

#[test]
fn what_is_expected_counts_as_text_whatever_its_type() {
    for (written, text) in [
        ("true", "true"),
        ("100", "100"),
        ("1.50", "1.50"),
        ("0x1F", "0x1F"),
        ("2026-01-02", "2026-01-02"),
        ("'true'", "true"),
        ("No", "No"),
    ] {
        let condition = options(&format!("when: {{predicate: p, expected: {written}}}")).when;
        assert_eq!(condition.unwrap().expected.as_deref(), Some(text), "{written}");
    }
}

#[test]
fn retry_policy_has_two_spellings_and_six_keys() {
    for key in ["retry_policy", "retryPolicy"] {
        let retry = options(&format!(
            "{key}: {{limit: 3, delay: 2, backoff: 1.5, max_delay: 1m, jitter: 0.2, exit_codes: [75, 1]}}"
        ))
        .retry;
        let want = Retry {
            limit: 3,
            delay: Duration::from_secs(2),
            backoff: 1.5,
            max_delay: Duration::from_secs(60),
            jitter: 0.2,
            exit_codes: vec![75, 1],
        };
        assert_eq!(retry, want);
    }
    let retry =
        options("retry_policy: {limit: 1, backoff: true, jitter: true, exit_codes: 75}").retry;
    assert_eq!((retry.backoff, retry.exit_codes), (2.0, vec![75]));
    assert!(retry.jitter > 0.0);
    let retry = options("retry_policy: {limit: 1, backoff: false, jitter: false}").retry;
    assert_eq!(retry, Retry { limit: 1, ..Retry::default() });
    assert_eq!(options("retry_policy:").retry, Retry::default());
}

#[test]
fn output_is_a_name_or_one_a_stream() {
    let output = |text: &str| options(&format!("command: x\noutput: {text}")).output;
    let want = |stdout: Option<&str>, stderr: Option<&str>| Output {
        stdout: stdout.map(str::to_owned),
        stderr: stderr.map(str::to_owned),
    };
    assert_eq!(output("VERSION"), want(Some("VERSION"), None));
    assert_eq!(output("{stdout: OUT, stderr: ERR}"), want(Some("OUT"), Some("ERR")));
    assert_eq!(output("{stderr: ERR}"), want(None, Some("ERR")));
    assert_eq!(output(""), want(None, None));
}

#[test]
fn console_is_true_or_one_a_stream() {
    let console = |text: &str| options(&format!("command: x\nconsole: {text}")).console;
    assert_eq!(console("true"), Console { stdout: true, stderr: true });
    assert_eq!(console("false"), Console::default());
    assert_eq!(console("{stdout: true}"), Console { stdout: true, stderr: false });
    assert_eq!(console("{stderr: True, stdout: FALSE}"), Console { stdout: false, stderr: true });
}

#[test]
fn the_remaining_keys_of_a_step() {
    let got = options(
        "description: why
shell: bash -euo pipefail
dir: /tmp/$1
requires: all
timeout: 1m30s
continue_on_error: true
priority: -5
executor: local",
    );
    assert_eq!(got.description.as_deref(), Some("why"));
    assert_eq!(got.shell.unwrap(), ["bash", "-euo", "pipefail"]);
    assert_eq!(got.dir.as_deref(), Some("/tmp/$1"));
    assert_eq!((got.requires, got.continue_on_error, got.priority), (Requires::All, true, -5));
    assert_eq!(got.timeout, Some(Duration::from_secs(90)));
    let got = options("shell: [bash, '-o', pipe fail]\nexecutor: {type: local}");
    assert_eq!(got.shell.unwrap(), ["bash", "-o", "pipe fail"]);
}

#[test]
fn a_step_says_where_it_runs() {
    let executor = |text: &str| options(&format!("executor: {text}")).executor;
    assert_eq!(options("command: x").executor, None);
    assert_eq!(executor("local"), Some(Executor::Local));
    let plain = Some(Executor::Cell(OnCell::default()));
    for text in ["cell", "{type: cell}", "{type: cell, config: {}}", "{type: cell, config: }"] {
        assert_eq!(executor(text), plain, "{text}");
    }
    let got = executor(
        "{type: cell, config: {memory_mb: 64, disk_mb: 5, max_pids: 9, cpu_millis: 500, rootfs: 'docker:///x', \
         placement_tags: [gpu, ssd], domain: nightly}}",
    );
    let wanted = OnCell {
        domain: "nightly".to_owned().into(),
        memory_mb: 64,
        disk_mb: 5,
        max_pids: 9,
        cpu_millis: 500,
        rootfs: Some("docker:///x".to_owned()),
        placement_tags: vec!["gpu".to_owned(), "ssd".to_owned()],
    };
    assert_eq!(got, Some(Executor::Cell(wanted)));
}

#[test]
fn where_steps_run_can_be_a_default() {
    let workflow = workflow(
        "defaults: {executor: {type: cell, config: {memory_mb: 8}}}
steps: [{name: a, command: x}, {name: b, command: x, executor: local}, {name: c, executor: cell}]
handlers: {exit: x}",
    );
    let memory = |at: usize| workflow.steps[at].options.on_cell(false).map(|it| it.memory_mb);
    assert_eq!([memory(0), memory(1), memory(2), memory(3)], [Some(8), None, Some(0), Some(8)]);
    let bare = options("command: x");
    assert_eq!((bare.on_cell(false), bare.on_cell(true)), (None, Some(OnCell::default())));
    assert_eq!(options("executor: local").on_cell(true), None);
}

#[test]
fn handlers_are_a_command_or_a_step() {
    let workflow = workflow(
        "handlers:
  exit: rm -rf scratch
  success: {script: 'echo ok', retry_policy: {limit: 2}, env: {A: 1}}
  failure:
    command: mail
    args: [-s, failed, me]
    timeout: 10s
steps: [{name: a}]",
    );
    let handlers = workflow.handlers;
    let step = |at: Option<crate::workflow::StepIx>| workflow.step(at.unwrap());
    assert_eq!(&*step(handlers.exit).name, "handlers.exit");
    assert_eq!(step(handlers.exit).work, Work::Shell("rm -rf scratch".into()));
    assert_eq!(step(handlers.success).work, Work::Script("echo ok".into()));
    assert_eq!(step(handlers.success).options.retry.limit, 2);
    assert_eq!(step(handlers.failure).options.timeout, Some(Duration::from_secs(10)));
    assert!(matches!(step(handlers.failure).work, Work::Exec { .. }));
}

#[test]
fn defaults_hold_for_every_step_and_handler_that_says_nothing_else() {
    let workflow = workflow(
        "defaults:
  env: {A: 1, B: 2}
  retry_policy: {limit: 3, delay: 1s}
  timeout: 1m
  shell: bash
  requires: all
  continue_on_error: true
handlers: {exit: x}
steps:
  - {name: plain, command: x}
  - name: own
    command: x
    env: {B: 3, C: 4}
    retry_policy: {limit: 0}
    timeout: 5s
    continue_on_error: false
  - {name: described, command: x, description: d}",
    );
    let [plain, own, described, exit] = [0, 1, 2, 3].map(|at| &*workflow.steps[at].options);
    assert_eq!(plain.env, pairs(&[("A", "1"), ("B", "2")]));
    assert_eq!((plain.retry.limit, plain.requires), (3, Requires::All));
    assert_eq!(own.env, pairs(&[("A", "1"), ("B", "3"), ("C", "4")]), "env is merged by name");
    assert_eq!(own.retry, Retry::default(), "a policy replaces a policy as a whole");
    assert_eq!((own.timeout, own.continue_on_error), (Some(Duration::from_secs(5)), false));
    assert_eq!(own.shell, plain.shell);
    assert_eq!(described.retry, plain.retry);
    assert_eq!(exit, plain);
}

#[test]
fn anchors_and_merge_keys_are_unfolded() {
    let workflow = workflow(
        "env: &common {LANG: C, MODE: fast}
steps:
  - &first
    name: a
    command: &cmd echo hi
    retry_policy: &retry {limit: 2}
    env: {<<: *common, MODE: slow}
  - {<<: *first, name: b, depends: a}
  - {name: c, command: *cmd, retry_policy: {<<: *retry, delay: 1s}}
  - {<<: [{timeout: 1s}, {timeout: 2s, priority: 3}], name: d}",
    );
    let [first, second, third, last] = [0, 1, 2, 3].map(|at| &workflow.steps[at]);
    assert_eq!(first.options.env, pairs(&[("MODE", "slow"), ("LANG", "C")]));
    assert_eq!((&*second.name, &second.work), ("b", &first.work));
    assert_eq!(second.options.retry.limit, 2);
    assert_eq!(third.work, Work::Shell("echo hi".into()));
    assert_eq!((third.options.retry.limit, third.options.retry.delay.as_secs()), (2, 1));
    assert_eq!(last.options.timeout, Some(Duration::from_secs(1)), "the first base wins");
    assert_eq!(last.options.priority, 3);
}

#[test]
fn names_may_hold_anything_on_one_line() {
    let workflow =
        workflow("steps: [{name: 'büro: 5 % → ok'}, {name: b, depends: 'büro: 5 % → ok'}]");
    assert_eq!(workflow.graph.edge_count(), 1);
    assert!(workflow.find("büro: 5 % → ok").is_some());
}

#[test]
fn a_byte_order_mark_and_windows_line_ends_do_no_harm() {
    let text = "\u{feff}name: w\r\nsteps:\r\n  - name: a\r\n    command: x\r\n";
    let workflow = workflow(text);
    assert_eq!((workflow.name.as_str(), workflow.len()), ("w", 1));
    assert_eq!(workflow.steps[0].work, Work::Shell("x".into()));
}

#[test]
fn steps_whose_output_is_looked_into_are_known() {
    let loaded = loaded(
        r#"
handlers: {exit: "echo ${in-handler.x}"}
steps:
  - {name: build, command: x}
  - {name: in-script, command: x}
  - {name: in-args, command: x}
  - {name: in-when, command: x}
  - {name: in-check, command: x}
  - {name: in-env, command: x}
  - {name: in-dir, command: x}
  - {name: in-handler, command: x}
  - {name: named-only, command: x}
  - {name: a, command: "echo ${build.version} '${nobody.x}' $named-only ${named_only}", depends: build}
  - {name: b, script: "echo ${in-script.items[0].name}", depends: in-script}
  - {name: c, command: ls, args: ["${in-args.path}"], depends: in-args}
  - {name: d, command: x, when: "test ${in-when.ok} = true", depends: in-when}
  - name: e
    depends: in-check
    preconditions: [{predicate: "echo ${in-check.n}", expected: 1}]
  - {name: f, command: x, env: {A: "${in-env.x}"}, dir: "${in-dir.path}", depends: [in-env, in-dir]}
"#,
    );
    let names: Vec<_> =
        loaded.quoted.iter().map(|&step| &*loaded.workflow.step(step).name).collect();
    let want =
        ["build", "in-script", "in-args", "in-when", "in-check", "in-env", "in-dir", "in-handler"];
    assert_eq!(names, want);
    assert!(loaded.warnings.is_empty());
}
