//! Mistakes in single values, each told where it stands.

use super::wrong;

/// What is wrong with a step of these lines; the first is line 3 and begins in column 5.
fn in_step(lines: &str) -> Vec<String> {
    wrong(&format!("steps:\n  - name: a\n{}", super::indented(lines)))
}

#[test]
fn a_step_needs_a_name() {
    let help = "(add `name: …`: others refer to it by that)";
    let text = "steps:\n  - command: x\n  - {name: ~}\n  - name: ''\n";
    let want = [
        format!("2:5: a step has no name {help}"),
        format!("3:5: a step has no name {help}"),
        "4:11: name is empty (write it, or remove the key)".to_owned(),
    ];
    assert_eq!(wrong(text), want);
    let long = "x".repeat(201);
    let want = "2:11: a name must be one line of at most 200 characters (keep the name short \
                and put the rest into `description`)";
    assert_eq!(wrong(&format!("steps:\n  - name: {long}\n")), [want]);
    assert_eq!(wrong("steps:\n  - name: \"a\\nb\"\n"), [want]);
}

#[test]
fn a_step_must_be_a_mapping() {
    let found = wrong("steps:\n  - a\n  - [b]\n");
    assert_eq!(found.len(), 2);
    assert!(found[0].starts_with("2:5: a step must be a mapping, not a single value (write"));
    assert!(found[1].starts_with("3:5: a step must be a mapping, not a list (write"));
}

#[test]
fn work_must_make_sense() {
    let help = "(write it, or remove the key: a step with no work is a join point)";
    assert_eq!(in_step("command:"), [format!("3:5: `command` is empty {help}")]);
    assert_eq!(in_step("script: ~"), [format!("3:5: `script` is empty {help}")]);
    let want = "3:14: command is empty (write it, or remove the key)";
    assert_eq!(in_step("command: ' '"), [want]);
    let want = "3:14: command must be text, not a list (write one value, quoted if it is long)";
    assert_eq!(in_step("command: [a, b]"), [want]);
    let want = "3:5: `args` without a `command` (add `command:` with the program to run)";
    assert_eq!(in_step("args: [x]"), [want]);
    let want = "4:12: args must be text, not a list (write one value, quoted if it is long)";
    assert_eq!(in_step("command: x\nargs: [[a]]"), [want]);
    let want = "3:14: command contains a NUL character (no program can be given one; remove it)";
    assert_eq!(in_step("command: \"a\\0b\""), [want]);
}

#[test]
fn choices_name_their_alternatives() {
    let want = "3:15: requires cannot be `some` (write one of any, all)";
    assert_eq!(in_step("requires: some"), [want]);
    let want = "3:29: on cannot be `error` (write one of success, failure, skipped, done)";
    assert_eq!(in_step("depends: [{step: b, on: error}]")[1], want);
    let want = "3:15: executor cannot be `ssh` (write one of local, cell, kubernetes)";
    assert_eq!(in_step("executor: ssh"), [want]);
    let want = "1:13: on_failure cannot be `abort` (write one of stop, finish, continue)";
    assert_eq!(wrong("on_failure: abort\nsteps: [{name: a}]"), [want]);
    let want = "1:7: kind cannot be `job` (write one of workflow)";
    assert_eq!(wrong("kind: job\nsteps: [{name: a}]"), [want]);
}

