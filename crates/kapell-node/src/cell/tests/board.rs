//! A board that does as it is told, and fails when it is told to.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};

use async_trait::async_trait;
use kapell_api::v1::{CellRecords, RecordsWanted, ReportAnswer, SecretGiven, Welcome};
use kapell_core::board::request::{Refusal, Report};
use kapell_core::board::secrets::Holder;
use kapell_core::board::{
    ActualLrp, ActualState, CellId, CellPresence, InstanceGuid, InstanceKey, LrpKey, ReservationId,
    Task, TaskGuid, TaskState,
};
use kapell_core::seams::Timestamp;
use kapell_core::seat::Epoch;

use crate::link::{BoardLink, LinkError};

/// What befalls a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    Arrives,
    /// It never got there.
    Lost,
    /// It did, but its answer got lost.
    AnswerLost,
    Busy,
}

#[derive(Debug, Default)]
pub(super) struct Records {
    pub(super) instances: BTreeMap<LrpKey, ActualLrp>,
    pub(super) twins: BTreeMap<LrpKey, ActualLrp>,
    pub(super) tasks: BTreeMap<TaskGuid, Task>,
}

#[derive(Default)]
pub(super) struct FakeBoard {
    records: Mutex<Records>,
    /// What was in each call that arrived.
    calls: Mutex<Vec<Vec<Report>>>,
    pub(super) presences: Mutex<Vec<CellPresence>>,
    pub(super) left: Mutex<u32>,
    pub(super) reads: Mutex<u32>,
    pub(super) unreadable: Mutex<bool>,
    /// Said instead of a welcome.
    pub(super) unwelcome: Mutex<Option<LinkError>>,
    pub(super) epoch: Mutex<Epoch>,
    /// What whoever asks for secrets is answered, and who asked.
    pub(super) secrets: Mutex<Option<Result<Vec<SecretGiven>, LinkError>>>,
    pub(super) asked: Mutex<Vec<Holder>>,
    fate: Mutex<Option<FateOf>>,
}

type FateOf = Box<dyn FnMut(&Report) -> Fate + Send>;

impl std::fmt::Debug for FakeBoard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FakeBoard").field("records", &self.records).finish_non_exhaustive()
    }
}

impl FakeBoard {
    pub(super) fn records(&self) -> MutexGuard<'_, Records> {
        self.records.lock().unwrap()
    }

    pub(super) fn calls(&self) -> Vec<Vec<Report>> {
        self.calls.lock().unwrap().clone()
    }

    /// The names of all reports so far, in order.
    pub(super) fn told(&self) -> Vec<&'static str> {
        self.calls().iter().flatten().map(name).collect()
    }

    pub(super) fn set_fate(&self, fate: impl FnMut(&Report) -> Fate + Send + 'static) {
        *self.fate.lock().unwrap() = Some(Box::new(fate));
    }

    pub(super) fn unclaimed(&self, key: &LrpKey) {
        let lrp = ActualLrp::unclaimed(key, "d".into(), Timestamp(0));
        self.records().instances.insert(key.clone(), lrp);
    }

    pub(super) fn state_of(&self, key: &LrpKey) -> Option<ActualState> {
        self.records().instances.get(key).map(|lrp| lrp.state)
    }

    pub(super) fn task(&self, guid: &TaskGuid) -> Option<Task> {
        self.records().tasks.get(guid).cloned()
    }
}

pub(super) const fn name(report: &Report) -> &'static str {
    match report {
        Report::Claim { .. } => "claim",
        Report::Running { .. } => "running",
        Report::Ready { .. } => "ready",
        Report::Crashed { .. } => "crashed",
        Report::Remove { .. } => "remove",
        Report::RemoveEvacuating { .. } => "remove-evacuating",
        Report::Evacuate { .. } => "evacuate",
        Report::Unclaim { .. } => "unclaim",
        Report::StartTask { .. } => "start-task",
        Report::CompleteTask { .. } => "complete-task",
    }
}

fn refused() -> ReportAnswer {
    ReportAnswer::Refused(Refusal::State { text: "its state does not allow that".to_owned() })
}

