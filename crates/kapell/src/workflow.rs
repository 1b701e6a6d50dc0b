//! `kapell workflow …`: check, draw and look back.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;

use anyhow::{Context as _, bail};
use kapell_backend::executor::Stream;
use kapell_core::journal::Story;
use kapell_core::seams::Timestamp;
use kapell_core::source::Problem;
use kapell_core::workflow::{dot, mermaid, schema, show_duration, tree};
use kapell_node::flow::{FileError, History, Run, read_file, streams};
use kapell_node::stdio::Writer;
use serde_json::json;

use crate::cli::{Format, Output, Workflow};
use crate::config::Config;
use crate::logger::Style;
use crate::problems::BadFile;
use crate::{BAD_INPUT, print, say};

/// Names of what runs after all steps. A journal does not count them among those.
const HANDLERS: [&str; 3] = ["handlers.success", "handlers.failure", "handlers.exit"];

pub(crate) fn run(command: Workflow, config: &Config) -> anyhow::Result<u8> {
    let history = config.history();
    match command {
        Workflow::Validate { files } => Ok(validate(&files)),
        Workflow::Graph { format, file } => {
            let Some(loaded) = load(&file)? else { return Ok(BAD_INPUT) };
            print(&match format {
                Format::Tree => tree(&loaded.workflow),
                Format::Dot => dot(&loaded.workflow),
                Format::Mermaid => mermaid(&loaded.workflow),
            });
            Ok(0)
        }
        Workflow::Schema => {
            print(schema());
            Ok(0)
        }
        Workflow::List { file, limit, output } => {
            list(&history, file.as_deref(), limit, output);
            Ok(0)
        }
        Workflow::Show { run, output } => {
            let run = find(&history, run.as_deref())?;
            show(&run, &run.story()?, output);
            Ok(0)
        }
        Workflow::Logs { run, steps } => logs(&find(&history, run.as_deref())?, &steps),
    }
}

fn load(file: &Path) -> anyhow::Result<Option<kapell_core::workflow::Loaded>> {
    match read_file(file) {
        Ok((loaded, bytes)) => {
            show_warnings(file, &loaded.warnings, &bytes);
            Ok(Some(loaded))
        }
        Err(FileError::Bad { path, problems, bytes }) => {
            say(&BadFile { path, problems, bytes }.render(Style::of_stderr().colour));
            Ok(None)
        }
        Err(error) => Err(error.into()),
    }
}

/// Shows what is allowed in a file, but hardly meant.
pub(crate) fn show_warnings(file: &Path, warnings: &[Problem], bytes: &[u8]) {
    if !warnings.is_empty() {
        let path = file.display().to_string();
        let shown = BadFile { path, problems: warnings.to_vec(), bytes: bytes.to_vec() };
        say(&shown.render(Style::of_stderr().colour));
    }
}

fn validate(files: &[std::path::PathBuf]) -> u8 {
    let mut code = 0;
    for file in files {
        match load(file) {
            Ok(Some(loaded)) => {
                let workflow = &loaded.workflow;
                let steps = count(workflow.len(), "step", "steps");
                let edges = count(workflow.graph.edge_count(), "dependency", "dependencies");
                print(&format!("{}: ok, {steps}, {edges}\n", file.display()));
            }
            Ok(None) => code = BAD_INPUT,
            Err(error) => {
                say(&format!("error: {error:#}\n"));
                code = BAD_INPUT;
            }
        }
    }
    code
}

