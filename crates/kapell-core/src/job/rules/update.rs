//! What becomes of runs.

use super::{Step, no_run};
use crate::board::{Record, Refusal, Reply, text};
use crate::job::record::{Job, Pause, PauseCause};
use crate::job::request::SchedulerNews;
use crate::run::record::{LOG_HOSTS_KEPT, TIMELINE_KEPT};
use crate::run::{Ending, Entry, Noted, Run, RunId, RunState, RunUpdate, UpdateKind, update_id};

impl Step<'_, '_> {
    /// Terminal states are written once, and each update is: what comes late or again changes nothing.
    pub(super) fn update(&mut self, run_id: &RunId, update: &RunUpdate) -> Result<Reply, Refusal> {
        let mut run = self.draft.run(run_id).ok_or_else(|| no_run(run_id))?;
        if !fits(update) {
            let (kind, state) = (update.kind.name(), update.state.name());
            let problems =
                vec![format!("run `{run_id}`: an update `{kind}` does not lead to {state}")];
            return Err(Refusal::Invalid { problems });
        }
        let id = update_id(run_id, update.attempt, update.kind);
        if !is_news(&run, update, id) {
            return Ok(Reply::Done);
        }
        write(&mut run, update, id);
        self.draft.put(Record::Run(run.clone()));
        if let Some(job) = self.draft.job(&run_id.job_id()) {
            match update.kind {
                UpdateKind::Ended => self.ended(job, &run),
                UpdateKind::Intent => self.drop_definitions(&job),
                UpdateKind::Started | UpdateKind::Retry => {}
            }
        }
        Ok(Reply::Run { run, created: false })
    }

    fn ended(&mut self, mut job: Job, run: &Run) {
        let Some(ending) = run.state.ending() else { return };
        let failures = match ending {
            Ending::Failed | Ending::Orphaned => job.failures_in_a_row.saturating_add(1),
            Ending::Completed if !run.skipped => 0,
            // Nothing was tried, so nothing was learnt.
            Ending::Completed | Ending::Cancelled => job.failures_in_a_row,
        };
        let changed = failures != job.failures_in_a_row;
        job.failures_in_a_row = failures;
        if changed {
            self.pause_after_failures(&mut job, run);
        }
        self.clear_up(job, changed);
    }

    fn pause_after_failures(&mut self, job: &mut Job, run: &Run) {
        let most = self.definition(job).and_then(|definition| definition.pause_after_failures);
        let is_too_many = most.is_some_and(|most| job.failures_in_a_row >= most.max(1));
        if !is_too_many || job.paused.is_some() || job.removed {
            return;
        }
        let cause = PauseCause::Failures { run_id: run.run_id.clone() };
        let note =
            format!("{} failed in a row, the last one: {}", job.failures_in_a_row, run.reason);
        job.paused = Some(Pause { at: self.now, cause: cause.clone(), note: text::reason(&note) });
        self.tell(SchedulerNews::Paused { job_id: job.job_id.clone(), cause });
    }
}

/// Whether a kind of update leads to its state.
const fn fits(update: &RunUpdate) -> bool {
    match update.kind {
        UpdateKind::Intent => matches!(update.state, RunState::ContainerCreating),
        UpdateKind::Started => matches!(update.state, RunState::Running),
        UpdateKind::Retry => matches!(update.state, RunState::Retrying),
        UpdateKind::Ended => update.state.is_final(),
    }
}

/// Whether it says more than what is stored.
fn is_news(run: &Run, update: &RunUpdate, id: u128) -> bool {
    let stored = match run.state {
        RunState::Completed | RunState::Failed | RunState::Cancelled | RunState::Orphaned => {
            return false;
        }
        RunState::ContainerCreating => Some(UpdateKind::Intent),
        RunState::Running => Some(UpdateKind::Started),
        // Nothing of its attempt, or of its next one, is stored.
        RunState::PreRun
        | RunState::Pending
        | RunState::ConditionPending
        | RunState::ConditionRunning
        | RunState::ActionPending
        | RunState::ActionRunning
        | RunState::Terminating
        | RunState::Retrying => None,
    };
    run.update_id != Some(id) && (update.attempt, Some(update.kind)) > (run.attempt, stored)
}

/// Writes what an update says. After a retry the record is of the next attempt: of that one nothing was launched yet.
fn write(run: &mut Run, update: &RunUpdate, id: u128) {
    if run.state == RunState::PreRun {
        run.revision = update.revision;
    }
    run.state = update.state;
    run.previous_state = Some(update.previous_state);
    run.attempt = update.attempt + u32::from(update.kind == UpdateKind::Retry);
    if update.kind == UpdateKind::Intent {
        run.place.clone_from(&update.place);
    }
    if !update.log_host.is_empty() {
        run.log_hosts.retain(|host| *host != update.log_host);
        run.log_hosts.push(update.log_host.clone());
        let over = run.log_hosts.len().saturating_sub(LOG_HOSTS_KEPT);
        run.log_hosts.drain(..over);
    }
    run.started_at = update.started_at;
    run.retry_at = update.retry_at;
    run.completed_at = update.state.is_final().then(|| update.completed_at.unwrap_or(update.at));
    run.exit_code = update.exit_code;
    // Until it ends, why it is to be cancelled is not forgotten.
    if run.cancel.is_none() || update.state.is_final() {
        run.reason = text::reason(&update.reason);
    }
    run.skipped = update.skipped;
    run.metrics.clone_from(&update.metrics);
    run.timeline.extend(update.timeline.iter().cloned().map(short));
    keep(&mut run.timeline);
    run.update_id = Some(id);
    run.version += 1;
}

/// The first half of what is kept, and the newest.
fn keep(timeline: &mut Vec<Entry>) {
    let half = TIMELINE_KEPT / 2;
    if timeline.len() > TIMELINE_KEPT {
        timeline.drain(half..timeline.len() - (TIMELINE_KEPT - half));
    }
}

/// However much constraints and actions say, a record has its bounds.
fn short(mut entry: Entry) -> Entry {
    let texts = match &mut entry.noted {
        Noted::State { why, .. } => {
            if why.len() > text::LONGEST_REASON {
                *why = text::reason(why).into();
            }
            [None, None]
        }
        Noted::Waits { why } | Noted::Skipped { why, .. } | Noted::Cancel { why } => {
            [Some(why), None]
        }
        Noted::Revision { .. } => [None, None],
        Noted::Constraint { name, message, .. }
        | Noted::ConstraintError { name, message }
        | Noted::Action { name, message, .. } => [Some(name), Some(message)],
        Noted::Adopted { evidence } => [Some(evidence), None],
        Noted::Ignored { what } => [Some(what), None],
    };
    for said in texts.into_iter().flatten() {
        *said = text::reason(said);
    }
    entry
}
