//! A value is data: whatever it holds, it never becomes part of a program.

use std::fmt::Write as _;

use crate::bench::{Bench, Ran};

/// Everything that a shell would do something with. No slash: it also serves as a file's name.
const EVIL: &str = "a'b\"c; touch pwned1; $(touch pwned2) `touch pwned3` | touch pwned4 & \
                    touch pwned5\nline two; touch pwned6 \\ ${HOME} $1 * #x !y ~ (z) {w} <v> \\";

#[track_caller]
fn harmless(bench: &Bench, ran: Ran) {
    ran.expect(0);
    let names = std::fs::read_dir(bench.dir()).expect("a directory").flatten();
    let pwned: Vec<_> = names
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(|name| name.starts_with("pwned"))
        .collect();
    assert!(pwned.is_empty(), "{pwned:?}");
}

/// The evil text as a quoted YAML value.
fn quoted() -> String {
    serde_json::to_string(EVIL).expect("JSON is YAML")
}

/// Steps that write `$NAME` to files in every way there is.
fn users_of(reference: &str) -> String {
    let mut steps = String::new();
    for (name, work) in [
        ("shell", format!("command: 'printf %s \"{reference}\" > by-shell'")),
        ("script", format!("script: 'printf %s \"{reference}\" > by-script'")),
        ("bash", format!("script: \"#!/bin/bash\\nprintf %s \\\"{reference}\\\" > by-bash\"")),
        ("heredoc", format!("command: \"cat > by-heredoc <<END\\n{reference}\\nEND\"")),
        ("args", format!("command: touch, args: [--, '{reference}']")),
        ("loop", format!("command: 'for word in {reference}; do :; done'")),
        (
            "when",
            format!(
                "command: touch was-met, when: {{predicate: 'printf %s \"{reference}\"', expected: {}}}",
                quoted()
            ),
        ),
        ("env", format!("command: 'printf %s \"$COPY\" > by-env', env: {{COPY: '{reference}'}}")),
    ] {
        writeln!(steps, "  - {{name: {name}, depends: [first], {work}}}").expect("a String");
    }
    steps
}

#[track_caller]
fn check_users(bench: &Bench) {
    for way in ["shell", "script", "bash", "env"] {
        assert_eq!(bench.read(&format!("by-{way}")), EVIL, "{way}");
    }
    assert_eq!(bench.read("by-heredoc"), format!("{EVIL}\n"));
    assert!(bench.exists(EVIL), "an argument is what it is");
    assert!(bench.exists("was-met"));
}

#[test]
fn a_positional_parameter_is_data() {
    let bench = Bench::with(&format!("steps:\n  - {{name: first}}\n{}", users_of("$1")));
    harmless(&bench, bench.flow(&[EVIL]));
    check_users(&bench);
}

#[test]
fn the_tenth_parameter_is_data_too() {
    let bench = Bench::with(&format!("steps:\n  - {{name: first}}\n{}", users_of("$10")));
    harmless(&bench, bench.flow(&["1", "2", "3", "4", "5", "6", "7", "8", "9", EVIL]));
    check_users(&bench);
}

#[test]
fn a_named_parameter_is_data() {
    let flow =
        format!("params: [{{name: evil}}]\nsteps:\n  - {{name: first}}\n{}", users_of("$evil"));
    let bench = Bench::with(&flow);
    let param = format!("evil={EVIL}");
    harmless(&bench, bench.run(&["process", "-p", &param, "flow.yaml"]));
    check_users(&bench);
}

#[test]
fn a_variable_of_the_file_is_data() {
    // `$1` and `${HOME}` in a value of the file are meant as references, so they are escaped here.
    let value = quoted().replace('$', "\\\\$");
    let flow =
        format!("env: {{evil: {value}}}\nsteps:\n  - {{name: first}}\n{}", users_of("${evil}"));
    let bench = Bench::with(&flow);
    harmless(&bench, bench.flow(&[]));
    check_users(&bench);
}

#[test]
fn an_output_is_data() {
    let first = "  - {name: first, command: cat evil, output: evil}\n";
    let bench = Bench::with(&format!("steps:\n{first}{}", users_of("$evil")));
    bench.write("evil", EVIL);
    harmless(&bench, bench.flow(&[]));
    check_users(&bench);
}

#[test]
fn a_part_of_an_output_is_data() {
    let first = "  - {name: first, command: cat evil}\n";
    let bench = Bench::with(&format!("steps:\n{first}{}", users_of("${first.list[1].v}")));
    let json = serde_json::json!({"list": [0, {"v": EVIL}]});
    bench.write("evil", json.to_string());
    harmless(&bench, bench.flow(&[]));
    check_users(&bench);
}

#[test]
fn an_unquoted_value_is_split_but_never_executed() {
    let bench = Bench::with(
        "
params: ['x; touch pwned1', '$(touch pwned2) `touch pwned3`']
steps:
  - {name: a, command: 'echo $1 > first; echo $2 > second; echo $1 | cat > third'}
  - {name: b, script: 'echo $1 $2 > script'}
",
    );
    harmless(&bench, bench.flow(&[]));
    assert_eq!(bench.read("first"), "x; touch pwned1\n");
    assert_eq!(bench.read("second"), "$(touch pwned2) `touch pwned3`\n");
    assert_eq!(bench.read("third"), "x; touch pwned1\n");
    assert_eq!(bench.read("script"), "x; touch pwned1 $(touch pwned2) `touch pwned3`\n");
}

#[test]
fn a_value_that_looks_like_an_option_is_data() {
    let bench = Bench::with("steps: [{name: a, command: 'printf \"%s|\" \"$1\" \"$2\" > got'}]\n");
    bench.run(&["process", "flow.yaml", "--", "-n", "--workers"]).expect(0);
    assert_eq!(bench.read("got"), "-n|--workers|");
}
