//! Why work was not placed, and what would help.

use super::cell::CellPresence;
use super::desired::DesiredLrp;
use super::ids::CellId;
use super::task::TaskDefinition;

/// No cell is there at all.
pub const NO_CELL: &str = "found no compatible cells: no cell is present";
/// There are cells, and none of them answers.
pub const NO_ANSWER: &str = "unable to communicate to compatible cells";

/// There is room, and too much is starting already.
pub const IN_FLIGHT: &str = "waiting to start instance: reached in-flight start limit";

/// The chosen cell did not take it, and said why: what lacks, or else what makes it unfit.
pub fn refused_by(cell_id: &CellId, why: &str) -> String {
    const LACKS: &str = "insufficient resources";
    let head = if why.starts_with(LACKS) { "" } else { "found no compatible cells: " };
    format!("{head}{why} (said by cell `{cell_id}`)")
}

/// What work wants of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Want<'a> {
    pub memory_mb: u32,
    pub disk_mb: u32,
    pub rootfs: Option<&'a str>,
    pub placement_tags: &'a [String],
}

impl<'a> Want<'a> {
    pub fn of_lrp(lrp: &'a DesiredLrp) -> Self {
        let DesiredLrp { memory_mb, disk_mb, rootfs, placement_tags, .. } = lrp;
        let (memory_mb, disk_mb) = (*memory_mb, *disk_mb);
        Self { memory_mb, disk_mb, rootfs: rootfs.as_deref(), placement_tags }
    }

    pub fn of_task(task: &'a TaskDefinition) -> Self {
        let TaskDefinition { memory_mb, disk_mb, rootfs, placement_tags, .. } = task;
        let (memory_mb, disk_mb) = (*memory_mb, *disk_mb);
        Self { memory_mb, disk_mb, rootfs: rootfs.as_deref(), placement_tags }
    }

    /// Which cells are meant, after "a cell".
    fn such(&self) -> String {
        match self.placement_tags {
            [] => String::new(),
            [tag] => format!(" with placement tag {tag}"),
            tags => format!(" with placement tags {}", tags.join(", ")),
        }
    }
}

/// What a person can do about a placement error, the most likely first.
///
/// An error begins with one of a few fixed texts, then a colon and what lacked.
pub fn remedies(error: &str, want: &Want<'_>, cells: &[CellPresence]) -> Vec<String> {
    let such = want.such();
    if error.starts_with(NO_ANSWER) {
        return vec![
            "see why the cells do not answer: `kapell cells` tells where each is reached"
                .to_owned(),
            "start another cell".to_owned(),
        ];
    }
    if error.starts_with(IN_FLIGHT) {
        return vec![
            "wait until others have started".to_owned(),
            "raise `in_flight_starts` of the hosts".to_owned(),
        ];
    }
    if let Some(lack) = error.strip_prefix("insufficient resources: ") {
        let lack = lack.split_once(" (").map_or(lack, |(lack, _)| lack);
        return insufficient(lack, want, cells);
    }
    if error.contains("rootfs") {
        let scheme = want.rootfs.and_then(super::validate::scheme).unwrap_or_default();
        return vec![format!("start a cell{such} that runs a rootfs with the scheme `{scheme}`")];
    }
    if error.contains("placement tag") {
        return if want.placement_tags.is_empty() {
            vec![
                "start a cell that requires no placement tags".to_owned(),
                "ask for the placement tags of a cell that is there".to_owned(),
            ]
        } else {
            vec![format!("start a cell{such}"), "ask for other placement tags".to_owned()]
        };
    }
    vec![format!("start a cell{such}")]
}

fn insufficient(lack: &str, want: &Want<'_>, cells: &[CellPresence]) -> Vec<String> {
    let such = want.such();
    let mut found = Vec::new();
    let capacities = cells.iter().map(|cell| cell.capacity);
    let memory = capacities.clone().map(|it| it.memory_mb).max().unwrap_or(0);
    let disk = capacities.map(|it| it.disk_mb).max().unwrap_or(0);
    let parts = [("memory", want.memory_mb, memory), ("disk", want.disk_mb, disk)];
    for (name, wanted, largest) in parts {
        if !lack.split(", ").any(|it| it == name) {
            continue;
        }
        if wanted > largest {
            found.push(format!(
                "start a cell{such} with at least {wanted} MB of {name}: the largest has {largest} MB"
            ));
        } else {
            found.push(format!("free {wanted} MB of {name} on a cell{such}"));
        }
        found.push(format!("ask for less {name}"));
    }
    if lack.split(", ").any(|it| it == "containers") {
        found.push(format!("stop a container on a cell{such}"));
    }
    if found.is_empty() {
        let (memory, disk) = (want.memory_mb, want.disk_mb);
        found.push(format!(
            "free {memory} MB of memory and {disk} MB of disk on the same cell{such}"
        ));
    }
    found.push(format!("start another cell{such}"));
    found
}
