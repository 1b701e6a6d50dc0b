//! The runs that hold a place of a job, in order. Most jobs have one at a time, which needs no room of its own.

use std::collections::BTreeSet;

use crate::run::RunId;

#[derive(Debug, Clone, Default)]
pub(super) struct Holders {
    /// Before all others.
    first: Option<RunId>,
    rest: BTreeSet<RunId>,
}

impl Holders {
    pub(super) fn len(&self) -> usize {
        usize::from(self.first.is_some()) + self.rest.len()
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    pub(super) const fn first(&self) -> Option<&RunId> {
        self.first.as_ref()
    }

    pub(super) fn contains(&self, run: &RunId) -> bool {
        self.first.as_ref() == Some(run) || self.rest.contains(run)
    }

    pub(super) fn insert(&mut self, run: RunId) {
        match &mut self.first {
            None => self.first = Some(run),
            Some(first) if run == *first => {}
            Some(first) => {
                let behind = if run < *first { std::mem::replace(first, run) } else { run };
                self.rest.insert(behind);
            }
        }
    }

    pub(super) fn remove(&mut self, run: &RunId) -> bool {
        if self.first.as_ref() == Some(run) {
            self.first = self.rest.pop_first();
            return true;
        }
        self.rest.remove(run)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &RunId> {
        self.first.iter().chain(&self.rest)
    }
}
