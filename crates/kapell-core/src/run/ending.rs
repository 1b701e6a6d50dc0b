//! How a run ends, and what others want of it; what is stored on the way.

use std::sync::Arc;

use arcstr::ArcStr;

use super::message::{Ask, WorkEnd};
use super::orchestrator::{After, Orchestrator, Waits};
use super::progress::Whole;
use super::record::{Noted, StopKind};
use super::state::RunState;
use super::update::{RunUpdate, UpdateKind};
use crate::seams::Timestamp;

impl Orchestrator {
    pub(super) fn cancel(&mut self, kind: StopKind, why: String, now: Timestamp) -> Vec<Ask> {
        if self.state.is_final() {
            return vec![Ask::Ignored { what: "a cancel after its end".to_owned() }];
        }
        self.note(now, Noted::Cancel { why: why.clone() });
        match &self.waits {
            // An intent on its way may be on disk; nothing was launched.
            Waits::Time | Waits::Admission | Waits::Intent => {
                self.end(RunState::Cancelled, &why, now)
            }
            Waits::Check | Waits::Actions | Waits::PostCheck(_) => {
                let mut asks = vec![Ask::Abandon];
                asks.extend(self.end(RunState::Cancelled, &why, now));
                asks
            }
            Waits::Launch | Waits::Start | Waits::End | Waits::Evidence => {
                self.give_up(After::Cancelled { why }, kind)
            }
            // It is being stopped already: what it ends as is what came last, and it may be told to hurry.
            Waits::Gone(_) => {
                self.waits = Waits::Gone(Box::new(After::Cancelled { why }));
                match kind {
                    StopKind::AtOnce => vec![Ask::Stop { attempt: self.attempt, kind }],
                    StopKind::Graceful => Vec::new(),
                }
            }
            Waits::Disk { .. } | Waits::Leftover | Waits::Nothing => Vec::new(),
        }
    }

    /// Its work is gone, or what could not be ended is named.
    pub(super) fn stopped(&mut self, left: Option<&str>, now: Timestamp) -> Option<Vec<Ask>> {
        let after = match &mut self.waits {
            Waits::Gone(after) => after.as_ref().clone(),
            Waits::Leftover => {
                self.waits = Waits::Nothing;
                return Some(vec![Ask::Done]);
            }
            Waits::Time
            | Waits::Admission
            | Waits::Check
            | Waits::Actions
            | Waits::Intent
            | Waits::Launch
            | Waits::Start
            | Waits::End
            | Waits::Evidence
            | Waits::PostCheck(_)
            | Waits::Disk { .. }
            | Waits::Nothing => return None,
        };
        let (to, why) = match &after {
            After::Cancelled { why } => (RunState::Cancelled, why),
            After::Unstarted { why } | After::Overran { why } => (RunState::Failed, why),
        };
        // Beside work that may still run there is no other attempt.
        if let Some(left) = left {
            return Some(self.end(to, &format!("{why}; {left}"), now));
        }
        Some(match after {
            After::Cancelled { why } => self.end(RunState::Cancelled, &why, now),
            After::Unstarted { why } => self.unlaunched(&why, now),
            After::Overran { why } => {
                let exit_code = self.progress_mut().more().exit_code;
                self.over(WorkEnd { began: None, at: now, exit_code, failure: Some(why) }, now)
            }
        })
    }

    pub(super) fn orphan(&mut self, now: Timestamp) -> Vec<Ask> {
        if self.state.is_final() {
            return vec![Ask::Ignored { what: "silence after its end".to_owned() }];
        }
        let has_work = matches!(self.state, RunState::ContainerCreating | RunState::Running);
        let leftover = has_work && self.waits != Waits::Intent;
        let mut asks = vec![Ask::Abandon];
        asks.extend(self.end(RunState::Orphaned, "it gave no sign of life for too long", now));
        self.waits = Waits::Disk { leftover };
        asks
    }

    pub(super) fn end(&mut self, to: RunState, why: &str, now: Timestamp) -> Vec<Ask> {
        self.step(to, why.to_owned(), now);
        why.clone_into(&mut self.progress_mut().more_mut().reason);
        self.waits = Waits::Disk { leftover: false };
        vec![Ask::Quiet, self.store(UpdateKind::Ended, now)]
    }

    pub(super) fn stored(
        &mut self,
        kind: UpdateKind,
        attempt: u32,
        now: Timestamp,
    ) -> Option<Vec<Ask>> {
        Some(match kind {
            UpdateKind::Intent if attempt == self.attempt && self.waits == Waits::Intent => {
                self.launch(now)
            }
            UpdateKind::Intent | UpdateKind::Started | UpdateKind::Retry => Vec::new(),
            UpdateKind::Ended => match self.waits {
                Waits::Disk { leftover: false } => {
                    self.waits = Waits::Nothing;
                    vec![Ask::Done]
                }
                Waits::Disk { leftover: true } => {
                    self.waits = Waits::Leftover;
                    vec![Ask::Stop { attempt: self.attempt, kind: StopKind::AtOnce }]
                }
                Waits::Time
                | Waits::Admission
                | Waits::Check
                | Waits::Actions
                | Waits::Intent
                | Waits::Launch
                | Waits::Start
                | Waits::End
                | Waits::Evidence
                | Waits::PostCheck(_)
                | Waits::Gone(_)
                | Waits::Leftover
                | Waits::Nothing => return None,
            },
        })
    }

    /// Without its intent on disk nothing is launched: whoever leads next would not know of it.
    pub(super) fn intent_refused(&mut self, why: &str, now: Timestamp) -> Option<Vec<Ask>> {
        let why = format!("that it begins could not be stored: {why}");
        (self.waits == Waits::Intent).then(|| self.end(RunState::Failed, &why, now))
    }

    pub(super) fn store(&mut self, kind: UpdateKind, now: Timestamp) -> Ask {
        Ask::Store(self.told(kind, now))
    }

    /// All that is to be stored of it.
    pub(super) fn told(&mut self, kind: UpdateKind, now: Timestamp) -> Arc<RunUpdate> {
        let (state, previous_state, attempt) = (self.state, self.previous, self.attempt);
        let (revision, heartbeats) = (self.plan.revision, self.heartbeats);
        let created_at = self.created_at;
        let metrics = state.is_final().then(|| {
            let retry = self.plan.definition.retry.as_ref();
            let max_retries = retry.map_or(0, |retry| retry.max_retries);
            let whole = Whole { created_at, attempt, max_retries, heartbeats, state };
            Box::new(self.progress_mut().figures(&whole))
        });
        let progress = self.progress_mut();
        let timeline = std::mem::take(&mut progress.unsaid);
        let more = progress.more();
        Arc::new(RunUpdate {
            kind,
            attempt,
            place: ArcStr::new(),
            log_host: ArcStr::new(),
            at: now,
            state,
            previous_state,
            revision,
            started_at: progress.started_at,
            retry_at: more.retry_at.filter(|_| kind == UpdateKind::Retry),
            completed_at: state.is_final().then_some(now),
            exit_code: more.exit_code,
            reason: more.reason.clone(),
            skipped: more.skipped,
            timeline,
            metrics,
        })
    }
}
