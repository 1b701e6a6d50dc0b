use proptest::prelude::*;

use super::{Placed, Work, place};
use crate::board::{CellState, Held, LrpKey, Resources};

fn cell(id: &str, zone: &str) -> CellState {
    let all = Resources { memory_mb: 1000, disk_mb: 1000, containers: 100 };
    CellState {
        cell_id: id.into(),
        zone: zone.to_owned(),
        total: all,
        available: all,
        rootfs_schemes: vec![],
        placement_tags: vec![],
        optional_placement_tags: vec![],
        starting: 0,
        lrps: vec![],
        tasks: vec![],
        evacuating: false,
        unhealthy: false,
    }
}

fn cells() -> Vec<CellState> {
    vec![cell("a", "z1"), cell("b", "z1"), cell("c", "z2")]
}

fn lrp(guid: &str, index: u32, memory_mb: u32) -> Work {
    Work::Lrp {
        key: LrpKey { process_guid: guid.into(), index },
        memory_mb,
        disk_mb: 0,
        rootfs: None,
        placement_tags: vec![],
    }
}

fn task(guid: &str, memory_mb: u32) -> Work {
    Work::Task {
        task_guid: guid.into(),
        memory_mb,
        disk_mb: 0,
        rootfs: None,
        placement_tags: vec![],
    }
}

fn tagged(tags: &[&str]) -> Work {
    Work::Task {
        task_guid: "t".into(),
        memory_mb: 1,
        disk_mb: 0,
        rootfs: None,
        placement_tags: tags.iter().map(|tag| (*tag).to_owned()).collect(),
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
    placed.failed[0].1.clone()
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
        "found no compatible cells: every cell is evacuating or has failed its self-test"
    );
    assert_eq!(reason(vec![], lrp("p", 0, 1)), "found no compatible cells: there is no cell");
}

#[test]
fn a_rootfs_needs_a_cell_that_runs_its_scheme() {
    let with = |rootfs: &str| Work::Task {
        task_guid: "t".into(),
        memory_mb: 1,
        disk_mb: 0,
        rootfs: Some(rootfs.to_owned()),
        placement_tags: vec![],
    };
    let mut cells = cells();
    cells[1].rootfs_schemes.push("oci".to_owned());
    assert_eq!(only(cells.clone(), with("oci:///x")), "b");
    assert_eq!(
        reason(cells.clone(), with("docker:///x")),
        "found no compatible cells: no cell runs a rootfs with the scheme \"docker\""
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
        "found no compatible cells: no cell has placement tag \"fast\""
    );
    assert_eq!(
        reason(cells.clone(), tagged(&["gpu", "big", "fast"])),
        "found no compatible cells: no cell has placement tags \"big\", \"fast\" and \"gpu\""
    );
    cells.truncate(1);
    assert_eq!(
        reason(cells, tagged(&[])),
        "found no compatible cells: every cell requires placement tags, and none are wanted"
    );
}

#[test]
fn what_lacks_everywhere_is_named_with_what_was_wanted_and_what_is_free() {
    let mut cells = cells();
    cells[1].available = Resources { memory_mb: 900, disk_mb: 5, containers: 7 };
    assert_eq!(
        reason(cells, lrp("p", 0, 2000)),
        "insufficient resources: memory (wanted 2000 MB of memory and 0 MB of disk; the most that \
         is free on a cell is 1000 MB of memory, 1000 MB of disk, 100 containers)"
    );
    let mut full = cell("a", "");
    full.available = Resources::default();
    let both = Work::Lrp {
        key: LrpKey { process_guid: "p".into(), index: 0 },
        memory_mb: 1,
        disk_mb: 1,
        rootfs: None,
        placement_tags: vec![],
    };
    let text = reason(vec![full], both);
    assert!(text.starts_with("insufficient resources: memory, disk, containers ("), "{text}");
}

#[test]
fn cells_that_lack_different_things_are_told_apart_from_full_ones() {
    let mut cells = vec![cell("a", ""), cell("b", "")];
    cells[0].available.memory_mb = 0;
    cells[1].available.containers = 0;
    let text = reason(cells, lrp("p", 0, 1));
    assert!(text.starts_with("insufficient resources: no cell has all of it at once ("), "{text}");
}

#[test]
fn work_that_wants_nothing_fits_where_nothing_is_left() {
    let mut full = cell("a", "");
    full.available = Resources { memory_mb: 0, disk_mb: 0, containers: 1 };
    assert_eq!(only(vec![full.clone()], lrp("p", 0, 0)), "a");
    full.total = Resources { memory_mb: 0, disk_mb: 0, containers: 1 };
    assert_eq!(only(vec![full], task("t", 0)), "a");
}

