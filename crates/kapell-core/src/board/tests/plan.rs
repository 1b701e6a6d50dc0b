use std::collections::BTreeSet;

use super::world::*;
use crate::board::cell::Held;
use crate::board::plan::{self, Cells, Plan, Step};
use crate::board::*;

fn cell(id: &str, memory_mb: u32) -> CellState {
    let room = Resources { memory_mb, disk_mb: 1000, containers: 100 };
    CellState::empty(id.into(), id.to_owned(), room)
}

fn on(states: Vec<CellState>) -> Cells {
    Cells { states, silent: vec![] }
}

fn planned(world: &World, lrp: &DesiredLrp, keeps: bool, cells: Cells) -> Plan {
    let outline = plan::of_lrp(&world.records, lrp, keeps, world.now, &world.settings);
    let known = BTreeSet::from([&lrp.process_guid]);
    let waiting = plan::waiting(&world.records, &known, &BTreeSet::new());
    plan::drawn(vec![outline], waiting, cells)
}

fn places(plan: &Plan) -> Vec<(&str, Option<&str>)> {
    let units = plan.units.iter();
    units.map(|unit| (unit.subject.as_str(), unit.cell_id.as_ref().map(CellId::as_str))).collect()
}

#[test]
fn what_is_new_is_placed_by_the_auction_and_nothing_changes() {
    let world = World::new();
    let lrp = DesiredLrp { instances: 3, ..web() };
    let plan = planned(&world, &lrp, false, on(vec![cell("a", 100), cell("b", 70)]));
    assert!(!plan.fits);
    let wish = &plan.wishes[0];
    assert_eq!((wish.subject.as_str(), wish.step), ("lrp/web", Step::Create));
    assert_eq!((wish.before, wish.after), (0, 3));
    let want = [("lrp/web/0", Some("a")), ("lrp/web/1", Some("b")), ("lrp/web/2", None)];
    assert_eq!(places(&plan), want);
    let reason = plan.units[2].reason.as_deref().unwrap();
    assert!(reason.starts_with("insufficient resources: memory"), "{reason}");
    assert_eq!(world.records, Records::default());
    let more = planned(&world, &lrp, false, on(vec![cell("a", 200)]));
    assert!(more.fits, "{more:?}");
}

#[test]
fn only_what_is_missing_is_placed_when_a_process_grows() {
    let world = World::desiring(1).with(running("a", "x"));
    let lrp = DesiredLrp { instances: 2, ..web() };
    let plan = planned(&world, &lrp, false, on(vec![cell("a", 100)]));
    assert_eq!(plan.wishes[0].step, Step::ScaleUp);
    assert_eq!(plan.wishes[0].fields, ["instances"]);
    assert_eq!(places(&plan), [("lrp/web/1", Some("a"))]);
    let kept = planned(&world, &lrp, true, on(vec![cell("a", 100)]));
    assert_eq!((kept.wishes[0].step, kept.wishes[0].after), (Step::Unchanged, 1));
    assert!(kept.units.is_empty() && kept.fits, "{kept:?}");
}

#[test]
fn what_would_be_stopped_is_named_with_its_cell() {
    let world = World::desiring(1).with(running("a", "x"));
    let lrp = DesiredLrp { instances: 0, ..web() };
    let plan = planned(&world, &lrp, false, on(vec![cell("a", 100)]));
    assert_eq!(plan.wishes[0].step, Step::ScaleDown);
    let stop = &plan.stops[0];
    assert_eq!((stop.subject.as_str(), stop.cell_id.as_ref()), ("lrp/web/0", Some(&"a".into())));
    assert!(plan.fits);
}

#[test]
fn what_cannot_be_changed_in_place_or_is_wrong_is_refused_with_the_reason() {
    let world = World::desiring(1);
    let other = DesiredLrp { instances: 1, memory_mb: 128, annotation: "n".to_owned(), ..web() };
    let plan = planned(&world, &other, false, on(vec![cell("a", 100)]));
    let wish = &plan.wishes[0];
    assert_eq!((wish.step, &wish.fields[..]), (Step::Refused, &["memory_mb".to_owned()][..]));
    assert!(wish.reason.as_ref().unwrap().contains("delete it first"), "{wish:?}");
    assert!(!plan.fits);
    let noted = DesiredLrp { instances: 1, annotation: "n".to_owned(), ..web() };
    let plan = planned(&world, &noted, false, on(vec![cell("a", 100)]));
    assert_eq!(plan.wishes[0].step, Step::Update);
    let wrong = DesiredLrp { process_guid: "a b".into(), ..web() };
    let plan = planned(&world, &wrong, false, on(vec![cell("a", 100)]));
    assert_eq!(plan.wishes[0].step, Step::Refused);
    assert!(plan.wishes[0].reason.as_ref().unwrap().contains("process_guid"));
}

