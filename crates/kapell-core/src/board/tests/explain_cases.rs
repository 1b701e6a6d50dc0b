//! What is explained of cases that are easily taken for others.

use std::collections::BTreeSet;

use super::explain::{due, explained, presence, value};
use super::world::*;
use crate::board::explain::{self, CellFacts, ProcessFacts, TaskFacts};
use crate::board::placement::IN_FLIGHT;
use crate::board::*;

#[test]
fn an_extra_instance_is_held_back_if_its_domain_is_not_fresh_by_then() {
    let fresh_for = |span: u64| {
        let mut world = World::new().with(running("a", "x"));
        let expires_at = Some(NOW.after(seconds(span)));
        world.records.put(Record::Domain(Freshness {
            domain: "d".into(),
            expires_at,
            since: None,
        }));
        explained(&world)
    };
    let stopped = fresh_for(21);
    assert!(stopped.summary.ends_with("it is about to be stopped"), "{}", stopped.summary);
    assert_eq!(stopped.next_try_at, Some(due().pass));
    let held_back = fresh_for(20);
    assert!(held_back.summary.contains("not fresh any more when"), "{}", held_back.summary);
    assert!(held_back.rule.contains("held back"), "{}", held_back.rule);
    assert_eq!(held_back.next_try_at, None);
}

#[test]
fn what_waits_for_others_to_start_says_so_and_not_that_there_is_no_room() {
    let limited = ActualLrp { placement_error: Some(IN_FLIGHT.to_owned()), ..unclaimed() };
    let mut world = World::desiring(1).with(limited);
    world.settings.in_flight_starts = Some(3);
    let said = explained(&world);
    assert_eq!(said.rule, "auction: at most 3 containers start at once (in_flight_starts)");
    assert_eq!(said.remedies[0], "wait until others have started");
    assert_eq!(value(&said, "in_flight_starts"), Some("3"));
    let task =
        Task { placement_error: Some(IN_FLIGHT.to_owned()), ..task(TaskState::Pending, None) };
    let present = BTreeSet::new();
    let about = TaskFacts { task: &task, present: &present, cells: &[presence()], due: due() };
    assert_eq!(explain::task(&about, NOW, &world.settings).rule, said.rule);
}

#[test]
fn what_finds_no_room_while_its_cell_leaves_still_runs_there() {
    let error = "insufficient resources: memory (wanted 64 MB)";
    let unplaced = ActualLrp { placement_error: Some(error.to_owned()), ..unclaimed() };
    let said = explained(&World::desiring(1).with(unplaced).with(twin("a", "y")));
    let want = "web/0 still runs on cell `a`, which is being evacuated, until ";
    assert!(said.summary.starts_with(want), "{}", said.summary);
    assert!(said.summary.ends_with(&format!("and waits for another cell: {error}")));
    assert_eq!(said.rule, "evacuation: it runs on cell `a` until another cell runs it");
    assert_eq!(said.remedies[0], "free 64 MB of memory on a cell");
}

#[test]
fn a_twin_that_is_left_alone_is_there_until_its_time_is_over() {
    let world = World::new().with(twin("a", "y"));
    let said = explained(&world);
    assert!(said.summary.starts_with("web/0 still runs on cell `a`"), "{}", said.summary);
    assert!(said.summary.ends_with("and is not desired any more"), "{}", said.summary);
    assert_eq!(said.rule, "housekeeping 1: evacuating twin whose time is over");
    assert_eq!(said.next_try_at, world.twin(0).unwrap().expires_at);
    let desired = explained(&World::desiring(1).with(twin("a", "y")));
    assert!(desired.summary.contains("has it started elsewhere"), "{}", desired.summary);
    let lost = explained(&World::new().with(twin("gone", "y")));
    assert_eq!(lost.rule, "convergence duty 1: instance on a lost cell");
}

#[test]
fn what_cannot_be_read_is_said_to_be_so_and_to_stop_nothing() {
    let mut world = World::new().with(running("a", "x"));
    world.records.put(Record::Desired(Box::new(DesiredLrp::forgotten("web".into()))));
    let fresh = Freshness { domain: "d".into(), expires_at: None, since: None };
    world.records.put(Record::Domain(fresh));
    let said = explained(&world);
    assert!(said.summary.contains("cannot be read, and nothing of it is stopped"), "{said:?}");
    assert_eq!(said.remedies, ["apply `web` again: kapell apply -f FILE"]);
    assert_eq!(said.next_try_at, None);
    let mut nothing = World::new();
    nothing.records.put(Record::Desired(Box::new(DesiredLrp::forgotten("web".into()))));
    assert!(explained(&nothing).summary.starts_with("web/0 is not there: what is desired"));
    let guid = ProcessGuid::from("web");
    let instances = [running("a", "x")];
    let whole = explain::process(&ProcessFacts {
        guid: &guid,
        desired: None,
        forgotten: true,
        instances: &instances,
        unsettled: &[said],
        more: 0,
    });
    assert_eq!(
        whole.summary,
        "of `web` 1 instance is left, 1 running; what is desired of it cannot be read: nothing of it is stopped"
    );
}

#[test]
fn a_task_whose_completion_is_told_says_when_it_is_deleted() {
    let present = BTreeSet::new();
    let task = calling_back(task(TaskState::Resolving, Some("a")));
    let about = TaskFacts { task: &task, present: &present, cells: &[], due: due() };
    let said = explain::task(&about, NOW, &Settings::default());
    assert!(said.summary.ends_with("it is deleted when the receiver has answered"), "{said:?}");
    assert_eq!(said.rule, "callback: it is told until the receiver has answered, then deleted");
    let late = explain::task(&about, NOW.after(seconds(31)), &Settings::default());
    assert_eq!(late.rule, "convergence duty for tasks 5: stuck RESOLVING task");
}

#[test]
fn a_cell_that_is_gone_or_silent_says_so() {
    let (presence, id) = (presence(), CellId::from("a"));
    let about = CellFacts {
        cell_id: &id,
        presence: None,
        awaited: false,
        heard_ago: Some(seconds(40)),
        silent_since: None,
        due: due(),
        lrps: 2,
        tasks: 0,
    };
    let say = |about: &CellFacts<'_>| explain::cell(about, &Settings::default());
    let gone = say(&about);
    assert!(gone.summary.starts_with("cell `a` is gone: what the board still has"), "{gone:?}");
    assert!(gone.facts.contains(&"it was last heard of 40 s ago".to_owned()), "{gone:?}");
    assert_eq!(gone.next_try_at, Some(due().pass));
    let empty = say(&CellFacts { lrps: 0, ..about });
    assert!(empty.summary.contains("instances were started elsewhere"), "{empty:?}");
    assert_eq!(empty.next_try_at, None);
    let presence = Some(&presence);
    let silent = say(&CellFacts { presence, silent_since: Some(seconds(3)), ..about });
    assert_eq!(silent.summary, "cell `a` is present, but its agent did not answer the leader");
    assert!(silent.facts.iter().any(|fact| fact.ends_with("last asked it, 3 s ago")), "{silent:?}");
}
