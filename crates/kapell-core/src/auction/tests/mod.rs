mod equal;
mod large;
mod naive;
mod reasons;

use std::sync::Arc;

use super::{Cause, Limits, Needs, Unplaced, Work};
use crate::board::{CellId, CellState, Held, LrpKey, Resources};

/// What became of a batch, written out.
#[derive(Debug, PartialEq, Eq, Default)]
struct Placed {
    assigned: Vec<(CellId, Work)>,
    failed: Vec<(Work, Arc<str>)>,
    unplaced: Vec<Unplaced>,
}

impl From<super::Placed> for Placed {
    fn from(placed: super::Placed) -> Self {
        let own = |(cell, work): (&CellId, &Work)| (cell.clone(), work.clone());
        Self {
            assigned: placed.assigned().map(own).collect(),
            failed: placed.failed().map(|(work, why, _)| (work.clone(), Arc::clone(why))).collect(),
            unplaced: placed.failed().map(|(_, _, why)| why).collect(),
        }
    }
}

fn cell(id: &str, zone: &str) -> CellState {
    let all = Resources { memory_mb: 1000, disk_mb: 1000, containers: 100 };
    CellState::empty(id.into(), zone.to_owned(), all)
}

fn cells() -> Vec<CellState> {
    vec![cell("a", "z1"), cell("b", "z1"), cell("c", "z2")]
}

fn lrp(guid: &str, index: u32, memory_mb: u32) -> Work {
    Work::Lrp {
        key: LrpKey { process_guid: guid.into(), index },
        memory_mb,
        disk_mb: 0,
        needs: Needs::default(),
    }
}

fn task(guid: &str, memory_mb: u32) -> Work {
    Work::Task { task_guid: guid.into(), memory_mb, disk_mb: 0, needs: Needs::default() }
}

fn tagged(tags: &[&str]) -> Work {
    Work::Task {
        task_guid: "t".into(),
        memory_mb: 1,
        disk_mb: 0,
        needs: Needs::new(None, tags.iter().map(|tag| (*tag).to_owned()).collect()),
    }
}

fn held(guid: &str, index: u32) -> Held<LrpKey> {
    Held {
        key: LrpKey { process_guid: guid.into(), index },
        instance_guid: "i".into(),
        memory_mb: 0,
        disk_mb: 0,
    }
}

fn place(cells: Vec<CellState>, work: Vec<Work>) -> Placed {
    place_within(cells, work, Limits::default())
}

fn place_within(cells: Vec<CellState>, work: Vec<Work>, limits: Limits) -> Placed {
    super::place(cells, work, limits).into()
}

fn where_to(placed: &Placed) -> Vec<&str> {
    placed.assigned.iter().map(|(cell, _)| cell.as_str()).collect()
}

fn only(cells: Vec<CellState>, work: Work) -> String {
    let placed = place(cells, vec![work]);
    assert_eq!(placed.failed, []);
    placed.assigned[0].0.to_string()
}

fn reason(cells: Vec<CellState>, work: Work) -> String {
    let placed = place(cells, vec![work]);
    assert_eq!(placed.assigned, []);
    placed.failed[0].1.to_string()
}

#[test]
fn first_instances_come_first_then_tasks_then_the_others_each_by_size() {
    let work = vec![
        lrp("p", 2, 9),
        lrp("p", 1, 1),
        lrp("q", 1, 2),
        task("s", 1),
        task("t", 7),
        lrp("p", 0, 1),
        lrp("q", 0, 2),
    ];
    let placed = place(cells(), work);
    let order: Vec<Work> = placed.assigned.into_iter().map(|(_, work)| work).collect();
    let want = [
        lrp("q", 0, 2),
        lrp("p", 0, 1),
        task("t", 7),
        task("s", 1),
        lrp("q", 1, 2),
        lrp("p", 1, 1),
        lrp("p", 2, 9),
    ];
    assert_eq!(order, want);
}

#[test]
fn work_that_is_there_twice_is_placed_once() {
    let work = vec![lrp("p", 0, 1), task("t", 1), lrp("p", 0, 1), task("t", 1)];
    assert_eq!(place(cells(), work).assigned.len(), 2);
}

#[test]
fn an_lrp_and_a_task_of_one_name_are_two() {
    assert_eq!(place(cells(), vec![lrp("p", 0, 1), task("p", 1)]).assigned.len(), 2);
}

#[test]
fn instances_are_spread_over_zones_then_cells() {
    let work = (0..4).map(|index| lrp("p", index, 10)).collect();
    let placed = place(cells(), work);
    assert_eq!(where_to(&placed), ["a", "c", "b", "c"]);
}

#[test]
fn a_fuller_zone_is_used_when_the_emptier_has_no_room() {
    let mut cells = cells();
    cells[2].available.memory_mb = 5;
    let work = (0..3).map(|index| lrp("p", index, 10)).collect();
    assert_eq!(where_to(&place(cells, work)), ["a", "b", "a"]);
}

#[test]
fn instances_that_are_there_already_count() {
    let mut cells = cells();
    cells[0].lrps.push(held("p", 0));
    assert_eq!(only(cells.clone(), lrp("p", 1, 1)), "c");
    cells[2].lrps.push(held("p", 1));
    assert_eq!(only(cells, lrp("p", 2, 1)), "b");
}

