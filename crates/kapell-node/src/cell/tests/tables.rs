//! Whatever a table says is done, in order.

use std::sync::Arc;

use kapell_api::v1::{CellRecords, ReportAnswer, TaskWork};
use kapell_core::board::{
    ActualLrp, ActualState, CellId, InstanceGuid, InstanceKey, NetInfo, Resources, Task, TaskGuid,
    TaskState,
};
use kapell_core::rep::container::{RunResult, State};
use kapell_core::rep::evacuation::{self, Instance, Twin};
use kapell_core::rep::{Action, Rule, lrp, task};
use kapell_core::seams::{Clock, Timestamp};

use super::board::{elsewhere, name};
use super::stage::{Counter, key, lrp as lrp_work, pending, settings};
use crate::cell::executor::Executor;
use crate::cell::logs::Logs;
use crate::cell::rep::{Effect, Rep};
use crate::testing::TokioClock;

fn rep() -> Rep {
    let clock: Arc<dyn Clock> = Arc::new(TokioClock::new());
    let executor = Executor::new(
        ("cell".into(), settings()),
        (Arc::clone(&clock), Arc::new(Counter::default())),
        Logs::new(None),
        "10.0.0.1".to_owned(),
        (Resources { memory_mb: 10, disk_mb: 10, containers: 10 }, Vec::new()),
    );
    Rep::new(executor, clock)
}

fn bring_to(rep: &mut Rep, guid: &InstanceGuid, state: State, result: Option<RunResult>) {
    let entry = rep.executor.get_mut(guid).unwrap();
    let now = entry.life.since();
    for step in [State::Initializing, State::Created, State::Running] {
        if entry.life.state() < step && step <= state {
            entry.life.advance(step, now).unwrap();
        }
    }
    if let Some(result) = result {
        entry.life.complete(result, now).unwrap();
    }
}

/// Does what is decided, as if all went well, and tells what that was.
pub(super) fn play(rep: &mut Rep) -> Vec<&'static str> {
    let mut seen = Vec::new();
    loop {
        let effects = rep.take_effects();
        if effects.is_empty() {
            return seen;
        }
        for effect in effects {
            match effect {
                Effect::Start(_) => seen.push("run"),
                Effect::Stop(guid) => rep.ended(&guid, RunResult::stopped()),
                Effect::Delete(guid) => rep.deleted(&guid, Ok(())),
                Effect::Kill(guid) => rep.was_killed(&guid, &Ok(())),
                Effect::Report(told) => {
                    seen.push(name(&told.report));
                    rep.answered(&told, Some(ReportAnswer::Done(None)));
                }
                Effect::Prune(..) => {}
            }
        }
    }
}

fn wanted(rule: &Rule) -> (Vec<&'static str>, bool) {
    let mut wanted = Vec::new();
    let mut before = None;
    for &action in rule.actions {
        let included = matches!(
            (before, action),
            (Some(Action::MarkRunning), Action::DropTwin)
                | (Some(Action::MakeTwin), Action::Unclaim)
        );
        before = Some(action);
        let name = match action {
            Action::Claim => "claim",
            Action::RunContainer => "run",
            Action::MarkRunning => "running",
            Action::NoteCrash => "crashed",
            Action::DropRecord => "remove",
            Action::MakeTwin => "evacuate",
            Action::Unclaim => "unclaim",
            Action::DropTwin => "remove-evacuating",
            Action::StartTask => "start-task",
            Action::CompleteTask | Action::FailTask => "complete-task",
            Action::DeleteContainer => continue,
        };
        if !included {
            wanted.push(name);
        }
    }
    (wanted, rule.actions.contains(&Action::DeleteContainer))
}

fn actual(state: ActualState, of: Option<&InstanceKey>, unplaced: bool) -> ActualLrp {
    let mut lrp = ActualLrp::unclaimed(&key("web", 0), "d".into(), Timestamp(0));
    lrp.state = state;
    lrp.instance_guid = of.map(|of| of.instance_guid.clone());
    lrp.cell_id = of.map(|of| of.cell_id.clone());
    lrp.placement_error = unplaced.then(|| "no room".to_owned());
    let net = NetInfo { address: "a".into(), ports: Vec::new() };
    lrp.net = (state == ActualState::Running).then_some(net);
    lrp
}

