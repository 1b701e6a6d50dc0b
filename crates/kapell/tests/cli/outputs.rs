//! What a step gives to others: output variables, and paths into them.

use crate::bench::Bench;

const BUILD: &str = r#"{
  "version": "1.2.3", "count": 3, "ok": true, "none": null,
  "items": [{"name": "first"}, {"name": "sec ond"}], "deep": {"er": {"still": "here"}}
}"#;

#[test]
fn an_output_variable_is_the_trimmed_text() {
    let bench = Bench::with(
        "
steps:
  - {name: short, command: 'echo; echo \" text \"; echo', output: SHORT}
  - {name: both, command: 'echo out; echo err >&2', output: {stdout: OUT, stderr: ERR}}
  - {name: lines, command: 'printf \"a\\nb\\n\"', output: LINES}
  - {name: nothing, command: /bin/true, output: NOTHING}
  - name: use
    command: 'printf \"%s|\" \"$SHORT\" \"$OUT\" \"$ERR\" \"$LINES\" \"[$NOTHING]\" > got'
    depends: [short, both, lines, nothing]
",
    );
    bench.flow(&[]).expect(0);
    assert_eq!(bench.read("got"), "text|out|err|a\nb|[]|");
}

#[test]
fn paths_into_an_output_variable() {
    let bench = Bench::with(
        "
steps:
  - {name: make, command: cat build.json, output: build}
  - name: use
    depends: make
    command: >-
      printf '%s|' \"${build.version}\" ${build.count} ${build.ok} ${build.none}
      \"${build.items[1].name}\" \"${build.items.0.name}\" ${build.deep.er.still}
      \"${build.deep}\" > got
",
    );
    bench.write("build.json", BUILD);
    bench.flow(&[]).expect(0);
    let want = "1.2.3|3|true|null|sec ond|first|here|{\"er\":{\"still\":\"here\"}}|";
    assert_eq!(bench.read("got"), want);
}

#[test]
fn paths_into_the_output_of_a_step() {
    let bench = Bench::with(
        "
steps:
  - {name: build-app, command: cat build.json}
  - {name: shell, command: 'echo ${build-app.version} > shell', depends: build-app}
  - {name: script, script: 'echo ${build-app.items[0].name} > script', depends: build-app}
  - {name: args, command: touch, args: ['v${build-app.version}'], depends: build-app}
  - {name: env, command: 'echo $V > env', env: {V: '${build-app.version}'}, depends: build-app}
  - {name: dir, command: touch there, dir: '${build-app.items.0.name}', depends: build-app}
  - name: when
    command: touch when
    when: {predicate: 'echo ${build-app.count}', expected: 3}
    depends: build-app
  - name: precondition
    command: touch precondition
    preconditions: [{predicate: 'echo ${build-app.ok}', expected: true}]
    depends: build-app
handlers: {exit: 'echo ${build-app.version} > handler'}
",
    );
    bench.write("build.json", BUILD);
    std::fs::create_dir(bench.path("first")).expect("a directory");
    bench.flow(&[]).expect(0);
    assert_eq!(bench.read("shell"), "1.2.3\n");
    assert_eq!(bench.read("script"), "first\n");
    assert_eq!(bench.read("env"), "1.2.3\n");
    assert_eq!(bench.read("handler"), "1.2.3\n");
    for file in ["v1.2.3", "first/there", "when", "precondition"] {
        assert!(bench.exists(file), "{file}");
    }
}

#[test]
fn an_output_variable_goes_before_a_step() {
    let bench = Bench::with(
        "
steps:
  - {name: build, command: 'echo ''{\"v\": \"of the step\"}'''}
  - {name: other, command: 'echo ''{\"v\": \"of the variable\"}''', output: build}
  - {name: use, command: 'echo ${build.v} > got', depends: [build, other]}
",
    );
    bench.flow(&[]).expect(0);
    assert_eq!(bench.read("got"), "of the variable\n");
}

#[test]
fn a_path_that_leads_nowhere_fails_the_step_and_says_why() {
    let bench = Bench::with(
        "
on_failure: continue
steps:
  - {name: build, command: cat build.json}
  - {name: text, command: echo not json}
  - {name: gone, command: 'touch never; echo ${build.sha}', depends: build}
  - {name: beyond, command: 'touch never; echo ${build.items[9]}', depends: build}
  - {name: into, command: 'touch never; echo ${build.version.x}', depends: build}
  - {name: json, command: 'touch never; echo ${text.x}', depends: text}
",
    );
    bench.write("build.json", BUILD);
    let ran = bench.flow(&[]).expect(1);
    assert!(!bench.exists("never"));
    for line in [
        "gone failed in TOOK: `${build.sha}`: there is no `sha`; there are version, count, ok,",
        "beyond failed in TOOK: `${build.items[9]}`: there is no item `9` in a list of 2\n",
        "into failed in TOOK: `${build.version.x}`: `\"1.2.3\"` has no `x` in it\n",
        "json failed in TOOK: `${text.x}`: `text` is not JSON: ",
    ] {
        ran.stdout_has(line);
    }
}