#[test]
fn what_waits_already_takes_its_room_first_come_or_not() {
    let mut world = World::desiring(1).with(unclaimed());
    world.records.put(Record::Task(Box::new(task(TaskState::Pending, None))));
    let lrp = DesiredLrp { process_guid: "new".into(), instances: 1, ..web() };
    let plan = planned(&world, &lrp, false, on(vec![cell("a", 100)]));
    let subjects: Vec<_> =
        plan.units.iter().map(|unit| (unit.subject.as_str(), unit.wished, unit.waits)).collect();
    let want = [("lrp/new/0", true, false), ("lrp/web/0", false, true), ("task/t", false, true)];
    assert_eq!(subjects, want);
    let lacking: Vec<_> = plan.units.iter().filter(|unit| unit.cell_id.is_none()).collect();
    assert_eq!(lacking.len(), 1, "{plan:?}");
    // What a cell has reserved room for already takes no more.
    let held = Held { key: key(0), instance_guid: "x".into(), memory_mb: 64, disk_mb: 0 };
    let there = CellState { lrps: vec![held], ..cell("a", 64) };
    let plan = planned(&world, &lrp, false, on(vec![there]));
    assert!(plan.fits, "{plan:?}");
    assert_eq!(places(&plan)[1], ("lrp/web/0", Some("a")));
}

#[test]
fn what_others_wait_for_does_not_make_a_plan_unfit() {
    let mut huge = World::desiring(1).with(unclaimed());
    let wanted = DesiredLrp { memory_mb: 10_000, ..web() };
    huge.records.put(Record::Desired(Box::new(wanted)));
    let lrp = DesiredLrp { process_guid: "new".into(), instances: 1, ..web() };
    let plan = planned(&huge, &lrp, false, on(vec![cell("a", 100)]));
    assert!(plan.fits && plan.units.iter().any(|unit| unit.reason.is_some()), "{plan:?}");
}

#[test]
fn without_cells_it_is_said_whether_there_are_none_or_none_answers() {
    let world = World::new();
    let lrp = DesiredLrp { instances: 1, ..web() };
    let none = planned(&world, &lrp, false, Cells::default());
    let reason = none.units[0].reason.as_deref();
    assert_eq!(reason, Some("found no compatible cells: no cell is present"));
    let silent = Cells { states: vec![], silent: vec!["a".into()] };
    let none = planned(&world, &lrp, false, silent);
    let reason = none.units[0].reason.as_deref();
    assert_eq!(reason, Some("unable to communicate to compatible cells"));
    assert_eq!(none.silent, ["a".into()]);
}

#[test]
fn a_task_is_created_once_and_refused_if_it_differs() {
    let mut world = World::new();
    let outline = |world: &World, definition: &TaskDefinition| {
        let outline = plan::of_task(&world.records, definition, world.now, &world.settings);
        plan::drawn(vec![outline], vec![], on(vec![cell("a", 100)]))
    };
    let new = outline(&world, &definition());
    assert_eq!((new.wishes[0].step, new.wishes[0].after), (Step::Create, 1));
    assert_eq!(places(&new), [("task/t", Some("a"))]);
    world.records.put(Record::Task(Box::new(task(TaskState::Running, Some("a")))));
    let again = outline(&world, &definition());
    assert_eq!((again.wishes[0].step, again.units.len()), (Step::Unchanged, 0));
    let other = outline(&world, &TaskDefinition { memory_mb: 1, ..definition() });
    assert_eq!(other.wishes[0].step, Step::Refused);
    assert_eq!(other.wishes[0].fields, ["memory_mb"]);
}

fn pair(world: &World, first: &DesiredLrp, second: &DesiredLrp, cells: Cells) -> Plan {
    let of = |lrp| plan::of_lrp(&world.records, lrp, false, world.now, &world.settings);
    plan::drawn(vec![of(first), of(second)], vec![], cells)
}