#[test]
fn a_large_batch_is_spread_evenly() {
    let cells: Vec<_> = (0..50).map(|n| cell(&format!("c{n:02}"), ["z1", "z2"][n % 2])).collect();
    let work = (0..100_u32).flat_map(|n| (0..10).map(move |i| lrp(&format!("p{n}"), i, 16)));
    let placed = place(cells, work.collect());
    assert_eq!(placed.failed, []);
    let mut counts = std::collections::BTreeMap::<_, u32>::new();
    for (cell, _) in &placed.assigned {
        *counts.entry(cell.clone()).or_default() += 1;
    }
    assert!(counts.values().all(|count| *count == 20), "{counts:?}");
}

fn arb_cells() -> impl Strategy<Value = Vec<CellState>> {
    let one = (0..400_u32, 0..400_u32, 0..6_u32, 0..3_usize, any::<bool>(), 0..5_u8, 0..4_u32);
    prop::collection::vec(one, 0..6).prop_map(|cells| {
        let many = cells.into_iter().enumerate();
        many.map(|(at, (memory_mb, disk_mb, containers, zone, tag, luck, siblings))| CellState {
            available: Resources { memory_mb, disk_mb, containers },
            placement_tags: if tag { vec!["x".to_owned()] } else { vec![] },
            optional_placement_tags: vec!["y".to_owned()],
            evacuating: luck == 0,
            lrps: (0..siblings).map(|index| held("p1", index + 10)).collect(),
            ..cell(&format!("c{at}"), ["", "z1", "z2"][zone])
        })
        .collect()
    })
}

fn arb_work() -> impl Strategy<Value = Vec<Work>> {
    let one = (any::<bool>(), 0..4_u8, 0..4_u32, 0..150_u32, 0..150_u32, 0..3_usize);
    prop::collection::vec(one, 0..20).prop_map(|work| {
        let many = work.into_iter();
        many.map(|(is_lrp, name, index, memory_mb, disk_mb, tags)| {
            let placement_tags = [vec![], vec!["x".to_owned()], vec!["y".to_owned()]][tags].clone();
            if is_lrp {
                let key = LrpKey { process_guid: format!("p{name}").into(), index };
                Work::Lrp { key, memory_mb, disk_mb, rootfs: None, placement_tags }
            } else {
                let task_guid = format!("t{name}-{index}").into();
                Work::Task { task_guid, memory_mb, disk_mb, rootfs: None, placement_tags }
            }
        })
        .collect()
    })
}

proptest! {
    #[test]
    fn the_order_of_cells_and_work_does_not_matter(
        (cells, other_cells) in arb_cells().prop_flat_map(|cells| {
            (Just(cells.clone()), Just(cells).prop_shuffle())
        }),
        (work, other_work) in arb_work().prop_flat_map(|work| {
            (Just(work.clone()), Just(work).prop_shuffle())
        }),
    ) {
        prop_assert_eq!(place(cells, work), place(other_cells, other_work));
    }

    #[test]
    fn no_cell_gets_more_than_it_has_or_what_it_cannot_run(
        cells in arb_cells(),
        work in arb_work(),
    ) {
        let placed = place(cells.clone(), work);
        for cell in &cells {
            let mine = || placed.assigned.iter().filter(|(id, _)| *id == cell.cell_id);
            let sum = |part: fn(&Work) -> u32| mine().map(|(_, work)| part(work)).sum::<u32>();
            prop_assert!(sum(Work::memory_mb) <= cell.available.memory_mb);
            prop_assert!(sum(Work::disk_mb) <= cell.available.disk_mb);
            prop_assert!(mine().count() <= cell.available.containers as usize);
            prop_assert!(mine().next().is_none() || !cell.evacuating);
            for (_, work) in mine() {
                let wanted = work.placement_tags();
                prop_assert!(cell.placement_tags.iter().all(|tag| wanted.contains(tag)));
            }
        }
    }

    #[test]
    fn every_unit_is_placed_or_refused_with_a_reason(cells in arb_cells(), work in arb_work()) {
        let names: std::collections::BTreeSet<_> = work.iter().map(|unit| format!("{:?}", unit.name())).collect();
        let placed = place(cells, work.clone());
        prop_assert_eq!(placed.assigned.len() + placed.failed.len(), names.len());
        for (_, reason) in &placed.failed {
            prop_assert!(
                reason.starts_with("found no compatible cells: ")
                    || reason.starts_with("insufficient resources: "),
                "{}", reason
            );
        }
    }
}