#[test]
fn what_is_asked_of_a_cell_is_checked() {
    let executor = |text: &str| in_step(&format!("executor: {text}"));
    let want = "3:15: executor has no `type` (write `executor: local`, `executor: cell` or `executor: {type: kubernetes, config: \
                {image: …}}`)";
    assert_eq!(executor("{config: {}}"), [want]);
    let want = "3:22: executor cannot be `cells` (write one of local, cell, kubernetes)";
    assert_eq!(executor("{type: cells}"), [want]);
    let want = "3:29: `config` of an executor that is `local` (remove it, or write `type: cell` or `type: \
                kubernetes`)";
    assert_eq!(executor("{type: local, config: {memory_mb: 1}}"), [want]);
    let want = "3:28: unknown key `memory_mb` in executor (known keys are type, config)";
    assert_eq!(executor("{type: cell, memory_mb: 1}"), [want]);
    let want = "3:37: unknown key `memory` in config (did you mean `memory_mb`?)";
    assert_eq!(executor("{type: cell, config: {memory: 1}}"), [want]);
    let want = "3:36: config must be a mapping, not a single value (write `key: value` lines; keys are domain, memory_mb, disk_mb, \
                max_pids, cpu_millis, rootfs, placement_tags)";
    assert_eq!(executor("{type: cell, config: 64}"), [want]);
    let got = executor(
        "{type: cell, config: {memory_mb: -1, disk_mb: lots, domain: a/b, rootfs: x, placement_tags: ['', [x]]}}",
    );
    let want = [
        "3:48: memory_mb must be a whole number, not `-1` (write a number from 0 to 4294967295)",
        "3:61: disk_mb must be a whole number, not `lots` (write a number from 0 to 4294967295)",
        "3:75: domain: must be 1 to 200 bytes of printable text without `/`, not `a/b` (a cell would refuse it)",
        "3:88: rootfs: must be a URL with a scheme such as `oci:///path` or `docker:///image`, not `x` (a cell would \
         refuse it)",
        "3:108: placement_tags is empty (write it, or remove the key)",
        "3:112: placement_tags must be text, not a list (write one value, quoted if it is long)",
    ];
    assert_eq!(got, want);
    let want = "4:10: `dir` of a step on a cell is relative (write the whole path as it is on the cell, or leave it out: \
                it has a directory of its own)";
    assert_eq!(in_step("executor: cell\ndir: here"), [want]);
}

#[test]
fn truth_is_true_or_false() {
    let want = "3:24: continue_on_error must be true or false, not `yes` (write `true` or `false`)";
    assert_eq!(in_step("continue_on_error: yes"), [want]);
    let want = "3:14: console must be true or false, not `on` (write `true` or `false`)";
    assert_eq!(in_step("console: on"), [want]);
    let want =
        "3:24: continue_on_error must be true or false, not a list (write `true` or `false`)";
    assert_eq!(in_step("continue_on_error: [true]"), [want]);
}

#[test]
fn numbers_have_their_ranges() {
    let help = "(write a number from 1 to 10000)";
    for bad in ["0", "-1", "2.5", "many", "10001"] {
        let want = format!("1:10: workers must be a whole number, not `{bad}` {help}");
        assert_eq!(wrong(&format!("workers: {bad}\nsteps: [{{name: a}}]")), [want]);
    }
    let want = "3:15: priority must be a whole number, not `high` (write a number from -1000000 to \
                1000000)";
    assert_eq!(in_step("priority: high"), [want]);
    let want = [
        "4:14: limit must be a whole number, not `-1` (write a number from 0 to 1000000)",
        "5:16: backoff must be a number, not `0.5` (write a number from 1 to 1000)",
        "6:15: jitter must be a number, not `2` (write a number from 0 to 1)",
        "7:23: exit_codes must be a whole number, not `256` (write a number from 0 to 255)",
    ];
    let lines = "retry_policy:\n  limit: -1\n  backoff: 0.5\n  jitter: 2\n  exit_codes: [1, 256]";
    assert_eq!(in_step(lines), want);
    for bad in ["NaN", "inf", "-1"] {
        let found = in_step(&format!("retry_policy: {{limit: 1, backoff: {bad}}}"));
        assert!(found[0].contains("backoff must be a number"), "{found:?}");
    }
}

#[test]
fn a_retry_policy_must_be_complete_and_consistent() {
    let want = "3:19: retry_policy has no `limit` (add `limit: N`, the number of further attempts)";
    assert_eq!(in_step("retry_policy: {delay: 1s}"), [want]);
    let want = "3:42: max_delay is shorter than delay (make it longer, or shorten `delay`)";
    assert_eq!(in_step("retry_policy: {limit: 1, delay: 10s, max_delay: 1s}"), [want]);
    let found = in_step("retry_policy: 3");
    assert!(
        found[0].starts_with("3:19: retry_policy must be a mapping, not a single value (write")
    );
}

