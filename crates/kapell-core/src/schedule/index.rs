//! Who is due when: a sorted index of next moments.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

use super::lines::Schedule;
use crate::seams::Timestamp;

/// Below this many, what was moved is not worth a rebuild.
const MOVED_AT_LEAST: usize = 1_024;

/// Times and whose they are, in order.
///
/// What it is built of lies in one sorted list; what is moved afterwards is kept beside it, until
/// there is so much of it that both are merged.
#[derive(Debug, Clone)]
pub struct Index<T> {
    list: Vec<(Timestamp, T)>,
    /// One bit for each entry of the list: it is not there any more.
    gone: Vec<u64>,
    gone_count: usize,
    /// Everything before it is gone: what is due is taken from there.
    head: usize,
    moved: BTreeMap<Timestamp, BTreeSet<T>>,
    moved_count: usize,
}

/// The next moments of some schedules, each after its time, in order: one part of an index. Parts may be made at once.
pub fn part<'s, T: Copy + Ord>(
    schedules: impl IntoIterator<Item = (T, &'s Schedule, Timestamp)>,
) -> Vec<(Timestamp, T)> {
    let next = |(id, schedule, after): (T, &Schedule, _)| Some((schedule.next_time(after)?, id));
    let mut part: Vec<_> = schedules.into_iter().filter_map(next).collect();
    // Most come by id already, and share few times: then the order of times alone is quicker made.
    if part.is_sorted_by_key(|(_, id)| *id) {
        part.sort_by_key(|(at, _)| *at);
    } else {
        part.sort_unstable();
    }
    part
}

impl<T: Copy + Ord> Default for Index<T> {
    fn default() -> Self {
        Self::of_parts(Vec::new())
    }
}

impl<T: Copy + Ord> Index<T> {
    /// Merges parts that are sorted, as [`part`] makes them.
    pub fn of_parts(mut parts: Vec<Vec<(Timestamp, T)>>) -> Self {
        while parts.len() > 1 {
            let mut merged = Vec::with_capacity(parts.len().div_ceil(2));
            let mut rest = parts.into_iter();
            while let Some(one) = rest.next() {
                merged.push(match rest.next() {
                    Some(other) => merge(&one, &other),
                    None => one,
                });
            }
            parts = merged;
        }
        let list = parts.pop().unwrap_or_default();
        let gone = vec![0; list.len().div_ceil(64)];
        Self { list, gone, gone_count: 0, head: 0, moved: BTreeMap::new(), moved_count: 0 }
    }

    pub fn len(&self) -> usize {
        self.list.len() - self.gone_count + self.moved_count
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The earliest.
    pub fn first(&self) -> Option<(Timestamp, T)> {
        let listed = self.list.get(self.head).copied();
        let moved = self.moved_in(Timestamp(i64::MIN)..=Timestamp(i64::MAX)).next();
        listed.into_iter().chain(moved).min()
    }

    /// Everything due in that time, in order.
    pub fn due(&self, times: RangeInclusive<Timestamp>) -> Vec<(Timestamp, T)> {
        let (from, to) = (*times.start(), *times.end());
        if from > to {
            return Vec::new();
        }
        let start = self.list.partition_point(|(at, _)| *at < from);
        let listed = self.listed(start).take_while(|(at, _)| *at <= to);
        let mut due: Vec<_> = listed.collect();
        let sorted = due.len();
        due.extend(self.moved_in(times));
        if sorted < due.len() {
            // Two runs that are in order: a stable sort merges them.
            due.sort();
        }
        due
    }

    /// Adds one; `false` if it is there.
    pub fn insert(&mut self, at: Timestamp, id: T) -> bool {
        if self.place(at, id).is_some_and(|place| !self.is_gone(place)) {
            return false;
        }
        let added = self.moved.entry(at).or_default().insert(id);
        self.moved_count += usize::from(added);
        if self.moved_count > MOVED_AT_LEAST.max(self.list.len() / 2) {
            self.merge_moved();
        }
        added
    }

    /// Takes one out; `false` if it is not there.
    pub fn remove(&mut self, at: Timestamp, id: T) -> bool {
        if let Some(ids) = self.moved.get_mut(&at)
            && ids.remove(&id)
        {
            self.moved_count -= 1;
            if ids.is_empty() {
                self.moved.remove(&at);
            }
            return true;
        }
        let Some(place) = self.place(at, id).filter(|place| !self.is_gone(*place)) else {
            return false;
        };
        self.gone[place / 64] |= 1 << (place % 64);
        self.gone_count += 1;
        while self.head < self.list.len() && self.is_gone(self.head) {
            self.head += 1;
        }
        true
    }

    /// Takes the earliest out, unless it is later than that.
    pub fn take_due(&mut self, until: Timestamp) -> Option<(Timestamp, T)> {
        let (at, id) = self.first().filter(|(at, _)| *at <= until)?;
        self.remove(at, id);
        Some((at, id))
    }

    /// Moves one from a time to another, or takes it out; `false` if it was not there.
    pub fn shift(&mut self, id: T, from: Timestamp, to: Option<Timestamp>) -> bool {
        let was = self.remove(from, id);
        if let (true, Some(to)) = (was, to) {
            self.insert(to, id);
        }
        was
    }

    fn place(&self, at: Timestamp, id: T) -> Option<usize> {
        self.list.binary_search(&(at, id)).ok()
    }

    fn is_gone(&self, place: usize) -> bool {
        self.gone[place / 64] >> (place % 64) & 1 == 1
    }

    /// What is still in the list from that place on. Words of entries that are gone cost nothing.
    fn listed(&self, start: usize) -> impl Iterator<Item = (Timestamp, T)> {
        let words = self.gone.iter().enumerate().skip(start / 64);
        words
            .filter(|(_, gone)| **gone != u64::MAX)
            .flat_map(move |(word, gone)| {
                let last = self.list.len().min(word * 64 + 64);
                (start.max(word * 64)..last).filter(move |place| gone >> (place % 64) & 1 == 0)
            })
            .map(|place| self.list[place])
    }

    fn moved_in(&self, times: RangeInclusive<Timestamp>) -> impl Iterator<Item = (Timestamp, T)> {
        self.moved.range(times).flat_map(|(at, ids)| ids.iter().map(|id| (*at, *id)))
    }

    fn merge_moved(&mut self) {
        let listed: Vec<_> = self.listed(self.head).collect();
        let moved = self.moved_in(Timestamp(i64::MIN)..=Timestamp(i64::MAX)).collect();
        *self = Self::of_parts(vec![listed, moved]);
    }
}

fn merge<T: Copy + Ord>(one: &[(Timestamp, T)], other: &[(Timestamp, T)]) -> Vec<(Timestamp, T)> {
    let mut merged = Vec::with_capacity(one.len() + other.len());
    let (mut a, mut b) = (0, 0);
    while a < one.len() && b < other.len() {
        if one[a] <= other[b] {
            merged.push(one[a]);
            a += 1;
        } else {
            merged.push(other[b]);
            b += 1;
        }
    }
    merged.extend_from_slice(&one[a..]);
    merged.extend_from_slice(&other[b..]);
    merged
}
