//! A live tree: every step where it hangs, redrawn in place.

mod console;
mod layout;
mod line;
mod screen;
mod step;

use std::cell::OnceCell;
use std::fs::File;
use std::io::{IsTerminal as _, Write};
use std::os::fd::AsFd as _;
use std::time::{Duration, Instant};

use kapell_backend::executor::Stream;
use kapell_core::flow::Kind;
use kapell_core::workflow::Workflow;
use kapell_node::flow::{ExecutionLogger, NodeEvent, NodeSnapshot, WorkflowEvent};

use super::stream::closing_words;
use super::style::{Colour, Style};
use console::Console;
use layout::Layout;
use line::{Fitted, Line};
use screen::{Screen, Size};
use step::{Reasons, Scene};

/// Output of steps is shown with the next frame, or as soon as there is so much of it.
const MAX_WAITING: usize = 64 << 10;

/// Shows a run on a terminal. Only status updates draw, so bursts of events cost nothing.
pub(crate) struct TreeLogger {
    style: Style,
    screen: Screen<Box<dyn Write + Send>>,
    console: Console,
    /// Standard error is shown above the tree if it goes to a terminal, too.
    shows_stderr: bool,
    layout: OnceCell<Layout>,
    states: Vec<NodeSnapshot>,
    reasons: Reasons,
    begun: Instant,
    turn: usize,
    closed: bool,
}

impl TreeLogger {
    pub(crate) fn new(style: Style) -> Self {
        let stdout = std::io::stdout();
        // Past the buffer of `Stdout`: a frame is one write.
        let out: Box<dyn Write + Send> = match stdout.as_fd().try_clone_to_owned() {
            Ok(fd) => Box::new(File::from(fd)),
            Err(_) => Box::new(stdout),
        };
        Self {
            style,
            screen: Screen::new(out),
            console: Console::default(),
            shows_stderr: std::io::stderr().is_terminal(),
            layout: OnceCell::new(),
            states: Vec::new(),
            reasons: Reasons::default(),
            begun: Instant::now(),
            turn: 0,
            closed: false,
        }
    }

    fn layout(&self, dag: &Workflow) -> &Layout {
        self.layout.get_or_init(|| Layout::of(dag))
    }

    fn scene<'s>(&'s self, dag: &'s Workflow, elapsed: Duration) -> Scene<'s> {
        let (states, reasons) = (&self.states, &self.reasons);
        Scene { dag, states, reasons, turn: self.turn, elapsed }
    }
}

fn fit(lines: &[Line], size: Size, style: Style) -> Vec<Fitted> {
    lines.iter().map(|line| line.fit(size.cols, style)).collect()
}

impl ExecutionLogger for TreeLogger {
    fn on_workflow_start(&mut self, event: &WorkflowEvent<'_>) {
        self.begun = Instant::now();
        let steps = event.workflow.len();
        let plural = if steps == 1 { "" } else { "s" };
        let run = if event.run.is_empty() { String::new() } else { format!(", run {}", event.run) };
        let line = Line::default()
            .plain("▶ ")
            .paint(Colour::Bold, &event.workflow.name)
            .plain(&format!(": {steps} step{plural}{run}"));
        let text = format!("{}\n", line.fit(usize::MAX, self.style).sent);
        self.screen.append(text.as_bytes());
    }

    fn on_workflow_complete(&mut self, event: &WorkflowEvent<'_>) {
        let dag = event.workflow;
        let size = Size::of_stdout();
        self.console.end_all();
        let mut text = String::new();
        if self.states.len() == dag.steps.len() {
            let elapsed = event.duration.unwrap_or_else(|| self.begun.elapsed());
            let lines = self.layout(dag).last(&self.scene(dag, elapsed), size);
            for line in fit(&lines, size, self.style) {
                text.push_str(&line.sent);
                text.push('\n');
            }
        }
        let words = closing_words(self.style, event).replace(['\n', '\r'], " ");
        let mut closing = Vec::new();
        console::calm(words.as_bytes(), &mut closing);
        text.push_str(&String::from_utf8_lossy(&closing));
        text.push('\n');
        self.screen.leave(size, &self.console.drain(), &text);
    }

    fn on_node_event(&mut self, event: &NodeEvent<'_>) {
        self.reasons.learn(event);
        if event.kind != Kind::NodeStarted {
            self.console.end(event.node);
        }
    }

    fn on_status_update(&mut self, states: &[NodeSnapshot], dag: &Workflow) {
        self.states.clear();
        self.states.extend_from_slice(states);
        self.turn = self.turn.wrapping_add(1);
        let size = Size::of_stdout();
        let lines = self.layout(dag).live(&self.scene(dag, self.begun.elapsed()), size);
        let frame = fit(&lines, size, self.style);
        self.screen.draw(size, &self.console.drain(), frame);
    }

    fn close(&mut self) {
        self.console.end_all();
        let rest = self.console.drain();
        self.screen.release();
        if !rest.is_empty() {
            self.screen.append(&rest);
        }
        self.closed = true;
    }

    fn on_console(&mut self, node: &str, stream: Stream, chunk: &[u8]) {
        if stream == Stream::Stderr && !self.shows_stderr {
            // Nobody may be reading; that is no reason for the workflow to fail.
            let _written = std::io::stderr().lock().write_all(chunk);
            return;
        }
        self.console.take(node, stream, chunk);
        if self.closed {
            self.screen.append(&self.console.drain());
        } else if self.console.waiting() >= MAX_WAITING {
            self.screen.put_above(Size::of_stdout(), &self.console.drain());
        }
    }
}

impl Drop for TreeLogger {
    fn drop(&mut self) {
        self.close();
    }
}
