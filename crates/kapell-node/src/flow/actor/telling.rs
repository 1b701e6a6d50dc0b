//! What a run tells: the journal, the logger, and the report at its end.

use std::sync::Arc;
use std::time::Duration;

use kapell_backend::local::Swept;
use kapell_core::flow::{Kind, Note, State};
use kapell_core::workflow::StepIx;

use super::super::capture::lock;
use super::super::journal::RunJournal;
use super::super::logger::{NodeEvent, NodeSnapshot, WorkflowEvent};
use super::super::report::{Failure, Report, StepReport};
use super::Actor;

impl Actor {
    pub(super) fn tell(&mut self, note: &Note) {
        let at = self.parts.clock.wall();
        let workflow = Arc::clone(self.parts.flow.workflow());
        let Some(step) = note.step else {
            self.tell_of_workflow(note);
            return;
        };
        let name = &*workflow.step(step).name;
        let given = self.given.remove(&step).unwrap_or_default();
        if note.kind == Kind::NodeCompleted {
            self.parts.context.learn(name, &given.outputs, given.stdout.as_deref());
        }
        if matches!(note.kind, Kind::NodeFailed | Kind::NodeFailedContinue) {
            self.failed.push(step);
        }
        if let Some(journal) = &mut self.parts.journal {
            journal.node(at, name, note, given);
        }
        lock(&self.parts.logger).on_node_event(&NodeEvent {
            kind: note.kind,
            at,
            step,
            node: name,
            attempt: note.attempt,
            exit_code: note.exit_code,
            duration: note.duration,
            reason: note.reason.as_deref(),
            error: note.error.as_deref(),
        });
    }

    fn tell_of_workflow(&mut self, note: &Note) {
        let at = self.parts.clock.wall();
        let run = self.run_id();
        let event = WorkflowEvent {
            kind: note.kind,
            at,
            workflow: self.parts.flow.workflow(),
            run: &run,
            duration: note.duration,
            error: note.error.as_deref(),
        };
        if note.kind == Kind::WorkflowStarted {
            lock(&self.parts.logger).on_workflow_start(&event);
            return;
        }
        if let Some(journal) = &mut self.parts.journal {
            journal.end(at, self.parts.flow.verdict().name(), note);
        }
        let states = self.snapshot();
        let mut logger = lock(&self.parts.logger);
        logger.on_status_update(&states, self.parts.flow.workflow());
        logger.on_workflow_complete(&event);
        logger.close();
    }

    pub(super) fn update_status(&self) {
        let states = self.snapshot();
        lock(&self.parts.logger).on_status_update(&states, self.parts.flow.workflow());
    }

    fn snapshot(&self) -> Vec<NodeSnapshot> {
        let now = self.parts.clock.now();
        (0..self.parts.flow.workflow().steps.len())
            .map(|at| {
                let step = StepIx::new(at);
                let (started, ended) = self.parts.flow.times(step);
                NodeSnapshot {
                    state: self.parts.flow.state(step),
                    attempt: self.parts.flow.attempt(step),
                    elapsed: started.map(|started| ended.unwrap_or(now).since(started)),
                    error: self.parts.flow.error(step).map(str::to_owned),
                }
            })
            .collect()
    }

    pub(super) fn report(mut self, swept: &Swept, duration: Duration) -> Report {
        let workflow = Arc::clone(self.parts.flow.workflow());
        let mut problems: Vec<String> = lock(&self.parts.sink.problem).take().into_iter().collect();
        if !swept.beyond.is_empty() {
            let pids: Vec<_> = swept.beyond.iter().map(ToString::to_string).collect();
            let pids = pids.join(", ");
            problems
                .push(format!("left running, because they belong to another user: process {pids}"));
        }
        let run = self.parts.journal.as_ref().map(|journal| journal.id().clone());
        problems.extend(self.parts.journal.as_mut().and_then(RunJournal::close));
        let steps = self
            .snapshot()
            .into_iter()
            .zip(&workflow.steps)
            .enumerate()
            .map(|(at, (snapshot, step))| StepReport {
                name: step.name.to_string(),
                is_handler: at >= workflow.len(),
                state: snapshot.state,
                attempts: if snapshot.elapsed.is_some() { snapshot.attempt + 1 } else { 0 },
                duration: snapshot.elapsed,
            })
            .collect();
        let failures = self.failed.iter().map(|&step| Failure {
            name: workflow.step(step).name.to_string(),
            error: self.parts.flow.error(step).unwrap_or_default().to_owned(),
            tolerated: self.parts.flow.state(step) == State::FailedContinue,
            tail: self.tails.remove(&step).unwrap_or_default(),
        });
        Report {
            verdict: self.verdict.unwrap_or_else(|| self.parts.flow.verdict()),
            cause: self.parts.flow.cause(),
            run,
            duration,
            steps,
            failures: failures.collect(),
            swept: swept.ended,
            problems,
        }
    }
}
