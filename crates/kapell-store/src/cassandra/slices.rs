//! How a shard is scanned: how many records a page is asked for, and where the way is cut so that no part of it passes
//! more deleted rows than a server lets it.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::{Item, KEY_BYTES, Shard};

/// Behind every key.
const END: [u8; KEY_BYTES + 1] = [0xff; KEY_BYTES + 1];

/// After so many deletes the key of one of them is noted in the shard: a place to cut at, where there is much to pass.
const STEP: usize = 5000;
/// No more are kept in a shard.
const MOST: usize = 256;

/// Cassandra counts a page in records; it should have about so many bytes.
const PAGE_BYTES: usize = 1 << 20;
const FIRST_PAGE: usize = 64;
/// All may be as large as a record can be, whatever those before were like.
const LARGEST_PAGE: usize = 256;

/// What is known of each shard.
#[derive(Debug, Default)]
pub(super) struct Bounds(BTreeMap<Shard, Known>);

#[derive(Debug)]
struct Known {
    /// How many records the next page is asked for.
    page: usize,
    /// Where scans had to be cut. What was learned once is not learned again by the next page, nor by the next attempt.
    cuts: BTreeSet<Vec<u8>>,
    /// Keys that were noted.
    marks: BTreeSet<Vec<u8>>,
    /// How many were deleted since the last one was.
    deleted: usize,
}

impl Default for Known {
    fn default() -> Self {
        Self { page: FIRST_PAGE, cuts: BTreeSet::new(), marks: BTreeSet::new(), deleted: 0 }
    }
}

/// What a commit notes for later scans.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Note {
    Nothing,
    Mark(Vec<u8>),
    /// There are so many that every other one goes.
    Only(Vec<Vec<u8>>),
}

impl Bounds {
    /// The end of the part that begins behind `from`; none if it is the last one.
    pub(super) fn behind(&self, shard: Shard, from: &[u8]) -> Option<Vec<u8>> {
        let cuts = &self.0.get(&shard)?.cuts;
        cuts.iter().find(|cut| cut.as_slice() > from).cloned()
    }

    #[cfg(test)]
    pub(super) fn count(&self, shard: Shard) -> (usize, usize) {
        self.0.get(&shard).map_or((0, 0), |known| (known.cuts.len(), known.marks.len()))
    }

    /// How many records the next page is asked for.
    pub(super) fn page(&self, shard: Shard) -> usize {
        self.0.get(&shard).map_or(FIRST_PAGE, |known| known.page)
    }

    /// A page was read: the next one may have more, but not many more, since they may be larger.
    pub(super) fn fits(&mut self, shard: Shard, items: &[Item]) {
        let known = self.0.entry(shard).or_default();
        let size = |item: &Item| item.key.as_bytes().len() + item.value.len();
        let bytes: usize = items.iter().map(size).sum();
        let average = (bytes / items.len().max(1)).max(1);
        known.page = (PAGE_BYTES / average).min(known.page * 2).clamp(1, LARGEST_PAGE);
    }

    /// A page could not be had, perhaps since it was too much: the next attempt asks for less, and passes less.
    pub(super) fn ease(&mut self, shard: Shard, from: &[u8], to: Option<&[u8]>) {
        let known = self.0.entry(shard).or_default();
        known.page = (known.page / 2).max(1);
        // Only where much was deleted: a server that is away for a while is no reason to cut the rest to pieces.
        if let Some(mark) = known.middle_mark(from, end_of(to)) {
            known.cuts.insert(mark);
        }
    }

    pub(super) fn has_marks(&self, shard: Shard) -> bool {
        self.0.get(&shard).is_some_and(|known| !known.marks.is_empty())
    }

    /// What was found in the shard.
    pub(super) fn learn(&mut self, shard: Shard, marks: impl IntoIterator<Item = Vec<u8>>) {
        self.0.entry(shard).or_default().marks.extend(marks);
    }

    /// Cuts a part in two; false if it cannot be cut.
    pub(super) fn cut(&mut self, shard: Shard, from: &[u8], to: Option<&[u8]>) -> bool {
        let known = self.0.entry(shard).or_default();
        let to = end_of(to);
        let mark = known.middle_mark(from, to);
        let Some(cut) = mark.or_else(|| middle(from, to)) else { return false };
        known.cuts.insert(cut)
    }

