//! What containers tell of themselves on their way from one state to the next.

use kapell_core::board::InstanceGuid;
use kapell_core::board::request::Report;
use kapell_core::rep::container::{RunResult, State};

use super::LogOf as Key;
use super::entry::{Busy, Entry};
use super::judge::Known;
use super::lead::News;
use super::rep::{Effect, Rep, Told};

impl Rep {
    pub(super) fn heard(&mut self, guid: &InstanceGuid, news: News) {
        match news {
            News::Created => self.created(guid),
            News::Begun => {}
            News::Running { ready } => self.runs(guid, ready),
            News::Ready(ready) => self.is_ready(guid, ready),
            News::Unhealthy(reason) => self.is_unhealthy(guid, reason),
        }
    }

    fn advance(&mut self, guid: &InstanceGuid, to: State) -> bool {
        let now = self.clock.now();
        let Some(entry) = self.executor.get_mut(guid) else { return false };
        entry.revision += 1;
        if let Err(error) = entry.life.advance(to, now) {
            tracing::error!(container = %guid, %error, "a container started twice");
            return false;
        }
        true
    }

    /// A container is there, and nothing runs in it yet.
    fn created(&mut self, guid: &InstanceGuid) {
        if self.advance(guid, State::Created) {
            let stopping = self.executor.get(guid).is_some_and(|entry| entry.stop_sent);
            if stopping {
                self.expect_end(guid);
            }
            self.look_at(guid.clone());
        }
    }

    /// Its action is under way, and it is well.
    fn runs(&mut self, guid: &InstanceGuid, ready: Option<bool>) {
        let Some(entry) = self.executor.get_mut(guid) else { return };
        entry.ready = ready.or(entry.ready);
        // One of an earlier agent may be known to run.
        if entry.life.state() == State::Running || self.advance(guid, State::Running) {
            self.look_at(guid.clone());
        }
    }

    fn is_ready(&mut self, guid: &InstanceGuid, ready: bool) {
        let Some(entry) = self.executor.get_mut(guid) else { return };
        entry.ready = Some(ready);
        entry.revision += 1;
        self.look_at(guid.clone());
    }

    /// It is being stopped because it is not well.
    fn is_unhealthy(&mut self, guid: &InstanceGuid, reason: String) {
        let Some(entry) = self.executor.get_mut(guid) else { return };
        if !entry.stop_sent {
            entry.stop_sent = true;
            entry.unhealthy = Some(reason);
            self.expect_end(guid);
        }
    }

    /// Whether a container that an earlier agent has left is being stopped, and why, if it is not well.
    pub(super) fn found_stopping(
        &mut self,
        guid: &InstanceGuid,
        (stopping, unhealthy): (bool, Option<&str>),
    ) {
        let Some(entry) = self.executor.get_mut(guid).filter(|_| stopping) else { return };
        entry.stop_sent = true;
        entry.unhealthy = unhealthy.map(str::to_owned);
        self.expect_end(guid);
    }

    /// Tells the board whether an instance is ready that it knows to run, if it does not know that.
    pub(super) fn tell_ready(&mut self, guid: &InstanceGuid) {
        let Some(entry) = self.executor.get_mut(guid) else { return };
        let Some(report) = ready_report(entry) else { return };
        entry.busy = Some(Busy::Reporting);
        entry.revision += 1;
        self.effects.push(Effect::Report(Told { guid: guid.clone(), orphan: false, report }));
    }

    /// A container has ended.
    pub(super) fn ended(&mut self, guid: &InstanceGuid, result: RunResult) {
        let now = self.clock.now();
        let Some(entry) = self.executor.get_mut(guid) else { return };
        entry.revision += 1;
        let result = if entry.killed {
            if entry.life.state() == State::Completed {
                return;
            }
            let came_to = match entry.unhealthy.take() {
                Some(reason) => RunResult::failed(reason),
                None => RunResult::stopped(),
            };
            RunResult { exit_code: result.exit_code, ..came_to }
        } else {
            result
        };
        if let Err(error) = entry.life.complete(result, now) {
            tracing::error!(container = %guid, %error, "a container ended twice");
            return;
        }
        self.look_at(guid.clone());
    }
}

/// What a report says of being ready.
pub(super) const fn told_ready(report: &Report) -> Option<bool> {
    match report {
        Report::Running { ready, .. } | Report::Ready { ready, .. } => Some(*ready),
        Report::Claim { .. }
        | Report::Crashed { .. }
        | Report::Remove { .. }
        | Report::RemoveEvacuating { .. }
        | Report::Evacuate { .. }
        | Report::Unclaim { .. }
        | Report::StartTask { .. }
        | Report::CompleteTask { .. } => None,
    }
}

fn ready_report(entry: &Entry) -> Option<Report> {
    let Key::Lrp(key) = &entry.tag.key else { return None };
    let runs = entry.life.state() == State::Running && entry.known.is_some_and(Known::has_running);
    let ready = entry.ready.filter(|ready| runs && entry.ready_told != Some(*ready))?;
    let instance_guid = entry.tag.instance_guid.clone();
    Some(Report::Ready { key: key.clone(), instance_guid, ready })
}
