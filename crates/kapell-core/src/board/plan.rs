//! What applying something would come to, without doing it.
//!
//! What stands is changed by the board's own rules, on a draft that nobody commits, and what
//! would have to be started is placed by the auction itself, wish after wish as they are applied.

mod drawing;
mod shape;

use std::collections::{BTreeMap, BTreeSet};

use super::actual::{ActualLrp, ActualState, LrpKey};
use super::cell::CellState;
use super::desired::{DesiredLrp, DesiredUpdate};
use super::draft::Draft;
use super::ids::{CellId, InstanceGuid, ProcessGuid, TaskGuid};
use super::records::Records;
use super::request::{Refusal, Reply, Request};
use super::rules::decide;
use super::settings::Settings;
use super::task::{Task, TaskDefinition, TaskState};
use crate::auction::{Needs, Work};
use crate::seams::Timestamp;

pub use drawing::Drawing;
pub use shape::{Asked, Plan, Step, Stop, Unit, Wish, Wishes};

/// What of a desired LRP may change without restarting anything.
pub const IN_PLACE: [&str; 3] = ["annotation", "instances", "routes"];

/// One wish, and what follows from it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outline {
    wish: Wish,
    starts: Vec<Work>,
    /// Of its instances, those that wait on the board already.
    waits: Vec<Work>,
    stops: Vec<Stop>,
}

/// How the cells stand.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Cells {
    pub states: Vec<CellState>,
    /// Those that are there and did not say.
    pub silent: Vec<CellId>,
}

/// What one wish would change among the records of its shard.
pub fn outline(
    records: &Records,
    asked: &Asked<'_>,
    now: Timestamp,
    settings: &Settings,
) -> Outline {
    match asked {
        Asked::Lrp { lrp, keeps } => of_lrp(records, lrp, *keeps, now, settings),
        Asked::Task(task) => of_task(records, task, now, settings),
    }
}

/// What desiring a process would change among the records of its shard.
pub fn of_lrp(
    records: &Records,
    wanted: &DesiredLrp,
    keep_instances: bool,
    now: Timestamp,
    settings: &Settings,
) -> Outline {
    let guid = &wanted.process_guid;
    let stands = records.desired_lrp(guid);
    let instances = stands.filter(|_| keep_instances).map(|stands| stands.instances);
    let wanted = DesiredLrp { instances: instances.unwrap_or(wanted.instances), ..wanted.clone() };
    let before = stands.map_or(0, |stands| stands.instances);
    let wish = Wish {
        subject: format!("lrp/{guid}"),
        step: Step::Unchanged,
        fields: Vec::new(),
        reason: None,
        before,
        after: before,
    };
    let ask = |request: &Request| tried(records, request, now, settings);
    let (lrp, fields) = match ask(&Request::Desire(Box::new(wanted.clone()))) {
        Ok(Reply::Desired { lrp, created: true }) => {
            let step = Step::Create;
            let wish = Wish { step, after: lrp.instances, ..wish };
            return unfolded(records, wish, &lrp);
        }
        Ok(Reply::Desired { lrp, created: false }) => (lrp, Vec::new()),
        Err(Refusal::Exists { fields, .. }) if all_in_place(&fields) => {
            let update = DesiredUpdate {
                instances: Some(wanted.instances),
                annotation: Some(wanted.annotation.clone()),
                routes: Some(wanted.routes),
                version: None,
            };
            match ask(&Request::UpdateDesired { process_guid: guid.clone(), update }) {
                Ok(Reply::Desired { lrp, .. }) => (lrp, fields),
                Ok(_) => return refused(wish, Vec::new(), String::new()),
                Err(why) => return refused(wish, fields, why.to_string()),
            }
        }
        Err(why) => {
            let fields = fixed(&why);
            return refused(wish, fields, why.to_string());
        }
        Ok(_) => return refused(wish, Vec::new(), String::new()),
    };
    let step = match lrp.instances.cmp(&before) {
        std::cmp::Ordering::Greater => Step::ScaleUp,
        std::cmp::Ordering::Less => Step::ScaleDown,
        std::cmp::Ordering::Equal if fields.is_empty() => Step::Unchanged,
        std::cmp::Ordering::Equal => Step::Update,
    };
    unfolded(records, Wish { step, fields, after: lrp.instances, ..wish }, &lrp)
}

