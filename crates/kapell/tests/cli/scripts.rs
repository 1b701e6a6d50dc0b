//! `script:`, its interpreter and what it sees; `params:` in all their forms.

use crate::bench::{Bench, is_there, skip};
use crate::gate::Gate;

#[test]
fn a_script_is_run_by_the_interpreter_that_it_names() {
    let bench = Bench::with(
        r#"
steps:
  - name: bash
    script: |
      #!/bin/bash
      list=(one two three)
      echo "${list[1]} $1 $PARAM_1" > bash
  - name: env
    script: |
      #!/usr/bin/env bash
      [[ abc == a* ]] && echo matched > env
  - name: option
    script: |
      #!/bin/sh -e
      false
      touch never
    continue_on_error: true
  - name: none
    script: |
      # no interpreter: sh
      cat > none <<'END'
      it's $1 and "quotes"
      END
"#,
    );
    bench.flow(&["param"]).expect(0).stdout_has("option failed (continuing)");
    assert_eq!(bench.read("bash"), "two param param\n");
    assert_eq!(bench.read("env"), "matched\n");
    assert_eq!(bench.read("none"), "it's $1 and \"quotes\"\n");
    assert!(!bench.exists("never"));
}

#[test]
fn a_script_may_be_python() {
    if !is_there("python3") {
        skip("a_script_may_be_python", "no python3");
        return;
    }
    let bench = Bench::with(
        r#"
env: {NAME: "it's \"data\""}
params: [{name: word, default: named}]
steps:
  - {name: build, command: 'echo ''{"v": 1}''', output: BUILD}
  - name: python
    depends: build
    script: |
      #!/usr/bin/env python3
      import json, os, sys
      told = [sys.argv[1:], os.environ["PARAM_2"], os.environ["NAME"], os.environ["word"],
              json.loads(os.environ["BUILD"])["v"], "$1 ${NAME}"]
      json.dump(told, open("told", "w"))
"#,
    );
    bench.flow(&["a b", "$(x)"]).expect(0);
    let told: serde_json::Value = serde_json::from_str(&bench.read("told")).expect("JSON");
    let want =
        serde_json::json!([["a b", "$(x)"], "$(x)", "it's \"data\"", "named", 1, "$1 ${NAME}"]);
    assert_eq!(told, want);
}

#[test]
fn a_script_uses_the_shell_of_its_step() {
    let bench = Bench::with(
        "
defaults: {shell: bash -euo pipefail}
steps:
  - {name: a, script: 'echo ${BASH_VERSION:+bash} $1 > got; false | true; touch never'}
",
    );
    bench.flow(&["one"]).expect(1);
    assert_eq!(bench.read("got"), "bash one\n");
    assert!(!bench.exists("never"));
}

#[test]
fn a_script_may_be_larger_than_a_command_line() {
    let mut flow = String::from("steps:\n  - name: a\n    script: |\n");
    for number in 0..20_000 {
        flow.push_str(&format!("      : line number {number} of a long script\n"));
    }
    flow.push_str("      touch reached\n");
    let bench = Bench::with(&flow);
    bench.flow(&[]).expect(0);
    assert!(bench.exists("reached"));
}

#[test]
fn a_script_leaves_nothing_behind() {
    let bench = Bench::with(
        "
steps:
  - name: a
    script: 'echo x >> tries; test $(wc -l < tries) -ge 3'
    retry_policy: {limit: 2}
  - {name: b, script: exit 1, continue_on_error: true}
",
    );
    bench.flow(&[]).expect(0);
    let mut command = bench.command("find");
    command.args(["state", "tmp", "-name", "*script*"]);
    assert_eq!(bench.run_command(command).expect(0).stdout, "");
}

#[test]
fn a_script_takes_nothing_of_others_without_a_state_directory() {
    // Without a journal a script is written elsewhere, where others write too.
    let bench = Bench::with("steps: [{name: a, script: touch reached}]\n");
    let bench = bench.set("KAPELL_STATE_DIR", "flow.yaml/state");
    bench.write("tmp/script-0", "not yours");
    bench.flow(&[]).expect(0);
    assert!(bench.exists("reached"));
    assert_eq!(bench.read("tmp/script-0"), "not yours");
    let left: Vec<_> = std::fs::read_dir(bench.path("tmp")).expect("a directory").collect();
    assert_eq!(left.len(), 1, "{left:?}");
}

#[test]
fn a_running_script_may_be_run_by_another_run_too() {
    let bench = Bench::with(
        "steps: [{name: a, script: \"#!/bin/sh\\nread _ < $1\\necho $1 >> done\\n\"}]\n",
    );
    let (first, second) = (Gate::new(&bench, "first"), Gate::new(&bench, "second"));
    let one = bench.start(&["process", "flow.yaml", "first"]);
    let waiting = first.reached();
    let two = bench.start(&["process", "flow.yaml", "second"]);
    second.open();
    two.finish().expect(0);
    waiting.go_on();
    one.finish().expect(0);
    assert_eq!(bench.read("done"), "second\nfirst\n");
}

#[test]
fn parameters_may_be_one_text() {
    let bench = Bench::with(
        "
params: one \"two words\" 'three more words' four
steps: [{name: a, command: 'printf \"%s|\" \"$@\" > got'}]
",
    );
    bench.flow(&[]).expect(0);
    assert_eq!(bench.read("got"), "one|two words|three more words|four|");
}

#[test]
fn parameters_may_be_a_list_and_are_replaced_by_position() {
    let bench = Bench::with(
        "
params: [one, two words, 3]
steps: [{name: a, command: 'printf \"%s|\" \"$@\" > got'}]
",
    );
    bench.flow(&[]).expect(0);
    assert_eq!(bench.read("got"), "one|two words|3|");
    bench.flow(&["first"]).expect(0);
    assert_eq!(bench.read("got"), "first|two words|3|");
    bench.flow(&["a", "b", "c", "d"]).expect(0);
    assert_eq!(bench.read("got"), "a|b|c|d|");
    bench.flow(&["", ""]).expect(0);
    assert_eq!(bench.read("got"), "||3|");
}

#[test]
fn named_parameters_have_defaults_and_values() {
    let bench = Bench::with(
        "
params:
  - first
  - {name: target, default: staging}
  - {name: tag}
env: {FROM: $target, target: never used}
steps:
  - {name: a, command: 'echo $1 $target ${tag} $FROM > got'}
  - {name: b, command: touch, args: ['$target-${tag}']}
  - {name: c, command: env}
",
    );
    bench.run(&["process", "-p", "tag=v=1", "flow.yaml"]).expect(0);
    assert_eq!(bench.read("got"), "first staging v=1 staging\n");
    assert!(bench.exists("staging-v=1"));
    let env = bench.run(&["workflow", "logs", "--step", "c"]).expect(0).stdout;
    assert!(env.contains("\ntarget=staging\n") && env.contains("\ntag=v=1\n"), "{env}");
    let args = ["process", "--param", "tag=x", "-p", "tag=y", "-ptarget=prod", "flow.yaml", "1st"];
    bench.run(&args).expect(0);
    assert_eq!(bench.read("got"), "1st prod y prod\n");
}