#[test]
fn variables_have_names_that_a_shell_takes() {
    let help = "(use letters, digits and `_`, not beginning with a digit)";
    let want = [
        format!("1:7: env: `1A` is not a variable name {help}"),
        format!("1:14: env: `a-b` is not a variable name {help}"),
    ];
    assert_eq!(wrong("env: {1A: x, a-b: y}\nsteps: [{name: a}]"), want);
    let want = [
        "1:7: env: `A` sets no variable (write `NAME: value`)".to_owned(),
        "1:10: env: `=b` sets no variable (write `NAME: value`)".to_owned(),
        format!("1:16: env: `a b` is not a variable name {help}"),
        "1:25: env must hold `NAME: value` lines, not a list (write `NAME: value`)".to_owned(),
    ];
    assert_eq!(wrong("env: [A, '=b', 'a b=c', [x]]\nsteps: [{name: a}]"), want);
    let want = "3:17: variable `A` is set twice (remove one of the two)";
    assert_eq!(in_step("env: {A: 1, A: 2}"), [want]);
    let want = format!("3:13: output: `a b` is not a variable name {help}");
    assert_eq!(in_step("output: a b"), [want]);
    let want = "3:14: env must be text, not a mapping (write one value, quoted if it is long)";
    assert_eq!(in_step("env: {A: {b: c}}"), [want]);
}

#[test]
fn parameters_must_make_sense() {
    let text = "params:
  - {default: 1}
  - {name: a}
  - {name: a, default: 2}
  - {name: 2b}
  - [x]
steps: [{name: a}]
";
    let want = [
        "2:5: a parameter has no name (write `- {name: NAME, default: VALUE}`)",
        "4:12: parameter `a` stands twice (remove one of the two)",
        "5:12: params: `2b` is not a variable name (use letters, digits and `_`, not beginning \
         with a digit)",
        "6:5: a parameter must be a value or a mapping, not a list (write `- VALUE` or `- {name: \
         NAME, default: VALUE}`)",
    ];
    assert_eq!(wrong(text), want);
    let want = "1:9: params: a quote is left open (close it, or write a list)";
    assert_eq!(wrong("params: a 'b\nsteps: [{name: a}]"), [want]);
}

#[test]
fn dependencies_name_steps() {
    let want = [
        "3:15: depends must name steps, not hold a list (write `depends: [one, other]`)",
        "4:13: after must name steps, not hold a mapping (write `after: [one, other]`)",
    ];
    assert_eq!(in_step("depends: [[b]]\nafter: [{step: b}]"), want);
    let want = "3:15: a dependency has no `step` (write `{step: NAME, on: failure}`)";
    assert_eq!(in_step("depends: [{on: failure}]"), [want]);
}

#[test]
fn conditions_need_a_predicate() {
    let want = "3:11: when has no `predicate` (add `predicate:` with the command to check)";
    assert_eq!(in_step("when: {expected: 1}"), [want]);
    let want =
        "3:21: a precondition has no `predicate` (add `predicate:` with the command to check)";
    assert_eq!(in_step("preconditions: [{expected: 1}]"), [want]);
    let want = "3:11: when is empty (write it, or remove the key)";
    assert_eq!(in_step("when: ''"), [want]);
}

#[test]
fn a_shell_is_a_program_with_its_options() {
    let help = "(write for example `shell: bash -euo pipefail`)";
    for bad in ["''", "[]", "{a: b}", "'open \"quote'"] {
        let want = format!("3:12: shell must be a program with its options {help}");
        assert_eq!(in_step(&format!("shell: {bad}")), [want], "{bad}");
    }
}

#[test]
fn merge_keys_merge_mappings() {
    let want = "3:9: `<<` merges a mapping, not this (write `<<: *name_of_a_mapping`)";
    assert_eq!(in_step("<<: text"), [want]);
}
