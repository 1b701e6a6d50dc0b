//! From a container and what the board has of it to a row of a table.

use std::collections::BTreeMap;
use std::fmt;

use kapell_api::v1::CellRecords;
use kapell_core::board::reasons;
use kapell_core::board::request::Report;
use kapell_core::board::{
    ActualLrp, ActualState, CellId, InstanceGuid, InstanceKey, LrpKey, Task, TaskGuid,
};
use kapell_core::rep::container::{RunResult, State};
use kapell_core::rep::evacuation::{Instance, Twin};
use kapell_core::rep::{Action, Rule, Surprise, evacuation, lrp, task};

use super::LogOf as Key;
use super::entry::Entry;
use super::tag::Tag;

/// What the board has of a container, as far as the tables care.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Known {
    Lrp { instance: Instance, twin: Twin },
    Task(task::Record),
}

impl fmt::Display for Known {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lrp { instance, twin } => {
                write!(f, "instance {}, twin {}", instance.name(), twin.name())
            }
            Self::Task(record) => write!(f, "task {}", record.name()),
        }
    }
}

impl Known {
    /// What there is when a container was just reserved.
    pub(super) const fn reserved(key: &Key) -> Self {
        match key {
            Key::Lrp(_) => Self::Lrp { instance: Instance::Unclaimed, twin: Twin::Missing },
            Key::Task(_) => Self::Task(task::Record::Pending),
        }
    }

    /// What there is when the board takes it for ours.
    pub(super) const fn claimed(key: &Key) -> Self {
        match key {
            Key::Lrp(_) => Self::Lrp { instance: Instance::ClaimedHere, twin: Twin::Missing },
            Key::Task(_) => Self::Task(task::Record::RunningHere),
        }
    }

    /// Whether the container may run now.
    pub(super) fn lets_run(self) -> bool {
        match self {
            Self::Lrp { instance, .. } => instance == Instance::ClaimedHere,
            Self::Task(record) => record == task::Record::RunningHere,
        }
    }

    /// Whether the board has an instance that runs here, as such or as one that is to move.
    pub(super) fn has_running(self) -> bool {
        match self {
            Self::Lrp { instance, twin } => instance == Instance::RunningHere || twin == Twin::Here,
            Self::Task(_) => false,
        }
    }

    /// What there is once the board has done what a report asks for.
    pub(super) fn after(
        self,
        report: &Report,
        record: Option<&ActualLrp>,
        us: &InstanceKey,
        incarnation: Option<u64>,
    ) -> Self {
        match self {
            Self::Lrp { instance, twin } => {
                let (presumed, twin) = presume(report, instance, twin);
                let shown = record.filter(|record| !record.evacuating);
                let instance =
                    shown.map_or(presumed, |shown| Instance::of(Some(shown), us, incarnation));
                Self::Lrp { instance, twin }
            }
            Self::Task(record) => Self::Task(presume_task(report, record)),
        }
    }
}

fn presume(report: &Report, instance: Instance, twin: Twin) -> (Instance, Twin) {
    match report {
        Report::Claim { .. } => (Instance::ClaimedHere, twin),
        Report::Running { .. } => (Instance::RunningHere, Twin::Missing),
        Report::Crashed { .. } => (Instance::Crashed, twin),
        Report::Remove { .. } => (Instance::Missing, twin),
        Report::RemoveEvacuating { .. } => (instance, Twin::Missing),
        Report::Evacuate { .. } => (given_up(instance), Twin::Here),
        Report::Unclaim { .. } => (given_up(instance), twin),
        Report::Ready { .. } | Report::StartTask { .. } | Report::CompleteTask { .. } => {
            (instance, twin)
        }
    }
}

const fn given_up(instance: Instance) -> Instance {
    match instance {
        Instance::ClaimedHere | Instance::RunningHere => Instance::Unclaimed,
        Instance::Missing
        | Instance::Unclaimed
        | Instance::Unplaced
        | Instance::ClaimedElsewhere
        | Instance::RunningElsewhere
        | Instance::Crashed => instance,
    }
}

const fn presume_task(report: &Report, record: task::Record) -> task::Record {
    match report {
        Report::StartTask { .. } => task::Record::RunningHere,
        Report::CompleteTask { .. } => task::Record::CompletedHere,
        Report::Claim { .. }
        | Report::Running { .. }
        | Report::Ready { .. }
        | Report::Crashed { .. }
        | Report::Remove { .. }
        | Report::RemoveEvacuating { .. }
        | Report::Evacuate { .. }
        | Report::Unclaim { .. } => record,
    }
}

