//! What the board wants to be started, as it stands now.

use std::collections::BTreeSet;

use kapell_api::v1::{LrpWork, TaskWork};
use kapell_core::auction::{self, Needs};
use kapell_core::board::{ActualState, DesiredLrp, LrpKey, Records, Task, TaskGuid, TaskState};

use super::SLICE;
use super::starts::Start;
use crate::board::Board;

/// What is to be placed; without what is not to be placed any more.
pub(super) async fn describe(board: &Board, batch: &BTreeSet<Start>) -> Vec<auction::Work> {
    let mut work = Vec::with_capacity(batch.len());
    for (at, start) in (1..).zip(batch) {
        work.extend(description(board, start));
        if at % SLICE == 0 {
            tokio::task::yield_now().await;
        }
    }
    work
}

/// Only what placing needs is copied: a definition may be long.
fn description(board: &Board, start: &Start) -> Option<auction::Work> {
    match start {
        Start::Lrp(key) => board.look(key.process_guid.as_str(), |records| {
            let lrp = wanted(records, key)?;
            // All instances share the guid of their process.
            let process_guid = lrp.process_guid.clone();
            Some(auction::Work::Lrp {
                key: LrpKey { process_guid, index: key.index },
                memory_mb: lrp.memory_mb,
                disk_mb: lrp.disk_mb,
                needs: Needs::new(lrp.rootfs.clone(), lrp.placement_tags.clone()),
            })
        }),
        Start::Task(guid) => board.look(guid.as_str(), |records| {
            let task = &pending(records, guid)?.definition;
            Some(auction::Work::Task {
                task_guid: guid.clone(),
                memory_mb: task.memory_mb,
                disk_mb: task.disk_mb,
                needs: Needs::new(task.rootfs.clone(), task.placement_tags.clone()),
            })
        }),
    }
}

pub(super) fn lrp_work(board: &Board, key: &LrpKey) -> Option<LrpWork> {
    board.look(key.process_guid.as_str(), |records| {
        let desired = wanted(records, key)?.clone();
        Some(LrpWork { index: key.index, desired })
    })
}

pub(super) fn task_work(board: &Board, guid: &TaskGuid) -> Option<TaskWork> {
    board.look(guid.as_str(), |records| {
        let task = pending(records, guid)?;
        let (definition, instance_guid) = (task.definition.clone(), task.instance_guid.clone());
        Some(TaskWork { definition, instance_guid })
    })
}

fn wanted<'a>(records: &'a Records, key: &LrpKey) -> Option<&'a DesiredLrp> {
    let lrp = records.instances.get(key)?;
    let desired = records.desired.get(&key.process_guid)?;
    (lrp.state == ActualState::Unclaimed && desired.wants_this(lrp)).then_some(desired)
}

fn pending<'a>(records: &'a Records, guid: &TaskGuid) -> Option<&'a Task> {
    let task = records.tasks.get(guid)?;
    (task.state == TaskState::Pending).then_some(task)
}

/// What the board says already about why it is not placed.
pub(super) fn said(board: &Board, start: &Start) -> Option<String> {
    match start {
        Start::Lrp(key) => board.look(key.process_guid.as_str(), |records| {
            records.instances.get(key)?.placement_error.clone()
        }),
        Start::Task(guid) => {
            board.look(guid.as_str(), |records| records.tasks.get(guid)?.placement_error.clone())
        }
    }
}
