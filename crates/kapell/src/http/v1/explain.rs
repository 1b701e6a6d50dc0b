//! Why something is as it is.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use hyper::StatusCode;
use kapell_api::v1::Explanation;
use kapell_core::board::explain::{
    self as rules, CellFacts, Explained, InstanceFacts, ProcessFacts, TaskFacts,
};
use kapell_core::board::{
    ActualLrp, ActualState, CellId, CellPresence, DesiredLrp, Domain, Freshness, LrpKey,
    ProcessGuid, TaskGuid, shown,
};
use kapell_core::seams::Timestamp;

use super::super::answer::{self, Answer, Problem};
use super::super::desk::{Desk, look};
use super::call::Call;
use super::refusal::missing;

/// The state of a cell that this leader has not heard of.
const AWAITED: &str = "awaited";
/// Of how many instances of a process it is told why each is as it is.
const MOST_TOLD: usize = 20;

/// What is to be explained.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Subject {
    Process(ProcessGuid),
    Lrp(LrpKey),
    Task(TaskGuid),
    Cell(CellId),
}

/// Explains it; nothing if nobody knows of it.
pub(crate) fn explain(desk: &dyn Desk, subject: &Subject, now: Timestamp) -> Option<Explanation> {
    let (name, explained) = match subject {
        Subject::Process(guid) => (format!("lrp/{guid}"), whole(desk, guid, now)?),
        Subject::Lrp(key) => (format!("lrp/{key}"), instance(desk, key, now)?),
        Subject::Task(guid) => (format!("task/{guid}"), of_task(desk, guid, now)?),
        Subject::Cell(id) => (format!("cell/{id}"), of_cell(desk, id)?),
    };
    let Explained { summary, rule, facts, inputs, remedies, next_try_at } = explained;
    Some(Explanation { subject: name, summary, rule, facts, inputs, remedies, next_try_at })
}

/// The cells that there are or may be, and what those that are there say of themselves.
fn cells(desk: &dyn Desk) -> (BTreeSet<CellId>, Vec<CellPresence>) {
    let views = desk.cells();
    let known = views.iter().map(|view| view.presence.cell_id.clone()).collect();
    let there = views.into_iter().filter(|view| view.state != AWAITED).map(|view| view.presence);
    (known, there.collect())
}

fn of_task(desk: &dyn Desk, guid: &TaskGuid, now: Timestamp) -> Option<Explained> {
    let (present, cells) = cells(desk);
    let (settings, due) = (desk.settings(), desk.due());
    let explained = look(desk, guid.as_str(), |records| {
        let task = records.tasks.get(guid)?;
        let about = TaskFacts { task, present: &present, cells: &cells, due };
        Some(rules::task(&about, now, &settings))
    });
    explained?
}

/// What records say of a process.
struct Process {
    desired: Option<DesiredLrp>,
    forgotten: bool,
    instances: Vec<ActualLrp>,
    twins: Vec<ActualLrp>,
}

impl Process {
    fn look(desk: &dyn Desk, guid: &ProcessGuid) -> Option<Self> {
        let found = look(desk, guid.as_str(), |records| Self {
            desired: records.known_desired(guid).cloned(),
            forgotten: records.is_forgotten(guid),
            instances: records.instances_of(guid).cloned().collect(),
            twins: records.evacuating_of(guid).cloned().collect(),
        })?;
        let Self { desired, forgotten, instances, twins } = &found;
        let is_known =
            desired.is_some() || *forgotten || !instances.is_empty() || !twins.is_empty();
        is_known.then_some(found)
    }

    /// The indices that do not run as desired.
    fn unsettled(&self) -> BTreeSet<u32> {
        let desired = self.desired.as_ref().filter(|it| !it.removing);
        let is_settled = |lrp: &ActualLrp| {
            lrp.state == ActualState::Running && desired.is_some_and(|it| it.wants_this(lrp))
        };
        let mut indices: BTreeSet<u32> = (0..desired.map_or(0, |it| it.instances)).collect();
        indices.extend(self.twins.iter().map(|twin| twin.index));
        for lrp in &self.instances {
            if is_settled(lrp) {
                indices.remove(&lrp.index);
            } else {
                indices.insert(lrp.index);
            }
        }
        indices
    }