/// What is to be done with a container, and why.
#[derive(Debug)]
pub(super) struct Judgement {
    pub(super) steps: Vec<Action>,
    pub(super) surprise: Surprise,
    pub(super) why: &'static str,
}

/// Looks up a container that is there.
pub(super) fn judge(entry: &Entry, known: Known, evacuating: bool) -> Judgement {
    let rule = match known {
        Known::Lrp { instance, twin } if evacuating => {
            evacuation::harmonize(lrp_container(entry), instance, twin)
        }
        Known::Lrp { instance, .. } => {
            lrp::harmonize(lrp_container(entry), without_placement(instance))
        }
        // What was never started is over before it began.
        Known::Task(record) if entry.is_called_off() => {
            task::harmonize(task::Container::Completed, called_off(record))
        }
        Known::Task(record) if entry.start_unheard && entry.life.state() == State::Reserved => {
            task::unheard(record)
        }
        Known::Task(record) => task::harmonize(task_container(entry), record),
    };
    Judgement { steps: steps(&rule), surprise: rule.surprise, why: rule.why }
}

/// A task that waits is nobody's: giving up its reservation leaves it to another cell.
const fn called_off(record: task::Record) -> task::Record {
    match record {
        task::Record::Pending => task::Record::Missing,
        task::Record::Missing
        | task::Record::RunningHere
        | task::Record::RunningElsewhere
        | task::Record::CompletedHere
        | task::Record::CompletedElsewhere
        | task::Record::ResolvingHere
        | task::Record::ResolvingElsewhere => record,
    }
}

/// The actions of a rule without those that a report does along with the one before.
fn steps(rule: &Rule) -> Vec<Action> {
    let mut steps: Vec<Action> = Vec::new();
    for &action in rule.actions {
        let included = match steps.last() {
            Some(Action::MarkRunning) => action == Action::DropTwin,
            Some(Action::MakeTwin) => action == Action::Unclaim,
            Some(_) | None => false,
        };
        if !included {
            steps.push(action);
        }
    }
    steps
}

fn lrp_container(entry: &Entry) -> lrp::Container {
    match entry.life.state() {
        State::Reserved if entry.is_called_off() => lrp::Container::Stopped,
        State::Reserved => lrp::Container::Reserved,
        State::Initializing | State::Created => lrp::Container::Starting,
        State::Running => lrp::Container::Running,
        State::Completed => {
            let stopped = entry.life.result().is_some_and(RunResult::is_stopped);
            if stopped { lrp::Container::Stopped } else { lrp::Container::Crashed }
        }
    }
}

fn task_container(entry: &Entry) -> task::Container {
    match entry.life.state() {
        State::Reserved => task::Container::Reserved,
        State::Initializing | State::Created | State::Running => task::Container::Running,
        State::Completed => task::Container::Completed,
    }
}

const fn without_placement(instance: Instance) -> lrp::Record {
    match instance {
        Instance::Missing => lrp::Record::Missing,
        Instance::Unclaimed | Instance::Unplaced => lrp::Record::Unclaimed,
        Instance::ClaimedHere => lrp::Record::ClaimedHere,
        Instance::ClaimedElsewhere => lrp::Record::ClaimedElsewhere,
        Instance::RunningHere => lrp::Record::RunningHere,
        Instance::RunningElsewhere => lrp::Record::RunningElsewhere,
        Instance::Crashed => lrp::Record::Crashed,
    }
}

/// What is done with a container that is still there when the time for an evacuation is over.
pub(super) const fn by_force(key: &Key, state: State) -> &'static [Action] {
    match key {
        Key::Lrp(_) => &[Action::DropTwin, Action::Unclaim, Action::DeleteContainer],
        Key::Task(_) => match state {
            State::Completed => &[Action::CompleteTask, Action::DeleteContainer],
            // If it waits, another cell may take it; if the board has it running, that record is
            // found without a container and fails.
            State::Reserved => &[Action::DeleteContainer],
            State::Initializing | State::Created | State::Running => {
                &[Action::FailTask, Action::DeleteContainer]
            }
        },
    }
}

