//! Decides, by the tables, what each container and its record need.

use std::collections::{BTreeMap, BTreeSet};
use std::mem;
use std::sync::Arc;

use kapell_api::v1::{CellRecords, RecordsWanted, ReportAnswer};
use kapell_backend::containers::Error;
use kapell_core::board::InstanceGuid;
use kapell_core::board::request::Report;
use kapell_core::planted::Flaw;
use kapell_core::rep::Action;
use kapell_core::rep::container::State;
use kapell_core::seams::{Clock, Moment};
use kapell_core::seat::Epoch;

use super::End;
use super::LogOf as Key;
use super::entry::Busy;
use super::executor::Executor;
use super::judge::{self, Known};
use super::oddity;
use super::progress;
use super::tag::Tag;

/// What the actor is to do.
#[derive(Debug)]
pub(super) enum Effect {
    Start(Arc<Tag>),
    Stop(InstanceGuid),
    Delete(InstanceGuid),
    /// Ends one that was told to stop and did not.
    Kill(InstanceGuid),
    Report(Told),
    /// Removes old logs of a key whose containers these are.
    Prune(Key, BTreeSet<InstanceGuid>),
}

/// A report and whom its answer is for.
#[derive(Debug, Clone)]
pub(super) struct Told {
    pub(super) guid: InstanceGuid,
    /// There is no such container.
    pub(super) orphan: bool,
    pub(super) report: Report,
}

/// When the board is to be asked for records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) enum Read {
    #[default]
    InTurn,
    /// Something could not be reported: sooner than in turn.
    Sooner,
    Now,
}

/// What a cell had when it asked for records.
#[derive(Debug)]
pub(super) struct Snapshot {
    revisions: BTreeMap<InstanceGuid, u64>,
}

impl Snapshot {
    /// Whether it had nothing.
    pub(super) fn is_empty(&self) -> bool {
        self.revisions.is_empty()
    }
}

/// All a cell has and knows.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(super) struct Rep {
    pub(super) executor: Executor,
    pub(super) clock: Arc<dyn Clock>,
    /// The highest that was seen.
    pub(super) epoch: Epoch,
    /// A board has taken this agent. One that was restarted does not know which leader was the last.
    pub(super) welcome: bool,
    pub(super) evacuating: bool,
    /// The evacuation took too long.
    pub(super) timed_out: bool,
    pub(super) unhealthy: bool,
    /// When the time for an evacuation is over.
    pub(super) evacuate_by: Option<Moment>,
    /// It ends: it takes no more work.
    pub(super) end: Option<End>,
    /// Containers to look at.
    pub(super) due: BTreeSet<InstanceGuid>,
    /// Reports under way about containers that are not there.
    orphans: BTreeMap<InstanceGuid, u32>,
    pub(super) effects: Vec<Effect>,
    /// By when containers must have ended that were told to stop, the earliest first.
    pub(super) stops: BTreeSet<(Moment, InstanceGuid)>,
    pub(super) read: Read,
}

impl Rep {
    pub(super) fn new(executor: Executor, clock: Arc<dyn Clock>) -> Self {
        Self {
            executor,
            clock,
            epoch: Epoch::default(),
            welcome: false,
            evacuating: false,
            timed_out: false,
            unhealthy: false,
            evacuate_by: None,
            end: None,
            due: BTreeSet::new(),
            orphans: BTreeMap::new(),
            effects: Vec::new(),
            stops: BTreeSet::new(),
            read: Read::Now,
        }
    }

    pub(super) fn take_effects(&mut self) -> Vec<Effect> {
        if self.end == Some(End::LeaveRunning) {
            self.due.clear();
        }
        for guid in mem::take(&mut self.due) {
            self.reconcile(&guid, false);
        }
        mem::take(&mut self.effects)
    }

