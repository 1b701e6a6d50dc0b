//! Whatever the bytes are, loading gives a workflow or problems, and never a panic.

use proptest::prelude::*;
use proptest::sample::Index;
use saphyr_parser::{Event, Parser};

use super::super::{dot, load, mermaid, tree};
use crate::source::Problem;
use crate::yaml::{Node, Value, parse};

/// A good file with nearly everything in it.
const GOOD: &str = r#"kind: workflow
name: "release"
description: builds and ships
env: {LANG: C, TOKEN: "a;b'c"}
params: [input.csv, {name: target, default: "x y"}, {name: mode}]
workers: 4
timeout: 1h30m
on_failure: continue
defaults: &defaults
  shell: bash -euo pipefail
  retry_policy: {limit: 2, delay: 1s, backoff: 2, max_delay: 1m, jitter: 0.1}
handlers:
  success: echo ok
  failure: {command: mail, args: [-s, "failed: $1"]}
  exit:
    script: |
      #!/bin/sh
      rm -rf scratch
steps:
  - &first
    name: fetch
    command: curl -fsS "$1" > data
    preconditions:
      - test -w .
      - {predicate: df --output=avail . | tail -1, expected: "100"}
    output: {stdout: PAGE, stderr: LOG}
    console: true
  - name: check
    command: jq
    args: [-e, ".ok", data]
    depends: fetch
    when: {predicate: echo $MODE, expected: true}
    continue_on_error: true
    timeout: 30s
  - <<: *first
    name: fetch-again
    depends: [{step: check, on: failure}, {step: fetch, on: done}]
    requires: all
    priority: 5
  - name: gather
    after: [fetch]
  - name: ship
    script: |
      echo "${fetch.version} $10 ${target}"
    depends: [gather, fetch-again]
    dir: /tmp
    executor: local
"#;

fn config() -> ProptestConfig {
    ProptestConfig { failure_persistence: None, ..ProptestConfig::default() }
}

/// Loads, and checks what every caller relies on.
fn check(bytes: &[u8]) -> Result<(), TestCaseError> {
    match load(bytes, "stem") {
        Ok(loaded) => {
            let workflow = &loaded.workflow;
            prop_assert!(!workflow.is_empty(), "a workflow has steps");
            prop_assert_eq!(
                workflow.graph.order().len(),
                workflow.len(),
                "nothing waits for itself"
            );
            prop_assert!(workflow.steps.len() <= workflow.len() + 3);
            prop_assert!(!loaded.warnings.iter().any(Problem::is_error));
            prop_assert!(loaded.quoted.iter().all(|step| step.index() < workflow.len()));
            prop_assert!(dot(workflow).len() + mermaid(workflow).len() + tree(workflow).len() > 0);
        }
        Err(problems) => {
            prop_assert!(problems.iter().any(Problem::is_error), "refused for a reason");
            let lines = bytes.iter().filter(|&&byte| byte == b'\n' || byte == b'\r').count() + 2;
            for problem in &problems {
                prop_assert!(problem.span.line >= 1 && problem.span.column >= 1, "{}", problem);
                prop_assert!(problem.span.line as usize <= lines, "{} of {}", problem, lines);
                prop_assert!(!problem.message.is_empty());
            }
        }
    }
    Ok(())
}

/// Every value of a file as the YAML library tells it; none if it is not plain YAML.
fn values_by_library(text: &str) -> Option<Vec<String>> {
    let mut values = Vec::new();
    for event in Parser::new_from_str(text.strip_prefix('\u{feff}').unwrap_or(text)) {
        match event.ok()?.0 {
            Event::Scalar(value, ..) if value != "<<" => values.push(value.into_owned()),
            Event::Scalar(..) | Event::Alias(_) => return None,
            Event::Nothing
            | Event::StreamStart
            | Event::StreamEnd
            | Event::DocumentStart(_)
            | Event::DocumentEnd
            | Event::SequenceStart(..)
            | Event::SequenceEnd
            | Event::MappingStart(..)
            | Event::MappingEnd => {}
        }
    }
    Some(values)
}

fn collect(node: &Node<'_>, values: &mut Vec<String>) {
    match &node.value {
        Value::Scalar(scalar) => values.push(scalar.text.clone().into_owned()),
        Value::List(items) => items.iter().for_each(|item| collect(item, values)),
        Value::Map(entries) => {
            for (key, value) in entries {
                collect(key, values);
                collect(value, values);
            }
        }
    }
}

/// Checks that the tree holds what the library read, no more and no less.
fn check_values(text: &str) -> Result<(), TestCaseError> {
    if let (Some(want), Ok(documents)) = (values_by_library(text), parse(text)) {
        let mut got = Vec::new();
        for document in &documents {
            collect(document, &mut got);
        }
        prop_assert_eq!(got, want);
    }
    Ok(())
}