/// What asking for a task would change among the records of its shard.
pub fn of_task(
    records: &Records,
    definition: &TaskDefinition,
    now: Timestamp,
    settings: &Settings,
) -> Outline {
    let guid = &definition.task_guid;
    let before = u32::from(records.tasks.contains_key(guid));
    let wish = Wish {
        subject: format!("task/{guid}"),
        step: Step::Unchanged,
        fields: Vec::new(),
        reason: None,
        before,
        after: before,
    };
    let request = Request::CreateTask {
        definition: Box::new(definition.clone()),
        instance_guid: InstanceGuid::from("plan"),
    };
    match tried(records, &request, now, settings) {
        Ok(Reply::Task { task, created: true }) => {
            let wish = Wish { step: Step::Create, after: 1, ..wish };
            Outline { wish, starts: vec![work_of_task(&task)], waits: vec![], stops: vec![] }
        }
        Ok(Reply::Task { task, created: false }) => {
            let waits = (task.state == TaskState::Pending).then(|| work_of_task(&task));
            Outline { wish, starts: vec![], waits: waits.into_iter().collect(), stops: vec![] }
        }
        Ok(_) => refused(wish, Vec::new(), String::new()),
        Err(why) => {
            let fields = fixed(&why);
            refused(wish, fields, why.to_string())
        }
    }
}

/// Everything else in a shard that waits for a cell.
pub fn waiting(
    records: &Records,
    lrps: &BTreeSet<&ProcessGuid>,
    tasks: &BTreeSet<&TaskGuid>,
) -> Vec<Work> {
    let mut found = Vec::new();
    for desired in records.desired_lrps().filter(|lrp| !lrps.contains(&lrp.process_guid)) {
        let (starts, waits) = to_place(records, desired);
        found.extend(starts.into_iter().chain(waits));
    }
    let pending = records.tasks.values().filter(|task| task.state == TaskState::Pending);
    found.extend(pending.filter(|task| !tasks.contains(task.guid())).map(work_of_task));
    found
}

/// The plan, drawn in one go.
pub fn drawn(outlines: Vec<Outline>, waiting: Vec<Work>, cells: Cells) -> Plan {
    Drawing::new(outlines, waiting, cells).finish()
}

fn tried(
    records: &Records,
    request: &Request,
    now: Timestamp,
    settings: &Settings,
) -> Result<Reply, Refusal> {
    let group = BTreeMap::new();
    decide(&mut Draft::new(records, &group), request, now, settings).map(|verdict| verdict.reply)
}

fn all_in_place(fields: &[String]) -> bool {
    fields.iter().all(|field| IN_PLACE.contains(&field.as_str()))
}

/// The fields that stand in the way.
fn fixed(why: &Refusal) -> Vec<String> {
    match why {
        Refusal::Exists { fields, .. } => {
            let fixed = |field: &&String| !IN_PLACE.contains(&field.as_str());
            fields.iter().filter(fixed).cloned().collect()
        }
        Refusal::Invalid { .. }
        | Refusal::NotFound { .. }
        | Refusal::Version { .. }
        | Refusal::State { .. } => Vec::new(),
    }
}

fn refused(wish: Wish, fields: Vec<String>, reason: String) -> Outline {
    let wish = Wish { step: Step::Refused, fields, reason: Some(reason), ..wish };
    Outline { wish, starts: Vec::new(), waits: Vec::new(), stops: Vec::new() }
}

/// What would be started and stopped if this were what stands.
fn unfolded(records: &Records, wish: Wish, lrp: &DesiredLrp) -> Outline {
    let (starts, waits) = to_place(records, lrp);
    let stops = records
        .instances_of(&lrp.process_guid)
        .filter(|it| !lrp.wants_this(it))
        .map(|it| Stop { subject: format!("lrp/{}", it.key()), cell_id: it.cell_id.clone() })
        .collect();
    Outline { wish, starts, waits, stops }
}

/// Of a process, what is not there and what waits for a cell.
fn to_place(records: &Records, lrp: &DesiredLrp) -> (Vec<Work>, Vec<Work>) {
    let there: BTreeMap<u32, &ActualLrp> = records
        .instances_of(&lrp.process_guid)
        .filter(|it| lrp.wants_this(it))
        .map(|it| (it.index, it))
        .collect();
    let mut found = (Vec::new(), Vec::new());
    for index in 0..lrp.instances {
        match there.get(&index).map(|it| it.state) {
            None => found.0.push(work_of_lrp(lrp, index)),
            Some(ActualState::Unclaimed) => found.1.push(work_of_lrp(lrp, index)),
            Some(ActualState::Claimed | ActualState::Running | ActualState::Crashed) => {}
        }
    }
    found
}

fn work_of_lrp(lrp: &DesiredLrp, index: u32) -> Work {
    Work::Lrp {
        key: LrpKey { process_guid: lrp.process_guid.clone(), index },
        memory_mb: lrp.memory_mb,
        disk_mb: lrp.disk_mb,
        needs: Needs::new(lrp.rootfs.clone(), lrp.placement_tags.clone()),
    }
}

fn work_of_task(task: &Task) -> Work {
    let definition = &task.definition;
    Work::Task {
        task_guid: task.guid().clone(),
        memory_mb: definition.memory_mb,
        disk_mb: definition.disk_mb,
        needs: Needs::new(definition.rootfs.clone(), definition.placement_tags.clone()),
    }
}