#[test]
fn a_failed_step_gives_nothing() {
    let bench = Bench::with(
        "
steps:
  - {name: a, command: 'echo half; exit 1', output: HALF, continue_on_error: true}
  - {name: b, command: 'echo \"[$HALF]\" > got', depends: [{step: a, on: failure}]}
",
    );
    bench.flow(&[]).expect(0);
    assert_eq!(bench.read("got"), "[]\n");
}

#[test]
fn the_last_attempt_gives_the_output() {
    let bench = Bench::with(
        "
steps:
  - name: a
    command: 'echo x >> tries; echo try $(wc -l < tries); test $(wc -l < tries) -ge 2'
    retry_policy: {limit: 1}
    output: TRY
  - {name: b, command: 'echo \"$TRY\" > got', depends: a}
",
    );
    bench.flow(&[]).expect(0);
    assert_eq!(bench.read("got"), "try 2\n");
}

#[test]
fn a_large_value_passes() {
    let bench = Bench::with(
        "
steps:
  - {name: a, command: 'head -c 120000 /dev/zero | tr ''\\0'' x', output: LARGE}
  - {name: b, command: 'printf %s \"$LARGE\" | wc -c > got', depends: a}
",
    );
    bench.flow(&[]).expect(0);
    assert_eq!(bench.read("got").trim(), "120000");
}

#[test]
fn a_value_too_large_for_the_environment_names_a_file_instead() {
    let bench = Bench::with(
        "
steps:
  - {name: a, command: 'head -c 200000 /dev/zero | tr ''\\0'' x', output: LARGE}
  - {name: b, command: touch never, depends: a}
",
    );
    let ran = bench.flow(&[]).expect(1);
    ran.stderr_has(
        "✗ first failure: a: variable `LARGE` is 200000 bytes long and the environment takes at \
         most 131072: pass it in a file\n",
    );
    assert!(!bench.exists("never"));
}

#[test]
fn a_parameter_too_large_for_the_environment_names_a_file_instead() {
    let large = "x".repeat(200_000);
    let bench =
        Bench::with(&format!("params: [{large}]\nsteps: [{{name: a, command: echo $1}}]\n"));
    bench.flow(&[]).expect(1).stdout_has(
        "a failed in TOOK: variable `PARAM_1` is 200000 bytes long and the environment takes at \
         most 131072: pass it in a file\n",
    );
    let env = format!("env: {{V: {large}}}\nsteps: [{{name: a, command: /bin/true}}]\n");
    let bench = Bench::with(&env);
    bench.flow(&[]).expect(1).stdout_has("a failed in TOOK: variable `V` is 200000 bytes long");
}

#[test]
fn values_too_large_together_name_a_file_instead() {
    let mut flow = String::from("workers: 1\nsteps:\n");
    for number in 0..40 {
        let make = "head -c 120000 /dev/zero | tr ''\\0'' x";
        flow.push_str(&format!("  - {{name: s{number}, command: '{make}', output: V{number}}}\n"));
    }
    let bench = Bench::with(&flow);
    let ran = bench.flow(&[]).expect(1);
    ran.stdout_has(
        "arguments and environment of `sh` are too large; the largest: variable `V0` (120000 bytes), ",
    );
}

#[test]
fn an_output_that_is_looked_into_has_a_limit() {
    let bench = Bench::with(
        "
steps:
  - {name: a, command: head -c 2000000 /dev/zero}
  - {name: b, command: 'echo ${a.x}', depends: a}
",
    );
    bench.flow(&[]).expect(1).stdout_has(
        "a failed in TOOK: its output is longer than 1 MiB and others look into it: write it to a \
         file instead\n",
    );
}

#[test]
fn a_nul_byte_cannot_be_passed_on() {
    let bench = Bench::with("steps: [{name: a, command: 'printf \"x\\0y\"', output: V}]\n");
    bench.flow(&[]).expect(1).stdout_has(
        "a failed in TOOK: variable `V` contains a NUL byte, which the environment cannot hold: \
         pass it in a file\n",
    );
}