#[derive(Debug, Clone)]
enum Mutation {
    DeleteLine(Index),
    RepeatLine(Index),
    SwapLines(Index, Index),
    Indent(Index, usize),
    DeleteChar(Index),
    RepeatChar(Index),
    ReplaceChar(Index, char),
    InsertText(Index, &'static str),
    Cut(Index),
}

fn mutation() -> impl Strategy<Value = Mutation> {
    let at = any::<Index>;
    let bits = vec![
        "\t",
        "\n",
        ": ",
        "- ",
        "[",
        "]",
        "{",
        "}",
        "'",
        "\"",
        "*",
        "&x ",
        "*first",
        "<<: ",
        "|",
        "#",
        "---\n",
        "!!int ",
        "%",
        "\0",
        "\u{feff}",
        "→",
        "~",
        "name: fetch",
        "depends: ship",
    ];
    prop_oneof![
        at().prop_map(Mutation::DeleteLine),
        at().prop_map(Mutation::RepeatLine),
        (at(), at()).prop_map(|(one, other)| Mutation::SwapLines(one, other)),
        (at(), 0_usize..7).prop_map(|(line, by)| Mutation::Indent(line, by)),
        at().prop_map(Mutation::DeleteChar),
        at().prop_map(Mutation::RepeatChar),
        (at(), any::<char>()).prop_map(|(place, char)| Mutation::ReplaceChar(place, char)),
        (at(), proptest::sample::select(bits))
            .prop_map(|(place, text)| Mutation::InsertText(place, text)),
        at().prop_map(Mutation::Cut),
    ]
}

fn apply(text: &str, mutation: &Mutation) -> String {
    if text.is_empty() {
        return String::new();
    }
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let mut chars: Vec<char> = text.chars().collect();
    match mutation {
        Mutation::DeleteLine(at) => drop(lines.remove(at.index(lines.len()))),
        Mutation::RepeatLine(at) => {
            let at = at.index(lines.len());
            lines.insert(at, lines[at].clone());
        }
        Mutation::SwapLines(one, other) => {
            let len = lines.len();
            lines.swap(one.index(len), other.index(len));
        }
        Mutation::Indent(at, by) => {
            let at = at.index(lines.len());
            lines[at] = format!("{}{}", " ".repeat(*by), lines[at].trim_start());
        }
        Mutation::DeleteChar(at) => drop(chars.remove(at.index(chars.len()))),
        Mutation::RepeatChar(at) => {
            let at = at.index(chars.len());
            chars.insert(at, chars[at]);
        }
        Mutation::ReplaceChar(at, char) => {
            let at = at.index(chars.len());
            chars[at] = *char;
        }
        Mutation::InsertText(at, text) => {
            let at = at.index(chars.len());
            chars.splice(at..at, text.chars());
        }
        Mutation::Cut(at) => chars.truncate(at.index(chars.len())),
    }
    let by_line = matches!(
        mutation,
        Mutation::DeleteLine(_)
            | Mutation::RepeatLine(_)
            | Mutation::SwapLines(..)
            | Mutation::Indent(..)
    );
    if by_line { lines.join("\n") + "\n" } else { chars.into_iter().collect() }
}

#[test]
fn the_good_file_is_good() {
    let loaded = load(GOOD.as_bytes(), "stem").unwrap();
    assert_eq!((loaded.workflow.len(), loaded.workflow.steps.len()), (5, 8));
    assert_eq!(loaded.quoted.len(), 1);
    let plain = GOOD.replace("*first", "{a: b}").replace("<<", "base");
    assert!(values_by_library(&plain).is_some_and(|values| values.len() > 100));
    check_values(&plain).unwrap();
}

#[test]
fn every_beginning_of_a_good_file_is_loaded_or_refused() {
    for end in (0..GOOD.len()).filter(|&end| GOOD.is_char_boundary(end)) {
        check(&GOOD.as_bytes()[..end]).unwrap();
    }
}

#[test]
fn deep_aliases_of_aliases_do_no_harm() {
    let mut text = format!("env: &a0 {}x{}\n", "[".repeat(60), "]".repeat(60));
    for at in 1..60 {
        let before = at - 1;
        text += &format!("k{at}: &a{at} {}*a{before}{}\n", "[".repeat(60), "]".repeat(60));
    }
    assert!(load(text.as_bytes(), "stem").is_err());
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn any_bytes_are_loaded_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        check(&bytes)?;
    }

    #[test]
    fn any_text_is_loaded_or_refused(text in "[ \\t\\n:\\-\\[\\]{},&*!|>'\"%@`#?a-c0-2~<\u{85}ä]{0,120}") {
        check(text.as_bytes())?;
        check_values(&text)?;
        check(format!("steps:\n  - name: a\n    {text}\n").as_bytes())?;
    }

    #[test]
    fn any_change_to_a_good_file_is_loaded_or_refused(
        mutations in proptest::collection::vec(mutation(), 1..6),
    ) {
        let text = mutations.iter().fold(GOOD.to_owned(), |text, mutation| apply(&text, mutation));
        check(text.as_bytes())?;
        check_values(&text.replace("*first", "{a: b}").replace("<<", "base"))?;
    }

    #[test]
    fn any_broken_bytes_in_a_good_file_are_loaded_or_refused(
        changes in proptest::collection::vec((any::<Index>(), any::<u8>()), 1..6),
    ) {
        let mut bytes = GOOD.as_bytes().to_vec();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        check(&bytes)?;
    }
}
