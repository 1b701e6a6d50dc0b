//! Every form of a line.

use std::collections::BTreeSet;
use std::time::Duration;

use super::{Moments as _, Schedule, Timestamp, following, instant, next, parse, read};
use crate::job::{JobDefinition, Length};

const NOW: &str = "2026-11-16T16:07:30Z";

/// Moments in UTC, as day and time.
fn check(line: &str, want: &[&str]) {
    let got = next(&read(line, "UTC"), NOW, want.len());
    let want: Vec<String> = want.iter().map(|at| format!("{at} +00:00")).collect();
    assert_eq!(got, want, "`{line}`");
}

#[test]
fn five_fields_begin_with_the_minute_and_six_with_the_second() {
    check("10 17 * * *", &["Mon 2026-11-16 17:10:00", "Tue 2026-11-17 17:10:00"]);
    check("15 10 17 * * *", &["Mon 2026-11-16 17:10:15", "Tue 2026-11-17 17:10:15"]);
    check("*/20 * * * * *", &["Mon 2026-11-16 16:07:40", "Mon 2026-11-16 16:08:00"]);
    check("  10\t17  * * *  ", &["Mon 2026-11-16 17:10:00"]);
}

#[test]
fn a_field_takes_lists_ranges_steps_and_names() {
    check("5,10 16 * * *", &["Mon 2026-11-16 16:10:00", "Tue 2026-11-17 16:05:00"]);
    check("7-9 16 * * *", &["Mon 2026-11-16 16:08:00", "Mon 2026-11-16 16:09:00"]);
    check("*/25 * * * *", &["Mon 2026-11-16 16:25:00", "Mon 2026-11-16 16:50:00"]);
    check("10-30/15 16 * * *", &["Mon 2026-11-16 16:10:00", "Mon 2026-11-16 16:25:00"]);
    check("0 0 1 jan,JUL *", &["Fri 2027-01-01 00:00:00", "Thu 2027-07-01 00:00:00"]);
    check("0 0 * * fri-SUN", &["Fri 2026-11-20 00:00:00", "Sat 2026-11-21 00:00:00"]);
    check("0 0 * * 7", &["Sun 2026-11-22 00:00:00", "Sun 2026-11-29 00:00:00"]);
    check("0 0 ? * 0", &["Sun 2026-11-22 00:00:00", "Sun 2026-11-29 00:00:00"]);
}

#[test]
fn a_day_fits_its_date_or_its_weekday_or_with_plus_both() {
    check("0 0 13 * FRI", &["Fri 2026-11-20 00:00:00", "Fri 2026-11-27 00:00:00"]);
    check("0 0 13 * +FRI", &["Fri 2027-08-13 00:00:00", "Fri 2028-10-13 00:00:00"]);
}

#[test]
fn last_nearest_and_nth_days() {
    check("0 0 L * *", &["Mon 2026-11-30 00:00:00", "Thu 2026-12-31 00:00:00"]);
    check("0 0 L 2 *", &["Sun 2027-02-28 00:00:00", "Tue 2028-02-29 00:00:00"]);
    check("0 0 LW 1,2 *", &["Fri 2027-01-29 00:00:00", "Fri 2027-02-26 00:00:00"]);
    check("0 0 15W * *", &["Tue 2026-12-15 00:00:00", "Fri 2027-01-15 00:00:00"]);
    // The first is a Saturday and the last a Sunday: it stays in the month.
    check("0 0 1W 5 *", &["Mon 2027-05-03 00:00:00"]);
    check("0 0 31W 1 *", &["Fri 2027-01-29 00:00:00"]);
    check("0 0 14W 11,3 *", &["Mon 2027-03-15 00:00:00"]);
    check("0 0 * * MON#1", &["Mon 2026-12-07 00:00:00", "Mon 2027-01-04 00:00:00"]);
    check("0 0 * * 1#5", &["Mon 2026-11-30 00:00:00", "Mon 2027-03-29 00:00:00"]);
    check("0 0 * * FRIL", &["Fri 2026-11-27 00:00:00", "Fri 2026-12-25 00:00:00"]);
    check("0 0 * * 7#L", &["Sun 2026-11-29 00:00:00", "Sun 2026-12-27 00:00:00"]);
}