    /// Of each index what a reader is shown.
    fn shown(&self) -> Vec<ActualLrp> {
        let mut both: BTreeMap<u32, (Option<&ActualLrp>, Option<&ActualLrp>)> = BTreeMap::new();
        for lrp in &self.instances {
            both.entry(lrp.index).or_default().0 = Some(lrp);
        }
        for twin in &self.twins {
            both.entry(twin.index).or_default().1 = Some(twin);
        }
        both.into_values().filter_map(|(lrp, twin)| shown(lrp, twin).cloned()).collect()
    }
}

fn whole(desk: &dyn Desk, guid: &ProcessGuid, now: Timestamp) -> Option<Explained> {
    let found = Process::look(desk, guid)?;
    let indices = found.unsettled();
    let told = indices.iter().take(MOST_TOLD).filter_map(|index| {
        instance(desk, &LrpKey { process_guid: guid.clone(), index: *index }, now)
    });
    let unsettled: Vec<Explained> = told.collect();
    let more = u32::try_from(indices.len().saturating_sub(MOST_TOLD)).unwrap_or(u32::MAX);
    Some(rules::process(&ProcessFacts {
        guid,
        desired: found.desired.as_ref(),
        forgotten: found.forgotten,
        instances: &found.shown(),
        unsettled: &unsettled,
        more,
    }))
}

fn instance(desk: &dyn Desk, key: &LrpKey, now: Timestamp) -> Option<Explained> {
    let (desired, forgotten, lrp, twin) = look(desk, key.process_guid.as_str(), |records| {
        (
            records.known_desired(&key.process_guid).cloned(),
            records.is_forgotten(&key.process_guid),
            records.instances.get(key).cloned(),
            records.evacuating.get(key).cloned(),
        )
    })?;
    if desired.is_none() && !forgotten && lrp.is_none() && twin.is_none() {
        return None;
    }
    let domain: Option<Domain> = lrp
        .as_ref()
        .or(twin.as_ref())
        .map(|lrp| lrp.domain.clone())
        .or_else(|| desired.as_ref().map(|lrp| lrp.domain.clone()));
    let freshness: Option<Freshness> = domain.and_then(|domain| {
        look(desk, domain.as_str(), |records| records.domains.get(&domain).cloned()).flatten()
    });
    let (present, cells) = cells(desk);
    let about = InstanceFacts {
        key,
        desired: desired.as_ref(),
        forgotten,
        instance: lrp.as_ref(),
        evacuating: twin.as_ref(),
        domain: freshness.as_ref(),
        present: &present,
        cells: &cells,
        due: desk.due(),
    };
    Some(rules::instance(&about, now, &desk.settings()))
}

fn of_cell(desk: &dyn Desk, id: &CellId) -> Option<Explained> {
    let there = desk.cells().into_iter().find(|cell| cell.presence.cell_id == *id);
    let is_gone = there.is_none();
    let view = there.or_else(|| desk.gone(id))?;
    let awaited = view.state == AWAITED;
    let about = CellFacts {
        cell_id: id,
        presence: Some(&view.presence).filter(|_| !awaited && !is_gone),
        awaited,
        heard_ago: view.heard_ms_ago.map(Duration::from_millis),
        silent_since: desk.silent_since(id).filter(|_| !is_gone),
        due: desk.due(),
        lrps: view.lrps,
        tasks: view.tasks,
    };
    Some(rules::cell(&about, &desk.settings()))
}

type Answered = Result<Answer, Box<Problem>>;

fn answer(call: &Call, subject: &Subject, what: &str, name: &str) -> Answered {
    let seen = match subject {
        Subject::Process(guid) => call.sees_process(guid),
        Subject::Lrp(key) => call.sees_process(&key.process_guid),
        Subject::Task(guid) => call.sees_task(guid),
        Subject::Cell(_) => true,
    };
    let explained = seen.then(|| explain(&*call.desk, subject, call.now)).flatten();
    let explained = explained.ok_or_else(|| missing(what, name))?;
    Ok(answer::value(StatusCode::OK, &explained))
}

pub(super) fn process(call: &Call) -> Answered {
    let guid = Subject::Process(call.id("process_guid"));
    answer(call, &guid, "process", call.params.get("process_guid"))
}

pub(super) fn lrp(call: &Call) -> Answered {
    let key = call.lrp()?;
    let name = key.to_string();
    answer(call, &Subject::Lrp(key), "instance", &name)
}

pub(super) fn task(call: &Call) -> Answered {
    answer(call, &Subject::Task(call.id("task_guid")), "task", call.params.get("task_guid"))
}

pub(super) fn cell(call: &Call) -> Answered {
    answer(call, &Subject::Cell(call.id("cell_id")), "cell", call.params.get("cell_id"))
}
