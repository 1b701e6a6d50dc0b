//! What a run came to, for the person who started it.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use kapell_core::flow::{Decision, Fate, State, Verdict};
use kapell_core::workflow::{Workflow, show_duration};
use kapell_node::flow::{Failure, Report};

use crate::logger::Style;
use crate::logger::style::{Colour, clean};

/// How many of the last lines of a failed step are shown.
const LINES: usize = 20;
/// How many failures are shown in full.
const FAILURES: usize = 5;

/// The summary: the first failure first, with the end of its output, and how to go on.
///
/// `flags` are those that tell where the run is kept.
pub(crate) fn of(report: &Report, flags: &[(&str, PathBuf)], file: &Path, style: Style) -> String {
    let mut out = String::new();
    if report.verdict != Verdict::Succeeded || !report.failures.is_empty() {
        out.push('\n');
        if let (Verdict::Failed(None), Some(cause)) = (report.verdict, report.cause) {
            put(&mut out, format_args!("{} {cause}\n", style.paint(Colour::Red, "✗")));
        }
        let fatal = report.failures.iter().filter(|failure| !failure.tolerated);
        let tolerated = report.failures.iter().filter(|failure| failure.tolerated);
        for (at, failure) in fatal.chain(tolerated).take(FAILURES).enumerate() {
            show_failure(&mut out, failure, at == 0, style);
        }
        if report.failures.len() > FAILURES {
            let more = report.failures.len() - FAILURES;
            let plural = if more == 1 { "" } else { "s" };
            put(&mut out, format_args!("… and {more} more failure{plural}\n"));
        }
    }
    put(&mut out, format_args!("{}\n", counts(report, style)));
    if report.swept > 0 {
        let plural = if report.swept == 1 { "" } else { "es" };
        put(
            &mut out,
            format_args!(
                "ended {} background process{plural} that steps had left behind\n",
                report.swept
            ),
        );
    }
    if report.verdict != Verdict::Succeeded && report.run.is_some() {
        out.push_str("resume with: kapell process");
        for (flag, path) in flags {
            put(&mut out, format_args!(" {flag} {}", quoted(path)));
        }
        put(&mut out, format_args!(" --resume {}\n", quoted(file)));
    }
    out
}

fn put(out: &mut String, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text).expect("writing to a String cannot fail");
}

pub(crate) fn quoted(file: &Path) -> String {
    let text = file.display().to_string();
    let plain = text.chars().all(|c| c.is_alphanumeric() || "/._-+,:@".contains(c));
    if plain { text } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

fn show_failure(out: &mut String, failure: &Failure, first: bool, style: Style) {
    let sign = style.paint(Colour::Red, if failure.tolerated { "⚠" } else { "✗" });
    let which = match (first, failure.tolerated) {
        (true, false) => "first failure: ",
        (_, true) => "tolerated: ",
        (false, false) => "",
    };
    let name = style.paint(Colour::Bold, &failure.name);
    put(out, format_args!("{sign} {which}{name}: {}\n", clean(&failure.error)));
    let lines: Vec<&str> = failure.tail.trim_end().lines().collect();
    for line in &lines[lines.len().saturating_sub(LINES)..] {
        put(out, format_args!("  {} {}\n", style.paint(Colour::Dim, "│"), printable(line)));
    }
}

/// A line of a step's output without what would move the cursor or change the terminal.
fn printable(line: &str) -> String {
    let line = line.rsplit('\r').next().unwrap_or(line);
    line.chars().filter(|c| *c == '\t' || !c.is_control()).collect()
}

/// `3 succeeded, 1 failed, 2 cancelled in 1.4s`.
fn counts(report: &Report, style: Style) -> String {
    let steps = || report.steps.iter().filter(|step| !step.is_handler);
    let count = |states: &[State]| steps().filter(|step| states.contains(&step.state)).count();
    let parts: Vec<String> = [
        (count(&[State::Succeeded]), "succeeded", Colour::Green),
        (count(&[State::Kept]), "kept", Colour::Dim),
        (count(&[State::Failed]), "failed", Colour::Red),
        (count(&[State::FailedContinue]), "failed (tolerated)", Colour::Yellow),
        (count(&[State::Skipped]), "skipped", Colour::Dim),
        (count(&[State::Cancelled]), "cancelled", Colour::Dim),
    ]
    .into_iter()
    .filter(|(number, ..)| *number > 0)
    .map(|(number, what, colour)| style.paint(colour, &format!("{number} {what}")))
    .collect();
    format!("{} in {}", parts.join(", "), show_duration(report.duration))
}

/// What a run would do.
pub(crate) fn dry_run(workflow: &Workflow, fates: &[Fate], decisions: &[Decision]) -> String {
    let mut out = String::new();
    let width = decisions
        .iter()
        .map(|it| workflow.step(it.step).name.chars().count())
        .max()
        .unwrap_or(0)
        .min(40);
    for decision in decisions {
        let verb = match fates[decision.step.index()] {
            Fate::Run | Fate::GoesOn | Fate::Picked => "run ",
            Fate::Counts(State::Kept) => "keep",
            Fate::Counts(_) => "skip",
        };
        let name = &workflow.step(decision.step).name;
        put(&mut out, format_args!("{verb}  {name:width$}  {}\n", decision.why));
    }
    let runs = decisions.iter().filter(|decision| decision.runs).count();
    let plural = if decisions.len() == 1 { "" } else { "s" };
    put(&mut out, format_args!("{runs} of {} step{plural} would run\n", decisions.len()));
    out
}
