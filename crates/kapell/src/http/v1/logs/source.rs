use kapell_api::v1::LogQuery;
use kapell_core::board::{CellId, CellPresence, LrpKey, TaskGuid, TaskState};
use kapell_node::cell::LogOf;

use super::super::super::answer::Problem;
use super::super::super::desk::{Desk, look};
use super::super::call::Call;
use super::super::refusal::missing;

/// Whose log is wanted.
#[derive(Debug)]
pub(in super::super) enum LogSource {
    Lrp(LrpKey),
    Task(TaskGuid),
}

impl LogSource {
    pub(in super::super) fn lrp(call: &Call) -> Result<Self, Box<Problem>> {
        call.lrp().map(Self::Lrp)
    }

    pub(in super::super) fn task(call: &Call) -> Self {
        Self::Task(call.id("task_guid"))
    }

    pub(in super::super) fn of(&self) -> LogOf {
        match self {
            Self::Lrp(key) => LogOf::Lrp(key.clone()),
            Self::Task(guid) => LogOf::Task(guid.clone()),
        }
    }

    /// Whether it is there for whoever asks.
    pub(in super::super) fn is_seen(&self, call: &Call) -> bool {
        match self {
            Self::Lrp(key) => call.sees_process(&key.process_guid),
            Self::Task(guid) => call.sees_task(guid),
        }
    }

    pub(in super::super) fn missing(&self) -> Box<Problem> {
        match self {
            Self::Lrp(key) => missing("instance", &key.to_string()),
            Self::Task(guid) => missing("task", guid.as_str()),
        }
    }

    /// What a cell is asked. Names that are no ids reach no cell: there is no record of them.
    pub(super) fn path(&self, query: &LogQuery) -> String {
        let mut path = match self {
            Self::Lrp(key) => format!("/v1/cell/logs/lrp/{}/{}", key.process_guid, key.index),
            Self::Task(guid) => format!("/v1/cell/logs/task/{guid}"),
        };
        path.push_str(if query.follow { "?follow=true" } else { "?follow=false" });
        if let Some(tail) = query.tail {
            path.push_str(&format!("&tail={tail}"));
        }
        path
    }

    fn is_id(&self) -> bool {
        match self {
            Self::Lrp(key) => key.process_guid.is_valid(),
            Self::Task(guid) => guid.is_valid(),
        }
    }

    /// The cells that records name.
    fn recorded(&self, desk: &dyn Desk) -> Vec<CellId> {
        let found = match self {
            Self::Lrp(key) => look(desk, key.process_guid.as_str(), |records| {
                let both = [records.instances.get(key), records.evacuating.get(key)];
                both.into_iter().flatten().filter_map(|lrp| lrp.cell_id.clone()).collect()
            }),
            Self::Task(guid) => look(desk, guid.as_str(), |records| {
                records.tasks.get(guid).and_then(|task| task.cell_id.clone()).into_iter().collect()
            }),
        };
        let mut cells: Vec<CellId> = found.unwrap_or_default();
        cells.dedup();
        cells
    }

    /// The cells that records name and that are there.
    pub(in super::super) fn current_cells(&self, desk: &dyn Desk) -> Vec<CellPresence> {
        self.recorded(desk).iter().filter_map(|cell| desk.cell(cell)).collect()
    }

    /// The cells that may have it: those of the record, else all that are there.
    pub(super) fn cells(&self, desk: &dyn Desk) -> Vec<CellPresence> {
        if !self.is_id() {
            return Vec::new();
        }
        let current = self.current_cells(desk);
        if current.is_empty() {
            return desk
                .cells()
                .into_iter()
                .map(|cell| cell.presence)
                .filter(|it| !it.url.is_empty())
                .collect();
        }
        current
    }

    pub(super) fn is_known(&self, desk: &dyn Desk) -> bool {
        let known = match self {
            Self::Lrp(key) => look(desk, key.process_guid.as_str(), |records| {
                records.instances.contains_key(key)
                    || records.evacuating.contains_key(key)
                    || records
                        .desired_lrp(&key.process_guid)
                        .is_some_and(|lrp| lrp.wants(key.index))
            }),
            Self::Task(guid) => {
                look(desk, guid.as_str(), |records| records.tasks.contains_key(guid))
            }
        };
        known.unwrap_or(false)
    }

    /// Whether something of it may still come.
    pub(super) fn may_write(&self, desk: &dyn Desk) -> bool {
        match self {
            Self::Lrp(_) => self.is_known(desk),
            Self::Task(guid) => look(desk, guid.as_str(), |records| {
                let state = records.tasks.get(guid).map(|task| task.state);
                matches!(state, Some(TaskState::Pending | TaskState::Running))
            })
            .unwrap_or(false),
        }
    }

    /// Whether the end of a cell's stream is the end of it all.
    pub(super) const fn ends(&self) -> bool {
        match self {
            Self::Lrp(_) => false,
            Self::Task(_) => true,
        }
    }

    /// Whether a cell has nothing more to tell. A cell tells the end of a task by itself.
    pub(super) fn has_left(&self, desk: &dyn Desk, cell: &CellId) -> bool {
        match self {
            Self::Lrp(_) => {
                let now = self.recorded(desk);
                if now.is_empty() { !self.is_known(desk) } else { !now.contains(cell) }
            }
            Self::Task(_) => false,
        }
    }
}