#[test]
fn leap_days_come_when_they_come() {
    let schedule = read("0 0 29 2 *", "UTC");
    let got = next(&schedule, "2094-01-01T00:00:00Z", 2);
    assert_eq!(got, ["Wed 2096-02-29 00:00:00 +00:00", "Fri 2104-02-29 00:00:00 +00:00"]);
}

#[test]
fn nicknames_stand_for_lines() {
    for (name, line) in [
        ("@yearly", "0 0 1 1 *"),
        ("@annually", "0 0 1 1 *"),
        ("@monthly", "0 0 1 * *"),
        ("@weekly", "0 0 * * 0"),
        ("@daily", "0 0 * * *"),
        ("@midnight", "0 0 * * *"),
        ("@hourly", "0 * * * *"),
    ] {
        let (name, line) = (read(name, "Europe/Berlin"), read(line, "Europe/Berlin"));
        assert_eq!(following(&name, NOW, 5), following(&line, NOW, 5));
    }
}

#[test]
fn every_counts_from_1970_whatever_the_clock_says() {
    check("@every 1h30m", &["Mon 2026-11-16 16:30:00", "Mon 2026-11-16 18:00:00"]);
    check("@every 90s", &["Mon 2026-11-16 16:09:00", "Mon 2026-11-16 16:10:30"]);
    let first = read("@every 7m", "UTC").next_after(Timestamp(i64::MIN)).unwrap();
    assert_eq!(first.at, Timestamp(0));
}

#[test]
fn moments_of_several_lines_at_one_instant_are_one() {
    let schedule = parse(&["0 * * * *", "0 0 * * *", "30 17 * * *"], "UTC").unwrap();
    let want = ["Mon 2026-11-16 17:00:00 +00:00", "Mon 2026-11-16 17:30:00 +00:00"];
    assert_eq!(next(&schedule, NOW, 2), want);
    let night = ["Tue 2026-11-17 00:00:00 +00:00", "Tue 2026-11-17 01:00:00 +00:00"];
    assert_eq!(next(&schedule, "2026-11-16T23:30:00Z", 2), night);
}

#[test]
fn without_lines_nothing_is_due() {
    assert_eq!(parse(&[], "UTC").unwrap().next_after(instant(NOW)), None);
}

#[test]
fn no_time_is_too_early_or_too_late_to_ask() {
    let schedule = read("0 0 1 1 *", "Europe/Berlin");
    let first = schedule.next_after(Timestamp(i64::MIN)).unwrap();
    assert_eq!(first.at, instant("1970-12-31T23:00:00Z"));
    assert_eq!(schedule.next_after(Timestamp(i64::MAX)), None);
    assert_eq!(schedule.next_after(instant("9999-12-30T00:00:00Z")), None);
    let late = next(&schedule, "2300-06-01T00:00:00Z", 1);
    assert_eq!(late, ["Tue 2301-01-01 00:00:00 +01:00"]);
}

#[test]
fn a_moment_is_not_after_itself_but_after_the_millisecond_before() {
    let schedule = read("0 17 * * *", "UTC");
    let at = instant("2026-11-16T17:00:00Z");
    assert_eq!(schedule.next_time(Timestamp(at.0 - 1)), Some(at));
    assert_eq!(schedule.next_time(at), Some(instant("2026-11-17T17:00:00Z")));
    assert_eq!(schedule.next_time(Timestamp(at.0 + 999)), Some(instant("2026-11-17T17:00:00Z")));
}

/// The minutes and hours of a day on which a line is due.
fn times(line: &str, seed: &str) -> BTreeSet<(i64, i64)> {
    let schedule = Schedule::parse(&[line.to_owned()], "UTC", &[], None, seed).unwrap();
    let day = instant("2026-11-16T00:00:00Z").0;
    let (mut at, mut found) = (Timestamp(day - 1), BTreeSet::new());
    while let Some(next) = schedule.next_time(at).filter(|next| next.0 < day + 86_400_000) {
        let minutes = (next.0 - day) / 60_000;
        found.insert((minutes / 60, minutes % 60));
        at = next;
    }
    found
}

#[test]
fn h_is_a_value_of_the_jobs_own_in_each_field() {
    let jobs: Vec<String> = (0..200).map(|job| format!("job-{job}")).collect();
    let drawn: Vec<_> = jobs.iter().map(|job| times("H H * * *", job)).collect();
    assert!(drawn.iter().all(|times| times.len() == 1));
    assert_eq!(drawn[7], times("H H * * *", "job-7"), "always the same");
    let of =
        |pick: fn(&(i64, i64)) -> i64| drawn.iter().flatten().map(pick).collect::<BTreeSet<_>>();
    assert!(of(|time| time.0).len() > 20, "hours are spread");
    assert!(of(|time| time.1).len() > 50, "minutes are spread");
    let alike = drawn.iter().flatten().filter(|(hour, minute)| *hour == minute % 24).count();
    assert!(alike < 30, "each field has its own: {alike}");
}

