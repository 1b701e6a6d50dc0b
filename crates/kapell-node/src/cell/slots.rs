use std::collections::BTreeSet;
use std::ops::Range;

/// Numbers of a range, each given to one container at a time.
///
/// They are given in turn, so that one just given back rests for as long as it can.
#[derive(Debug)]
pub(super) struct Slots {
    range: Range<u32>,
    next: u32,
    taken: BTreeSet<u32>,
}

impl Slots {
    pub(super) fn new(range: Range<u32>) -> Self {
        Self { next: range.start, range, taken: BTreeSet::new() }
    }

    /// The next number that is free and that `fits`.
    pub(super) fn take(&mut self, mut fits: impl FnMut(u32) -> bool) -> Option<u32> {
        let Range { start, end } = self.range;
        let found = (self.next..end)
            .chain(start..self.next.min(end))
            .find(|number| !self.taken.contains(number) && fits(*number))?;
        self.taken.insert(found);
        self.next = if found + 1 < end { found + 1 } else { start };
        Some(found)
    }

    /// Notes a number that a container has already, also one outside the range.
    pub(super) fn hold(&mut self, number: u32) {
        self.taken.insert(number);
    }

    pub(super) fn give_back(&mut self, number: u32) {
        self.taken.remove(&number);
    }
}
