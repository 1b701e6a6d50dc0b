//! What work asks of a cell besides room.

use std::sync::Arc;

/// Which root and which tags a unit of work asks for. Most ask for neither, and many for the same: there are very many
/// units in a batch, and this makes each of them small.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Needs(Option<Arc<Named>>);

#[derive(Debug, PartialEq, Eq, Hash)]
struct Named {
    rootfs: Option<String>,
    placement_tags: Vec<String>,
}

impl Needs {
    pub fn new(rootfs: Option<String>, placement_tags: Vec<String>) -> Self {
        let any = rootfs.is_some() || !placement_tags.is_empty();
        Self(any.then(|| Arc::new(Named { rootfs, placement_tags })))
    }

    pub fn rootfs(&self) -> Option<&str> {
        self.0.as_ref()?.rootfs.as_deref()
    }

    pub fn placement_tags(&self) -> &[String] {
        self.0.as_ref().map_or(&[], |named| &named.placement_tags)
    }
}