/// Records by what they are about.
#[derive(Debug)]
pub(super) struct Found<'a> {
    instances: BTreeMap<LrpKey, &'a ActualLrp>,
    twins: BTreeMap<LrpKey, &'a ActualLrp>,
    tasks: BTreeMap<&'a TaskGuid, &'a Task>,
}

impl<'a> Found<'a> {
    pub(super) fn new(records: &'a CellRecords) -> Self {
        let by_key = |lrps: &'a [ActualLrp]| lrps.iter().map(|lrp| (lrp.key(), lrp)).collect();
        Self {
            instances: by_key(&records.instances),
            twins: by_key(&records.evacuating),
            tasks: records.tasks.iter().map(|task| (task.guid(), task)).collect(),
        }
    }

    pub(super) fn known(&self, tag: &Tag, cell_id: &CellId) -> Known {
        let us = InstanceKey { instance_guid: tag.instance_guid.clone(), cell_id: cell_id.clone() };
        match &tag.key {
            Key::Lrp(key) => Known::Lrp {
                instance: Instance::of(self.instances.get(key).copied(), &us, tag.incarnation),
                twin: Twin::of(self.twins.get(key).copied(), &us),
            },
            Key::Task(guid) => Known::Task(task::classify(self.tasks.get(guid).copied(), &us)),
        }
    }
}

/// What the board has of whether this container is ready, where that can be told.
pub(super) fn is_ready(found: &Found<'_>, tag: &Tag) -> Option<bool> {
    let Key::Lrp(key) = &tag.key else { return None };
    let ours = |record: &&&ActualLrp| record.instance_guid.as_ref() == Some(&tag.instance_guid);
    let record = found.instances.get(key).filter(ours).or(found.twins.get(key).filter(ours))?;
    (record.state == ActualState::Running).then(|| record.is_ready())
}

/// What to report of each record that names this cell, if its container is not there.
pub(super) fn orphans(
    records: &CellRecords,
    cell_id: &CellId,
    timed_out: bool,
) -> Vec<(InstanceGuid, Report)> {
    let lost = if timed_out { reasons::EVACUATION_TIMED_OUT } else { reasons::CONTAINER_LOST };
    let mut reports = Vec::new();
    for record in &records.instances {
        let Some(us) = record.instance().filter(|us| us.cell_id == *cell_id) else { continue };
        let rule = lrp::harmonize(lrp::Container::Missing, lrp::classify(Some(record), &us, None));
        reports.extend(lrp_reports(&rule, record, &us));
    }
    for twin in &records.evacuating {
        let Some(us) = twin.instance().filter(|us| us.cell_id == *cell_id) else { continue };
        let rule = evacuation::leftover(Twin::of(Some(twin), &us));
        reports.extend(lrp_reports(&rule, twin, &us));
    }
    for record in records.tasks.iter().filter(|task| task.cell_id.as_ref() == Some(cell_id)) {
        let instance_guid = record.instance_guid.clone();
        let us = InstanceKey { instance_guid: instance_guid.clone(), cell_id: cell_id.clone() };
        let rule = task::harmonize(task::Container::Missing, task::classify(Some(record), &us));
        if rule.actions.contains(&Action::FailTask) {
            let report = Report::CompleteTask {
                task_guid: record.guid().clone(),
                instance_guid: instance_guid.clone(),
                failed: true,
                failure_reason: lost.to_owned(),
                result: String::new(),
                exit_code: None,
            };
            reports.push((instance_guid, report));
        }
    }
    reports
}

fn lrp_reports(rule: &Rule, record: &ActualLrp, us: &InstanceKey) -> Vec<(InstanceGuid, Report)> {
    let instance_guid = us.instance_guid.clone();
    let mut reports = Vec::new();
    for action in rule.actions {
        let (key, guid) = (record.key(), instance_guid.clone());
        let report = match action {
            Action::DropRecord => Report::Remove { key, instance_guid: guid },
            Action::DropTwin => Report::RemoveEvacuating { key, instance_guid: guid },
            Action::Claim
            | Action::RunContainer
            | Action::MarkRunning
            | Action::NoteCrash
            | Action::MakeTwin
            | Action::Unclaim
            | Action::StartTask
            | Action::CompleteTask
            | Action::FailTask
            | Action::DeleteContainer => continue,
        };
        reports.push((instance_guid.clone(), report));
    }
    reports
}
