use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use kapell_core::board::crash;
use kapell_core::board::{
    ActualLrp, ActualState, CellId, DesiredLrp, LrpKey, ProcessGuid, Record, RecordKey, Task,
    TaskState,
};

use super::{Check, clocks_are_true, room};
use crate::fleet::fact::{Fact, Process, Unit};
use crate::fleet::view::View;

/// How late convergence may be with what is due, the cell that must act included.
const LATE: Duration = Duration::from_secs(90);

/// In the end, what is desired is there, and nothing else.
///
/// Each desired index has a RUNNING record whose process really runs there; it is wanting only if no machine
/// has room for it, or if it crashes: then it waits for its time or is being started again. No record names
/// a cell that is gone. What runs has a record that names it, and is desired, unless nobody has given it up and its
/// domain is not fresh or what is desired cannot be read. No task is PENDING, RUNNING or RESOLVING; a COMPLETED one is not older than it may get.
/// No evacuating twin is past its time.
#[derive(Debug, Default)]
pub(super) struct DesiredReached {
    /// When each record last changed.
    changed: BTreeMap<RecordKey, Duration>,
    completed: BTreeMap<kapell_core::board::InstanceGuid, Duration>,
    /// Processes of which nobody can read what is desired.
    forgotten: BTreeSet<ProcessGuid>,
}

fn is_there(cell: &CellId, view: &View<'_>) -> bool {
    view.machines.get(cell).is_some_and(|machine| machine.is_up && machine.has_agent)
}

/// Whether the process that a record tells of really runs.
fn really_runs(lrp: &ActualLrp, view: &View<'_>) -> bool {
    lrp.instance().is_some_and(|named| {
        view.running.get(&named.instance_guid).is_some_and(|process| {
            process.cell == named.cell_id && process.unit == Unit::Lrp(lrp.key())
        })
    })
}

fn names_the_living(lrp: &ActualLrp, view: &View<'_>) -> Result<(), String> {
    match &lrp.cell_id {
        Some(cell) if !is_there(cell, view) => {
            Err(format!("a record names {cell}, which is gone: {lrp:?}"))
        }
        Some(_) | None => Ok(()),
    }
}

impl DesiredReached {
    fn age(&self, key: &RecordKey, view: &View<'_>) -> Duration {
        view.now.saturating_sub(self.changed.get(key).copied().unwrap_or_default())
    }

    fn index(&self, desired: &DesiredLrp, key: &LrpKey, view: &View<'_>) -> Result<(), String> {
        let Some(lrp) = view.records.instances.get(key) else {
            return Err(format!("{key} is desired and has no record"));
        };
        if !desired.wants_this(lrp) {
            return Err(format!("{key} is of another incarnation: {lrp:?}"));
        }
        let crashes = view.plan.crashing_apps && lrp.crash_count > 0;
        match lrp.state {
            ActualState::Running if really_runs(lrp, view) || crashes => Ok(()),
            ActualState::Crashed if crashes => self.waits(lrp, view),
            ActualState::Unclaimed
                if !room::is_there_for(desired.memory_mb, desired.disk_mb, view) =>
            {
                Ok(())
            }
            ActualState::Unclaimed | ActualState::Claimed
                if crashes && self.age(&RecordKey::Instance(key.clone()), view) < LATE =>
            {
                Ok(())
            }
            ActualState::Unclaimed
            | ActualState::Claimed
            | ActualState::Running
            | ActualState::Crashed => Err(format!("{key} is desired and does not run: {lrp:?}")),
        }
    }

    /// Whether a crashed instance has a wait that is not over for long.
    fn waits(&self, lrp: &ActualLrp, view: &View<'_>) -> Result<(), String> {
        let Some(at) = crash::restart_at(lrp, view.settings) else { return Ok(()) };
        let wait = at.since(lrp.since);
        let age = self.age(&RecordKey::Instance(lrp.key()), view);
        if age <= wait + LATE || !clocks_are_true(view.plan) {
            return Ok(());
        }
        Err(format!("{} crashed {age:?} ago and was to wait for {wait:?}", lrp.key()))
    }