impl Records {
    fn decide(&mut self, cell_id: &CellId, report: &Report) -> ReportAnswer {
        let us = report.instance(cell_id);
        match report {
            Report::Claim { key, .. } => self.claim(key, &us),
            Report::Running { key, domain, net, ready, .. } => {
                let ours = |lrp: &ActualLrp| lrp.is_of(&us);
                let lrp = self.instances.get(key);
                if lrp.is_some_and(|lrp| lrp.state == ActualState::Running && !ours(lrp)) {
                    return refused();
                }
                self.twins.remove(key);
                let mut lrp = lrp
                    .cloned()
                    .unwrap_or_else(|| ActualLrp::unclaimed(key, domain.clone(), Timestamp(0)));
                lrp.net = Some(net.clone());
                lrp.ready = Some(*ready);
                self.put(lrp, ActualState::Running, Some(&us))
            }
            Report::Ready { key, ready, .. } => {
                let Some(mut lrp) = self.instances.get(key).cloned().filter(|lrp| lrp.is_of(&us))
                else {
                    return refused();
                };
                lrp.ready = Some(*ready);
                self.put(lrp, ActualState::Running, Some(&us))
            }
            Report::Crashed { key, .. } => match self.instances.get(key).cloned() {
                Some(lrp) if lrp.is_of(&us) => {
                    let mut lrp = lrp;
                    lrp.crash_count += 1;
                    self.put(lrp, ActualState::Unclaimed, None)
                }
                Some(_) => refused(),
                None => ReportAnswer::Done(None),
            },
            Report::Remove { key, .. } => self.remove(key, &us),
            Report::RemoveEvacuating { key, .. } => {
                if self.twins.get(key).is_some_and(|twin| twin.is_of(&us)) {
                    self.twins.remove(key);
                }
                ReportAnswer::Done(None)
            }
            Report::Evacuate { key, net, .. } => {
                let mut twin = ActualLrp::unclaimed(key, "d".into(), Timestamp(0));
                twin.evacuating = true;
                twin.state = ActualState::Running;
                twin.net = Some(net.clone());
                twin.ready = Some(true);
                twin.instance_guid = Some(us.instance_guid.clone());
                twin.cell_id = Some(us.cell_id.clone());
                self.twins.insert(key.clone(), twin);
                self.unclaim(key, &us)
            }
            Report::Unclaim { key, .. } => self.unclaim(key, &us),
            Report::StartTask { task_guid, reservation, .. } => {
                self.start_task(task_guid, &us, reservation.as_ref())
            }
            Report::CompleteTask { task_guid, .. } => self.complete_task(task_guid, &us, report),
        }
    }

    fn put(
        &mut self,
        mut lrp: ActualLrp,
        state: ActualState,
        us: Option<&InstanceKey>,
    ) -> ReportAnswer {
        lrp.state = state;
        lrp.instance_guid = us.map(|us| us.instance_guid.clone());
        lrp.cell_id = us.map(|us| us.cell_id.clone());
        if state != ActualState::Running {
            lrp.net = None;
            lrp.ready = None;
        }
        self.instances.insert(lrp.key(), lrp.clone());
        ReportAnswer::Done(Some(Box::new(lrp)))
    }

    fn claim(&mut self, key: &LrpKey, us: &InstanceKey) -> ReportAnswer {
        match self.instances.get(key).cloned() {
            Some(lrp) if lrp.state == ActualState::Unclaimed || lrp.is_of(us) => {
                self.put(lrp, ActualState::Claimed, Some(us))
            }
            Some(_) | None => refused(),
        }
    }

    fn unclaim(&mut self, key: &LrpKey, us: &InstanceKey) -> ReportAnswer {
        match self.instances.get(key).cloned() {
            Some(lrp) if lrp.is_of(us) => self.put(lrp, ActualState::Unclaimed, None),
            other => ReportAnswer::Done(other.map(Box::new)),
        }
    }

    fn remove(&mut self, key: &LrpKey, us: &InstanceKey) -> ReportAnswer {
        if !self.instances.get(key).is_some_and(|lrp| lrp.is_of(us)) {
            return refused();
        }
        self.instances.remove(key);
        ReportAnswer::Done(None)
    }

