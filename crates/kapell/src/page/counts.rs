use std::collections::BTreeMap;

use kapell_core::board::{
    ActualState, CellId, DesiredLrp, Freshness, ProcessGuid, Resources, Task, TaskState,
};
use kapell_core::seams::Timestamp;

use super::attention::{self, Complaints};
use crate::http::Desk;

/// How many rows a table shows.
pub(super) const MOST_ROWS: usize = 200;

/// What of a process the overview shows.
#[derive(Debug, Clone, Default)]
pub(super) struct Process {
    pub(super) domain: String,
    /// None: instances of it are there, and nobody desires them.
    pub(super) desired: Option<u32>,
    pub(super) states: [u32; 4],
    pub(super) evacuating: u32,
}

/// What the overview counts.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) complaints: Complaints,
    pub(super) lrps: [usize; 4],
    pub(super) tasks: [usize; 4],
    pub(super) failed_tasks: usize,
    pub(super) processes: BTreeMap<ProcessGuid, Process>,
    /// The latest, newest first.
    pub(super) latest_tasks: Vec<Task>,
    pub(super) domains: Vec<Freshness>,
    pub(super) used: BTreeMap<CellId, Resources>,
}

impl Counts {
    pub(super) fn of(desk: &dyn Desk, now: Timestamp) -> Self {
        let mut counts = Self::default();
        let calm = desk.settings().crash_reset;
        let mut sizes: BTreeMap<ProcessGuid, (u32, u32)> = BTreeMap::new();
        desk.look_at_all(&mut |records| {
            for lrp in records.desired_lrps() {
                counts.desired(lrp);
                sizes.insert(lrp.process_guid.clone(), (lrp.memory_mb, lrp.disk_mb));
            }
            for lrp in records.instances.values().chain(records.evacuating.values()) {
                let process = counts.processes.entry(lrp.process_guid.clone()).or_default();
                if process.domain.is_empty() {
                    process.domain = lrp.domain.to_string();
                }
                if lrp.evacuating {
                    process.evacuating += 1;
                } else {
                    process.states[place(lrp.state)] += 1;
                    counts.lrps[place(lrp.state)] += 1;
                    attention::note(&mut counts.complaints, lrp, calm, now);
                }
                let size = sizes.get(&lrp.process_guid).copied().unwrap_or_default();
                counts.uses(lrp.cell_id.as_ref(), size);
            }
            for task in records.tasks.values() {
                counts.task(task);
            }
            counts.domains.extend(records.domains.values().cloned());
        });
        counts.domains.sort_by(|a, b| a.domain.cmp(&b.domain));
        counts.latest_tasks.sort_by_key(|task| std::cmp::Reverse(task.created_at));
        counts.latest_tasks.truncate(MOST_ROWS);
        counts
    }

    fn desired(&mut self, lrp: &DesiredLrp) {
        let process = self.processes.entry(lrp.process_guid.clone()).or_default();
        process.domain = lrp.domain.to_string();
        process.desired = Some(lrp.instances);
    }

    fn task(&mut self, task: &Task) {
        let at = match task.state {
            TaskState::Pending => 0,
            TaskState::Running => 1,
            TaskState::Completed => 2,
            TaskState::Resolving => 3,
        };
        self.tasks[at] += 1;
        self.failed_tasks += usize::from(task.failed);
        if task.state == TaskState::Running {
            let size = (task.definition.memory_mb, task.definition.disk_mb);
            self.uses(task.cell_id.as_ref(), size);
        }
        self.latest_tasks.push(task.clone());
        if self.latest_tasks.len() > 4 * MOST_ROWS {
            self.latest_tasks.sort_by_key(|task| std::cmp::Reverse(task.created_at));
            self.latest_tasks.truncate(MOST_ROWS);
        }
    }

    fn uses(&mut self, cell: Option<&CellId>, (memory_mb, disk_mb): (u32, u32)) {
        let Some(cell) = cell else { return };
        let used = self.used.entry(cell.clone()).or_default();
        used.memory_mb = used.memory_mb.saturating_add(memory_mb);
        used.disk_mb = used.disk_mb.saturating_add(disk_mb);
        used.containers += 1;
    }
}

const fn place(state: ActualState) -> usize {
    match state {
        ActualState::Unclaimed => 0,
        ActualState::Claimed => 1,
        ActualState::Running => 2,
        ActualState::Crashed => 3,
    }
}