    /// What a commit that deletes these has to note.
    pub(super) fn note(&self, shard: Shard, deletes: usize, last: Option<&[u8]>) -> Note {
        let none = BTreeSet::new();
        let (marks, before) =
            self.0.get(&shard).map_or((&none, 0), |known| (&known.marks, known.deleted));
        let Some(last) = last.filter(|_| before + deletes >= STEP) else { return Note::Nothing };
        if marks.len() < MOST {
            return Note::Mark(last.to_vec());
        }
        let mut all: BTreeSet<&[u8]> = marks.iter().map(Vec::as_slice).collect();
        all.insert(last);
        Note::Only(all.into_iter().step_by(2).map(<[u8]>::to_vec).collect())
    }

    /// A commit that deletes these has landed, or may have, and what it is known to have noted.
    pub(super) fn noted(&mut self, shard: Shard, deletes: usize, note: Note) {
        let known = self.0.entry(shard).or_default();
        known.deleted = if note == Note::Nothing { known.deleted + deletes } else { 0 };
        match note {
            Note::Nothing => {}
            Note::Mark(mark) => {
                known.marks.insert(mark);
            }
            Note::Only(marks) => known.marks = marks.into_iter().collect(),
        }
    }
}

impl Known {
    /// Of the keys that were noted between two, one with as many on either side.
    fn middle_mark(&self, from: &[u8], to: &[u8]) -> Option<Vec<u8>> {
        let within =
            || self.marks.iter().filter(|mark| mark.as_slice() > from && mark.as_slice() < to);
        within().nth(within().count() / 2).cloned()
    }
}

pub(super) fn end_of(to: Option<&[u8]>) -> &[u8] {
    to.unwrap_or(&END)
}

/// A key about half way between two, read as fractions.
fn middle(from: &[u8], to: &[u8]) -> Option<Vec<u8>> {
    let length = from.len().max(to.len()) + 1;
    let digit = |of: &[u8], at: usize| u16::from(of.get(at).copied().unwrap_or(0));
    // From the last digit on: the sum, of which the first digit may be too large.
    let mut sum = vec![0; length];
    let mut carry = 0;
    for at in (0..length).rev() {
        let total = digit(from, at) + digit(to, at) + carry;
        (sum[at], carry) = (total & 0xff, total >> 8);
    }
    // From the first on: half of it.
    let mut half = Vec::with_capacity(length);
    for digit in sum {
        let total = (carry << 8) | digit;
        half.push(u8::try_from(total / 2).unwrap_or(u8::MAX));
        carry = total % 2;
    }
    // Short bounds do, if they are still between.
    let mut bound = half.clone();
    for short in 1..half.len() {
        if half[..short] > *from && half[..short] < *to {
            bound.truncate(short);
            break;
        }
    }
    (bound.as_slice() > from && bound.as_slice() < to && bound.len() <= KEY_BYTES).then_some(bound)
}

#[cfg(test)]
mod tests {
    use kapell_core::seat::Seat;

    use super::*;
    use crate::model::Key;

    /// By a commit that landed.
    fn note(bounds: &mut Bounds, shard: Shard, deletes: usize, last: Option<&[u8]>) -> Note {
        let note = bounds.note(shard, deletes, last);
        bounds.noted(shard, deletes, note.clone());
        note
    }

    #[test]
    fn the_middle_lies_between() {
        for (from, to, want) in [
            (&b""[..], &END[..], Some(&[0x7f][..])),
            (b"", b"b", Some(b"1")),
            (b"a", b"c", Some(b"b")),
            (b"a", b"b", Some(&[b'a', 0x80])),
            (b"task-1", b"task-9", Some(b"task-5")),
            (b"a", b"a\0", None),
            (b"\xff\xff", &END, Some(b"\xff\xff\x7f")),
        ] {
            assert_eq!(middle(from, to).as_deref(), want, "{from:?} to {to:?}");
        }
    }

    #[test]
    fn marks_are_left_where_much_is_deleted_and_cut_at_first() {
        let shard = Shard { seat: Seat::FIRST, number: 3 };
        let mut bounds = Bounds::default();
        assert_eq!(note(&mut bounds, shard, STEP - 1, Some(b"a")), Note::Nothing);
        assert_eq!(note(&mut bounds, shard, 0, None), Note::Nothing);
        for (number, name) in ["task-3", "task-1", "task-2"].into_iter().enumerate() {
            let deletes = if number == 0 { 1 } else { STEP };
            let note = note(&mut bounds, shard, deletes, Some(name.as_bytes()));
            assert_eq!(note, Note::Mark(name.into()));
        }
        assert!(bounds.cut(shard, b"", None) && bounds.cut(shard, b"task-2", None));
        assert_eq!(bounds.behind(shard, b""), Some(b"task-2".to_vec()));
        assert_eq!(bounds.behind(shard, b"task-2"), Some(b"task-3".to_vec()));
        assert!(bounds.cut(shard, b"task-3", Some(b"task-5")), "where there is none");
        assert_eq!(bounds.behind(shard, b"task-3"), Some(b"task-4".to_vec()));
    }

