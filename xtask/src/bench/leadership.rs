//! `cargo xtask bench leadership`: what a seat costs, beside raw calls of the same clients.

use std::process::Stdio;

use serde_json::Value;

use super::row::{self, Goal, Row};
use super::{Options, program};
use crate::backends::Session;
use crate::command;
use crate::error::{Result, failed};
use crate::workspace::Workspace;

const SERVERS: [&str; 2] = ["etcd", "postgres"];

/// Measures and prints.
pub(crate) fn run(workspace: &Workspace, options: Options) -> Result<()> {
    run_on(workspace, options, "leadership-bench", &SERVERS)
}

/// Runs a program with these servers; names those that cannot be had.
pub(super) fn run_on(
    workspace: &Workspace,
    options: Options,
    name: &str,
    servers: &[&str],
) -> Result<()> {
    let mut bench = program(workspace, name, options)?;
    let session = Session::begin(servers)?;
    session.equip(&mut bench, servers);
    let reported = report(workspace, options, bench);
    for (name, why) in &session.missing {
        eprintln!("SKIPPED {name}: {why}");
    }
    session.end()?;
    reported
}

/// The same without any server, on the embedded store alone.
pub(super) fn run_alone(workspace: &Workspace, options: Options, name: &str) -> Result<()> {
    let mut bench = program(workspace, name, options)?;
    Session::default().equip(&mut bench, &[]);
    report(workspace, options, bench)
}

/// Runs a program that prints figures, and prints them as a table.
pub(super) fn report(
    workspace: &Workspace,
    options: Options,
    mut bench: std::process::Command,
) -> Result<()> {
    if options.smoke {
        bench.arg("--smoke");
    }
    bench.stdout(Stdio::piped()).stderr(Stdio::inherit());
    let output = bench.output().map_err(|error| failed(format!("cannot run it: {error}")))?;
    if !output.status.success() {
        return Err(failed(format!("the benchmark failed: {}", output.status)));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let rows: Vec<Row> = text.lines().filter_map(parse).collect();
    let judged = !options.smoke;
    if options.json {
        println!("{:#}", row::to_json(&rows, judged));
    } else {
        println!("commit {}, {}\n", command::commit(&workspace.root), command::today());
        print!("{}", row::to_markdown(rows.iter().filter(|row| row.has_goal()), judged));
        let context = rows.iter().filter(|row| !row.has_goal());
        println!("\nBehind them:\n\n{}", row::to_markdown(context, judged));
    }
    for missed in rows.iter().filter_map(Row::missed).filter(|_| judged) {
        eprintln!("MISSED {missed}");
    }
    Ok(())
}

/// One line of the program that measures.
fn parse(line: &str) -> Option<Row> {
    let figure: Value = serde_json::from_str(line).ok()?;
    let samples = figure["samples"].as_array()?.iter().filter_map(Value::as_f64);
    let unit = ["ratio", "ms", "s", "MB", "1/s", "%", "µs", "LRPs", "ops", "calls", "KB"]
        .into_iter()
        .find(|it| figure["unit"] == **it)?;
    let row = Row::new(figure["name"].as_str()?.to_owned(), samples).unit(unit);
    Some(match (figure["at_most"].as_f64(), figure["at_least"].as_f64()) {
        (Some(limit), _) => row.goal(Goal::AtMost(limit)),
        (None, Some(limit)) => row.goal(Goal::AtLeast(limit)),
        (None, None) => row,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_becomes_a_row() {
        let row = parse(r#"{"name":"a","samples":[2.0,1.0],"unit":"ms","at_most":1.0}"#).unwrap();
        assert_eq!(row.missed().as_deref(), Some("a: 1.500 ms, goal <= 1.00"));
        let row = parse(r#"{"name":"b","samples":[0.7],"unit":"ratio","at_least":0.6}"#).unwrap();
        assert_eq!((row.has_goal(), row.missed()), (true, None));
        assert_eq!(parse("noise"), None);
    }
}