#[test]
fn h_with_a_step_or_a_range_keeps_to_it() {
    for job in (0..50).map(|job| format!("job-{job}")) {
        let minutes: Vec<_> =
            times("H/15 3 * * *", &job).into_iter().map(|(_, minute)| minute).collect();
        assert!(minutes.len() == 4 && minutes[0] < 15, "{minutes:?}");
        assert!(minutes.windows(2).all(|pair| pair[1] - pair[0] == 15), "{minutes:?}");
        let ranged = times("H(0-29) H(1-3) * * *", &job);
        assert!(ranged.iter().all(|(hour, minute)| (1..=3).contains(hour) && *minute < 30));
        let both: Vec<_> = times("H(10-29)/10 3 * * *", &job).into_iter().collect();
        assert!(both.len() == 2 && (10..20).contains(&both[0].1), "{both:?}");
        assert_eq!(
            times("H/45 3 * * *", &job).len(),
            1 + usize::from(times("H/45 3 * * *", &job).first().unwrap().1 < 15)
        );
    }
    for line in ["H H H * * *", "0 0 H * *", "0 0 1 H *", "0 0 * * H"] {
        read(line, "UTC");
    }
}

/// What a text stands for may never change: jobs would move.
#[test]
fn h_and_jitter_are_the_same_in_every_version() {
    assert_eq!(next(&read("H H H H *", "UTC"), NOW, 1), ["Wed 2027-06-02 17:10:00 +00:00"]);
    let lines = ["@daily".to_owned()];
    let jitter = Some(Length::new(Duration::from_secs(600)));
    let schedule = Schedule::parse(&lines, "UTC", &[], jitter, "job").unwrap();
    let at = instant("2026-11-17T00:00:00Z");
    assert_eq!(schedule.put_off(at).0 - at.0, 94_201);
}

#[test]
fn jitter_puts_each_moment_off_by_less_than_it_says() {
    let lines = ["@hourly".to_owned()];
    let jitter = Some(Length::new(Duration::from_millis(1_500)));
    let schedule = Schedule::parse(&lines, "UTC", &[], jitter, "job").unwrap();
    let moments = following(&schedule, NOW, 500);
    let waits: Vec<i64> =
        moments.iter().map(|next| schedule.put_off(next.at).0 - next.at.0).collect();
    assert!(waits.iter().all(|wait| (0..1_500).contains(wait)));
    assert!(waits.iter().collect::<BTreeSet<_>>().len() > 300, "each moment its own");
    assert!(waits.iter().any(|wait| *wait < 150) && waits.iter().any(|wait| *wait > 1_350));
    let again: Vec<i64> =
        moments.iter().map(|next| schedule.put_off(next.at).0 - next.at.0).collect();
    assert_eq!(waits, again);
    let other = Schedule::parse(&lines, "UTC", &[], jitter, "other").unwrap();
    assert!(moments.iter().any(|next| other.put_off(next.at) != schedule.put_off(next.at)));
    assert_eq!(read("@hourly", "UTC").put_off(moments[0].at), moments[0].at);
}

#[test]
fn zones_are_found_whatever_their_case() {
    assert_eq!(read("@daily", "europe/berlin").zone(), "Europe/Berlin");
    assert_eq!(read("@daily", "utc").zone(), "UTC");
}

#[test]
fn a_job_is_spread_by_its_id() {
    let text = r#"{"job_id": "nightly", "schedule": ["H H * * *"], "timezone": "Asia/Tokyo"}"#;
    let job: JobDefinition = serde_json::from_str(text).unwrap();
    let same = Schedule::parse(&job.schedule, "Asia/Tokyo", &[], None, "nightly").unwrap();
    assert_eq!(following(&Schedule::of(&job).unwrap(), NOW, 3), following(&same, NOW, 3));
    let other = Schedule::parse(&job.schedule, "Asia/Tokyo", &[], None, "weekly").unwrap();
    assert_ne!(following(&other, NOW, 3), following(&same, NOW, 3));
}
