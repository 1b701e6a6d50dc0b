//! Which cells could run a kind of work at all, however full they are.

use super::Work;
use crate::board::CellState;
use crate::board::validate::scheme;

/// What of a unit decides which cells are compatible.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Kind {
    /// The scheme of its rootfs; a rootfs without one fits no cell.
    scheme: Option<String>,
    tags: Vec<String>,
}

impl Kind {
    pub(super) fn of(work: &Work) -> Self {
        let mut tags = work.placement_tags().to_vec();
        tags.sort_unstable();
        tags.dedup();
        let scheme = work.rootfs().map(|url| scheme(url).unwrap_or_default().to_owned());
        Self { scheme, tags }
    }

    /// The places of the cells that could run it, or why there is none.
    pub(super) fn candidates(&self, cells: &[CellState]) -> Result<Vec<usize>, String> {
        let no = |lack: String| Err(format!("found no compatible cells: {lack}"));
        if cells.is_empty() {
            return no("there is no cell".to_owned());
        }
        let up = |cell: &CellState| !cell.evacuating && !cell.unhealthy;
        let mut found: Vec<usize> = (0..cells.len()).filter(|at| up(&cells[*at])).collect();
        if found.is_empty() {
            return no("every cell is evacuating or has failed its self-test".to_owned());
        }
        found.retain(|at| self.has_rootfs(&cells[*at]));
        if found.is_empty() {
            let scheme = self.scheme.as_deref().unwrap_or_default();
            return no(format!("no cell runs a rootfs with the scheme \"{scheme}\""));
        }
        found.retain(|at| self.has_tags(&cells[*at]));
        if found.is_empty() {
            return no(self.tags_lack());
        }
        Ok(found)
    }

    fn has_rootfs(&self, cell: &CellState) -> bool {
        self.scheme.as_ref().is_none_or(|scheme| cell.rootfs_schemes.contains(scheme))
    }

    /// All that the cell requires is wanted, and all that is wanted the cell has.
    fn has_tags(&self, cell: &CellState) -> bool {
        let (required, optional) = (&cell.placement_tags, &cell.optional_placement_tags);
        required.iter().all(|tag| self.tags.contains(tag))
            && self.tags.iter().all(|tag| required.contains(tag) || optional.contains(tag))
    }

    fn tags_lack(&self) -> String {
        let quoted: Vec<String> = self.tags.iter().map(|tag| format!("\"{tag}\"")).collect();
        match quoted.split_last() {
            None => "every cell requires placement tags, and none are wanted".to_owned(),
            Some((last, [])) => format!("no cell has placement tag {last}"),
            Some((last, first)) => {
                format!("no cell has placement tags {} and {last}", first.join(", "))
            }
        }
    }
}
