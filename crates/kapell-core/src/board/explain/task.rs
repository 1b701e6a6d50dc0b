use std::collections::BTreeSet;

use super::instance::cell_fact;
use super::{Due, Explained, Input, clock, in_flight_rule, input, name_of, span};
use crate::board::cell::CellPresence;
use crate::board::duty::Duty;
use crate::board::ids::CellId;
use crate::board::placement::{self, IN_FLIGHT, Want};
use crate::board::settings::Settings;
use crate::board::task::{Task, TaskState};
use crate::seams::Timestamp;

/// All that is known of a task.
#[derive(Debug, Clone, Copy)]
pub struct TaskFacts<'a> {
    pub task: &'a Task,
    /// Cells that are there or that this leader still waits for.
    pub present: &'a BTreeSet<CellId>,
    /// What the cells that are there say of themselves.
    pub cells: &'a [CellPresence],
    pub due: Due,
}

/// Explains a task.
pub fn task(about: &TaskFacts<'_>, now: Timestamp, settings: &Settings) -> Explained {
    Explained {
        summary: about.summary(),
        rule: about.rule(now, settings),
        facts: about.facts(now, settings),
        inputs: about.inputs(now, settings),
        remedies: about.remedies(settings),
        next_try_at: about.next_try_at(settings),
    }
}

