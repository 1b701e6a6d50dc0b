//! What is placed where is what the rules say, on input of all kinds.

use proptest::prelude::*;

use super::{Limits, Needs, Placed, Work, cell, held, naive, place_within};
use crate::board::{CellState, LrpKey, Resources};

/// So that few of them are different, and ties are many.
fn amount() -> impl Strategy<Value = u32> {
    prop_oneof![Just(0_u32), Just(100), Just(400), 0..400_u32]
}

fn tags() -> impl Strategy<Value = Vec<String>> {
    let tag = prop::sample::select(vec!["x", "y", "z"]);
    prop_oneof![3 => Just(vec![]), 1 => prop::collection::vec(tag.prop_map(str::to_owned), 0..3)]
}

fn arb_cell() -> impl Strategy<Value = CellState> {
    let room = ((amount(), amount(), 0..9_u32), (amount(), amount(), 0..9_u32));
    let offer = (tags(), tags(), prop::sample::subsequence(vec!["oci", "docker"], 0..=2));
    let state = (0..4_usize, prop_oneof![4 => Just(0_u32), 1 => 1..4_u32], 0..20_u8);
    let lrps = prop::collection::vec((0..5_u8, 10..14_u32), 0..4);
    (room, offer, state, lrps).prop_map(|(room, offer, (zone, starting, luck), lrps)| {
        let ((memory_mb, disk_mb, containers), (used_mb, used_disk_mb, used)) = room;
        let total = Resources { memory_mb, disk_mb, containers };
        let available = Resources {
            memory_mb: memory_mb.saturating_sub(used_mb / 4),
            disk_mb: disk_mb.saturating_sub(used_disk_mb / 4),
            containers: containers.saturating_sub(used / 4),
        };
        CellState {
            total,
            available,
            rootfs_schemes: offer.2.into_iter().map(str::to_owned).collect(),
            placement_tags: if luck < 14 { vec![] } else { offer.0 },
            optional_placement_tags: offer.1,
            starting,
            lrps: lrps.into_iter().map(|(name, index)| held(&format!("p{name}"), index)).collect(),
            evacuating: luck == 0,
            unhealthy: luck <= 1,
            ..cell("", ["", "z1", "z2", "z3"][zone])
        }
    })
}

/// Cells that are all different, or all of one or two makes.
fn arb_cells() -> impl Strategy<Value = Vec<CellState>> {
    let makes = prop_oneof![
        prop::collection::vec(arb_cell(), 0..9),
        (prop::collection::vec(arb_cell(), 1..3), 1..40_usize).prop_map(|(makes, count)| makes
            .into_iter()
            .cycle()
            .take(count)
            .collect()),
    ];
    makes.prop_map(|mut cells| {
        for (at, cell) in cells.iter_mut().enumerate() {
            cell.cell_id = format!("c{at:02}").into();
        }
        cells
    })
}

fn arb_unit() -> impl Strategy<Value = Work> {
    let rootfs = prop_oneof![
        4 => Just(None),
        1 => prop::sample::select(vec!["oci:///a", "docker:///b", "docker:///c", "none"])
            .prop_map(|url| Some(url.to_owned())),
    ];
    let size = prop_oneof![Just((10_u32, 10_u32)), Just((50, 10)), (0..150_u32, 0..150_u32)];
    (0..4_u8, 0..5_u8, 0..12_u32, size, rootfs, tags()).prop_map(
        |(what, name, index, (memory_mb, disk_mb), rootfs, placement_tags)| {
            let needs = Needs::new(rootfs, placement_tags);
            if what > 0 {
                let key = LrpKey { process_guid: format!("p{name}").into(), index };
                Work::Lrp { key, memory_mb, disk_mb, needs }
            } else {
                let task_guid = format!("t{name}-{index}").into();
                Work::Task { task_guid, memory_mb, disk_mb, needs }
            }
        },
    )
}

/// Units of all kinds, or many of one process.
fn arb_work() -> impl Strategy<Value = Vec<Work>> {
    let many = (0..80_u32, amount()).prop_map(|(count, size)| {
        let unit = |index| super::lrp("p1", index, size / 20);
        (0..count).map(unit).collect::<Vec<_>>()
    });
    (prop::collection::vec(arb_unit(), 0..60), prop_oneof![2 => Just(vec![]), 1 => many])
        .prop_map(|(some, many)| [some, many].concat())
}

fn arb_limits() -> impl Strategy<Value = Limits> {
    prop_oneof![3 => Just(None), 1 => (0..40_u32).prop_map(Some)]
        .prop_map(|in_flight_starts| Limits { in_flight_starts })
}

/// What the rules say, in the same form.
fn by_the_rules(cells: &[CellState], work: &[Work], limits: Limits) -> Placed {
    let mut placed = Placed::default();
    for (unit, decided) in naive::place(cells, work, limits) {
        match decided {
            Ok(cell) => placed.assigned.push((cell, unit)),
            Err(why) => {
                placed.failed.push((unit, "".into()));
                placed.unplaced.push(why);
            }
        }
    }
    placed
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn what_is_placed_is_what_the_rules_say(
        cells in arb_cells(),
        work in arb_work(),
        limits in arb_limits(),
    ) {
        let want = by_the_rules(&cells, &work, limits);
        let mut placed = place_within(cells, work, limits);
        for (_, text) in &mut placed.failed {
            let known = ["found no compatible cells: ", "insufficient resources: ", "waiting to start instance: "];
            prop_assert!(known.iter().any(|head| text.starts_with(head)), "{}", text);
            *text = "".into();
        }
        prop_assert_eq!(placed, want);
    }

    #[test]
    fn the_order_of_cells_and_work_does_not_matter(
        (cells, other_cells) in arb_cells().prop_flat_map(|cells| {
            (Just(cells.clone()), Just(cells).prop_shuffle())
        }),
        (work, other_work) in arb_work().prop_flat_map(|work| {
            (Just(work.clone()), Just(work).prop_shuffle())
        }),
        limits in arb_limits(),
    ) {
        prop_assert_eq!(place_within(cells, work, limits), place_within(other_cells, other_work, limits));
    }
}
