//! Which cells could run a kind of work at all, however full they are.

use super::Work;
use crate::board::CellState;
use crate::board::validate::scheme;

/// What of a unit decides which cells are compatible.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Kind {
    /// The scheme of its rootfs; a rootfs without one fits no cell.
    scheme: Option<String>,
    tags: Vec<String>,
}

/// What of a cell decides which kinds it runs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Offer {
    schemes: Vec<String>,
    required: Vec<String>,
    optional: Vec<String>,
}

/// Whether a cell could run a kind of work; if not, what rules it out first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Match {
    Compatible,
    OtherRootfs,
    OtherTags,
}

impl Offer {
    pub(super) fn of(cell: &CellState) -> Self {
        Self {
            schemes: cell.rootfs_schemes.clone(),
            required: cell.placement_tags.clone(),
            optional: cell.optional_placement_tags.clone(),
        }
    }
}

impl Kind {
    pub(super) fn of(work: &Work) -> Self {
        let mut tags = work.placement_tags().to_vec();
        tags.sort_unstable();
        tags.dedup();
        let scheme = work.rootfs().map(|url| scheme(url).unwrap_or_default().to_owned());
        Self { scheme, tags }
    }

    pub(super) fn matches(&self, offer: &Offer) -> Match {
        if !self.has_rootfs(offer) {
            Match::OtherRootfs
        } else if self.has_tags(offer) {
            Match::Compatible
        } else {
            Match::OtherTags
        }
    }

    fn has_rootfs(&self, offer: &Offer) -> bool {
        self.scheme.as_ref().is_none_or(|scheme| offer.schemes.contains(scheme))
    }

    /// All that the cell requires is wanted, and all that is wanted the cell has.
    fn has_tags(&self, offer: &Offer) -> bool {
        let Offer { required, optional, .. } = offer;
        required.iter().all(|tag| self.tags.contains(tag))
            && self.tags.iter().all(|tag| required.contains(tag) || optional.contains(tag))
    }

    pub(super) fn rootfs_lack(&self) -> String {
        let scheme = self.scheme.as_deref().unwrap_or_default();
        format!("no cell runs a rootfs with the scheme \"{scheme}\"")
    }

    pub(super) fn tags_lack(&self) -> String {
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
