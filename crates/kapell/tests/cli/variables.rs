//! `$1`, `${NAME}` and their like, and where `env`, `dir` and `shell` apply.

use crate::bench::Bench;

/// What a step wrote in the last run.
fn said(bench: &Bench, step: &str) -> String {
    bench.run(&["workflow", "logs", "--step", step]).expect(0).stdout
}

const ELEVEN: [&str; 11] = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k"];

#[test]
fn positions_in_a_shell_command() {
    let bench = Bench::with(
        "steps: [{name: a, command: 'echo $1 ${1} $2x $10 ${10} \"$11\" $1st > got'}]\n",
    );
    bench.flow(&ELEVEN).expect(0);
    assert_eq!(bench.read("got"), "a a bx j j k ast\n");
}

#[test]
fn positions_in_arguments() {
    let bench = Bench::with(
        "
steps:
  - {name: a, command: printf, args: ['%s|', $1, '${1}', $10, '${10}', $11, $1st, $12, $0]}
",
    );
    bench.flow(&ELEVEN).expect(0);
    assert_eq!(said(&bench, "a"), "a|a|j|j|k|ast|$12|$0|");
}

#[test]
fn positions_in_a_script() {
    let bench = Bench::with("steps: [{name: a, script: 'echo $1 ${1} $10 ${10} $# > got'}]\n");
    bench.flow(&ELEVEN).expect(0);
    assert_eq!(bench.read("got"), "a a j j 11\n");
}

#[test]
fn names_end_where_they_end() {
    let bench = Bench::with(
        "
env: {v: short, vx: long}
steps:
  - {name: shell, command: 'echo $v $vx ${v}x ${vx} > shell'}
  - {name: script, script: 'echo $v $vx ${v}x ${vx} > script'}
  - {name: args, command: printf, args: ['%s|', $v, $vx, '${v}x', '${vx}', $v$vx, '$v.x']}
",
    );
    bench.flow(&[]).expect(0);
    assert_eq!(bench.read("shell"), "short long shortx long\n");
    assert_eq!(bench.read("script"), "short long shortx long\n");
    assert_eq!(said(&bench, "args"), "short|long|shortx|long|shortlong|short.x|");
}

