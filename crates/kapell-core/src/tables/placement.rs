//! Why work is not placed.

use super::{Page, page, table};
use crate::auction::{Needs, Work};
use crate::board::placement::{IN_FLIGHT, NO_ANSWER, NO_CELL, Want, remedies};
use crate::board::plan::{self, Cells};
use crate::board::{CellPresence, CellState, Resources};

/// A case of which the auction itself says what lacks.
struct Case {
    when: &'static str,
    work: Work,
    cells: Cells,
}

pub(super) fn errors() -> Page {
    let mut text = "An instance keeps the text as its `placement_error` until it leaves UNCLAIMED and is tried again with \
                    the next batch; a task fails with it, unless a cell may still come or the chosen cell refused. Each \
                    begins with one of four fixed texts, then says what lacked.\n\n"
        .to_owned();
    let rows = cases().into_iter().map(|case| {
        let error = error(&case);
        let presences: Vec<CellPresence> = case.cells.states.iter().map(presence).collect();
        let help = remedies(&error, &want(&case.work), &presences);
        [case.when.to_owned(), format!("`{error}`"), help.join("; ")]
    });
    let empty = Want { memory_mb: 0, disk_mb: 0, rootfs: None, placement_tags: &[] };
    let fixed = [
        ("no cell is present", NO_CELL),
        ("no cell answers", NO_ANSWER),
        ("`in_flight_starts` containers are starting", IN_FLIGHT),
    ];
    let fixed = fixed.map(|(when, error)| {
        [when.to_owned(), format!("`{error}`"), remedies(error, &empty, &[]).join("; ")]
    });
    text.push_str(&table(["when", "text", "what helps"], fixed.into_iter().chain(rows)));
    page("placement-errors", "Why work is not placed", &text)
}

/// What the auction says.
fn error(case: &Case) -> String {
    let plan = plan::drawn(Vec::new(), vec![case.work.clone()], case.cells.clone());
    plan.units.iter().find_map(|unit| unit.reason.as_deref()).unwrap_or_default().to_owned()
}

fn cases() -> Vec<Case> {
    let work = |memory_mb, disk_mb| work(memory_mb, disk_mb, None, &[]);
    let tagged = |tags: &[&str]| self::work(64, 64, None, tags);
    let image = || self::work(64, 64, Some("docker://busybox"), &[]);
    let of = |when, work, states: Vec<CellState>| Case {
        when,
        work,
        cells: Cells { states, silent: Vec::new() },
    };
    let bound = || CellState { placement_tags: vec!["gpu".to_owned()], ..free(1024, 1024, 10) };
    let leaving = || CellState { evacuating: true, ..free(1024, 1024, 10) };
    let ill = || CellState { unhealthy: true, cell_id: "b".into(), ..free(1024, 1024, 10) };
    let small = || CellState { cell_id: "b".into(), ..free(1024, 256, 10) };
    vec![
        of("every cell is leaving or ill", work(64, 64), vec![leaving(), ill()]),
        of("a root that no cell runs", image(), vec![free(1024, 1024, 10)]),
        of("a tag that no cell has", tagged(&["ssd"]), vec![free(1024, 1024, 10)]),
        of("tags that no cell has", tagged(&["ssd", "eu"]), vec![free(1024, 1024, 10)]),
        of("every cell wants a tag", work(64, 64), vec![bound()]),
        of("memory", work(512, 64), vec![free(256, 1024, 10)]),
        of("disk", work(64, 512), vec![free(1024, 256, 10)]),
        of("containers", work(64, 64), vec![free(1024, 1024, 0)]),
        of("all", work(512, 512), vec![free(256, 256, 0)]),
        of("not on the same cell", work(512, 512), vec![free(256, 1024, 10), small()]),
        of("more than any cell ever has", work(4096, 64), vec![free(2048, 1024, 10)]),
    ]
}

fn work(memory_mb: u32, disk_mb: u32, rootfs: Option<&str>, tags: &[&str]) -> Work {
    Work::Task {
        task_guid: "t".into(),
        memory_mb,
        disk_mb,
        needs: Needs::new(
            rootfs.map(str::to_owned),
            tags.iter().map(|tag| (*tag).to_owned()).collect(),
        ),
    }
}

fn want(work: &Work) -> Want<'_> {
    Want {
        memory_mb: work.memory_mb(),
        disk_mb: work.disk_mb(),
        rootfs: work.rootfs(),
        placement_tags: work.placement_tags(),
    }
}

/// A cell with so much left of 2048 MB, 2048 MB and 10 containers.
fn free(memory_mb: u32, disk_mb: u32, containers: u32) -> CellState {
    let total = Resources { memory_mb: 2048, disk_mb: 2048, containers: 10 };
    CellState {
        available: Resources { memory_mb, disk_mb, containers },
        ..CellState::empty("a".into(), String::new(), total)
    }
}

fn presence(state: &CellState) -> CellPresence {
    CellPresence {
        cell_id: state.cell_id.clone(),
        home: String::new(),
        url: String::new(),
        zone: String::new(),
        capacity: state.total,
        rootfs_schemes: Vec::new(),
        placement_tags: state.placement_tags.clone(),
        optional_placement_tags: Vec::new(),
        evacuating: state.evacuating,
        version: String::new(),
    }
}
