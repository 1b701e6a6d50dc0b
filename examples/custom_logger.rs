//! Runs a workflow from Rust, with a logger of one's own.
//!
//! `cargo run -p kapell-node --example custom_logger -- examples/hello.yaml`

#![expect(clippy::print_stdout, reason = "an example shows something")]

use std::path::Path;
use std::process::ExitCode;

use kapell_core::flow::State;
use kapell_core::workflow::Workflow;
use kapell_node::flow::{
    ExecutionLogger, NodeEvent, NodeSnapshot, Orchestrator, WorkflowEvent, read_file,
};

/// Says in one line what happens, and keeps the score.
#[derive(Debug, Default)]
struct Scoreboard {
    succeeded: usize,
}

impl ExecutionLogger for Scoreboard {
    fn on_workflow_start(&mut self, event: &WorkflowEvent<'_>) {
        println!("{} begins with {} steps", event.workflow.name, event.workflow.len());
    }

    fn on_workflow_complete(&mut self, event: &WorkflowEvent<'_>) {
        println!("{} is over, {} steps succeeded", event.workflow.name, self.succeeded);
    }

    fn on_node_event(&mut self, event: &NodeEvent<'_>) {
        println!("  {} {}", event.kind.name(), event.node);
    }

    fn on_status_update(&mut self, states: &[NodeSnapshot], _dag: &Workflow) {
        self.succeeded = states.iter().filter(|state| state.state == State::Succeeded).count();
    }

    fn close(&mut self) {
        println!("closed");
    }
}

fn main() -> ExitCode {
    let file = std::env::args().nth(1).unwrap_or_else(|| "examples/hello.yaml".to_owned());
    let loaded = match read_file(Path::new(&file)) {
        Ok((loaded, _text)) => loaded,
        Err(error) => {
            println!("{error}");
            return ExitCode::from(2);
        }
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime");
    let orchestrator = Orchestrator::new(loaded).workers(2).logger(Box::new(Scoreboard::default()));
    let report = runtime.block_on(orchestrator.run());
    ExitCode::from(report.verdict.exit_code())
}