#[test]
fn awk_without_parameters_works() {
    let bench = Bench::with(
        "
steps:
  - {name: shell, command: \"awk '{print $1}' table > shell\"}
  - {name: script, script: \"awk '{print $2, $10}' table > script\"}
  - {name: args, command: awk, args: ['{print $1}', table]}
",
    );
    bench.write("table", "one two 3 4 5 6 7 8 9 ten\n");
    bench.flow(&[]).expect(0);
    assert_eq!(bench.read("shell"), "one\n");
    assert_eq!(bench.read("script"), "two ten\n");
    assert_eq!(said(&bench, "args"), "one\n");
}

#[test]
fn awk_with_parameters_works_too() {
    let bench = Bench::with(
        r"
steps:
  - {name: shell, command: 'awk ''{print $2}'' $1 > shell'}
  - {name: args, command: awk, args: ['{print \$2}', $1]}
",
    );
    bench.write("table", "one two\n");
    bench.flow(&["table", "second"]).expect(0);
    assert_eq!(bench.read("shell"), "two\n");
    assert_eq!(said(&bench, "args"), "two\n");
}

#[test]
fn what_is_not_defined_is_left_alone() {
    let bench = Bench::with(
        "
steps:
  - {name: shell, command: 'echo \"[$undefined]\" ${undefined:-else} $((1 + 2)) $(echo sub) > got'}
  - {name: args, command: printf, args: ['%s|', $undefined, '${undefined}', '${no.such}', $, $$, '$(x)']}
",
    );
    bench.flow(&[]).expect(0);
    assert_eq!(bench.read("got"), "[] else 3 sub\n");
    assert_eq!(said(&bench, "args"), "$undefined|${undefined}|${no.such}|$|$$|$(x)|");
}

#[test]
fn env_applies_everywhere() {
    let bench = Bench::with(
        "
env: {WHERE: workflow, BOTH: workflow}
steps:
  - name: command
    command: 'echo $WHERE $BOTH $OWN > command'
    env: {BOTH: step, OWN: mine}
  - name: plain
    command: env
  - name: script
    script: 'echo $WHERE $OWN > script'
    env: {OWN: mine}
  - {name: args, command: printf, args: ['%s', $WHERE]}
  - name: when
    command: touch when
    env: {OWN: mine}
    when: {predicate: echo $WHERE $OWN, expected: workflow mine}
  - name: precondition
    command: touch precondition
    env: {OWN: mine}
    preconditions: [{predicate: echo $WHERE $OWN, expected: workflow mine}]
handlers: {exit: echo $WHERE > handler}
",
    );
    bench.flow(&[]).expect(0);
    assert_eq!(bench.read("command"), "workflow step mine\n");
    assert_eq!(bench.read("script"), "workflow mine\n");
    assert_eq!(said(&bench, "args"), "workflow");
    assert!(said(&bench, "plain").contains("\nWHERE=workflow\n"), "without a shell too");
    assert!(bench.exists("when") && bench.exists("precondition"));
    assert_eq!(bench.read("handler"), "workflow\n");
}

#[test]
fn env_may_refer_to_what_stands_before_it() {
    let bench = Bench::with(
        r"
env:
  - BASE: /srv
  - FULL: ${BASE}/$1
  - COST: \$5
defaults: {env: {FROM_DEFAULTS: d}}
steps:
  - name: a
    command: echo $FULL $OWN $FROM_DEFAULTS $COST > got
    env: {OWN: '${FULL}/own'}
",
    );
    bench.flow(&["app"]).expect(0);
    assert_eq!(bench.read("got"), "/srv/app /srv/app/own d $5\n");
}

#[test]
fn the_callers_environment_is_seen() {
    let bench = Bench::with(
        "
steps:
  - {name: shell, command: 'echo $OUTSIDE > got'}
  - {name: args, command: printf, args: ['%s', '${OUTSIDE}']}
  - {name: over, command: 'echo $OUTSIDE > over', env: {OUTSIDE: inside}}
",
    )
    .set("OUTSIDE", "from outside");
    bench.flow(&[]).expect(0);
    assert_eq!(bench.read("got"), "from outside\n");
    assert_eq!(said(&bench, "args"), "from outside");
    assert_eq!(bench.read("over"), "inside\n");
}

#[test]
fn parameters_are_in_the_environment() {
    let bench = Bench::with(
        "
steps:
  - {name: command, command: 'echo $PARAM_1 $PARAM_2 $PARAM_10 > command'}
  - {name: plain, command: env}
  - {name: script, script: 'echo $PARAM_1 $PARAM_2 $PARAM_10 > script'}
",
    );
    bench.flow(&ELEVEN).expect(0);
    assert_eq!(bench.read("command"), "a b j\n");
    assert_eq!(bench.read("script"), "a b j\n");
    assert!(said(&bench, "plain").contains("\nPARAM_11=k\n"));
}

#[test]
fn a_path_in_env_finds_the_program() {
    let bench = Bench::new();
    std::fs::create_dir(bench.path("bin")).expect("a directory");
    bench.write("bin/mytool", "#!/bin/sh\necho \"mine $1\" >> got\n");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(bench.path("bin/mytool"), mode).expect("a file");
    let bin = bench.path("bin").display().to_string();
    bench.write(
        "flow.yaml",
        format!(
            "
workers: 1
steps:
  - {{name: without, command: mytool, args: [x], continue_on_error: true}}
  - {{name: args, command: mytool, args: [args], env: {{PATH: '{bin}:$PATH'}}}}
  - {{name: plain, command: mytool plain, env: {{PATH: '{bin}:$PATH'}}}}
  - {{name: shell, command: 'mytool shell;', env: {{PATH: '{bin}:$PATH'}}}}
"
        ),
    );
    bench.flow(&[]).expect(0).stdout_has("without failed (continuing)");
    assert_eq!(bench.read("got"), "mine args\nmine plain\nmine shell\n");
}

#[test]
fn arguments_are_executed_directly() {
    let bench = Bench::with(
        "
steps:
  - {name: a, command: printf, args: ['%s|', '*', a; b, 'c  d', \"e'f\\\"g\", '', '>', $(x)]}
  - {name: b, command: printf, args: done}
",
    );
    bench.flow(&[]).expect(0);
    assert_eq!(said(&bench, "a"), "*|a; b|c  d|e'f\"g||>|$(x)|");
    assert_eq!(said(&bench, "b"), "done");
}

#[test]
fn plain_words_and_the_shell_come_to_the_same() {
    let bench = Bench::with(
        "
on_failure: continue
workers: 1
steps:
  - {name: words, command: printf %s-%s a=b c}
  - {name: missing, command: no-such-program --help}
  - {name: builtin, command: cd home}
  - {name: text, command: ./no-interpreter}
",
    );
    bench.write("no-interpreter", "echo \"ran by the shell\"\n");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(bench.path("no-interpreter"), mode).expect("a file");
    let ran = bench.flow(&[]).expect(1);
    ran.stdout_has("✗ missing failed in TOOK: exit status 127\n");
    ran.stdout_has("✓ builtin completed");
    ran.stderr_has("no-such-program: not found");
    assert_eq!(said(&bench, "words"), "a=b-c");
    assert_eq!(said(&bench, "text"), "ran by the shell\n");
}

#[test]
fn shell_is_the_one_that_was_asked_for() {
    let bench = Bench::with(
        "
on_failure: continue
steps:
  - {name: strict, command: 'false | true; touch never', shell: bash -euo pipefail}
  - {name: lax, command: 'false | true; touch lax'}
  - {name: list, command: 'echo ${BASH_VERSION:+bash} $1 > list', shell: [bash, -e]}
  - name: predicate
    command: touch never
    shell: bash -euo pipefail
    when: 'false | true'
",
    );
    let ran = bench.flow(&["one"]).expect(1);
    ran.stdout_has("✗ strict failed in TOOK: exit status 1\n").stdout_has("○ predicate skipped: ");
    assert!(bench.exists("lax") && !bench.exists("never"));
    assert_eq!(bench.read("list"), "bash one\n");
}

#[test]
fn dir_is_where_everything_of_a_step_happens() {
    let bench = Bench::with(
        "
env: {SUB: deep}
steps:
  - name: command
    dir: home/$SUB
    command: pwd > here
    when: test -f marker
    preconditions: [test -f marker]
  - {name: args, dir: '$1', command: touch, args: [by-args]}
  - {name: script, dir: home/deep, script: \"#!/bin/sh\\npwd > by-script\"}
",
    );
    std::fs::create_dir(bench.path("home/deep")).expect("a directory");
    bench.write("home/deep/marker", "");
    bench.flow(&["home/deep"]).expect(0);
    let deep = bench.path("home/deep").canonicalize().expect("it is there");
    assert_eq!(bench.read("home/deep/here"), format!("{}\n", deep.display()));
    assert_eq!(bench.read("home/deep/by-script"), format!("{}\n", deep.display()));
    assert!(bench.exists("home/deep/by-args"));
}