    fn runs(&self, process: &Process, view: &View<'_>) -> Result<(), String> {
        let Unit::Lrp(key) = &process.unit else { return Ok(()) };
        let (container, cell) = (&process.container, &process.cell);
        if !is_there(cell, view) {
            return Ok(());
        }
        let named = [view.records.instances.get(key), view.records.evacuating.get(key)];
        let is_it = |lrp: &&ActualLrp| lrp.instance_guid.as_ref() == Some(container);
        let Some(lrp) = named.into_iter().flatten().find(is_it) else {
            return Err(format!("{key} ({container}) runs on {cell}, and no record tells of it"));
        };
        let is_forgotten = self.forgotten.contains(&key.process_guid);
        if view.records.wants(lrp) || lrp.evacuating || is_forgotten {
            return Ok(());
        }
        let desired = view.records.desired.get(&key.process_guid);
        if desired.is_some_and(|desired| desired.retiring) {
            return Err(format!("{key} ({container}) was given up and runs on {cell}"));
        }
        let domain = RecordKey::Domain(lrp.domain.clone());
        let fresh = view.records.domains.get(&lrp.domain).is_some_and(|it| it.is_fresh(view.wall));
        let long = self.age(&domain, view) > LATE
            && self.age(&RecordKey::Instance(key.clone()), view) > LATE;
        if fresh && long && clocks_are_true(view.plan) {
            let domain = &lrp.domain;
            return Err(format!("{key} ({container}) runs on {cell}, undesired in fresh {domain}"));
        }
        Ok(())
    }

    fn twin(&self, twin: &ActualLrp, view: &View<'_>) -> Result<(), String> {
        let age = self.age(&RecordKey::Evacuating(twin.key()), view);
        if age > view.settings.evacuation + LATE && clocks_are_true(view.plan) {
            return Err(format!("a twin is there after {age:?}: {twin:?}"));
        }
        Ok(())
    }

    fn task(&self, task: &Task, view: &View<'_>) -> Result<(), String> {
        match task.state {
            TaskState::Pending | TaskState::Running => {
                Err(format!("a task is not complete in the end: {task:?}"))
            }
            TaskState::Completed | TaskState::Resolving => {
                let since = self.completed.get(&task.instance_guid).copied().unwrap_or_default();
                let age = view.now.saturating_sub(since);
                let longest = view.settings.completed_task + view.settings.kick_task + LATE;
                if age > longest && clocks_are_true(view.plan) {
                    return Err(format!("a task is there {age:?} after its end: {task:?}"));
                }
                Ok(())
            }
        }
    }
}

impl Check for DesiredReached {
    fn name(&self) -> &'static str {
        "desired reached"
    }

    fn saw(&mut self, fact: &Fact, view: &View<'_>) -> Result<(), String> {
        if let Fact::Corrupted { key: RecordKey::Desired(guid) } = fact {
            self.forgotten.insert(guid.clone());
        }
        let Fact::Committed { changes, .. } = fact else { return Ok(()) };
        for change in changes {
            if let Some(Record::Desired(lrp)) = &change.after
                && !lrp.forgotten
            {
                self.forgotten.remove(&lrp.process_guid);
            }
            self.changed.insert(change.key.clone(), view.now);
            if let Some(Record::Task(task)) = &change.after
                && task.first_completed_at.is_some()
            {
                self.completed.entry(task.instance_guid.clone()).or_insert(view.now);
            }
        }
        Ok(())
    }

    fn at_end(&mut self, view: &View<'_>) -> Result<(), String> {
        for desired in view.records.desired_lrps() {
            for index in 0..desired.instances {
                let process_guid = desired.process_guid.clone();
                self.index(desired, &LrpKey { process_guid, index }, view)?;
            }
        }
        for lrp in view.records.instances.values().chain(view.records.evacuating.values()) {
            names_the_living(lrp, view)?;
        }
        view.records.evacuating.values().try_for_each(|twin| self.twin(twin, view))?;
        view.running.values().try_for_each(|process| self.runs(process, view))?;
        view.records.tasks.values().try_for_each(|task| self.task(task, view))
    }
}
