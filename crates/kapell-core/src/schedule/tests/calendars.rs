//! Calendars that exclude moments.

use super::{excluding, following};
use crate::job::Calendar;

fn calendar(name: &str, dates: &[&str], weekdays: &[&str], hours: Option<&str>) -> Calendar {
    let texts = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect();
    Calendar {
        name: name.into(),
        dates: texts(dates),
        weekdays: texts(weekdays),
        hours: hours.map(str::to_owned),
    }
}

/// Which of the next moments are excluded, as a text of `x` and `.`.
fn pattern(line: &str, zone: &str, exclude: &[Calendar], after: &str, count: usize) -> String {
    let schedule = excluding(line, zone, exclude).unwrap();
    let moments = following(&schedule, after, count);
    moments.iter().map(|next| if next.excluded.is_some() { 'x' } else { '.' }).collect()
}

#[test]
fn dates_ranges_and_yearly_dates_also_over_new_year() {
    let from = "2026-12-22T12:00:00Z";
    for (date, want) in [
        ("2026-12-24", ".x............"),
        ("12-24", ".x............"),
        ("2026-12-24..2027-01-02", ".xxxxxxxxxx..."),
        ("12-24..01-02", ".xxxxxxxxxx..."),
        ("2025-12-24", ".............."),
        ("01-01..01-03", ".........xxx.."),
    ] {
        let got = pattern("@daily", "UTC", &[calendar("", &[date], &[], None)], from, 14);
        assert_eq!(got, want, "{date}");
    }
    let leap = calendar("", &["02-29"], &[], None);
    assert_eq!(pattern("@daily", "UTC", &[leap], "2028-02-27T12:00:00Z", 3), ".x.");
}

#[test]
fn weekdays_by_short_and_long_name() {
    let weekend = calendar("", &[], &["sat", "Sunday"], None);
    assert_eq!(pattern("@daily", "UTC", &[weekend], "2026-11-15T12:00:00Z", 8), ".....xx.");
    let either = calendar("", &["2026-11-18"], &["sun"], None);
    assert_eq!(pattern("@daily", "UTC", &[either], "2026-11-15T12:00:00Z", 8), "..x...x.");
}

#[test]
fn hours_of_any_day_and_over_midnight_of_the_day_they_began() {
    let night = calendar("", &[], &[], Some("22:00-06:00"));
    let got = pattern("0 * * * *", "UTC", &[night], "2026-11-15T20:30:00Z", 12);
    assert_eq!(got, ".xxxxxxxx...");
    let friday = calendar("", &[], &["fri"], Some("22:00-02:00"));
    let got = pattern("0 * * * *", "UTC", std::slice::from_ref(&friday), "2026-11-20T20:30:00Z", 8);
    assert_eq!(got, ".xxxx...");
    assert_eq!(pattern("0 * * * *", "UTC", &[friday], "2026-11-19T20:30:00Z", 8), "........");
    let day = calendar("", &[], &[], Some("00:00-24:00"));
    assert_eq!(pattern("0 */8 * * *", "UTC", &[day], "2026-11-20T20:30:00Z", 4), "xxxx");
}

#[test]
fn local_time_decides() {
    // In Tokyo it is Saturday from 15:00 UTC on.
    let saturday = calendar("", &[], &["sat"], None);
    let got = pattern("0 */6 * * *", "Asia/Tokyo", &[saturday], "2026-11-20T08:30:00Z", 7);
    assert_eq!(got, ".xxxx..");
    // What the gap moved to 03:00 is judged there.
    let early = calendar("", &[], &[], Some("02:00-03:00"));
    let got = pattern("30 2 * * *", "Europe/Berlin", &[early], "2026-03-27T12:00:00Z", 3);
    assert_eq!(got, "x.x");
}

#[test]
fn the_first_calendar_that_excludes_is_named() {
    let exclude = [
        calendar("holidays", &["2026-11-17"], &[], None),
        calendar("", &[], &["tue", "wed"], None),
    ];
    let schedule = excluding("@daily", "UTC", &exclude).unwrap();
    let named: Vec<_> = following(&schedule, "2026-11-16T12:00:00Z", 3)
        .into_iter()
        .map(|next| next.excluded)
        .collect();
    assert_eq!(named, [Some("holidays".to_owned()), Some("exclude[1]".to_owned()), None]);
}
