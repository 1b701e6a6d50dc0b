//! Figures of a run in Prometheus' text format.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::io;
use std::path::Path;

use kapell_core::flow::{State, Verdict};
use kapell_node::flow::Report;

/// Finds out before a run whether its figures can be written.
pub(crate) fn check(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    let aside = aside(path);
    std::fs::write(&aside, "")?;
    // A run that is killed leaves nothing behind.
    std::fs::remove_file(&aside)
}

/// Where the figures are put together: the same file system, so that they can be moved at once.
fn aside(path: &Path) -> OsString {
    let mut aside = path.as_os_str().to_owned();
    aside.push(format!(".{}", std::process::id()));
    aside
}

/// Writes the figures. Whoever reads the file meanwhile sees the old ones or the new ones.
pub(crate) fn write(path: &Path, report: &Report) -> io::Result<()> {
    let aside = aside(path);
    std::fs::write(&aside, text(report))?;
    std::fs::rename(&aside, path)
}

fn text(report: &Report) -> String {
    let mut out = String::new();
    let success = u8::from(report.verdict == Verdict::Succeeded);
    metric(
        &mut out,
        "kapell_workflow_success",
        "gauge",
        "1 if the last run succeeded.",
        &[(String::new(), f64::from(success))],
    );
    let seconds = report.duration.as_secs_f64();
    metric(
        &mut out,
        "kapell_workflow_duration_seconds",
        "gauge",
        "How long the run took.",
        &[(String::new(), seconds)],
    );
    let states: Vec<_> = State::ALL
        .into_iter()
        .filter(|state| state.is_final())
        .map(|state| {
            let count = report.steps.iter().filter(|step| step.state == state).count();
            (format!("{{state=\"{state}\"}}"), f64::from(u32::try_from(count).unwrap_or(u32::MAX)))
        })
        .collect();
    metric(&mut out, "kapell_workflow_steps", "gauge", "Steps by how they ended.", &states);
    let label = |name: &str| name.replace('\\', "\\\\").replace('"', "\\\"");
    let durations: Vec<_> = report
        .steps
        .iter()
        .filter_map(|step| {
            let labels = format!("{{step=\"{}\",state=\"{}\"}}", label(&step.name), step.state);
            step.duration.map(|duration| (labels, duration.as_secs_f64()))
        })
        .collect();
    metric(
        &mut out,
        "kapell_step_duration_seconds",
        "gauge",
        "How long each step took, retries included.",
        &durations,
    );
    let attempts: Vec<_> = report
        .steps
        .iter()
        .filter(|step| step.attempts > 0)
        .map(|step| (format!("{{step=\"{}\"}}", label(&step.name)), f64::from(step.attempts)))
        .collect();
    metric(&mut out, "kapell_step_attempts", "gauge", "Attempts that each step took.", &attempts);
    out
}

fn metric(out: &mut String, name: &str, kind: &str, help: &str, samples: &[(String, f64)]) {
    writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}")
        .expect("writing to a String cannot fail");
    for (labels, value) in samples {
        writeln!(out, "{name}{labels} {value}").expect("writing to a String cannot fail");
    }
}