impl TaskFacts<'_> {
    fn is_lost(&self) -> bool {
        let cell = self.task.cell_id.as_ref();
        self.task.state == TaskState::Running
            && cell.is_some_and(|cell| !self.present.contains(cell))
    }

    fn is_held_back(&self) -> bool {
        self.task.placement_error.as_ref().is_some_and(|error| error.starts_with(IN_FLIGHT))
    }

    fn has_callback(&self) -> bool {
        !self.task.definition.completion_callback_url.is_empty()
    }

    /// When the board forgets it, once it is over.
    fn deleted_at(&self, settings: &Settings) -> Option<Timestamp> {
        self.task.first_completed_at.map(|at| at.after(settings.completed_task))
    }

    fn summary(&self) -> String {
        let task = self.task;
        let guid = task.guid();
        let cell = name_of(task.cell_id.as_ref());
        let outcome = if task.failed {
            format!("failed: {}", task.failure_reason)
        } else {
            "succeeded".to_owned()
        };
        match task.state {
            TaskState::Pending => match &task.placement_error {
                Some(error) => format!("task `{guid}` waits for a cell: {error}"),
                None => format!("task `{guid}` waits for a cell: it is being placed"),
            },
            TaskState::Running if self.is_lost() => {
                format!("task `{guid}` was on cell `{cell}`, which is gone: it is about to fail")
            }
            TaskState::Running => format!("task `{guid}` runs on cell `{cell}`"),
            TaskState::Completed => format!("task `{guid}` {outcome}"),
            TaskState::Resolving if self.has_callback() => format!(
                "task `{guid}` {outcome}; its completion is being told, and it is deleted when the receiver \
                 has answered"
            ),
            TaskState::Resolving => format!("task `{guid}` {outcome}; it is being deleted"),
        }
    }

    fn rule(&self, now: Timestamp, settings: &Settings) -> String {
        let stale = now.since(self.task.since) >= settings.kick_task;
        match self.task.state {
            TaskState::Pending if self.is_held_back() => in_flight_rule(settings),
            TaskState::Pending if stale => Duty::StartTaskAgain.to_string(),
            TaskState::Pending => "auction: it is placed with the next batch".to_owned(),
            TaskState::Running if self.is_lost() => Duty::FailLostTask.to_string(),
            TaskState::Running => "a task runs once: it is left alone until it ends".to_owned(),
            TaskState::Completed if self.has_callback() => Duty::ResolveTask.to_string(),
            TaskState::Completed => Duty::DeleteOldTask.to_string(),
            TaskState::Resolving if self.has_callback() && !stale => {
                "callback: it is told until the receiver has answered, then deleted".to_owned()
            }
            TaskState::Resolving => Duty::DemoteTask.to_string(),
        }
    }

    fn facts(&self, now: Timestamp, settings: &Settings) -> Vec<String> {
        let task = self.task;
        let mut facts =
            vec![format!("it is {} for {}", task.state.name(), span(now.since(task.since)))];
        facts.extend(cell_fact(task.cell_id.as_ref(), self.present));
        facts.extend(task.placement_error.as_ref().map(|error| format!("last placement: {error}")));
        facts.extend(task.exit_code.map(|code| format!("its process ended with status {code}")));
        if self.has_callback() {
            let url = &task.definition.completion_callback_url;
            facts.push(format!("its completion is told to {url}"));
        }
        let end = self.deleted_at(settings);
        facts.extend(end.map(|at| format!("its record is deleted in {}", span(at.since(now)))));
        facts
    }

    fn inputs(&self, now: Timestamp, settings: &Settings) -> Vec<Input> {
        let task = self.task;
        let mut all = vec![
            input("state", &task.state.name()),
            input("state_for", &span(now.since(task.since))),
        ];
        all.extend(task.cell_id.as_ref().map(|cell| input("cell", cell)));
        match task.state {
            TaskState::Pending => {
                let definition = &task.definition;
                all.push(input("memory_mb", &definition.memory_mb));
                all.push(input("disk_mb", &definition.disk_mb));
                if !definition.placement_tags.is_empty() {
                    all.push(input("placement_tags", &definition.placement_tags.join(", ")));
                }
                all.push(input("cells", &self.cells.len()));
                all.push(input("kick_task", &span(settings.kick_task)));
                let end = task.created_at.after(settings.pending_task);
                all.push(input("given_up_in", &span(end.since(now))));
                let error = task.placement_error.as_ref();
                all.extend(error.map(|error| input("placement_error", error)));
            }
            TaskState::Running => {
                all.push(input("cell_is_present", &!self.is_lost()));
            }
            TaskState::Completed | TaskState::Resolving => {
                all.push(input("failed", &task.failed));
                all.push(input("kick_task", &span(settings.kick_task)));
                all.push(input("completed_task", &span(settings.completed_task)));
            }
        }
        all
    }

    fn remedies(&self, settings: &Settings) -> Vec<String> {
        let guid = self.task.guid();
        let cancel = format!("cancel it: kapell task cancel {guid}");
        match self.task.state {
            TaskState::Pending => {
                let want = Want::of_task(&self.task.definition);
                let mut all = match &self.task.placement_error {
                    Some(error) => placement::remedies(error, &want, self.cells),
                    None if self.cells.is_empty() => vec!["start a cell".to_owned()],
                    None => Vec::new(),
                };
                all.push(cancel);
                all
            }
            TaskState::Running if self.is_lost() => Vec::new(),
            TaskState::Running => vec![cancel],
            TaskState::Completed | TaskState::Resolving => {
                let mut all = Vec::new();
                let end = self.deleted_at(settings);
                all.extend(end.map(|at| format!("wait until {}, when it is forgotten", clock(at))));
                if self.task.state == TaskState::Completed {
                    all.insert(0, format!("delete it: kapell task delete {guid}"));
                }
                if self.task.failed {
                    all.push("ask for it again under another guid: a task runs once".to_owned());
                }
                all
            }
        }
    }

    fn next_try_at(&self, settings: &Settings) -> Option<Timestamp> {
        let stale = self.task.since.after(settings.kick_task);
        match self.task.state {
            TaskState::Pending => Some(self.due.placement(stale)),
            TaskState::Resolving => Some(self.due.pass_after(stale)),
            TaskState::Running => self.is_lost().then_some(self.due.pass),
            TaskState::Completed => self.has_callback().then(|| self.due.pass_after(stale)),
        }
    }
}
