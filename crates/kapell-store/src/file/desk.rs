//! Where questions are decided: the book, and what it has not yet in the log.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use kapell_core::seams::Clock;
use kapell_core::seat::{Epoch, Seat};

use super::{code, frame};
use crate::book::{Book, Change};
use crate::model::{Commit, Entry, Fence, Generation, Key, Page, Raise, Shard, Write};
use crate::watch::{Bell, Watch};

/// Decides, and collects what was changed into one group.
#[derive(Debug)]
pub(super) struct Desk {
    book: Book,
    clock: Arc<dyn Clock>,
    group: Vec<u8>,
    bells: HashMap<Key, Bell>,
    /// Entries that this group has changed and someone watches.
    changed: Vec<Key>,
}

impl Desk {
    pub(super) fn new(book: Book, clock: Arc<dyn Clock>) -> Self {
        let mut group = Vec::new();
        frame::begin(&mut group);
        Self { book, clock, group, bells: HashMap::new(), changed: Vec::new() }
    }

    /// How long the body of the group is by now.
    pub(super) fn pending(&self) -> usize {
        self.group.len() - frame::HEAD
    }

    pub(super) fn group(&mut self) -> &mut Vec<u8> {
        &mut self.group
    }

    /// How many records there are, and how many bytes they have.
    pub(super) fn size(&self) -> (usize, usize) {
        self.book.size()
    }

    /// The group is on disk: begins the next one and tells those who watch.
    pub(super) fn written(&mut self) {
        frame::begin(&mut self.group);
        for key in self.changed.drain(..) {
            if let Some(bell) = self.bells.get(&key) {
                bell.ring();
            }
        }
    }

    /// Nothing will ever change again: cuts all watches.
    pub(super) fn close(&mut self) {
        self.bells.clear();
    }

    fn make(&mut self, changes: impl IntoIterator<Item = Change>) {
        let now = self.clock.now();
        for change in changes {
            code::encode(&change, &mut self.group);
            if let Change::Entry { key, .. } = &change
                && self.bells.contains_key(key)
            {
                self.changed.push(key.clone());
            }
            self.book.apply(change, now);
        }
    }

    pub(super) fn insert_if_absent(
        &mut self,
        key: &Key,
        seen: Generation,
        value: &[u8],
        ttl: Option<Duration>,
    ) -> Write {
        let now = self.clock.now();
        let (write, change) = self.book.insert_if_absent(key, seen, value, ttl, now);
        self.make(change);
        write
    }

    pub(super) fn compare_and_set(
        &mut self,
        key: &Key,
        old: &[u8],
        new: Option<(&[u8], Option<Duration>)>,
    ) -> Write {
        let (write, change) = self.book.compare_and_set(key, old, new, self.clock.now());
        self.make(change);
        write
    }

    pub(super) fn lift(&mut self, key: &Key, floor: Generation) {
        let change = self.book.lift(key, floor, self.clock.now());
        self.make(change);
    }

    pub(super) fn read(&self, key: &Key) -> Entry {
        self.book.read(key, self.clock.now())
    }

    pub(super) fn list(&self) -> Vec<(Key, Entry)> {
        self.book.list(self.clock.now())
    }

    pub(super) fn watch(&mut self, key: Key) -> Watch {
        self.bells.retain(|_, bell| bell.is_heard());
        self.bells.entry(key).or_default().watch()
    }

    pub(super) fn raise(&mut self, seat: Seat, epoch: Epoch) -> Raise {
        let (raise, changes) = self.book.raise(seat, epoch);
        self.make(changes);
        raise
    }

    pub(super) fn fence(&self, shard: Shard) -> Fence {
        self.book.fence(shard)
    }

    /// Makes changes of a shard if its fence stands where they say.
    pub(super) fn commit(&mut self, shard: Shard, at: Fence, changes: Vec<Change>) -> Commit {
        let commit = self.book.admit(shard, at);
        if matches!(commit, Commit::Done) {
            self.make(changes);
        }
        commit
    }

    pub(super) fn scan(&self, shard: Shard, after: Option<&Key>) -> Page {
        self.book.scan(shard, after)
    }
}
