//! What runs on machines.

use std::time::Duration;

use kapell_core::board::{ActualLrp, CellId, DesiredLrp, Record, Resources, Task, TaskState};

use super::stage::{
    Stage, actual, broken, desire, desired, process, running, task, task_process, task_record,
};
use crate::fleet::checks::capacity::Capacity;
use crate::fleet::checks::evacuation_gap::EvacuationGap;
use crate::fleet::checks::inconceivable::Inconceivable;
use crate::fleet::checks::one_instance::OneInstance;
use crate::fleet::checks::task_once::TaskOnce;
use crate::fleet::fact::Fact;
use crate::fleet::plan::Fault;

#[test]
fn two_of_one_index_are_let_pass_until_all_has_been_well_for_long() {
    let mut world = Stage::<OneInstance>::new();
    world.begin(&process(0, "x", "a")).unwrap();
    world.begin(&process(0, "y", "b")).unwrap();
    world.after(1000).tell(&Fact::FaultsOver).unwrap();
    world.calm_since = Some(world.now);
    world.after(89).tell(&Fact::FaultsOver).unwrap();
    broken(world.after(2).tell(&Fact::FaultsOver), "more than once since");
}

#[test]
fn two_of_one_index_are_broken_in_the_end() {
    let mut world = Stage::<OneInstance>::new();
    world.begin(&process(0, "x", "a")).unwrap();
    world.begin(&process(1, "z", "a")).unwrap();
    world.end().unwrap();
    world.begin(&process(0, "y", "b")).unwrap();
    broken(world.end(), "in the end");
}

#[test]
fn an_evacuating_twin_does_not_count() {
    let mut world = Stage::<OneInstance>::new();
    world.calm_since = Some(Duration::ZERO);
    world.begin(&process(0, "x", "a")).unwrap();
    world.put([actual(ActualLrp { evacuating: true, ..running(0, "x", "a") })]).unwrap();
    world.begin(&process(0, "y", "b")).unwrap();
    world.after(1000).tell(&Fact::FaultsOver).unwrap();
    world.end().unwrap();
}

#[test]
fn what_no_agent_looks_after_does_not_count() {
    let mut world = Stage::<OneInstance>::new();
    world.machine("a").has_agent = false;
    world.begin(&process(0, "x", "a")).unwrap();
    world.begin(&process(0, "y", "b")).unwrap();
    world.end().unwrap();
}

#[test]
fn a_task_begins_once_where_the_board_has_said_so() {
    let mut world = Stage::<TaskOnce>::new();
    world.put([task_record("one", TaskState::Running, 2)]).unwrap();
    world.begin(&task_process("one", "a")).unwrap();
    broken(world.begin(&task_process("one", "a")), "and on");
    broken(world.begin(&task_process("one", "b")), "unasked");
}

#[test]
fn a_task_that_begins_while_it_is_pending_is_broken() {
    let mut world = Stage::<TaskOnce>::new();
    world.put([task_record("one", TaskState::Pending, 1)]).unwrap();
    broken(world.begin(&task_process("one", "a")), "unasked");
}

#[test]
fn a_container_of_a_namesake_is_broken() {
    let mut world = Stage::<TaskOnce>::new();
    world.put([task_record("two", TaskState::Running, 2)]).unwrap();
    broken(world.begin(&task_process("one", "a")), "unasked");
}

#[test]
fn a_task_succeeds_only_after_it_has_run() {
    let done = || {
        let task = Task { failed: false, ..task("one", TaskState::Completed, 3) };
        [Record::Task(Box::new(task))]
    };
    let mut world = Stage::<TaskOnce>::new();
    world.put([task_record("one", TaskState::Running, 2)]).unwrap();
    broken(world.put(done()), "did not run");
    let mut world = Stage::<TaskOnce>::new();
    world.put([task_record("one", TaskState::Running, 2)]).unwrap();
    world.begin(&task_process("one", "a")).unwrap();
    world.over(&task_process("one", "a")).unwrap();
    world.put(done()).unwrap();
}

