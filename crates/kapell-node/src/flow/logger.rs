//! What a run tells while it goes on, and to whom.

use std::time::Duration;

use kapell_backend::executor::Stream;
use kapell_core::flow::{Kind, State};
use kapell_core::seams::Timestamp;
use kapell_core::workflow::{StepIx, Workflow};

/// An event of the workflow as a whole.
#[derive(Debug, Clone)]
pub struct WorkflowEvent<'a> {
    pub kind: Kind,
    pub at: Timestamp,
    pub workflow: &'a Workflow,
    /// The run's id; empty if it is not journalled.
    pub run: &'a str,
    pub duration: Option<Duration>,
    pub error: Option<&'a str>,
}

/// An event of one step.
#[derive(Debug, Clone)]
pub struct NodeEvent<'a> {
    pub kind: Kind,
    pub at: Timestamp,
    pub step: StepIx,
    pub node: &'a str,
    /// From 0.
    pub attempt: u32,
    pub exit_code: Option<i32>,
    pub duration: Option<Duration>,
    pub reason: Option<&'a str>,
    pub error: Option<&'a str>,
}

/// How one step stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeSnapshot {
    pub state: State,
    pub attempt: u32,
    /// How long it has run, or ran.
    pub elapsed: Option<Duration>,
    pub error: Option<String>,
}

/// Is told what happens in a run. Implement it to log in your own way.
///
/// Calls come one at a time, from the thread that runs the workflow: what takes long holds it up.
pub trait ExecutionLogger: Send {
    fn on_workflow_start(&mut self, event: &WorkflowEvent<'_>);
    fn on_workflow_complete(&mut self, event: &WorkflowEvent<'_>);
    fn on_node_event(&mut self, event: &NodeEvent<'_>);
    /// Comes every 100 ms, and once more at the end. `states[i]` is step `i` of `dag`.
    fn on_status_update(&mut self, states: &[NodeSnapshot], dag: &Workflow);
    /// No event comes after this; output of processes that steps left behind may.
    fn close(&mut self);

    /// Whether status updates are wanted while the run goes on; they cost time in large graphs.
    fn wants_status_updates(&self) -> bool {
        true
    }

    /// Output of a step that is to be shown while it runs.
    fn on_console(&mut self, _node: &str, stream: Stream, chunk: &[u8]) {
        // Nobody may be reading; that is no reason for the workflow to fail.
        let _written = crate::stdio::write_all(stream, chunk);
    }
}

/// Says nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoOpLogger;

impl ExecutionLogger for NoOpLogger {
    fn on_workflow_start(&mut self, _event: &WorkflowEvent<'_>) {}
    fn on_workflow_complete(&mut self, _event: &WorkflowEvent<'_>) {}
    fn on_node_event(&mut self, _event: &NodeEvent<'_>) {}
    fn on_status_update(&mut self, _states: &[NodeSnapshot], _dag: &Workflow) {}
    fn close(&mut self) {}
    fn wants_status_updates(&self) -> bool {
        false
    }
    fn on_console(&mut self, _node: &str, _stream: Stream, _chunk: &[u8]) {}
}