fn instance_record(instance: Instance, us: &InstanceKey) -> Option<ActualLrp> {
    let other = &elsewhere();
    match instance {
        Instance::Missing => None,
        Instance::Unclaimed => Some(actual(ActualState::Unclaimed, None, false)),
        Instance::Unplaced => Some(actual(ActualState::Unclaimed, None, true)),
        Instance::ClaimedHere => Some(actual(ActualState::Claimed, Some(us), false)),
        Instance::ClaimedElsewhere => Some(actual(ActualState::Claimed, Some(other), false)),
        Instance::RunningHere => Some(actual(ActualState::Running, Some(us), false)),
        Instance::RunningElsewhere => Some(actual(ActualState::Running, Some(other), false)),
        Instance::Crashed => Some(actual(ActualState::Crashed, None, false)),
    }
}

fn twin_record(twin: Twin, us: &InstanceKey) -> Option<ActualLrp> {
    let of = match twin {
        Twin::Missing => return None,
        Twin::Here => us.clone(),
        Twin::Elsewhere => elsewhere(),
    };
    Some(ActualLrp { evacuating: true, ..actual(ActualState::Running, Some(&of), false) })
}

/// A container of an instance, and what the board has of it.
pub(super) fn lrp_stage(
    container: lrp::Container,
    instance: Instance,
    twin: Twin,
    evacuating: bool,
) -> (Rep, InstanceGuid, CellRecords) {
    let mut rep = rep();
    let guid = match container {
        lrp::Container::Missing => InstanceGuid::new("lost"),
        lrp::Container::Reserved
        | lrp::Container::Starting
        | lrp::Container::Running
        | lrp::Container::Crashed
        | lrp::Container::Stopped => rep.executor.reserve_lrp(lrp_work(&key("web", 0))).unwrap(),
    };
    match container {
        lrp::Container::Reserved | lrp::Container::Missing => {}
        lrp::Container::Starting => bring_to(&mut rep, &guid, State::Initializing, None),
        lrp::Container::Running => bring_to(&mut rep, &guid, State::Running, None),
        lrp::Container::Crashed => {
            bring_to(&mut rep, &guid, State::Running, Some(RunResult::failed("x")));
        }
        lrp::Container::Stopped => {
            bring_to(&mut rep, &guid, State::Running, Some(RunResult::stopped()));
        }
    }
    rep.evacuating = evacuating;
    let us = InstanceKey { instance_guid: guid.clone(), cell_id: CellId::new("cell") };
    let records = CellRecords {
        instances: instance_record(instance, &us).into_iter().collect(),
        evacuating: twin_record(twin, &us).into_iter().collect(),
        ..CellRecords::default()
    };
    (rep, guid, records)
}

/// What a cell does that has just read these records, and whether the container is gone then.
pub(super) fn polled(
    mut rep: Rep,
    guid: &InstanceGuid,
    records: &CellRecords,
) -> (Vec<&'static str>, bool) {
    let was_there = rep.executor.get(guid).is_some();
    let (_, asked) = rep.wanted();
    rep.harmonize(records, &asked);
    let seen = play(&mut rep);
    (seen, was_there && rep.executor.get(guid).is_none())
}

fn lrp_play(
    container: lrp::Container,
    instance: Instance,
    twin: Twin,
    evacuating: bool,
) -> (Vec<&'static str>, bool) {
    let (rep, guid, records) = lrp_stage(container, instance, twin, evacuating);
    polled(rep, &guid, &records)
}

