//! Clock changes, zone by zone.

use super::super::ClockChange;
use super::{Moments as _, Timestamp, following, instant, next, parse, read};

#[test]
fn a_moment_in_the_gap_is_at_the_first_instant_after_it() {
    let schedule = read("30 2 * * *", "Europe/Berlin");
    let want = [
        "Sat 2026-03-28 02:30:00 +01:00",
        "Sun 2026-03-29 03:00:00 +02:00",
        "Mon 2026-03-30 02:30:00 +02:00",
    ];
    assert_eq!(next(&schedule, "2026-03-27T12:00:00Z", 3), want);
    let changes: Vec<_> =
        following(&schedule, "2026-03-27T12:00:00Z", 3).iter().map(|next| next.change).collect();
    assert_eq!(changes, [None, Some(ClockChange::Gap), None]);
    // Asked from the second before, and from within the hour that follows.
    let before = schedule.next_after(instant("2026-03-29T00:59:59Z")).unwrap();
    assert_eq!(before.at, instant("2026-03-29T01:00:00Z"));
    let after = schedule.next_after(instant("2026-03-29T01:00:00Z")).unwrap();
    assert_eq!(after.at, instant("2026-03-30T00:30:00Z"));
}

#[test]
fn all_moments_of_a_gap_are_one() {
    let schedule = read("*/10 2,3 * * *", "Europe/Berlin");
    let want = ["Sun 2026-03-29 03:00:00 +02:00", "Sun 2026-03-29 03:10:00 +02:00"];
    assert_eq!(next(&schedule, "2026-03-29T00:00:00Z", 2), want);
    assert_eq!(following(&schedule, "2026-03-29T00:00:00Z", 1)[0].change, Some(ClockChange::Gap));
}

/// Kubernetes runs such a job twice.
#[test]
fn a_moment_in_the_fold_comes_once_at_the_first_of_both() {
    for (zone, after, want) in [
        (
            "Europe/Berlin",
            "2026-10-24T23:00:00Z",
            ["Sun 2026-10-25 02:30:00 +02:00", "Mon 2026-10-26 02:30:00 +01:00"],
        ),
        (
            "America/Chicago",
            "2026-11-01T07:00:00Z",
            ["Mon 2026-11-02 02:30:00 -06:00", "Tue 2026-11-03 02:30:00 -06:00"],
        ),
    ] {
        let schedule = read("30 2 * * *", zone);
        let skip = usize::from(zone == "America/Chicago");
        assert_eq!(next(&schedule, after, 2 + skip)[skip..], want, "{zone}");
    }
    let schedule = read("30 1 * * *", "America/New_York");
    let want = ["Sun 2026-11-01 01:30:00 -04:00", "Mon 2026-11-02 01:30:00 -05:00"];
    assert_eq!(next(&schedule, "2026-11-01T04:00:00Z", 2), want);
    assert_eq!(
        following(&schedule, "2026-11-01T04:00:00Z", 1)[0].change,
        Some(ClockChange::FoldOnce)
    );
    // Asked between the two, and in the second of both hours before its half.
    for after in ["2026-11-01T05:45:00Z", "2026-11-01T06:00:00Z", "2026-11-01T06:10:00Z"] {
        assert_eq!(next(&schedule, after, 1), want[1..], "{after}");
    }
}

#[test]
fn with_a_wildcard_or_a_step_in_the_hour_every_real_instant_counts() {
    for line in ["30 * * * *", "30 */1 * * *", "30 0-23/1 * * *", "30 H/1 * * *"] {
        let schedule = read(line, "Europe/Berlin");
        let spring = ["Sun 2026-03-29 01:30:00 +01:00", "Sun 2026-03-29 03:30:00 +02:00"];
        assert_eq!(next(&schedule, "2026-03-29T00:00:00Z", 2), spring, "{line}");
        let autumn = [
            "Sun 2026-10-25 01:30:00 +02:00",
            "Sun 2026-10-25 02:30:00 +02:00",
            "Sun 2026-10-25 02:30:00 +01:00",
            "Sun 2026-10-25 03:30:00 +01:00",
        ];
        assert_eq!(next(&schedule, "2026-10-24T23:00:00Z", 4), autumn, "{line}");
        let changes: Vec<_> = following(&schedule, "2026-10-24T23:00:00Z", 4)
            .iter()
            .map(|next| next.change)
            .collect();
        assert_eq!(
            changes,
            [None, Some(ClockChange::FoldFirst), Some(ClockChange::FoldSecond), None]
        );
    }
}

