//! Bad input: where it stands, what is wrong, and what would be right.

use super::{loaded, wrong};
use crate::source::Span;
use crate::workflow::{MAX_FILE_BYTES, load};

#[test]
fn invalid_yaml_is_refused_where_it_breaks() {
    let want = "3:4: invalid YAML: while parsing a block collection, did not find expected '-' \
                indicator (check indentation, colons and quotes here and on the line before)";
    assert_eq!(wrong("steps:\n  - name: a\n   command: x\n"), [want]);
}

#[test]
fn an_open_quote_is_refused() {
    let want = "1:7: invalid YAML: invalid indentation in quoted scalar (check indentation, colons \
                and quotes here and on the line before)";
    assert_eq!(wrong("name: 'open\nsteps:\n  - {name: a, command: x}\n"), [want]);
}

#[test]
fn a_tab_is_refused() {
    let want = "2:2: invalid YAML: tabs disallowed within this context (block indentation) (indent \
                with spaces, YAML takes no tabs)";
    assert_eq!(wrong("steps:\n\t- name: a\n"), [want]);
}

#[test]
fn an_alias_without_an_anchor_is_refused() {
    let want = "2:24: invalid YAML: while parsing node, found unknown anchor (define it first with \
                `&name`, or quote the text if `*` is meant literally)";
    assert_eq!(wrong("steps:\n  - {name: a, command: *x}\n"), [want]);
}

#[test]
fn a_line_of_cron_without_quotes_is_refused_with_what_would_be_right() {
    let want = "1:11: invalid YAML: while scanning an anchor or alias, did not find expected \
                alphabetic or numeric character (a text that begins with `*` or `&`, such as a line \
                of cron, must be in quotes)";
    assert_eq!(wrong("schedule: * * * * *\n"), [want]);
}

#[test]
fn an_unknown_key_is_refused_with_what_was_meant() {
    let want = "3:5: unknown key `comand` in a step (did you mean `command`?)";
    assert_eq!(wrong("steps:\n  - name: a\n    comand: x\n"), [want]);
    let want = "1:1: unknown key `stpes` in the workflow (did you mean `steps`?)";
    assert_eq!(wrong("stpes:\n  - {name: a}\nsteps: [{name: a}]\n"), [want]);
    let want = "3:5: unknown key `continueOnError` in a step (did you mean `continue_on_error`?)";
    assert_eq!(wrong("steps:\n  - name: a\n    continueOnError: true\n"), [want]);
}

#[test]
fn the_words_of_other_tools_are_understood() {
    for (theirs, ours) in [
        ("cmd", "command"),
        ("run", "command"),
        ("needs", "depends"),
        ("depends_on", "depends"),
        ("dependsOn", "depends"),
        ("working_dir", "dir"),
        ("workdir", "dir"),
        ("cwd", "dir"),
        ("retries", "retry_policy"),
        ("retry", "retry_policy"),
        ("continueOn", "continue_on_error"),
        ("allow_failure", "continue_on_error"),
    ] {
        let want = format!("3:5: unknown key `{theirs}` in a step (did you mean `{ours}`?)");
        assert_eq!(wrong(&format!("steps:\n  - name: a\n    {theirs}: x\n")), [want]);
    }
    let elsewhere = wrong("run: x\nsteps: [{name: a}]\n");
    assert!(!elsewhere[0].contains("command"), "{elsewhere:?}");
}

#[test]
fn an_unknown_key_that_resembles_nothing_is_refused_with_the_known_ones() {
    let want = "1:1: unknown key `zzzzz` in the workflow (known keys are kind, name, description, \
                env, params, steps, workers, timeout, on_failure, handlers, defaults)";
    assert_eq!(wrong("zzzzz: 1\nsteps: [{name: a}]\n"), [want]);
}

#[test]
fn an_unknown_key_is_refused_at_every_depth() {
    let text = "
defaults: {comand: x}
handlers: {sucess: x, exit: {command: x, depends: a}}
params: [{name: n, defaut: 1}]
steps:
  - name: a
    command: x
    retry_policy: {limit: 1, dealy: 1s}
    when: {predicate: p, expect: 1}
    preconditions: [{predicat: p, predicate: p}]
    output: {sdtout: X}
    console: {stdeer: true}
    depends: [{step: b, onn: done}]
    executor: {typ: local, type: local}
  - {name: b, command: x}
";
    let want = [
        "2:12: unknown key `comand` in defaults (known keys are shell, dir, env, requires, \
         retry_policy, timeout, continue_on_error, console, priority, executor)",
        "3:12: unknown key `sucess` in handlers (did you mean `success`?)",
        "3:42: unknown key `depends` in a handler (known keys are description, command, args, \
         script, shell, dir, env, when, preconditions, retry_policy, timeout, continue_on_error, \
         output, console, executor)",
        "4:20: unknown key `defaut` in a parameter (did you mean `default`?)",
        "8:30: unknown key `dealy` in retry_policy (did you mean `delay`?)",
        "9:26: unknown key `expect` in when (did you mean `expected`?)",
        "10:22: unknown key `predicat` in a precondition (did you mean `predicate`?)",
        "11:14: unknown key `sdtout` in output (did you mean `stdout`?)",
        "12:15: unknown key `stdeer` in console (did you mean `stderr`?)",
        "13:25: unknown key `onn` in a dependency (did you mean `on`?)",
        "14:16: unknown key `typ` in executor (did you mean `type`?)",
    ];
    assert_eq!(wrong(text), want);
}

