use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::*;

/// Set by `cargo xtask tables`: pages are written instead of compared.
const WRITE: &str = "KAPELL_WRITE_TABLES";

fn dir() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/tables")
}

#[test]
fn pages_are_as_the_code_has_them() {
    let write = std::env::var_os(WRITE).is_some(); // tidy: allow(io) said by the command
    if write {
        std::fs::create_dir_all(dir()).unwrap(); // tidy: allow(io) pages are files
    }
    let mut stale = Vec::new();
    for page in pages() {
        let path = dir().join(format!("{}.md", page.name));
        if write {
            std::fs::write(&path, &page.text).unwrap(); // tidy: allow(io) pages are files
        }
        let there = std::fs::read_to_string(&path).ok(); // tidy: allow(io) pages are files
        if there.as_ref() != Some(&page.text) {
            stale.push(format!("docs/tables/{}.md", page.name));
        }
    }
    assert!(stale.is_empty(), "stale: {}; run `cargo xtask tables`", stale.join(", "));
}

#[test]
fn there_is_no_page_that_nobody_makes() {
    let made: BTreeSet<String> = pages().iter().map(|page| format!("{}.md", page.name)).collect();
    let there: BTreeSet<String> = std::fs::read_dir(dir()) // tidy: allow(io) pages are files
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(there, made);
}

#[test]
fn every_place_of_every_table_is_shown_with_action_surprise_and_reason() {
    use crate::rep::{evacuation, lrp, task};
    let text = |name: &str| pages().into_iter().find(|page| page.name == name).unwrap().text;
    let rows = |name: &str| {
        let text = text(name);
        let full = |line: &&str| {
            let cells: Vec<&str> = line.split(" | ").collect();
            ["expected", "conceivable", "**inconceivable**"]
                .iter()
                .any(|it| cells.get(2) == Some(it))
                && cells.len() == 4
                && cells.iter().all(|cell| !cell.trim_matches(['|', ' ']).is_empty())
        };
        text.lines().filter(full).count()
    };
    assert_eq!(rows("rep-lrp"), lrp::Container::ALL.len() * lrp::Record::ALL.len());
    assert_eq!(rows("rep-task"), task::Container::ALL.len() * task::Record::ALL.len());
    let both = evacuation::Instance::ALL.len() * evacuation::Twin::ALL.len();
    assert_eq!(rows("rep-evacuation-running"), both);
    assert_eq!(rows("rep-evacuation-not-running"), both * evacuation::Idle::ALL.len());
}

/// Copied by hand from the rulings.
const CRASHES: &str = "
    0 1 UNCLAIMED at once
    1 2 UNCLAIMED at once
    2 3 UNCLAIMED at once
    3 4 CRASHED after 1m
    4 5 CRASHED after 2m
    5 6 CRASHED after 4m
    6 7 CRASHED after 8m
    7 8 CRASHED after 16m
    8 9 CRASHED after 16m
    9 10 CRASHED after 16m
    199 200 CRASHED after 16m
    200 201 CRASHED never
    201 202 CRASHED never
";

#[test]
fn the_crash_dance_is_shown_as_ruled() {
    let text = pages().into_iter().find(|page| page.name == "crash").unwrap().text;
    for line in CRASHES.trim().lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let row =
            format!("| {} | {} | {} | {} |", words[0], words[1], words[2], words[3..].join(" "));
        assert!(text.contains(&row), "{row}\n{text}");
    }
}

#[test]
fn placement_errors_begin_with_the_specified_texts() {
    let text = pages().into_iter().find(|page| page.name == "placement-errors").unwrap().text;
    let told: Vec<&str> = text.lines().filter(|line| line.contains('`')).skip(1).collect();
    assert!(told.len() >= 12, "{text}");
    for line in told.into_iter().filter(|line| line.starts_with('|')) {
        let error = line.split(" | `").nth(1).unwrap();
        let starts = [
            "found no compatible cells: ",
            "insufficient resources: ",
            "unable to communicate to compatible cells",
            "waiting to start instance: reached in-flight start limit",
        ];
        assert!(starts.iter().any(|start| error.starts_with(start)), "{line}");
    }
}
