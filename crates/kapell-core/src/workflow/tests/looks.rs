//! Looks into outputs, `${build.version}`: of whom, and whether anybody waits.

use super::{loaded, shown, wrong};

fn warnings(text: &str) -> Vec<String> {
    shown(&loaded(text).warnings)
}

#[test]
fn a_look_without_waiting_is_warned_of() {
    let text = "steps:
  - {name: build, command: x}
  - {name: early, command: 'echo ${build.version}'}
  - {name: late, command: 'echo ${build.version}', depends: build}
  - {name: quoted, command: \"echo '${build.version}'\"}
  - {name: argument, command: ls, args: ['${build.dir}']}
  - {name: python, command: '${build.x}', shell: python3}
handlers: {exit: 'echo ${build.version}'}
";
    let help = "(add `depends: build`; else it is chance what the step sees)";
    let told = |place, name| {
        format!(
            "{place}: step `{name}` uses the output of `build`, but does not wait for it {help}"
        )
    };
    assert_eq!(warnings(text), [told("3:12", "early"), told("6:12", "argument")]);
}

#[test]
fn a_variable_goes_before_a_step_of_its_name() {
    let text = "steps:
  - {name: A, command: x}
  - {name: b, command: x, output: A}
  - {name: c, command: 'echo ${A.x}', depends: b}
";
    assert!(warnings(text).is_empty(), "{:?}", warnings(text));
}

fn command(command: &str) -> String {
    let more = "steps:\n  - {name: build, command: x}\n  - {name: build-app, command: x}\n";
    let depends = "depends: [build, build-app]";
    format!(
        "{more}  - name: a\n    {depends}\n    env: {{OWN: x}}\n    command: |\n      {command}\n"
    )
}

#[test]
fn a_look_into_nothing_is_refused_with_what_was_meant() {
    let message = "4:11: step `a` uses `${biuld.v}`, but no step and no output variable is called \
                   `biuld` (did you mean `${build.v}`?)";
    assert_eq!(wrong(&command("echo \"${biuld.v}\" ${build.v}")), [message]);
    let message = "4:11: step `a` uses `${elsewhere.v}`, but no step and no output variable is \
                   called `elsewhere` (name a step or an output variable before the dot)";
    assert_eq!(wrong(&command("echo ${elsewhere.v}")), [message]);
    let text = "steps: [{name: a, command: x}]\nhandlers: {exit: 'echo ${elsewhere.v}'}\n";
    let message = "2:18: step `handlers.exit` uses `${elsewhere.v}`, but no step and no output \
                   variable is called `elsewhere` (name a step or an output variable before the dot)";
    assert_eq!(wrong(text), [message]);
}

#[test]
fn what_means_something_to_the_shell_is_not_refused() {
    for text in [
        "echo ${x:-a.b} ${x%.txt} ${x#a.} ${x-a.b} ${x/./_}",
        "echo ${list[0]} ${list[i].x}",
        "echo '${biuld.v}' \\${biuld.v} # ${biuld.v}",
        "cat <<'EOF'\n      ${biuld.v}\n      EOF",
        "echo ${OWN.v} ${HOME}",
        "echo 'open ${biuld.v}",
    ] {
        let text = command(text);
        assert!(warnings(&text).is_empty(), "{text}\n{:?}", warnings(&text));
    }
    // A default, or a step whose name was mistyped.
    let found = warnings(&command("echo ${build-ap.v}"));
    assert!(found[0].ends_with("(did you mean `${build-app.v}`?)"), "{found:?}");
}

#[test]
fn another_interpreter_gets_what_stands_there() {
    let text = "steps:
  - {name: a, script: \"#!/usr/bin/perl\\nprint ${x.y}\"}
  - {name: b, command: 'print ${x.y}', shell: python3 -u}
";
    assert!(warnings(text).is_empty());
    let text = "steps: [{name: b, script: \"#!/usr/bin/env bash\\necho ${x.y}\"}]";
    assert_eq!(wrong(text).len(), 1);
    let text = "steps: [{name: b, command: 'echo ${x.y}', shell: ksh}]";
    assert_eq!(warnings(text).len(), 1);
}

#[test]
fn an_argument_may_be_meant_literally() {
    let text = "steps:
  - {name: a, command: mvn, args: ['-Dv=${project.version}', '\\${project.name}']}
";
    let want = "2:12: step `a` uses `${project.version}`, but no step and no output variable is \
                called `project` (write `\\${project.version}` if it is meant literally)";
    assert_eq!(warnings(text), [want]);
    let text = "params: [{name: P, default: x}]
env: {E: x}
steps:
  - {name: build, command: x}
  - {name: a, command: ls, args: ['${biuld.v}', '${P.x}', '${E.x}'], depends: build}
";
    assert!(wrong(text)[0].ends_with("(did you mean `${build.v}`?)"));
}