#[test]
fn a_key_that_stands_twice_is_refused() {
    let want = "4:5: key `command` stands twice in a step (remove one of the two)";
    assert_eq!(wrong("steps:\n  - name: a\n    command: x\n    command: y\n"), [want]);
    let text = "steps:\n  - name: a\n    retry_policy: {limit: 1}\n    retryPolicy: {limit: 2}\n";
    let want = "4:5: key `retry_policy` stands twice in a step (remove one of the two)";
    assert_eq!(wrong(text), [want]);
}

#[test]
fn a_duplicate_step_is_refused_with_the_line_of_the_other() {
    let text = "steps:\n  - {name: a, command: x}\n  - {name: b}\n  - name: a\n    command: y\n";
    let want = "4:11: step `a` stands twice (rename one: the other is on line 2)";
    assert_eq!(wrong(text), [want]);
}

#[test]
fn a_missing_dependency_is_refused_with_what_was_meant() {
    let text = "steps:\n  - name: build\n  - name: test\n    depends: [biuld]\n";
    let want = "4:15: step `test` waits for `biuld`, which does not exist (did you mean `build`?)";
    assert_eq!(wrong(text), [want]);
    let text = "steps:\n  - name: test\n    after: something-else\n";
    let want = "3:12: step `test` waits for `something-else`, which does not exist (add that step, \
                or remove the dependency)";
    assert_eq!(wrong(text), [want]);
    let text = "steps:\n  - name: test\n    depends: [{step: nothing-here, on: failure}]\n";
    let want = "3:22: step `test` waits for `nothing-here`, which does not exist (add that step, \
                or remove the dependency)";
    assert_eq!(wrong(text), [want]);
}

const CYCLE_HELP: &str = "(`→` reads \"waits for\"; remove one of these dependencies)";

#[test]
fn a_cycle_is_refused_and_printed() {
    let text = "steps:
  - {name: a, depends: [start, c]}
  - {name: b, depends: a}
  - {name: c, depends: b}
  - {name: start}
  - {name: after-all, depends: c}
";
    let want = format!("2:32: steps wait for each other: a → c → b → a {CYCLE_HELP}");
    assert_eq!(wrong(text), [want]);
}

#[test]
fn a_step_that_waits_for_itself_is_refused() {
    let want = format!("2:24: steps wait for each other: a → a {CYCLE_HELP}");
    assert_eq!(wrong("steps:\n  - {name: a, depends: a}\n"), [want]);
}

#[test]
fn every_cycle_is_told_and_a_long_one_is_cut() {
    let mut text = "steps:\n  - {name: x, depends: y}\n  - {name: y, depends: x}\n".to_owned();
    for at in 0..30 {
        text += &format!("  - {{name: s{at}, depends: s{}}}\n", (at + 1) % 30);
    }
    let want = [
        format!("2:24: steps wait for each other: x → y → x {CYCLE_HELP}"),
        format!(
            "4:25: steps wait for each other: s0 → s1 → s2 → s3 → s4 → s5 → … → s26 → s27 → s28 → \
             s29 → s0 {CYCLE_HELP}"
        ),
    ];
    assert_eq!(wrong(&text), want);
}

const STEPS_HELP: &str =
    "(write `steps:` and below it a list of `- name: …` with a `command:` each)";

#[test]
fn missing_steps_are_refused() {
    assert_eq!(wrong("name: x\n"), [format!("1:1: there are no `steps` {STEPS_HELP}")]);
}

#[test]
fn empty_steps_are_refused() {
    let want = format!("2:8: `steps` is empty {STEPS_HELP}");
    assert_eq!(wrong("name: x\nsteps: []\n"), [want]);
    let want = format!("2:1: `steps` is empty {STEPS_HELP}");
    for text in ["name: x\nsteps:\n", "name: x\nsteps: ~\n"] {
        assert_eq!(wrong(text), [want.as_str()]);
    }
}

#[test]
fn steps_that_are_no_list_are_refused() {
    let want = format!("2:3: `steps` must be a list, not a mapping {STEPS_HELP}");
    assert_eq!(wrong("steps:\n  a: {command: x}\n"), [want]);
    let want = format!("1:8: `steps` must be a list, not a single value {STEPS_HELP}");
    assert_eq!(wrong("steps: a\n"), [want]);
}