    /// Else there would be no mark among ten thousand that are deleted.
    #[test]
    fn what_is_not_known_to_be_noted_is_noted_by_the_next_commit() {
        let shard = Shard { seat: Seat::FIRST, number: 3 };
        let mut bounds = Bounds::default();
        let mark = Note::Mark(b"a".to_vec());
        assert_eq!(bounds.note(shard, STEP, Some(b"a")), mark);
        assert_eq!(bounds.note(shard, STEP, Some(b"a")), mark, "it was not sent, or refused");
        bounds.noted(shard, STEP, Note::Nothing);
        assert_eq!(bounds.count(shard), (0, 0));
        assert_eq!(bounds.note(shard, 1, Some(b"a")), mark, "nobody knows whether it landed");
        bounds.noted(shard, 1, mark);
        assert_eq!(bounds.note(shard, STEP - 1, Some(b"b")), Note::Nothing);
    }

    #[test]
    fn pages_grow_by_steps_and_shrink_after_a_failure() {
        let shard = Shard { seat: Seat::FIRST, number: 3 };
        let of = |count: usize, bytes: usize| {
            vec![Item { key: Key::new(*b"k"), value: vec![0; bytes - 1] }; count]
        };
        let mut bounds = Bounds::default();
        assert_eq!(bounds.page(shard), 64);
        for want in [128, 256, 256] {
            bounds.fits(shard, &of(10, 100));
            assert_eq!(bounds.page(shard), want);
        }
        bounds.fits(shard, &of(2, 256 << 10));
        assert_eq!(bounds.page(shard), 4, "as many as have a megabyte");
        bounds.fits(shard, &[]);
        assert_eq!(bounds.page(shard), 8);
        for want in [4, 2, 1, 1] {
            bounds.ease(shard, b"", None);
            assert_eq!(bounds.page(shard), want);
        }
        let other = Shard { seat: Seat::FIRST, number: 4 };
        assert_eq!((bounds.page(other), bounds.count(shard)), (64, (0, 0)));
        bounds.learn(shard, [b"a".to_vec(), b"b".to_vec(), b"c".to_vec()]);
        bounds.ease(shard, b"", None);
        assert_eq!(bounds.behind(shard, b""), Some(b"b".to_vec()), "where much was deleted");
    }

    #[test]
    fn there_are_never_too_many_marks() {
        let shard = Shard { seat: Seat::FIRST, number: 0 };
        let mut bounds = Bounds::default();
        let mut thinned = 0;
        for number in 0..1000_u32 {
            match note(&mut bounds, shard, STEP, Some(&number.to_be_bytes())) {
                Note::Only(all) => {
                    assert!(all.len() > MOST / 2 - 2 && all.is_sorted());
                    thinned += 1;
                }
                note @ (Note::Nothing | Note::Mark(_)) => {
                    assert_eq!(note, Note::Mark(number.to_be_bytes().into()));
                }
            }
            assert!(bounds.count(shard).1 <= MOST);
        }
        assert!(thinned > 3, "{thinned}");
    }

    #[test]
    fn parts_are_cut_ever_smaller_until_they_hold_one_key() {
        let shard = Shard { seat: Seat::FIRST, number: 3 };
        let mut bounds = Bounds::default();
        let wanted = &b"tasks-of-a-long-name/42"[..];
        let mut steps = 0;
        loop {
            let (mut from, mut to) = (Vec::new(), bounds.behind(shard, b""));
            while to.as_deref().is_some_and(|to| to <= wanted) {
                from = to.unwrap_or_default();
                to = bounds.behind(shard, &from);
            }
            assert!(from.as_slice() <= wanted && end_of(to.as_deref()) > wanted);
            if !bounds.cut(shard, &from, to.as_deref()) || steps == 400 {
                break;
            }
            steps += 1;
        }
        assert!((100..400).contains(&steps), "{steps}");
        let other = Shard { seat: Seat::FIRST, number: 4 };
        assert_eq!(bounds.behind(other, b""), None);
    }
}