    fn start_task(
        &mut self,
        guid: &TaskGuid,
        us: &InstanceKey,
        reservation: Option<&ReservationId>,
    ) -> ReportAnswer {
        let found = self.tasks.get_mut(guid).filter(|task| task.instance_guid == us.instance_guid);
        match found {
            Some(task) if task.state == TaskState::Pending => {
                task.state = TaskState::Running;
                task.cell_id = Some(us.cell_id.clone());
                task.reservation = reservation.cloned();
                ReportAnswer::Done(None)
            }
            Some(task)
                if task.state == TaskState::Running
                    && task.cell_id.as_ref() == Some(&us.cell_id)
                    && reservation.is_some()
                    && task.reservation.as_ref() == reservation =>
            {
                ReportAnswer::Done(None)
            }
            Some(_) | None => refused(),
        }
    }

    fn complete_task(
        &mut self,
        guid: &TaskGuid,
        us: &InstanceKey,
        report: &Report,
    ) -> ReportAnswer {
        let found = self.tasks.get_mut(guid).filter(|task| task.instance_guid == us.instance_guid);
        let Some(task) = found.filter(|task| task.state == TaskState::Running) else {
            return refused();
        };
        if let Report::CompleteTask { failed, failure_reason, result, exit_code, .. } = report {
            task.state = TaskState::Completed;
            task.failed = *failed;
            task.failure_reason.clone_from(failure_reason);
            task.result.clone_from(result);
            task.exit_code = *exit_code;
        }
        ReportAnswer::Done(None)
    }
}

#[async_trait]
impl BoardLink for FakeBoard {
    async fn present(&self, presence: &CellPresence) -> Result<Welcome, LinkError> {
        self.presences.lock().unwrap().push(presence.clone());
        if let Some(error) = self.unwelcome.lock().unwrap().clone() {
            return Err(error);
        }
        Ok(Welcome { epoch: *self.epoch.lock().unwrap(), ttl_ms: 15_000 })
    }

    async fn leave(&self, _: &CellId) -> Result<(), LinkError> {
        *self.left.lock().unwrap() += 1;
        Ok(())
    }

    async fn reports(
        &self,
        cell_id: &CellId,
        reports: &[Report],
    ) -> Result<Vec<ReportAnswer>, LinkError> {
        // Others get their turn while a call is under way.
        tokio::time::sleep(std::time::Duration::from_millis(1)).await; // tidy: allow(sleep) a call takes time
        self.calls.lock().unwrap().push(reports.to_vec());
        let mut answers = Vec::new();
        let mut lost = false;
        for report in reports {
            let fate = match self.fate.lock().unwrap().as_mut() {
                Some(fate) => fate(report),
                None => Fate::Arrives,
            };
            match fate {
                Fate::Arrives => answers.push(self.records().decide(cell_id, report)),
                Fate::AnswerLost => {
                    self.records().decide(cell_id, report);
                    lost = true;
                }
                Fate::Lost => lost = true,
                Fate::Busy => answers.push(ReportAnswer::Busy),
            }
        }
        if lost { Err(LinkError::NoAnswer("lost".to_owned())) } else { Ok(answers) }
    }

    async fn records(
        &self,
        cell_id: &CellId,
        wanted: &RecordsWanted,
    ) -> Result<CellRecords, LinkError> {
        tokio::time::sleep(std::time::Duration::from_millis(1)).await; // tidy: allow(sleep) a call takes time
        *self.reads.lock().unwrap() += 1;
        if *self.unreadable.lock().unwrap() {
            return Err(LinkError::NoAnswer("unreadable".to_owned()));
        }
        let records = self.records();
        let named = |lrp: &&ActualLrp| {
            lrp.cell_id.as_ref() == Some(cell_id) || wanted.lrps.contains(&lrp.key())
        };
        let tasks = records.tasks.values().filter(|task| {
            task.cell_id.as_ref() == Some(cell_id) || wanted.tasks.contains(task.guid())
        });
        Ok(CellRecords {
            epoch: *self.epoch.lock().unwrap(),
            instances: records.instances.values().filter(named).cloned().collect(),
            evacuating: records.twins.values().filter(named).cloned().collect(),
            tasks: tasks.cloned().collect(),
        })
    }

    async fn secrets(&self, _: &CellId, holder: &Holder) -> Result<Vec<SecretGiven>, LinkError> {
        self.asked.lock().unwrap().push(holder.clone());
        let away = || Err(LinkError::NoAnswer("no host".to_owned()));
        self.secrets.lock().unwrap().clone().unwrap_or_else(away)
    }
}

pub(super) fn elsewhere() -> InstanceKey {
    InstanceKey { instance_guid: InstanceGuid::new("other"), cell_id: CellId::new("other-cell") }
}