#[test]
fn what_is_on_an_evacuating_cell_does_not_count() {
    let mut cells = cells();
    cells[0].lrps.push(held("p", 0));
    cells[0].evacuating = true;
    assert_eq!(only(cells, lrp("p", 1, 1)), "b");
}

#[test]
fn load_is_balanced_over_memory_disk_and_containers() {
    for drain in [
        |cell: &mut CellState| cell.available.memory_mb -= 100,
        |cell: &mut CellState| cell.available.disk_mb -= 100,
        |cell: &mut CellState| cell.available.containers -= 10,
    ] {
        let mut cells = vec![cell("a", ""), cell("b", "")];
        drain(&mut cells[0]);
        assert_eq!(only(cells, lrp("p", 0, 10)), "b");
    }
}

#[test]
fn a_cell_that_is_starting_containers_is_spared() {
    let mut cells = vec![cell("a", ""), cell("b", "")];
    cells[0].starting = 1;
    cells[1].available.memory_mb = 300;
    assert_eq!(only(cells.clone(), lrp("p", 0, 10)), "b", "0.25 outweighs 0.7 / 3");
    cells[1].available.memory_mb = 200;
    assert_eq!(only(cells, lrp("p", 0, 10)), "a", "0.8 / 3 outweighs 0.25");
}

#[test]
fn what_this_batch_placed_counts_as_starting() {
    let mut cells = vec![cell("a", ""), cell("b", "")];
    cells[1].available.memory_mb = 700;
    let placed = place(cells, vec![lrp("p", 0, 10), lrp("q", 0, 9)]);
    assert_eq!(where_to(&placed), ["a", "b"]);
}

#[test]
fn tasks_are_placed_by_memory_and_disk_only() {
    let mut cells = vec![cell("a", ""), cell("b", "")];
    cells[0].starting = 50;
    cells[0].available.containers = 1;
    assert_eq!(only(cells.clone(), task("t", 10)), "a");
    cells[0].available.memory_mb -= 1;
    assert_eq!(only(cells, task("t", 10)), "b");
}

#[test]
fn a_tie_falls_to_the_lowest_id() {
    let mut cells = cells();
    cells.reverse();
    assert_eq!(only(cells, lrp("p", 0, 10)), "a");
}

#[test]
fn evacuating_and_unhealthy_cells_take_nothing() {
    let mut cells = cells();
    cells[0].evacuating = true;
    cells[1].unhealthy = true;
    assert_eq!(only(cells.clone(), lrp("p", 0, 1)), "c");
    cells[2].unhealthy = true;
    let text = reason(cells, lrp("p", 0, 1));
    assert_eq!(
        text,
        "found no compatible cells: every cell is evacuating or has failed its self-test \
         (of 3 cells: 1 evacuating, 2 unhealthy)"
    );
    assert_eq!(reason(vec![], lrp("p", 0, 1)), "found no compatible cells: there is no cell");
}

#[test]
fn a_rootfs_needs_a_cell_that_runs_its_scheme() {
    let with = |rootfs: &str| Work::Task {
        task_guid: "t".into(),
        memory_mb: 1,
        disk_mb: 0,
        needs: Needs::new(Some(rootfs.to_owned()), vec![]),
    };
    let mut cells = cells();
    cells[1].rootfs_schemes.push("oci".to_owned());
    assert_eq!(only(cells.clone(), with("oci:///x")), "b");
    assert_eq!(
        reason(cells.clone(), with("docker:///x")),
        "found no compatible cells: no cell runs a rootfs with the scheme \"docker\" (of 3 cells: 3 \
         without the rootfs scheme)"
    );
    assert_eq!(only(cells, task("t", 1)), "a", "without a rootfs every cell will do");
}

#[test]
fn tags_that_a_cell_requires_are_wanted_and_all_that_is_wanted_it_has() {
    let mut cells = vec![cell("a", ""), cell("b", "")];
    cells[0].placement_tags = vec!["gpu".to_owned()];
    cells[0].optional_placement_tags = vec!["fast".to_owned()];
    assert_eq!(only(cells.clone(), tagged(&["gpu"])), "a");
    assert_eq!(only(cells.clone(), tagged(&["fast", "gpu"])), "a");
    assert_eq!(only(cells.clone(), tagged(&[])), "b");
    assert_eq!(
        reason(cells.clone(), tagged(&["fast"])),
        "found no compatible cells: no cell has placement tag \"fast\" (of 2 cells: 2 with other tags)"
    );
    assert_eq!(
        reason(cells.clone(), tagged(&["gpu", "big", "fast"])),
        "found no compatible cells: no cell has placement tags \"big\", \"fast\" and \"gpu\" (of 2 cells: 2 \
         with other tags)"
    );
    cells.truncate(1);
    assert_eq!(
        reason(cells, tagged(&[])),
        "found no compatible cells: every cell requires placement tags, and none are wanted (of 1 cell: 1 \
         with other tags)"
    );
}

#[test]
fn work_that_wants_nothing_fits_where_nothing_is_left() {
    let mut full = cell("a", "");
    full.available = Resources { memory_mb: 0, disk_mb: 0, containers: 1 };
    assert_eq!(only(vec![full.clone()], lrp("p", 0, 0)), "a");
    full.total = Resources { memory_mb: 0, disk_mb: 0, containers: 1 };
    assert_eq!(only(vec![full], task("t", 0)), "a");
}