    /// Why no work is taken now, if none is.
    pub(super) const fn refusal(&self) -> Option<&'static str> {
        if self.evacuating {
            Some("the cell is evacuating")
        } else if self.end.is_some() {
            Some("the cell is being shut down")
        } else if self.unhealthy {
            Some("the cell is unhealthy: its self-test failed")
        } else {
            None
        }
    }

    /// Has a container looked at.
    pub(super) fn look_at(&mut self, guid: InstanceGuid) {
        self.due.insert(guid);
    }

    pub(super) fn look_at_all(&mut self) {
        self.due.extend(self.executor.guids());
    }

    pub(super) fn ask(&mut self, read: Read) {
        self.read = self.read.max(read);
    }

    /// Somebody wants a container to end.
    pub(super) fn stop(&mut self, guid: &InstanceGuid) {
        let Some(entry) = self.executor.get_mut(guid) else {
            self.ask(Read::Now);
            return;
        };
        entry.stop_asked = true;
        entry.revision += 1;
        match entry.life.state() {
            State::Reserved => {
                // The board asks for that only once it is claimed.
                if self.end.is_none() && entry.busy.is_none() {
                    entry.known = Some(Known::claimed(&entry.tag.key));
                }
                entry.steps.clear();
                self.look_at(guid.clone());
            }
            State::Initializing | State::Created | State::Running => self.send_stop(guid),
            State::Completed => {}
        }
    }

    /// The board says that a task is not wanted any more: its record tells.
    pub(super) fn cancel(&mut self, guid: &InstanceGuid, at_once: bool) {
        if let Some(entry) = self.executor.get_mut(guid) {
            entry.cancelled = true;
            entry.at_once |= at_once;
            entry.revision += 1;
            entry.steps.clear();
            entry.known = None;
            if entry.stop_sent && at_once {
                self.expect_end(guid);
            }
        }
        self.ask(Read::Now);
    }

    fn send_stop(&mut self, guid: &InstanceGuid) {
        let Some(entry) = self.executor.get_mut(guid) else { return };
        // One that is being stopped because it is not well is now stopped for another reason.
        let again = entry.unhealthy.take().is_some();
        if !mem::replace(&mut entry.stop_sent, true) || again {
            self.effects.push(Effect::Stop(guid.clone()));
            self.expect_end(guid);
        }
    }

    /// A container is gone, or its driver could not delete it.
    pub(super) fn deleted(&mut self, guid: &InstanceGuid, outcome: Result<(), Error>) {
        match outcome {
            Ok(()) | Err(Error::Unknown(_)) => self.is_gone(guid),
            Err(error) => {
                tracing::warn!(container = %guid, %error, "cannot delete a container, will try again");
                if let Some(entry) = self.executor.get_mut(guid) {
                    entry.busy = None;
                    entry.revision += 1;
                }
                self.ask(Read::Sooner);
            }
        }
    }

    /// Nothing of a container is left; what is still to be said of it is said now.
    fn is_gone(&mut self, guid: &InstanceGuid) {
        let Some(entry) = self.executor.get_mut(guid) else { return };
        entry.busy = None;
        entry.gone = true;
        entry.revision += 1;
        if !entry.steps.is_empty() {
            self.take_step(guid);
        } else if let Some(entry) = self.executor.remove(guid) {
            let there = self.executor.guids_of(&entry.tag.key);
            self.effects.push(Effect::Prune(entry.tag.key.clone(), there));
        }
    }

    /// Gives up reservations that nothing came of.
    pub(super) fn expire(&mut self) {
        for guid in self.executor.expired() {
            tracing::warn!(container = %guid, "a reservation has expired");
            self.executor.remove(&guid);
            // Its record may be ours by now.
            self.ask(Read::Now);
        }
    }

    /// What the board said to a report; none if nobody knows what became of it.
    pub(super) fn answered(&mut self, told: &Told, answer: Option<ReportAnswer>) {
        if told.orphan {
            self.orphan_answered(&told.guid, answer.as_ref());
        } else {
            self.container_answered(&told.guid, &told.report, answer);
        }
    }

    fn orphan_answered(&mut self, guid: &InstanceGuid, answer: Option<&ReportAnswer>) {
        if let Some(left) = self.orphans.get_mut(guid) {
            *left -= 1;
            if *left == 0 {
                self.orphans.remove(guid);
            }
        }
        match answer {
            // An evacuation is over only when nothing is left of this kind.
            Some(ReportAnswer::Done(_) | ReportAnswer::Refused(_)) if !self.evacuating => {}
            Some(_) | None => self.ask(Read::Sooner),
        }
    }

    fn container_answered(
        &mut self,
        guid: &InstanceGuid,
        report: &Report,
        answer: Option<ReportAnswer>,
    ) {
        let cell_id = self.executor.cell_id.clone();
        let hasty = self.executor.settings.planted.has(Flaw::TaskStartsUnasked);
        let Some(entry) = self.executor.get_mut(guid) else { return };
        entry.busy = None;
        entry.revision += 1;
        let starts = matches!(report, Report::StartTask { .. });
        let hasty = hasty && starts;
        entry.start_unheard =
            starts && !matches!(answer, Some(ReportAnswer::Done(_) | ReportAnswer::Refused(_)));
        let answer = answer.or(hasty.then_some(ReportAnswer::Done(None)));
        match answer {
            Some(ReportAnswer::Done(record)) => {
                entry.refusals = 0;
                entry.ready_told = progress::told_ready(report).or(entry.ready_told);
                let before = entry.known.unwrap_or_else(|| Known::reserved(&entry.tag.key));
                let instance = report.instance(&cell_id);
                let incarnation = entry.tag.incarnation;
                let after = before.after(report, record.as_deref(), &instance, incarnation);
                entry.known = Some(after);
                if entry.cancelled {
                    // What was reported came before or after the cancellation.
                    self.give_up_steps(guid, Read::Now);
                } else {
                    self.go_on(guid);
                }
            }
            Some(ReportAnswer::Refused(refusal)) => {
                entry.refusals += 1;
                // The table and the board must not argue without a pause.
                let read = if entry.refusals > 1 { Read::Sooner } else { Read::Now };
                tracing::info!(container = %guid, %refusal, ?report, "the board refused a report");
                self.give_up_steps(guid, read);
            }
            Some(ReportAnswer::Busy) | None => {
                tracing::info!(container = %guid, ?report, "no answer to a report, will try again");
                self.give_up_steps(guid, Read::Sooner);
            }
        }
    }

    /// The record is not what was believed, or nobody knows: reads it before anything else.
    fn give_up_steps(&mut self, guid: &InstanceGuid, read: Read) {
        let Some(entry) = self.executor.get_mut(guid) else { return };
        if entry.forced {
            self.go_on(guid);
            return;
        }
        entry.steps.clear();
        entry.known = None;
        if entry.gone {
            self.is_gone(guid);
        } else if self.timed_out {
            self.look_at(guid.clone());
        }
        self.ask(read);
    }

    /// After a step that went well: the next one, or a look at where things stand now.
    fn go_on(&mut self, guid: &InstanceGuid) {
        let evacuating = self.evacuating;
        let timed_out = self.timed_out;
        let Some(entry) = self.executor.get_mut(guid) else { return };
        let is_lrp = matches!(entry.tag.key, Key::Lrp(_));
        let still_wanted = !(entry.stop_asked || entry.cancelled || evacuating && is_lrp);
        let overtaken = entry.steps.front() == Some(&Action::RunContainer)
            && !(still_wanted && entry.known.is_some_and(Known::lets_run));
        if overtaken || (timed_out && !entry.forced && !entry.gone) {
            entry.steps.clear();
        }
        if entry.gone {
            self.is_gone(guid);
        } else if entry.steps.is_empty() {
            self.look_at(guid.clone());
        } else {
            self.take_step(guid);
        }
    }

    /// Decides about one container. Unless what is known is `fresh`, nothing is deleted on its account.
    fn reconcile(&mut self, guid: &InstanceGuid, fresh: bool) {
        let evacuating = self.evacuating;
        let planted = self.executor.settings.planted;
        let timed_out = self.timed_out || (evacuating && planted.has(Flaw::NoTwin));
        let cell_id = self.executor.cell_id.clone();
        let Some(entry) = self.executor.get_mut(guid) else { return };
        let state = entry.life.state();
        if entry.doomed {
            // The steps that are left come after its end.
            if state == State::Completed && entry.busy.is_none() && !entry.gone {
                self.delete(guid);
            }
            return;
        }
        if !entry.is_idle() {
            return;
        }
        if timed_out {
            if !mem::replace(&mut entry.forced, true) || state == State::Completed {
                entry.steps.extend(judge::by_force(&entry.tag.key, state));
            }
        } else {
            let Some(known) = entry.known else {
                self.ask(Read::Now);
                return;
            };
            let judgement = judge::judge(entry, known, evacuating);
            let deletes = judgement.steps.contains(&Action::DeleteContainer);
            let unsaid = judgement.steps.first() == Some(&Action::DeleteContainer);
            let on_trust = state.is_live() || (unsaid && !entry.is_called_off());
            if deletes && state == State::Running && planted.has(Flaw::SecondInstanceKept) {
                return;
            }
            if deletes && on_trust && !fresh {
                self.ask(Read::Now);
                return;
            }
            oddity::note(&cell_id, entry, known, &judgement);
            if !judgement.steps.is_empty() {
                tracing::debug!(container = %guid, steps = ?judgement.steps, why = judgement.why, "harmonizing");
            }
            if judgement.steps.is_empty() {
                self.tell_ready(guid);
                return;
            }
            entry.steps.extend(judgement.steps);
        }
        self.take_step(guid);
    }

    fn take_step(&mut self, guid: &InstanceGuid) {
        let now = self.clock.now();
        let Some(entry) = self.executor.get_mut(guid) else { return };
        let Some(step) = entry.steps.pop_front() else { return };
        entry.revision += 1;
        if let Some(report) = entry.report(step) {
            entry.busy = Some(Busy::Reporting);
            let told = Told { guid: guid.clone(), orphan: false, report };
            self.effects.push(Effect::Report(told));
            return;
        }
        match step {
            Action::RunContainer => match entry.life.advance(State::Initializing, now) {
                Ok(()) => self.effects.push(Effect::Start(Arc::clone(&entry.tag))),
                Err(error) => tracing::error!(container = %guid, %error, "cannot be run"),
            },
            Action::DeleteContainer => self.delete(guid),
            Action::Claim
            | Action::MarkRunning
            | Action::NoteCrash
            | Action::DropRecord
            | Action::DropTwin
            | Action::MakeTwin
            | Action::Unclaim
            | Action::StartTask
            | Action::CompleteTask
            | Action::FailTask => {
                tracing::error!(container = %guid, ?step, "a step that is for another kind of work");
            }
        }
    }

    /// Deletes a container; one that runs is first told to stop, unless there is no time for that.
    fn delete(&mut self, guid: &InstanceGuid) {
        let Some(entry) = self.executor.get_mut(guid) else { return };
        match entry.life.state() {
            // There is nothing of it yet.
            State::Reserved => self.is_gone(guid),
            State::Created | State::Running if !entry.forced => {
                entry.doomed = true;
                self.send_stop(guid);
            }
            State::Initializing => {
                entry.doomed = true;
                self.send_stop(guid);
            }
            State::Created | State::Running | State::Completed => {
                entry.busy = Some(Busy::Deleting);
                self.effects.push(Effect::Delete(guid.clone()));
            }
        }
    }

    /// What to ask the board for.
    pub(super) fn wanted(&self) -> (RecordsWanted, Snapshot) {
        let mut wanted = RecordsWanted::default();
        for key in self.executor.keys() {
            match key {
                Key::Lrp(key) => wanted.lrps.push(key.clone()),
                Key::Task(guid) => wanted.tasks.push(guid.clone()),
            }
        }
        let revisions = self.executor.entries().map(|(guid, entry)| (guid.clone(), entry.revision));
        (wanted, Snapshot { revisions: revisions.collect() })
    }

    /// Brings everything in line with what the board has; says whether it was so already.
    pub(super) fn harmonize(&mut self, records: &CellRecords, asked: &Snapshot) -> bool {
        let before = self.effects.len();
        let found = judge::Found::new(records);
        for guid in self.executor.guids() {
            let cell_id = self.executor.cell_id.clone();
            let Some(entry) = self.executor.get_mut(&guid) else { continue };
            let unchanged = asked.revisions.get(&guid) == Some(&entry.revision);
            if !unchanged || !entry.is_idle() {
                // What was read may be older than what was done since.
                if entry.is_idle() && entry.known.is_none() {
                    self.ask(Read::Now);
                }
                continue;
            }
            entry.known = Some(found.known(&entry.tag, &cell_id));
            entry.ready_told = judge::is_ready(&found, &entry.tag).or(entry.ready_told);
            self.reconcile(&guid, true);
        }
        self.tidy_orphans(records, asked);
        self.effects.len() == before && self.orphans.is_empty() && self.read == Read::InTurn
    }

    /// Records that name a container of this cell that is not there.
    fn tidy_orphans(&mut self, records: &CellRecords, asked: &Snapshot) {
        let under_way: BTreeSet<InstanceGuid> = self.orphans.keys().cloned().collect();
        for (guid, report) in judge::orphans(records, &self.executor.cell_id, self.timed_out) {
            let is_there =
                self.executor.get(&guid).is_some() || asked.revisions.contains_key(&guid);
            if is_there || under_way.contains(&guid) {
                continue;
            }
            tracing::info!(container = %guid, ?report, "a record of a container that is not there");
            *self.orphans.entry(guid.clone()).or_default() += 1;
            self.effects.push(Effect::Report(Told { guid, orphan: true, report }));
        }
    }

    /// Begins to end everything that is there.
    pub(super) fn stop_all(&mut self) {
        for guid in self.executor.guids() {
            self.stop(&guid);
        }
    }
}