#[test]
fn an_empty_file_is_refused() {
    for text in ["", "\n\n", "# only a comment\n", "---\n", "~\n"] {
        let want = "1:1: the file is empty (a workflow needs at least `steps:`)";
        assert_eq!(wrong(text), [want], "{text:?}");
    }
}

#[test]
fn a_file_that_is_no_mapping_is_refused() {
    let text = "- name: a\n- name: b\n";
    let want = "1:1: the workflow must be a mapping, not a list (write `key: value` lines; keys are \
                kind, name, description, env, params, steps, workers, timeout, on_failure, handlers, \
                defaults)";
    assert_eq!(wrong(text), [want]);
}

#[test]
fn a_second_document_is_refused() {
    let text = "steps: [{name: a}]\n---\nsteps: [{name: b}]\n";
    let want = "3:1: the file holds 2 documents (a workflow file is one document: remove `---` or \
                split the file)";
    assert_eq!(wrong(text), [want]);
}

#[test]
fn both_command_and_script_are_refused() {
    let text = "steps:\n  - name: a\n    command: x\n    script: |\n      y\n";
    let want = "4:5: a step has both `command` and `script` (keep one; two commands are two steps, \
                or one script)";
    assert_eq!(wrong(text), [want]);
}

#[test]
fn a_bad_duration_is_refused_wherever_one_stands() {
    let text = "timeout: soon
steps:
  - name: a
    command: x
    timeout: 10 parsecs
    retry_policy: {limit: 1, delay: -1s, max_delay: [1s]}
";
    let help = "(write for example `500ms`, `30s`, `1m30s` or `2h`)";
    let want = [
        format!("1:10: timeout: `soon` is not a duration {help}"),
        format!("5:14: timeout: `10 parsecs` is not a duration {help}"),
        format!("6:37: delay: `-1s` is not a duration {help}"),
        "6:53: max_delay must be text, not a list (write one value, quoted if it is long)".into(),
    ];
    assert_eq!(wrong(text), want);
}

#[test]
fn a_yaml_bomb_is_refused() {
    let mut text = String::from("env: &a {x: 1, y: 2, z: 3}\n");
    let mut before = 'a';
    for this in 'b'..='k' {
        text += &format!("{this}: &{this} [{}]\n", vec![format!("*{before}"); 9].join(", "));
        before = this;
    }
    let want = "6:12: aliases unfold into more than 100000 values (write the values out, or use \
                fewer aliases of aliases)";
    assert_eq!(wrong(&text), [want]);
}

#[test]
fn deep_nesting_is_refused() {
    let text = format!("steps: {}", "[".repeat(5_000));
    let want = "1:263: nested more than 64 levels deep (a workflow file needs no such depth; is a \
                bracket left open?)";
    assert_eq!(wrong(&text), [want]);
}

#[test]
fn a_file_of_200_mb_is_beyond_the_limit() {
    let size = 200 << 20;
    assert!(MAX_FILE_BYTES < size, "whoever reads files compares with this before reading");
}

#[test]
fn a_named_parameter_without_a_value_is_refused_at_its_place() {
    let text = "params:\n  - first\n  - {name: target}\n  - {name: mode, default: fast}\n\
                steps: [{name: a, command: x}]\n";
    let params = loaded(text).workflow.params;
    assert_eq!(params.spans[0], Span::new(3, 12, 6));
    let wrong = params.bind(&[], &[]).unwrap_err();
    let text: Vec<_> = wrong.iter().map(ToString::to_string).collect();
    assert_eq!(text, ["parameter `target` has no value: give one with `-p target=VALUE`"]);
}

#[test]
fn a_file_that_is_no_text_is_refused() {
    let problems = load(b"name: x\nsteps: \xff\xfe\n", "stem").unwrap_err();
    let want = "2:8: the file is not UTF-8 text (save it as UTF-8)";
    assert_eq!(super::shown(&problems), [want]);
}

#[test]
fn no_time_at_all_is_refused() {
    let problems = load(b"timeout: 0\nsteps: [{name: a, timeout: 0s}]\n", "x").unwrap_err();
    let places: Vec<_> =
        problems.iter().map(|problem| (problem.span.line, problem.message.as_str())).collect();
    assert_eq!(
        places,
        [(1, "timeout leaves no time at all"), (2, "timeout leaves no time at all")]
    );
}

#[test]
fn a_step_cannot_take_the_name_of_a_handler() {
    let text = b"steps: [{name: handlers.exit}]\nhandlers: {exit: x}\n";
    let problems = load(text, "x").unwrap_err();
    assert_eq!(
        problems[0].to_string(),
        "1:16: `handlers.exit` is the name of a handler (rename the step)"
    );
}
