//! What a run has been through since its due time.

use super::message::Counts;
use super::metrics::RunMetrics;
use super::record::{Entry, Noted, Run, TIMELINE_KEPT};
use super::state::RunState;
use super::timeline::Timeline;
use crate::seams::Timestamp;

/// Figures and times of a run under way: there are very many, so what most of them do not have lies apart.
#[derive(Debug, Clone)]
pub(super) struct Progress {
    pre_run_ms: u64,
    creation_ms: u64,
    /// Up to when time has gone to a figure. It never goes back, whatever the clock does: so the figures add up to the whole.
    counted_to: Timestamp,
    /// When it came into its state.
    pub(super) since: Timestamp,
    pub(super) started_at: Option<Timestamp>,
    /// What the board has not been told yet.
    pub(super) unsaid: Timeline,
    more: Option<Box<More>>,
    /// The figure that time goes to.
    phase: Phase,
}

/// What a run has that was checked, has ended an attempt or cannot start.
#[derive(Debug, Clone, Default)]
pub(super) struct More {
    checks_ms: u64,
    execution_ms: u64,
    termination_ms: u64,
    retry_wait_ms: u64,
    counts: Counts,
    pub(super) retry_at: Option<Timestamp>,
    pub(super) exit_code: Option<i32>,
    pub(super) reason: String,
    pub(super) skipped: bool,
    /// What keeps its work from starting.
    pub(super) hindrance: Option<Box<str>>,
}

static NOTHING_MORE: More = More {
    checks_ms: 0,
    execution_ms: 0,
    termination_ms: 0,
    retry_wait_ms: 0,
    counts: Counts { checked: 0, violated: 0, executed: 0, failed: 0 },
    retry_at: None,
    exit_code: None,
    reason: String::new(),
    skipped: false,
    hindrance: None,
};

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
    pub(super) const fn new(created_at: Timestamp) -> Self {
        Self {
            pre_run_ms: 0,
            creation_ms: 0,
            counted_to: created_at,
            since: created_at,
            started_at: None,
            unsaid: Timeline::new(),
            more: None,
            phase: Phase::PreRun,
        }
    }

    pub(super) fn more(&self) -> &More {
        self.more.as_deref().unwrap_or(&NOTHING_MORE)
    }

    pub(super) fn more_mut(&mut self) -> &mut More {
        self.more.get_or_insert_default()
    }

    /// What has kept its work from starting does so no more.
    pub(super) fn take_hindrance(&mut self) -> Option<Box<str>> {
        self.more.as_mut()?.hindrance.take()
    }

    /// Takes over what the board has of a run that another leader had begun, its figures from its timeline.
    pub(super) fn resumed(&mut self, run: &Run) {
        self.started_at = run.started_at;
        if run.retry_at.is_some() {
            self.more_mut().retry_at = run.retry_at;
        }
        for entry in &run.timeline {
            match &entry.noted {
                Noted::State { to, .. } => self.entered(*to, entry.at),
                Noted::Constraint { met, .. } => {
                    let violated = u32::from(!met);
                    self.count(Counts { checked: 1, violated, ..Counts::default() });
                }
                Noted::ConstraintError { .. } => {
                    self.count(Counts { checked: 1, ..Counts::default() });
                }
                Noted::Action { ok, .. } => {
                    let failed = u32::from(!ok);
                    self.count(Counts { executed: 1, failed, ..Counts::default() });
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

    pub(super) fn count(&mut self, counts: Counts) {
        if counts == Counts::default() {
            return;
        }
        let own = &mut self.more_mut().counts;
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
        if took > 0 {
            let figure = match self.phase {
                Phase::PreRun => &mut self.pre_run_ms,
                Phase::Creation => &mut self.creation_ms,
                Phase::Checks => &mut self.more_mut().checks_ms,
                Phase::Execution => &mut self.more_mut().execution_ms,
                Phase::Termination => &mut self.more_mut().termination_ms,
                Phase::RetryWait => &mut self.more_mut().retry_wait_ms,
            };
            *figure = figure.saturating_add(took);
        }
        (self.phase, self.counted_to) = (phase, at);
    }

    /// The figures of a run that has just come to its final state.
    pub(super) fn figures(&self, of: &Whole) -> RunMetrics {
        let total = self.counted_to.since(of.created_at);
        let more = self.more();
        let Counts { checked, violated, executed, failed } = more.counts;
        RunMetrics {
            pre_run_ms: self.pre_run_ms,
            constraint_check_ms: more.checks_ms,
            pod_start_latency_ms: self.creation_ms,
            execution_ms: more.execution_ms,
            termination_ms: more.termination_ms,
            retry_wait_ms: more.retry_wait_ms,
            total_ms: u64::try_from(total.as_millis()).unwrap_or(u64::MAX),
            constraints_checked: checked,
            constraints_violated: violated,
            actions_executed: executed,
            actions_failed: failed,
            retry_attempt: of.attempt,
            max_retries: of.max_retries,
            kubernetes_api_calls: 0,
            pod_exit_code: more.exit_code,
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