/// `1 step`, `2 steps`.
fn count(number: usize, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

/// The run that is meant: an id or part of one, a file for its last run, or nothing for the last.
fn find(history: &History, what: Option<&str>) -> anyhow::Result<Run> {
    match what {
        None => history
            .runs(None)
            .pop()
            .context("there are no runs yet: `kapell process FILE` makes one"),
        Some(text) if Path::new(text).is_file() => Ok(history.last(Path::new(text))?),
        Some(text) => Ok(history.find(text)?),
    }
}

fn time(at: Timestamp) -> String {
    let zone = jiff::tz::TimeZone::system();
    let time = jiff::Timestamp::from_millisecond(at.0).unwrap_or_default().to_zoned(zone);
    time.strftime("%Y-%m-%d %H:%M:%S").to_string()
}

fn took(millis: Option<u64>) -> String {
    millis.map(|millis| show_duration(std::time::Duration::from_millis(millis))).unwrap_or_default()
}

fn list(history: &History, file: Option<&Path>, limit: usize, output: Output) {
    let mut rows =
        vec![["RUN", "STATUS", "STARTED", "TOOK", "WORKFLOW", "FILE"].map(str::to_owned)];
    let mut values = Vec::new();
    for run in history.runs(file).into_iter().rev().take(limit) {
        let Ok(story) = run.story() else {
            say(&format!("warning: run {} cannot be read\n", run.id));
            continue;
        };
        let status = run.status(&story).name();
        let duration = story.end.as_ref().map(|end| end.duration_ms);
        let header = &story.header;
        values.push(json!({
            "run": run.id, "status": status, "started_ms": header.started, "duration_ms": duration,
            "workflow": header.workflow, "file": header.file, "steps": header.steps,
        }));
        let cells = [
            run.id.to_string(),
            status.into(),
            time(header.started),
            took(duration),
            header.workflow.clone(),
            header.file.clone(),
        ];
        rows.push(cells);
    }
    match output {
        Output::Json => print(&format!("{}\n", json!(values))),
        Output::Text => print(&table(&rows)),
    }
}

fn show(run: &Run, story: &Story, output: Output) {
    let header = &story.header;
    let status = run.status(story).name();
    if output == Output::Json {
        let steps: Vec<_> = story
            .order
            .iter()
            .map(|name| {
                let node = &story.nodes[name];
                let last = &node.last;
                json!({
                    "node": name, "state": node.state.name(), "attempt": last.attempt, "exit_code": last.exit_code,
                    "duration_ms": last.duration_ms, "reason": last.reason, "error": last.error,
                })
            })
            .collect();
        let value = json!({
            "run": run.id, "status": status, "workflow": header.workflow, "file": header.file,
            "started_ms": header.started, "duration_ms": story.end.as_ref().map(|end| end.duration_ms),
            "resumes": header.resumes, "error": story.end.as_ref().and_then(|end| end.error.clone()), "steps": steps,
        });
        print(&format!("{value}\n"));
        return;
    }
    let mut out = format!("run {} of {}: {status}\n", run.id, header.workflow);
    put(&mut out, format_args!("file     {}\nstarted  {}\n", header.file, time(header.started)));
    if let Some(end) = &story.end {
        put(&mut out, format_args!("took     {}\n", took(Some(end.duration_ms))));
    }
    if let Some(resumed) = &header.resumes {
        put(&mut out, format_args!("resumes  {resumed}\n"));
    }
    if let Some(error) = story.end.as_ref().and_then(|end| end.error.as_ref()) {
        put(&mut out, format_args!("error    {error}\n"));
    }
    let mut rows = vec![["STEP", "STATE", "ATTEMPTS", "TOOK", "WHY"].map(str::to_owned)];
    for name in &story.order {
        let node = &story.nodes[name];
        let why = node.last.error.clone().or_else(|| node.last.reason.clone()).unwrap_or_default();
        let attempts = if node.last.duration_ms.is_some() {
            (node.last.attempt + 1).to_string()
        } else {
            String::new()
        };
        rows.push([
            name.clone(),
            node.state.name().into(),
            attempts,
            took(node.last.duration_ms),
            why,
        ]);
    }
    out.push('\n');
    out.push_str(&table(&rows));
    let reached = story.order.iter().filter(|name| !HANDLERS.contains(&name.as_str())).count();
    let never = header.steps.saturating_sub(reached);
    if never > 0 {
        let steps = count(never, "step was", "steps were");
        put(&mut out, format_args!("{steps} never reached\n"));
    }
    print(&out);
}

fn put(out: &mut String, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text).expect("writing to a String cannot fail");
}

/// Columns aligned by their widest cell; the last one is as long as it is.
fn table<const N: usize>(rows: &[[String; N]]) -> String {
    let mut widths = [0; N];
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(unicode_width::UnicodeWidthStr::width(cell.as_str()));
        }
    }
    let mut out = String::new();
    for row in rows {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(widths) {
            let pad = width.saturating_sub(unicode_width::UnicodeWidthStr::width(cell.as_str()));
            put(&mut line, format_args!("{cell}{:pad$}  ", ""));
        }
        put(&mut out, format_args!("{}\n", line.trim_end()));
    }
    out
}

/// Prints what steps wrote: of one step as it was, of several with the step before every line.
fn logs(run: &Run, steps: &[String]) -> anyhow::Result<u8> {
    let story = run.story()?;
    if let Some(unknown) = steps.iter().find(|step| !story.nodes.contains_key(*step)) {
        bail!(
            "run {} has no step `{unknown}`: `kapell workflow show {}` lists them",
            run.id,
            run.id
        );
    }
    let Some(mut frames) = run.output().context("cannot read the run's output")? else {
        return Ok(0);
    };
    let mut names: BTreeMap<u32, String> = BTreeMap::new();
    let mut lines: BTreeMap<(u32, u32), Vec<u8>> = BTreeMap::new();
    let mut chunk = Vec::new();
    let mut stdout = std::io::BufWriter::with_capacity(64 << 10, Writer(Stream::Stdout));
    while let Some(label) = frames.next_into(&mut chunk).context("cannot read the run's output")? {
        if label.stream == streams::NAME {
            names.insert(label.source, String::from_utf8_lossy(&chunk).into_owned());
            continue;
        }
        let name = names.get(&label.source).map_or("", String::as_str);
        if !steps.is_empty() && !steps.iter().any(|step| step == name) {
            continue;
        }
        if steps.len() == 1 {
            let _written = stdout.write_all(&chunk);
            continue;
        }
        let line = lines.entry((label.source, label.stream)).or_default();
        for &byte in &chunk {
            line.push(byte);
            if byte == b'\n' {
                write_line(&mut stdout, name, line);
                line.clear();
            }
        }
    }
    for ((source, _), line) in lines.iter_mut().filter(|(_, line)| !line.is_empty()) {
        line.push(b'\n');
        write_line(&mut stdout, names.get(source).map_or("", String::as_str), line);
    }
    let _written = stdout.flush();
    Ok(0)
}

fn write_line(out: &mut impl std::io::Write, name: &str, line: &[u8]) {
    // Nobody may be listening.
    let _written = write!(out, "{name} | ").and_then(|()| out.write_all(line));
}

pub(crate) fn show_config(config: &Config, output: Output) -> u8 {
    let entries = config.entries();
    match output {
        Output::Json => {
            let values: Vec<_> = entries
                .iter()
                .map(|(name, value, from)| json!({"name": name, "value": value, "from": from}))
                .collect();
            print(&format!("{}\n", json!(values)));
        }
        Output::Text => {
            let mut rows = vec![["SETTING", "VALUE", "FROM"].map(str::to_owned)];
            rows.extend(
                entries.into_iter().map(|(name, value, from)| [name.to_owned(), value, from]),
            );
            print(&table(&rows));
        }
    }
    0
}
