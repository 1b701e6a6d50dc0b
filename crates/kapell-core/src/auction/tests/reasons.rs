use super::*;

#[test]
fn what_lacks_everywhere_is_named_with_what_was_wanted_and_what_is_free() {
    let mut cells = cells();
    cells[1].available = Resources { memory_mb: 900, disk_mb: 5, containers: 7 };
    assert_eq!(
        reason(cells, lrp("p", 0, 2000)),
        "insufficient resources: memory (wanted 2000 MB of memory and 0 MB of disk; the most that \
         is free on a cell is 1000 MB of memory, 1000 MB of disk, 100 containers; of 3 cells: 3 lacking \
         memory)"
    );
    let mut full = cell("a", "");
    full.available = Resources::default();
    let both = Work::Lrp {
        key: LrpKey { process_guid: "p".into(), index: 0 },
        memory_mb: 1,
        disk_mb: 1,
        needs: Needs::default(),
    };
    let text = reason(vec![full], both);
    assert!(text.starts_with("insufficient resources: containers, disk, memory ("), "{text}");
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
fn each_cell_that_falls_out_is_counted_by_the_first_constraint_that_rules_it_out() {
    let mut cells: Vec<_> = ["a", "b", "c", "d", "e", "f"].map(|id| cell(id, "")).into();
    cells[0].evacuating = true;
    cells[0].unhealthy = true;
    cells[1].unhealthy = true;
    for cell in &mut cells[3..] {
        cell.rootfs_schemes = vec!["oci".to_owned()];
    }
    cells[3].placement_tags = vec!["gpu".to_owned()];
    cells[4].available = Resources { memory_mb: 9, disk_mb: 9, containers: 0 };
    cells[5].available = Resources { memory_mb: 9, disk_mb: 20, containers: 5 };
    let work = Work::Lrp {
        key: LrpKey { process_guid: "p".into(), index: 0 },
        memory_mb: 10,
        disk_mb: 10,
        needs: Needs::new(Some("oci:///x".to_owned()), vec![]),
    };
    let placed = place(cells, vec![work]);
    let [why] = placed.unplaced[..] else { panic!("{placed:?}") };
    assert_eq!(why.cause, Cause::NoRoom);
    assert_eq!(why.compatible(), 2);
    let counts: Vec<_> = why.by_constraint().collect();
    let want = [
        (1, "evacuating"),
        (1, "unhealthy"),
        (1, "without the rootfs scheme"),
        (1, "with other tags"),
        (1, "lacking containers"),
        (1, "lacking disk"),
        (2, "lacking memory"),
    ];
    assert_eq!(counts, want);
    assert_eq!(
        &*placed.failed[0].1,
        "insufficient resources: memory (wanted 10 MB of memory and 10 MB of disk; the most that is free on \
         a cell is 9 MB of memory, 20 MB of disk, 5 containers; of 6 cells: 1 evacuating, 1 unhealthy, 1 \
         without the rootfs scheme, 1 with other tags, 1 lacking containers, 1 lacking disk, 2 lacking memory)"
    );
}

#[test]
fn the_counts_are_those_of_the_moment() {
    let mut cells = vec![cell("a", ""), cell("b", "")];
    cells[1].available.memory_mb = 100;
    let work = vec![lrp("p", 0, 2000), lrp("p", 1, 950), lrp("p", 2, 2000)];
    let placed = place(cells, work);
    assert_eq!(placed.unplaced[0].most_free.memory_mb, 1000);
    assert_eq!(placed.unplaced[1].most_free.memory_mb, 100);
}

#[test]
fn a_reason_that_is_too_long_is_cut_and_says_so() {
    let tags: Vec<String> = (0..200).map(|n| format!("a-tag-{n}")).collect();
    let tags: Vec<&str> = tags.iter().map(String::as_str).collect();
    let text = reason(cells(), tagged(&tags));
    assert!(text.starts_with("found no compatible cells: no cell has placement tags "), "{text}");
    assert!(text.len() <= 1024 && text.ends_with("(truncated)"), "{text}");
}

fn limited(cells: Vec<CellState>, work: Vec<Work>, most: u32) -> Placed {
    place_within(cells, work, Limits { in_flight_starts: Some(most) })
}

#[test]
fn no_more_start_at_once_than_the_limit_allows() {
    let mut cells = cells();
    cells[0].starting = 1;
    // What starts on a cell that takes no work counts too.
    cells[1].starting = 1;
    cells[1].evacuating = true;
    let work = vec![lrp("p", 0, 1), task("t", 1), lrp("p", 1, 1), lrp("p", 2, 1)];
    let placed = limited(cells, work, 4);
    assert_eq!(placed.assigned.len(), 2);
    let want = "waiting to start instance: reached in-flight start limit";
    assert_eq!(placed.failed, [(lrp("p", 1, 1), want.into()), (lrp("p", 2, 1), want.into())]);
    assert!(placed.unplaced.iter().all(|why| why.cause == Cause::InFlightLimit));
}

#[test]
fn what_fits_nowhere_says_so_also_when_the_limit_is_reached() {
    let placed = limited(cells(), vec![lrp("p", 0, 2000)], 0);
    assert_eq!(placed.unplaced[0].cause, Cause::NoRoom);
}