#[test]
fn a_machine_runs_no_more_than_it_has_room_for() {
    let mut world = Stage::<Capacity>::new();
    for (index, container) in ["x", "y", "z"].into_iter().enumerate() {
        let index = u32::try_from(index).unwrap();
        world.begin(&process(index, container, "a")).unwrap();
    }
    world.begin(&process(3, "w", "b")).unwrap();
    broken(world.begin(&process(4, "v", "a")), "and has");
}

#[test]
fn each_kind_of_room_counts() {
    let most = Resources { memory_mb: 300, disk_mb: 300, containers: 3 };
    for capacity in [Resources { memory_mb: 150, ..most }, Resources { containers: 1, ..most }] {
        let mut world = Stage::<Capacity>::new();
        world.machine("a").capacity = capacity;
        world.begin(&process(0, "x", "a")).unwrap();
        broken(world.begin(&process(1, "y", "a")), "and has");
    }
}

#[test]
fn an_evacuation_that_leaves_one_fewer_is_broken() {
    let mut world = Stage::<EvacuationGap>::new();
    world.put([desire(2)]).unwrap();
    world.begin(&process(0, "x", "a")).unwrap();
    world.begin(&process(1, "y", "a")).unwrap();
    world.put([actual(running(0, "x", "a")), actual(running(1, "y", "a"))]).unwrap();
    world.begin(&process(0, "z", "b")).unwrap();
    world.put([actual(running(0, "z", "b"))]).unwrap();
    world.over(&process(0, "x", "a")).unwrap();
    broken(world.over(&process(1, "y", "a")), "1 of 2");
}

#[test]
fn fewer_run_before_all_have_run_and_after_another_number_is_wanted() {
    let mut world = Stage::<EvacuationGap>::new();
    world.put([desire(2)]).unwrap();
    world.begin(&process(0, "x", "a")).unwrap();
    world.over(&process(0, "x", "a")).unwrap();
    world.begin(&process(0, "y", "a")).unwrap();
    world.begin(&process(1, "z", "a")).unwrap();
    world.put([actual(running(0, "y", "a")), actual(running(1, "z", "a"))]).unwrap();
    world.put([desire(1)]).unwrap();
    world.over(&process(1, "z", "a")).unwrap();
    world.put([desire(3)]).unwrap();
    world.over(&process(0, "y", "a")).unwrap();
}

#[test]
fn what_was_given_up_before_it_is_wanted_again_does_not_count() {
    let mut world = Stage::<EvacuationGap>::new();
    world.put([desire(1), actual(running(0, "x", "a"))]).unwrap();
    world.begin(&process(0, "x", "a")).unwrap();
    let none = DesiredLrp { retiring: true, version: 2, ..desired(0) };
    world.put([Record::Desired(Box::new(none))]).unwrap();
    world.put([Record::Desired(Box::new(DesiredLrp { version: 3, ..desired(1) }))]).unwrap();
    world.begin(&process(0, "y", "b")).unwrap();
    world.put([actual(running(0, "y", "b"))]).unwrap();
    world.over(&process(0, "x", "a")).unwrap();
    broken(world.over(&process(0, "y", "b")), "0 of 1");
}

#[test]
fn fewer_run_where_no_machine_that_stays_has_room() {
    let mut world = Stage::<EvacuationGap>::new();
    world.machine("a").evacuating = true;
    world.machine("b").capacity.memory_mb = 50;
    world.put([desire(1)]).unwrap();
    world.begin(&process(0, "x", "a")).unwrap();
    world.put([actual(running(0, "x", "a"))]).unwrap();
    world.over(&process(0, "x", "a")).unwrap();
}

#[test]
fn what_is_being_started_may_go_with_its_cell() {
    let mut world = Stage::<EvacuationGap>::new();
    world.put([desire(1)]).unwrap();
    world.begin(&process(0, "x", "a")).unwrap();
    world.over(&process(0, "x", "a")).unwrap();
}

#[test]
fn what_cannot_be_is_broken_only_where_nothing_goes_wrong() {
    let fact = Fact::Inconceivable { cell: CellId::new("a"), text: "row".to_owned() };
    broken(Stage::<Inconceivable>::new().tell(&fact), "row");
    Stage::<Inconceivable>::with(Fault::Pause).tell(&fact).unwrap();
}
