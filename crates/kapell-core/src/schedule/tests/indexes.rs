//! The index of next moments.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::{Schedule, Timestamp, instant, read};
use crate::schedule::index::{Index, part};

const NOW: &str = "2026-11-16T16:07:30Z";

fn schedules() -> Vec<Schedule> {
    let lines = ["* * * * *", "0 * * * *", "@daily", "30 2 * * *", "0 9 * * MON-FRI", "@every 7m"];
    let zones = ["UTC", "Europe/Berlin", "Asia/Tokyo"];
    lines.iter().flat_map(|line| zones.map(|zone| read(line, zone))).collect()
}

#[test]
fn parts_made_apart_are_as_one_made_at_once() {
    let (schedules, now) = (&*schedules().leak(), instant(NOW));
    let numbered = |some: &'static [Schedule], from: u32| {
        (from..).zip(some).map(move |(id, schedule)| (id, schedule, now))
    };
    let whole = Index::of_parts(vec![part(numbered(schedules, 0))]);
    let thirds = schedules.chunks(6).zip([0u32, 6, 12]);
    let parts = thirds.map(|(some, from)| part(numbered(some, from))).collect();
    let merged = Index::of_parts(parts);
    let all = Timestamp(i64::MIN)..=Timestamp(i64::MAX);
    assert_eq!(whole.due(all.clone()), merged.due(all.clone()));
    assert_eq!(merged.len(), schedules.len());
    let backwards = part(numbered(schedules, 0).collect::<Vec<_>>().into_iter().rev());
    assert_eq!(Index::of_parts(vec![backwards]).due(all.clone()), whole.due(all));
}

#[test]
fn a_query_has_both_ends_and_is_in_order() {
    let entries =
        vec![(Timestamp(1), 'a'), (Timestamp(2), 'b'), (Timestamp(2), 'c'), (Timestamp(4), 'd')];
    let mut index = Index::of_parts(vec![entries]);
    assert_eq!(index.first(), Some((Timestamp(1), 'a')));
    assert_eq!(index.due(Timestamp(2)..=Timestamp(4)).len(), 3);
    assert_eq!(index.due(Timestamp(3)..=Timestamp(3)), []);
    assert_eq!(index.due(Timestamp(4)..=Timestamp(2)), []);
    assert!(index.shift('a', Timestamp(1), Some(Timestamp(3))));
    assert!(!index.shift('a', Timestamp(1), Some(Timestamp(5))), "it is not there any more");
    assert!(index.shift('d', Timestamp(4), None));
    let due: String = index.due(Timestamp(0)..=Timestamp(9)).iter().map(|(_, id)| id).collect();
    assert_eq!(due, "bca");
    assert_eq!(index.len(), 3);
}

#[test]
fn a_job_that_is_never_due_is_in_no_index() {
    let never = Schedule::parse(&[], "UTC", &[], None, "job").unwrap();
    let index = Index::of_parts(vec![part([(1, &never, instant(NOW))])]);
    assert!(index.is_empty() && index.first().is_none());
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) })]

    /// Whatever is moved, also so much that it is merged: as in a plain set.
    #[test]
    fn an_index_is_as_a_plain_set(
        start in prop::collection::vec((0i64..50, 0u32..200), 0..300),
        steps in prop::collection::vec((0i64..50, 0u32..200, prop::option::of(0i64..50)), 0..200),
        extra in prop::option::of(1_000u32..4_000),
        taken in 0i64..30,
    ) {
        let mut plain: BTreeSet<_> = start.into_iter().map(|(at, id)| (Timestamp(at), id)).collect();
        let mut index = Index::of_parts(vec![plain.iter().copied().collect()]);
        for id in extra.map_or(0..0, |extra| 300..extra) {
            prop_assert_eq!(index.insert(Timestamp(7), id), plain.insert((Timestamp(7), id)));
        }
        for (from, id, to) in steps {
            let was = plain.remove(&(Timestamp(from), id));
            prop_assert_eq!(index.shift(id, Timestamp(from), to.map(Timestamp)), was);
            if let (true, Some(to)) = (was, to) {
                plain.insert((Timestamp(to), id));
            }
            if let Some(to) = to {
                prop_assert_eq!(index.insert(Timestamp(to), id), plain.insert((Timestamp(to), id)));
            }
            prop_assert_eq!(index.len(), plain.len());
            prop_assert_eq!(index.first(), plain.first().copied());
        }
        let until = Timestamp(taken);
        while let Some(due) = index.take_due(until) {
            prop_assert_eq!(Some(due), plain.pop_first());
        }
        prop_assert!(plain.first().is_none_or(|(at, _)| *at > until));
        let want: Vec<_> = plain.range((Timestamp(5), 0)..(Timestamp(31), 0)).copied().collect();
        prop_assert_eq!(index.due(Timestamp(5)..=Timestamp(30)), want);
    }
}
