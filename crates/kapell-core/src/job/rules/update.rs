//! What becomes of runs.

use std::borrow::Cow;
use std::sync::Arc;

use super::{Step, no_run};
use crate::board::{Record, Refusal, Reply, text};
use crate::job::record::{Job, Pause, PauseCause};
use crate::job::request::SchedulerNews;
use crate::run::record::{LOG_HOSTS_KEPT, TIMELINE_KEPT};
use crate::run::{
    Ending, Entry, Noted, Run, RunId, RunState, RunUpdate, UpdateId, UpdateKind, update_id,
};

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
        write(Arc::make_mut(&mut run), update, id);
        self.draft.put(Record::Run(Arc::clone(&run)));
        match update.kind {
            UpdateKind::Ended => {
                if let Some(job) = self.draft.job(&run_id.job_id()) {
                    self.ended(job, &run);
                }
            }
            UpdateKind::Intent => {
                let job_id = run_id.job_id();
                if let Some(revision) = self.draft.revision(&job_id) {
                    self.drop_definitions(&job_id, revision);
                }
            }
            UpdateKind::Started | UpdateKind::Retry => {}
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
        let skipped = job.skipped(run);
        self.clear_up(job, changed || skipped);
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
fn is_news(run: &Run, update: &RunUpdate, id: UpdateId) -> bool {
    let stored = match UpdateKind::that_leads_to(run.state) {
        Some(UpdateKind::Ended) => return false,
        // Nothing of its next attempt is stored.
        Some(UpdateKind::Retry) => None,
        stored @ (Some(UpdateKind::Intent | UpdateKind::Started) | None) => stored,
    };
    run.update_id != Some(id) && (update.attempt, Some(update.kind)) > (run.attempt, stored)
}

/// Writes what an update says. After a retry the record is of the next attempt: of that one nothing was launched yet.
fn write(run: &mut Run, update: &RunUpdate, id: UpdateId) {
    if run.state == RunState::PreRun {
        run.revision = update.revision;
    }
    run.state = update.state;
    run.previous_state = Some(update.previous_state);
    run.attempt = update.attempt + u32::from(update.kind == UpdateKind::Retry);
    if update.kind == UpdateKind::Intent {
        run.place.clone_from(&update.place);
    }
    run.started_at = update.started_at;
    let mut rare = std::mem::take(&mut run.rare).into_rare();
    if !update.log_host.is_empty() {
        rare.log_hosts.retain(|host| *host != update.log_host);
        rare.log_hosts.push(update.log_host.clone());
        let over = rare.log_hosts.len().saturating_sub(LOG_HOSTS_KEPT);
        rare.log_hosts.drain(..over);
    }
    rare.retry_at = update.retry_at;
    rare.completed_at = update.state.is_final().then(|| update.completed_at.unwrap_or(update.at));
    rare.exit_code = update.exit_code;
    // Until it ends, why it is to be cancelled is not forgotten.
    if rare.cancel.is_none() || update.state.is_final() {
        rare.reason = text::reason(&update.reason);
    }
    rare.skipped = update.skipped;
    rare.metrics.clone_from(&update.metrics);
    run.rare = rare.into();
    run.timeline.make_room_for(&update.timeline);
    for entry in &update.timeline {
        run.timeline.push(short(entry));
    }
    run.timeline.keep(TIMELINE_KEPT);
    run.update_id = Some(id);
    run.version += 1;
}

/// However much constraints and actions say, a record has its bounds.
fn short(mut entry: Entry) -> Entry {
    let texts = match &mut entry.noted {
        Noted::State { why: Cow::Owned(why), .. }
        | Noted::Waits { why }
        | Noted::Skipped { why, .. }
        | Noted::Cancel { why } => [Some(why), None],
        // A sentence of our own.
        Noted::State { why: Cow::Borrowed(_), .. } | Noted::Revision { .. } => [None, None],
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
