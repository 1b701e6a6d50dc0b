use std::time::Duration;

use proptest::prelude::*;

use super::world::*;
use crate::board::time::{Reading, settle_in, slewed};
use crate::board::*;
use crate::seams::{Moment, Timestamp};

fn moment(ms: u64) -> Moment {
    Moment::from_origin(Duration::from_millis(ms))
}

#[test]
fn a_steady_wall_clock_is_followed_exactly() {
    let mut last = Reading::first(moment(0), NOW);
    for ms in 1..1000 {
        last = slewed(last, moment(ms), Timestamp(NOW.0 + i64::try_from(ms).unwrap()));
        assert_eq!(last.time(), Timestamp(NOW.0 + i64::try_from(ms).unwrap()));
    }
}

/// An hour forward or back, the board's time goes on, at most a tenth faster or slower.
#[test]
fn a_jump_of_the_wall_clock_is_made_up_for_slowly() {
    let first = Reading::first(moment(0), NOW);
    let minute = moment(60_000);
    for (jump, want) in [(3_600_000, 66_000), (-3_600_000, 54_000), (60_500, 60_500)] {
        let then = slewed(first, minute, Timestamp(NOW.0 + jump));
        assert_eq!(then.time().0 - NOW.0, want, "{jump}");
    }
}

#[test]
fn many_small_steps_add_up() {
    let micros = |count| Moment::from_origin(Duration::from_micros(count));
    let ahead = Timestamp(NOW.0 + 3_600_000);
    let mut last = Reading::first(Moment::ZERO, NOW);
    for count in 1..=20_000 {
        last = slewed(last, micros(count), ahead);
    }
    assert_eq!(last.time().0 - NOW.0, 22);
}

proptest! {
    #[test]
    fn the_boards_time_never_goes_back_and_never_runs_away(
        steps in prop::collection::vec((0..10_000_u64, -10_000_000..10_000_000_i64), 1..50),
    ) {
        let mut last = Reading::first(moment(0), NOW);
        let (mut now, mut before) = (0, NOW);
        for (step, jump) in steps {
            now += step;
            last = slewed(last, moment(now), Timestamp(NOW.0 + jump));
            let passed = i64::try_from(last.time().since(before).as_millis()).unwrap();
            let step = i64::try_from(step).unwrap();
            prop_assert!(last.time() >= before);
            prop_assert!((step * 9 / 10 - 1..=step * 11 / 10 + 1).contains(&passed));
            before = last.time();
        }
    }
}

const AHEAD: Timestamp = Timestamp(NOW.0 + 3_600_000);

fn settled(record: Record) -> Record {
    let mut record = record;
    settle_in(&mut record, NOW);
    record
}

/// The leader before us was an hour ahead: no crash wait and no twin is an hour longer for it.
#[test]
fn what_lies_in_the_future_has_happened_now() {
    let crash = Record::Actual(Box::new(ActualLrp { since: AHEAD, ..crashed(4) }));
    assert_eq!(settled(crash), Record::Actual(Box::new(crashed(4))));
    let ahead =
        ActualLrp { since: AHEAD, expires_at: Some(AHEAD.after(seconds(600))), ..twin("a", "x") };
    assert_eq!(settled(Record::Actual(Box::new(ahead))), Record::Actual(Box::new(twin("a", "x"))));
    let ahead = Task {
        since: AHEAD,
        created_at: AHEAD,
        first_completed_at: Some(AHEAD),
        ..task(TaskState::Completed, Some("a"))
    };
    let now = task(TaskState::Completed, Some("a"));
    assert_eq!(settled(Record::Task(Box::new(ahead))), Record::Task(Box::new(now)));
    let fresh = |since| Freshness::new("d".into(), Some(seconds(60)), since);
    assert_eq!(settled(Record::Domain(fresh(AHEAD))), Record::Domain(fresh(NOW)));
}

#[test]
fn what_lies_in_the_past_is_left_as_it_is() {
    let before = Timestamp(NOW.0 - 1);
    let records = [
        Record::Actual(Box::new(ActualLrp { since: before, ..twin("a", "x") })),
        Record::Task(Box::new(task(TaskState::Completed, Some("a")))),
        Record::Domain(Freshness::new("d".into(), Some(seconds(60)), before)),
        Record::Domain(Freshness { domain: "d".into(), expires_at: Some(AHEAD), since: None }),
        Record::Desired(Box::new(web())),
    ];
    for record in records {
        assert_eq!(settled(record.clone()), record);
    }
}
