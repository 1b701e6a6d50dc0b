//! What a run has been through since its due time.

use super::message::Counts;
use super::metrics::RunMetrics;
use super::record::{Entry, Noted, Run, TIMELINE_KEPT};
use super::state::RunState;
use super::timeline::Timeline;
use crate::seams::Timestamp;

/// Figures and times of a run under way.
#[derive(Debug, Clone)]
pub(super) struct Progress {
    times: Times,
    counts: Counts,
    /// The figure that time goes to, and up to when it has gone there. It never goes back, whatever the clock does:
    /// so the figures add up to the whole.
    phase: Phase,
    counted_to: Timestamp,
    /// When it came into its state.
    pub(super) since: Timestamp,
    pub(super) started_at: Option<Timestamp>,
    pub(super) retry_at: Option<Timestamp>,
    pub(super) exit_code: Option<i32>,
    pub(super) reason: String,
    pub(super) skipped: bool,
    /// What keeps its work from starting.
    pub(super) hindrance: Option<Box<str>>,
    /// What the board has not been told yet.
    pub(super) unsaid: Timeline,
}

/// What each phase took, in milliseconds.
type Times = [u64; 6];

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
            times: Times::default(),
            counts: Counts::default(),
            phase: Phase::PreRun,
            counted_to: created_at,
            since: created_at,
            started_at: None,
            retry_at: None,
            exit_code: None,
            reason: String::new(),
            skipped: false,
            hindrance: None,
            unsaid: Timeline::new(),
        }
    }

    /// Takes over what the board has of a run that another leader had begun, its figures from its timeline.
    pub(super) fn resumed(&mut self, run: &Run) {
        self.started_at = run.started_at;
        self.retry_at = run.retry_at;
        for entry in &run.timeline {
            match &entry.noted {
                Noted::State { to, .. } => self.entered(*to, entry.at),
                Noted::Constraint { met, .. } => {
                    self.counts.checked += 1;
                    self.counts.violated += u32::from(!met);
                }
                Noted::ConstraintError { .. } => self.counts.checked += 1,
                Noted::Action { ok, .. } => {
                    self.counts.executed += 1;
                    self.counts.failed += u32::from(!ok);
                }
                Noted::Revision { .. }
                | Noted::Waits { .. }
                | Noted::Skipped { .. }
                | Noted::Adopted { .. }
                | Noted::Cancel { .. }
                | Noted::Ignored { .. } => {}
            }
        }
    }

    /// However much there is to say, the first and the newest of it are kept.
    pub(super) fn note(&mut self, at: Timestamp, attempt: u32, noted: Noted) {
        self.unsaid.push(Entry { at, attempt, noted });
        self.unsaid.keep(TIMELINE_KEPT);
    }

    pub(super) const fn count(&mut self, counts: Counts) {
        let own = &mut self.counts;
        own.checked = own.checked.saturating_add(counts.checked);
        own.violated = own.violated.saturating_add(counts.violated);
        own.executed = own.executed.saturating_add(counts.executed);
        own.failed = own.failed.saturating_add(counts.failed);
    }

    /// The state has changed.
    pub(super) fn entered(&mut self, state: RunState, at: Timestamp) {
        self.since = at;
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
                return self.turn(self.phase, at);
            }
        };
        self.turn(phase, at);
    }

    /// The work has ended: what follows is termination, whatever the state.
    pub(super) fn exited(&mut self, at: Timestamp, now: Timestamp) {
        match self.phase {
            Phase::Creation | Phase::Execution => self.turn(Phase::Termination, at.min(now)),
            Phase::PreRun | Phase::Checks | Phase::Termination | Phase::RetryWait => {}
        }
    }

    fn turn(&mut self, phase: Phase, at: Timestamp) {
        let at = at.max(self.counted_to);
        let took = u64::try_from(at.since(self.counted_to).as_millis()).unwrap_or(u64::MAX);
        let figure = &mut self.times[self.phase as usize];
        *figure = figure.saturating_add(took);
        (self.phase, self.counted_to) = (phase, at);
    }

    /// The figures of a run that has just come to its final state.
    pub(super) fn figures(&self, of: &Whole) -> RunMetrics {
        let total = self.counted_to.since(of.created_at);
        let [pre_run, checks, creation, execution, termination, retry_wait] = self.times;
        let Counts { checked, violated, executed, failed } = self.counts;
        RunMetrics {
            pre_run_ms: pre_run,
            constraint_check_ms: checks,
            pod_start_latency_ms: creation,
            execution_ms: execution,
            termination_ms: termination,
            retry_wait_ms: retry_wait,
            total_ms: u64::try_from(total.as_millis()).unwrap_or(u64::MAX),
            constraints_checked: checked,
            constraints_violated: violated,
            actions_executed: executed,
            actions_failed: failed,
            retry_attempt: of.attempt,
            max_retries: of.max_retries,
            kubernetes_api_calls: 0,
            pod_exit_code: self.exit_code,
            heartbeats_sent: of.heartbeats,
            success: of.state == RunState::Completed,
        }
    }
}

/// What the figures of a run need besides its progress.
#[derive(Debug, Clone, Copy)]
pub(super) struct Whole {
    pub(super) created_at: Timestamp,
    pub(super) attempt: u32,
    pub(super) max_retries: u32,
    pub(super) heartbeats: u32,
    pub(super) state: RunState,
}
