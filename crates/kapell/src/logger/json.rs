//! One JSON object a line, for programs.

use std::time::Duration;

use kapell_backend::executor::Stream;
use kapell_core::flow::Kind;
use kapell_core::seams::Timestamp;
use kapell_core::workflow::Workflow;
use kapell_node::flow::{ExecutionLogger, NodeEvent, NodeSnapshot, WorkflowEvent};
use serde_json::{Map, Value, json};

#[derive(Debug, Default)]
pub(crate) struct JsonLogger;

impl JsonLogger {
    fn line(fields: Map<String, Value>) {
        let mut line = Value::Object(fields).to_string();
        line.push('\n');
        crate::print(&line);
    }
}

fn head(at: Timestamp, kind: Kind) -> Map<String, Value> {
    let at = jiff::Timestamp::from_millisecond(at.0).unwrap_or_default();
    let mut fields = Map::new();
    fields.insert("ts".into(), json!(at.strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string()));
    fields.insert("event".into(), json!(kind.name()));
    fields
}

fn millis(duration: Duration) -> Value {
    json!(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
}

impl JsonLogger {
    fn workflow(event: &WorkflowEvent<'_>) {
        let mut fields = head(event.at, event.kind);
        fields.insert("workflow".into(), json!(event.workflow.name));
        if !event.run.is_empty() {
            fields.insert("run".into(), json!(event.run));
        }
        if let Some(duration) = event.duration {
            fields.insert("duration_ms".into(), millis(duration));
        }
        if let Some(error) = event.error {
            fields.insert("error".into(), json!(error));
        }
        Self::line(fields);
    }
}

impl ExecutionLogger for JsonLogger {
    fn on_workflow_start(&mut self, event: &WorkflowEvent<'_>) {
        Self::workflow(event);
    }

    fn on_workflow_complete(&mut self, event: &WorkflowEvent<'_>) {
        Self::workflow(event);
    }

    fn on_node_event(&mut self, event: &NodeEvent<'_>) {
        let mut fields = head(event.at, event.kind);
        fields.insert("node".into(), json!(event.node));
        fields.insert("attempt".into(), json!(event.attempt));
        if let Some(code) = event.exit_code {
            fields.insert("exit_code".into(), json!(code));
        }
        if let Some(duration) = event.duration {
            fields.insert("duration_ms".into(), millis(duration));
        }
        if let Some(reason) = event.reason {
            fields.insert("reason".into(), json!(reason));
        }
        if let Some(error) = event.error {
            fields.insert("error".into(), json!(error));
        }
        Self::line(fields);
    }

    fn on_status_update(&mut self, _states: &[NodeSnapshot], _dag: &Workflow) {}

    fn close(&mut self) {}

    fn wants_status_updates(&self) -> bool {
        false
    }

    /// Standard output belongs to the events, so steps are shown on standard error.
    fn on_console(&mut self, _node: &str, _stream: Stream, chunk: &[u8]) {
        // Nobody may be reading; that is no reason for the workflow to fail.
        let _written = kapell_node::stdio::write_all(Stream::Stderr, chunk);
    }
}
