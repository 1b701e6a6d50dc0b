//! One line an event.

use kapell_backend::executor::Stream;
use kapell_core::flow::Kind;
use kapell_core::seams::Timestamp;
use kapell_core::workflow::{Workflow, show_duration};
use kapell_node::flow::{ExecutionLogger, NodeEvent, NodeSnapshot, WorkflowEvent};

use super::console::Console;
use super::style::{Colour, Style, clean};

#[derive(Debug)]
pub(crate) struct StreamLogger {
    style: Style,
    zone: jiff::tz::TimeZone,
    console: Console,
}

impl StreamLogger {
    pub(crate) fn new(style: Style) -> Self {
        Self { style, zone: jiff::tz::TimeZone::system(), console: Console::default() }
    }

    fn line(&mut self, at: Timestamp, text: &str) {
        let clock =
            jiff::Timestamp::from_millisecond(at.0).unwrap_or_default().to_zoned(self.zone.clone());
        let clock = self.style.paint(Colour::Dim, &format!("[{}]", clock.strftime("%H:%M:%S")));
        crate::print(&format!("{}{clock} {text}\n", self.console.before_line()));
    }
}

/// An event of a step in words, with its sign.
pub(super) fn words(style: Style, event: &NodeEvent<'_>) -> String {
    let node = style.paint(Colour::Bold, event.node);
    let took =
        event.duration.map(|took| format!(" in {}", show_duration(took))).unwrap_or_default();
    let because = event.reason.map(|reason| format!(": {}", clean(reason))).unwrap_or_default();
    let error = event.error.map(|error| format!(": {}", clean(error))).unwrap_or_default();
    match event.kind {
        Kind::NodeStarted if event.attempt > 0 => {
            format!("… {node} started (attempt {})", event.attempt + 1)
        }
        Kind::NodeStarted => format!("… {node} started"),
        Kind::NodeCompleted => {
            format!("{} {node} completed{took}", style.paint(Colour::Green, "✓"))
        }
        Kind::NodeFailed => format!("{} {node} failed{took}{error}", style.paint(Colour::Red, "✗")),
        Kind::NodeFailedContinue => {
            format!("{} {node} failed (continuing){took}{error}", style.paint(Colour::Yellow, "⚠"))
        }
        Kind::NodeSkipped => format!("{} {node} skipped{because}", style.paint(Colour::Dim, "○")),
        Kind::NodeRetrying => {
            format!("{} {node} failed{error}; retrying{because}", style.paint(Colour::Yellow, "↻"))
        }
        Kind::NodeCancelled => {
            format!("{} {node} cancelled{because}", style.paint(Colour::Dim, "⊘"))
        }
        Kind::WorkflowStarted | Kind::WorkflowCompleted | Kind::WorkflowFailed => String::new(),
    }
}

/// How a workflow ended, in words.
pub(super) fn closing_words(style: Style, event: &WorkflowEvent<'_>) -> String {
    let name = style.paint(Colour::Bold, &event.workflow.name);
    let took = event.duration.map(show_duration).unwrap_or_default();
    match event.error {
        None => format!("{} {name} completed in {took}", style.paint(Colour::Green, "✓")),
        Some(error) => {
            format!("{} {name} failed in {took}: {}", style.paint(Colour::Red, "✗"), clean(error))
        }
    }
}

impl ExecutionLogger for StreamLogger {
    fn on_workflow_start(&mut self, event: &WorkflowEvent<'_>) {
        self.console = Console::of(event.workflow);
        let steps = event.workflow.len();
        let plural = if steps == 1 { "" } else { "s" };
        let name = self.style.paint(Colour::Bold, &event.workflow.name);
        let run = if event.run.is_empty() { String::new() } else { format!(", run {}", event.run) };
        self.line(event.at, &format!("▶ {name} started: {steps} step{plural}{run}"));
    }

    fn on_workflow_complete(&mut self, event: &WorkflowEvent<'_>) {
        self.console.end_all();
        self.line(event.at, &closing_words(self.style, event));
    }

    fn on_node_event(&mut self, event: &NodeEvent<'_>) {
        self.console.end(event.node);
        self.line(event.at, &words(self.style, event));
    }

    fn on_status_update(&mut self, _states: &[NodeSnapshot], _dag: &Workflow) {}

    fn close(&mut self) {}

    fn wants_status_updates(&self) -> bool {
        false
    }

    fn on_console(&mut self, node: &str, stream: Stream, chunk: &[u8]) {
        self.console.take(node, stream, chunk);
    }
}

impl Drop for StreamLogger {
    fn drop(&mut self) {
        self.console.end_all();
    }
}