#[test]
fn documents_are_placed_one_after_the_other_as_they_are_applied() {
    let world = World::new();
    let small = DesiredLrp { process_guid: "small".into(), instances: 1, memory_mb: 40, ..web() };
    let large = DesiredLrp { process_guid: "large".into(), instances: 1, memory_mb: 70, ..web() };
    // One auction over both would place the larger one first.
    let plan = pair(&world, &small, &large, on(vec![cell("a", 100)]));
    assert_eq!(places(&plan), [("lrp/large/0", None), ("lrp/small/0", Some("a"))]);
    assert_eq!(plan.wishes[0].subject, "lrp/small");
    let plan = pair(&world, &large, &small, on(vec![cell("a", 100)]));
    assert_eq!(places(&plan), [("lrp/large/0", Some("a")), ("lrp/small/0", None)]);
    assert!(plan.units[1].reason.as_ref().unwrap().contains("free on a cell is 30 MB"));
}

#[test]
fn what_an_earlier_document_was_given_weighs_for_a_later_one() {
    let world = World::desiring(2).with(unclaimed());
    let other = DesiredLrp { process_guid: "other".into(), instances: 1, ..web() };
    let web = DesiredLrp { instances: 2, ..web() };
    // web/0 waits, and is placed with the first document; web/1 is then kept apart from it.
    let plan = pair(&world, &other, &web, on(vec![cell("a", 1000), cell("b", 1000)]));
    let at = |subject: &str| {
        let unit = plan.units.iter().find(|unit| unit.subject == subject).unwrap();
        unit.cell_id.clone().unwrap()
    };
    assert_ne!(at("lrp/web/0"), at("lrp/web/1"), "{plan:?}");
    assert_ne!(at("lrp/web/0"), at("lrp/other/0"), "{plan:?}");
}

#[test]
fn with_one_refusal_nothing_is_done() {
    let world = World::desiring(1);
    let refused = DesiredLrp { instances: 1, memory_mb: 128, ..web() };
    let new = DesiredLrp { process_guid: "new".into(), instances: 2, ..web() };
    let plan = pair(&world, &new, &refused, on(vec![cell("a", 1000)]));
    let steps: Vec<Step> = plan.wishes.iter().map(|wish| wish.step).collect();
    assert_eq!(steps, [Step::NotDone, Step::Refused]);
    assert_eq!((plan.wishes[0].before, plan.wishes[0].after), (0, 0));
    assert!(plan.units.is_empty() && plan.stops.is_empty() && !plan.fits, "{plan:?}");
}

#[test]
fn a_pending_task_with_room_reserved_is_not_placed_twice() {
    let mut world = World::new();
    let pending = task(TaskState::Pending, None);
    let key = pending.guid().clone();
    world.records.put(Record::Task(Box::new(pending)));
    let held = Held { key, instance_guid: "x".into(), memory_mb: 64, disk_mb: 0 };
    let there = CellState { tasks: vec![held], ..cell("a", 64) };
    let lrp = DesiredLrp { process_guid: "new".into(), instances: 1, ..web() };
    let plan = planned(&world, &lrp, false, on(vec![there, cell("b", 0)]));
    assert_eq!(places(&plan), [("lrp/new/0", Some("a")), ("task/t", Some("a"))]);
}

#[test]
fn a_plan_is_drawn_in_slices_and_shares_its_reasons() {
    let world = World::new();
    let lrp = DesiredLrp { instances: 100, ..web() };
    let outline = plan::of_lrp(&world.records, &lrp, false, world.now, &world.settings);
    let mut drawing = plan::Drawing::new(vec![outline.clone()], vec![], on(vec![cell("a", 64)]));
    let mut steps = 0;
    while drawing.step(10) {
        steps += 1;
    }
    assert!(steps >= 10, "{steps}");
    let plan = drawing.finish();
    assert_eq!(plan, plan::drawn(vec![outline], vec![], on(vec![cell("a", 64)])));
    let reasons: Vec<_> = plan.units.iter().filter_map(|unit| unit.reason.as_ref()).collect();
    assert_eq!(reasons.len(), 99);
    assert!(reasons.iter().all(|reason| std::sync::Arc::ptr_eq(reason, reasons[0])));
    let json = serde_json::to_string(&plan).unwrap();
    assert_eq!(serde_json::from_str::<Plan>(&json).unwrap(), plan);
}

#[test]
fn wishes_come_in_the_order_of_the_files() {
    let lrps = ["b", "a"].map(|guid| DesiredLrp { process_guid: guid.into(), ..web() }).to_vec();
    let tasks = vec![definition()];
    let order = ["task/t", "lrp/a"].map(str::to_owned).to_vec();
    let wishes = plan::Wishes { lrps, tasks, order, ..plan::Wishes::default() };
    let asked = wishes.in_order();
    let names: Vec<&str> = asked.iter().map(plan::Asked::partition).collect();
    assert_eq!(names, ["t", "a", "b"]);
}