#[tokio::test(start_paused = true)]
async fn every_rule_for_instances_is_carried_out() {
    let mut wrong = Vec::new();
    for container in lrp::Container::ALL {
        for instance in Instance::ALL {
            let us = InstanceKey { instance_guid: "us".into(), cell_id: "cell".into() };
            let record = lrp::classify(instance_record(instance, &us).as_ref(), &us, None);
            let wanted = wanted(&lrp::harmonize(container, record));
            let got = lrp_play(container, instance, Twin::Missing, false);
            if got != wanted {
                wrong.push(format!("{container:?} x {record:?}: want {wanted:?}, got {got:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test(start_paused = true)]
async fn every_rule_of_an_evacuation_is_carried_out() {
    let mut wrong = Vec::new();
    for container in lrp::Container::ALL {
        for instance in Instance::ALL {
            for twin in Twin::ALL {
                let (mut want, deleted) = wanted(&evacuation::harmonize(container, instance, twin));
                let (mut got, gone) = lrp_play(container, instance, twin, true);
                if container == lrp::Container::Missing {
                    // These are about two records, in no order.
                    want.sort_unstable();
                    got.sort_unstable();
                }
                if (&got, gone) != (&want, deleted) {
                    wrong.push(format!(
                        "{container:?} x {instance:?} x {twin:?}: want {want:?} {deleted}, got {got:?} {gone}"
                    ));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Whether or not it evacuates: somebody may have ended that.
#[tokio::test(start_paused = true)]
async fn a_twin_without_a_container_is_removed() {
    for evacuating in [false, true] {
        for instance in [Instance::Missing, Instance::Unclaimed, Instance::RunningElsewhere] {
            let missing = lrp::Container::Missing;
            let got = lrp_play(missing, instance, Twin::Here, evacuating);
            assert_eq!(got, (vec!["remove-evacuating"], false), "{instance:?} {evacuating}");
            let others = lrp_play(missing, instance, Twin::Elsewhere, evacuating);
            assert_eq!(others, (vec![], false), "{instance:?} {evacuating}");
        }
    }
}

fn task_record(record: task::Record) -> Option<Task> {
    let (state, cell) = match record {
        task::Record::Missing => return None,
        task::Record::Pending => (TaskState::Pending, None),
        task::Record::RunningHere => (TaskState::Running, Some("cell")),
        task::Record::RunningElsewhere => (TaskState::Running, Some("other")),
        task::Record::CompletedHere => (TaskState::Completed, Some("cell")),
        task::Record::CompletedElsewhere => (TaskState::Completed, Some("other")),
        task::Record::ResolvingHere => (TaskState::Resolving, Some("cell")),
        task::Record::ResolvingElsewhere => (TaskState::Resolving, Some("other")),
    };
    let cell_id = cell.map(CellId::new);
    Some(Task { state, cell_id, ..pending(&TaskGuid::new("job")) })
}

/// A container of a task, and what the board has of it.
pub(super) fn task_stage(
    container: task::Container,
    record: task::Record,
) -> (Rep, InstanceGuid, CellRecords) {
    let mut rep = rep();
    let task = pending(&TaskGuid::new("job"));
    let guid = task.instance_guid.clone();
    let work = TaskWork { definition: task.definition, instance_guid: guid.clone() };
    match container {
        task::Container::Missing => {}
        task::Container::Reserved | task::Container::Running | task::Container::Completed => {
            rep.executor.reserve_task(work).unwrap();
        }
    }
    match container {
        task::Container::Missing | task::Container::Reserved => {}
        task::Container::Running => bring_to(&mut rep, &guid, State::Running, None),
        task::Container::Completed => {
            bring_to(&mut rep, &guid, State::Running, Some(RunResult::default()));
        }
    }
    let tasks = task_record(record).into_iter().collect();
    let records = CellRecords { tasks, ..CellRecords::default() };
    (rep, guid, records)
}

#[tokio::test(start_paused = true)]
async fn every_rule_for_tasks_is_carried_out() {
    let mut wrong = Vec::new();
    for container in task::Container::ALL {
        for record in task::Record::ALL {
            let wanted = wanted(&task::harmonize(container, record));
            let (rep, guid, records) = task_stage(container, record);
            let got = polled(rep, &guid, &records);
            if got != wanted {
                wrong.push(format!("{container:?} x {record:?}: want {wanted:?}, got {got:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