#[test]
fn a_range_or_a_list_of_hours_is_no_step() {
    for line in ["30 0-5 * * *", "30 1,2,3 * * *", "30 H(2-2) * * *"] {
        let schedule = read(line, "Europe/Berlin");
        let autumn = following(&schedule, "2026-10-24T23:45:00Z", 2);
        assert_eq!(autumn[0].change, Some(ClockChange::FoldOnce), "{line}");
        assert_ne!(autumn[1].at, instant("2026-10-25T01:30:00Z"), "{line}");
    }
}

/// Its clock goes by half an hour: 02:00 becomes 02:30, and 02:00 becomes 01:30.
#[test]
fn lord_howe_changes_by_half_an_hour() {
    let spring = read("15 2 * * *", "Australia/Lord_Howe");
    let want = ["Sun 2026-10-04 02:30:00 +11:00", "Mon 2026-10-05 02:15:00 +11:00"];
    assert_eq!(next(&spring, "2026-10-03T14:00:00Z", 2), want);
    let autumn = read("*/20 1 * * *", "Australia/Lord_Howe");
    let want = [
        "Sun 2026-04-05 01:00:00 +11:00",
        "Sun 2026-04-05 01:20:00 +11:00",
        "Sun 2026-04-05 01:40:00 +11:00",
        "Mon 2026-04-06 01:00:00 +10:30",
    ];
    assert_eq!(next(&autumn, "2026-04-04T13:00:00Z", 4), want);
    let each = read("*/20 * * * *", "Australia/Lord_Howe");
    let want = [
        "Sun 2026-04-05 01:40:00 +11:00",
        "Sun 2026-04-05 01:40:00 +10:30",
        "Sun 2026-04-05 02:00:00 +10:30",
    ];
    assert_eq!(next(&each, "2026-04-04T14:20:00Z", 3), want);
}

/// Its clock is changed at midnight: a day begins at 01:00, and another ends twice.
#[test]
fn cairo_changes_at_midnight() {
    let daily = read("@daily", "Africa/Cairo");
    let spring = ["Fri 2026-04-24 01:00:00 +03:00", "Sat 2026-04-25 00:00:00 +03:00"];
    assert_eq!(next(&daily, "2026-04-23T12:00:00Z", 2), spring);
    let autumn = ["Fri 2026-10-30 00:00:00 +02:00"];
    assert_eq!(next(&daily, "2026-10-29T12:00:00Z", 1), autumn);
    let late = read("30 23 * * THU", "Africa/Cairo");
    let once = ["Thu 2026-10-29 23:30:00 +03:00", "Thu 2026-11-05 23:30:00 +02:00"];
    assert_eq!(next(&late, "2026-10-29T12:00:00Z", 2), once);
}

/// A whole day was left out there.
#[test]
fn a_day_that_never_was_is_at_the_first_instant_after_it() {
    let schedule = read("0 9 30 12 *", "Pacific/Apia");
    let want = ["Sat 2011-12-31 00:00:00 +14:00", "Sun 2012-12-30 09:00:00 +14:00"];
    assert_eq!(next(&schedule, "2011-06-01T00:00:00Z", 2), want);
}

/// Nomad's periodic jobs stopped at a clock change.
#[test]
fn no_clock_change_stops_a_schedule() {
    for zone in ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Africa/Cairo"] {
        for (line, want) in [("*/30 * * * *", 17_520), ("0 2 * * *", 365), ("15 0 * * *", 365)] {
            let schedule = read(line, zone);
            let mut at = Timestamp(instant("2026-01-01T00:00:00Z").0 - 1);
            let end = instant("2027-01-01T00:00:00Z");
            let mut count = 0;
            while let Some(next) = schedule.next_time(at).filter(|next| *next < end) {
                assert!(next > at);
                (at, count) = (next, count + 1);
            }
            assert_eq!(count, want, "`{line}` in {zone}");
        }
    }
}

#[test]
fn every_goes_by_elapsed_time_over_a_change() {
    let schedule = read("@every 1h", "Europe/Berlin");
    let want = [
        "Sun 2026-10-25 02:00:00 +02:00",
        "Sun 2026-10-25 02:00:00 +01:00",
        "Sun 2026-10-25 03:00:00 +01:00",
    ];
    assert_eq!(next(&schedule, "2026-10-24T23:30:00Z", 3), want);
    assert!(
        following(&schedule, "2026-10-24T23:30:00Z", 3).iter().all(|next| next.change.is_none())
    );
}

#[test]
fn lines_that_a_change_brings_together_are_one() {
    let schedule = parse(&["30 2 * * *", "0 3 * * *", "0 * * * *"], "Europe/Berlin").unwrap();
    let got = following(&schedule, "2026-03-29T00:00:00Z", 2);
    assert_eq!(got[0].at, instant("2026-03-29T01:00:00Z"));
    assert_eq!(got[0].change, Some(ClockChange::Gap));
    assert_eq!(got[1].at, instant("2026-03-29T02:00:00Z"));
}
