//! What a run has been through since its due time.

use super::message::Counts;
use super::metrics::RunMetrics;
use super::record::{Entry, Noted, Run};
use super::state::RunState;
use crate::seams::Timestamp;

/// Figures and times of a run under way.
#[derive(Debug, Clone)]
pub(super) struct Progress {
    pub(super) metrics: RunMetrics,
    created_at: Timestamp,
    /// When the phase began that it is in, and which figure its time goes to.
    phase: (Phase, Timestamp),
    pub(super) started_at: Option<Timestamp>,
    pub(super) ended_at: Option<Timestamp>,
    pub(super) retry_at: Option<Timestamp>,
    pub(super) exit_code: Option<i32>,
    pub(super) reason: String,
    pub(super) skipped: bool,
    /// What the board has not been told yet.
    pub(super) unsaid: Vec<Entry>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    PreRun,
    Checks,
    Creation,
    Execution,
    Termination,
    RetryWait,
}

impl Progress {
    pub(super) fn new(created_at: Timestamp) -> Self {
        Self {
            metrics: RunMetrics::default(),
            created_at,
            phase: (Phase::PreRun, created_at),
            started_at: None,
            ended_at: None,
            retry_at: None,
            exit_code: None,
            reason: String::new(),
            skipped: false,
            unsaid: Vec::new(),
        }
    }

    /// Takes over what the board has of a run that another leader had begun.
    pub(super) fn resumed(&mut self, run: &Run) {
        self.started_at = run.started_at;
        self.retry_at = run.retry_at;
    }

    pub(super) fn note(&mut self, at: Timestamp, attempt: u32, noted: Noted) {
        self.unsaid.push(Entry { at, attempt, noted });
    }

    pub(super) fn count(&mut self, counts: Counts) {
        let metrics = &mut self.metrics;
        metrics.constraints_checked += counts.checked;
        metrics.constraints_violated += counts.violated;
        metrics.actions_executed += counts.executed;
        metrics.actions_failed += counts.failed;
    }

    pub(super) const fn next_attempt(&mut self) {
        (self.started_at, self.ended_at, self.exit_code) = (None, None, None);
    }

    /// The state has changed.
    pub(super) fn entered(&mut self, state: RunState, at: Timestamp) {
        let phase = match state {
            RunState::PreRun | RunState::Pending => return,
            RunState::ConditionPending
            | RunState::ConditionRunning
            | RunState::ActionPending
            | RunState::ActionRunning => Phase::Checks,
            RunState::ContainerCreating => Phase::Creation,
            RunState::Running => Phase::Execution,
            RunState::Terminating => Phase::Termination,
            RunState::Retrying => Phase::RetryWait,
            RunState::Completed | RunState::Failed | RunState::Cancelled | RunState::Orphaned => {
                self.close(at);
                return;
            }
        };
        if phase != self.phase.0 {
            self.close(at);
            self.phase = (phase, at);
        }
    }

    fn close(&mut self, at: Timestamp) {
        let (phase, since) = self.phase;
        let took = u64::try_from(at.since(since).as_millis()).unwrap_or(u64::MAX);
        let metrics = &mut self.metrics;
        let figure = match phase {
            Phase::PreRun => &mut metrics.pre_run_ms,
            Phase::Checks => &mut metrics.constraint_check_ms,
            Phase::Creation => &mut metrics.pod_start_latency_ms,
            Phase::Execution => &mut metrics.execution_ms,
            Phase::Termination => &mut metrics.termination_ms,
            Phase::RetryWait => &mut metrics.retry_wait_ms,
        };
        *figure = figure.saturating_add(took);
        self.phase = (phase, at);
    }

    pub(super) fn figures(
        &self,
        at: Timestamp,
        attempt: u32,
        max_retries: u32,
        state: RunState,
    ) -> RunMetrics {
        RunMetrics {
            total_ms: u64::try_from(at.since(self.created_at).as_millis()).unwrap_or(u64::MAX),
            retry_attempt: attempt,
            max_retries,
            pod_exit_code: self.exit_code,
            success: state == RunState::Completed,
            ..self.metrics
        }
    }
}
