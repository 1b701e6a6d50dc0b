//! Schedules against an oracle that tries every local time, and against another reader of cron.

mod expression;
mod oracle;

use std::str::FromStr as _;

use croner::Cron;
use expression::{Expression, expressions};
use jiff::civil::date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, Zoned};
use kapell_core::schedule::{Moments as _, Schedule};
use kapell_core::seams;
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::{Config, TestRunner};

const ZONES: [&str; 4] =
    ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Africa/Cairo"];
/// Every half minute, about.
const DENSE: usize = 100_000;
const YEARS: (i16, i16) = (2_020, 2_030);

fn start_of(year: i16, month: i8) -> Timestamp {
    date(year, month, 1).to_zoned(TimeZone::UTC).unwrap().timestamp()
}

fn parse(line: &str, zone: &str) -> Option<Schedule> {
    match Schedule::parse(&[line.to_owned()], zone, &[], None, "job") {
        Ok(schedule) => Some(schedule),
        Err(faults) => {
            let never = faults.iter().all(|fault| fault.problem == "no such day ever comes");
            assert!(never, "`{line}`: {faults:?}");
            None
        }
    }
}

fn walk_schedule(schedule: &Schedule, from: Timestamp, to: Timestamp) -> Vec<i64> {
    let mut found = Vec::new();
    let mut at = seams::Timestamp(from.as_millisecond() - 1);
    while let Some(next) = schedule.next_after(at) {
        if next.at.0 >= to.as_millisecond() {
            break;
        }
        assert_eq!(next.at.0 % 1_000, 0, "whole seconds");
        assert!(next.at > at, "always later");
        found.push(next.at.0 / 1_000);
        at = next.at;
    }
    found
}

/// The moments on which both agree.
fn agree(
    expression: &Expression,
    schedule: &Schedule,
    zone: &TimeZone,
    from: Timestamp,
    to: Timestamp,
) -> Vec<i64> {
    let want = oracle::walk(expression, zone, from, to);
    let got = walk_schedule(schedule, from, to);
    let first = want.iter().zip(&got).position(|(want, got)| want != got);
    let at = first.unwrap_or(want.len().min(got.len()));
    let show = |found: &[i64]| found.get(at).map(|at| Timestamp::from_second(*at).unwrap());
    assert!(
        want == got,
        "`{expression}` in {}: entry {at} of {} is {:?}, want {:?} of {}",
        schedule.zone(),
        got.len(),
        show(&got),
        show(&want),
        want.len(),
    );
    want
}

/// Also asked from the middle of a clock change, not only from the moment before.
fn agree_around(expression: &Expression, schedule: &Schedule, zone: &TimeZone, change: Timestamp) {
    let hours = if expression.second.is_some() { 2 } else { 30 };
    let (from, to) =
        (change - SignedDuration::from_hours(hours), change + SignedDuration::from_hours(hours));
    let want = agree(expression, schedule, zone, from, to);
    for off in [-3_600, -1_800, -1_801, -61, -1, 0, 1, 59, 60, 600, 1_799, 1_800, 3_599, 3_600] {
        let after = change.as_second() + off;
        let want = want.iter().find(|at| **at > after);
        let got =
            schedule.next_after(seams::Timestamp(after * 1_000)).map(|next| next.at.0 / 1_000);
        let got = got.filter(|at| *at < to.as_second());
        assert_eq!(
            got.as_ref(),
            want,
            "`{expression}` in {}, {off} s after {change}",
            schedule.zone()
        );
    }
}

/// It was refused: so it must never come. In 28 years are all kinds of years that there are.
fn never_comes(expression: &Expression) {
    let mut day = date(2_000, 1, 1);
    while day.year() < 2_028 {
        assert!(!expression.fits_day(day), "`{expression}` comes on {day}");
        day = day.tomorrow().unwrap();
    }
}

fn changes(zone: &TimeZone) -> Vec<Timestamp> {
    let end = start_of(YEARS.1, 1);
    let following = zone.following(start_of(YEARS.0, 1)).map(|change| change.timestamp());
    following.take_while(|at| *at < end).collect()
}

/// Around some clock changes, and in one month, which is a February of a leap year at times.
fn try_some(name: &str, expression: &Expression, picks: &[Index], month: Index) {
    let Some(schedule) = parse(&expression.to_string(), name) else {
        return never_comes(expression);
    };
    let zone = oracle::zone(name);
    let changes = changes(&zone);
    for pick in picks {
        agree_around(expression, &schedule, &zone, changes[pick.index(changes.len())]);
    }
    let months: Vec<(i16, i8)> = (YEARS.0..YEARS.1)
        .flat_map(|year| (1..=12).map(move |month| (year, month)))
        .chain([(2_024, 2), (2_028, 2)].repeat(30))
        .collect();
    let (year, month) = months[month.index(months.len())];
    let from = start_of(year, month);
    let hours = if expression.second.is_some() { 6 } else { 24 * 31 };
    agree(expression, &schedule, &zone, from, from + SignedDuration::from_hours(hours));
}

fn random_expressions_are_due_as_the_oracle_says(zone: &str) {
    let mut runner =
        TestRunner::new(Config { failure_persistence: None, ..Config::with_cases(96) });
    let picks = proptest::collection::vec(any::<Index>(), 4);
    let run = runner.run(&(expressions(), picks, any::<Index>()), |(expression, picks, month)| {
        try_some(zone, &expression, &picks, month);
        Ok(())
    });
    run.unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn random_expressions_in_berlin_are_due_as_the_oracle_says() {
    random_expressions_are_due_as_the_oracle_says(ZONES[0]);
}

#[test]
fn random_expressions_in_new_york_are_due_as_the_oracle_says() {
    random_expressions_are_due_as_the_oracle_says(ZONES[1]);
}

#[test]
fn random_expressions_on_lord_howe_are_due_as_the_oracle_says() {
    random_expressions_are_due_as_the_oracle_says(ZONES[2]);
}

#[test]
fn random_expressions_in_cairo_are_due_as_the_oracle_says() {
    random_expressions_are_due_as_the_oracle_says(ZONES[3]);
}

/// Over all ten years, month by month so that little is kept; of a line that is due more often than
/// `DENSE` in a month, only the months in which clocks are changed, and February.
fn try_all(name: &str, expression: &Expression) {
    let Some(schedule) = parse(&expression.to_string(), name) else { return };
    let zone = oracle::zone(name);
    let changes = changes(&zone);
    let months = (YEARS.0..YEARS.1).flat_map(|year| (1..=12).map(move |month| (year, month)));
    let mut is_dense = false;
    for (year, month) in months {
        let next = if month == 12 { (year + 1, 1) } else { (year, month + 1) };
        let (from, to) = (start_of(year, month), start_of(next.0, next.1));
        let has_change = changes.iter().any(|change| (from..to).contains(change));
        if !is_dense || has_change || month == 2 {
            is_dense |= agree(expression, &schedule, &zone, from, to).len() > DENSE;
        }
    }
}

/// Due so often that trying ten years takes long.
fn is_frequent(expression: &Expression) -> bool {
    let Some(schedule) = parse(&expression.to_string(), "UTC") else { return false };
    let start = seams::Timestamp(start_of(YEARS.0, 1).as_millisecond());
    let late = (0..2_000).try_fold(start, |at, _| schedule.next_time(at));
    late.is_some_and(|late| late.0 < start_of(YEARS.0 + 1, 1).as_millisecond())
}

/// A few expressions, or as many as a soak asks for: `KAPELL_SCHEDULES`, or `KAPELL_SOAK_ROUNDS`, one of twenty.
#[test]
fn ten_years_of_random_expressions_are_due_as_the_oracle_says() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u32>().ok());
    let of_rounds = || number("KAPELL_SOAK_ROUNDS").map(|rounds| (rounds / 20).max(20));
    let soak = number("KAPELL_SCHEDULES").or_else(of_rounds);
    let cases = soak.unwrap_or(8);
    let config = Config { failure_persistence: None, ..Config::with_cases(cases) };
    let some = expressions().prop_filter("too many moments but for a soak", move |expression| {
        soak.is_some() || (expression.second.is_none() && !is_frequent(expression))
    });
    let run = TestRunner::new(config).run(&some, |expression| {
        for zone in ZONES {
            try_all(zone, &expression);
        }
        Ok(())
    });
    run.unwrap_or_else(|error| panic!("{error}"));
}

proptest! {
    #![proptest_config(Config { failure_persistence: None, ..Config::with_cases(256) })]

    #[test]
    fn random_days_are_those_of_the_oracle(expression in expressions()) {
        let line = expression.to_string();
        let days = line.split(' ').rev().take(3).collect::<Vec<_>>();
        let Some(schedule) = parse(&format!("0 0 {} {} {}", days[2], days[1], days[0]), "UTC") else {
            never_comes(&expression);
            return Ok(());
        };
        let mut day = date(YEARS.0, 1, 1);
        let mut want = Vec::new();
        while day.year() < YEARS.1 {
            if expression.fits_day(day) {
                want.push(day.to_zoned(TimeZone::UTC).unwrap().timestamp().as_second());
            }
            day = day.tomorrow().unwrap();
        }
        let got = walk_schedule(&schedule, start_of(YEARS.0, 1), start_of(YEARS.1, 1));
        prop_assert!(got == want, "`{}`: {} days, want {}", line, got.len(), want.len());
    }

    /// Two readers of cron, written apart, agree on what a line means.
    #[test]
    fn random_expressions_are_read_as_croner_reads_them(
        expression in expressions(),
        start in 1_577_836_800i64..1_893_456_000,
    ) {
        let line = expression.to_string();
        let Some(schedule) = parse(&line, "UTC") else { return Ok(()) };
        let cron = Cron::from_str(&line).unwrap();
        let mut at = Timestamp::from_second(start).unwrap();
        for _ in 0..10 {
            let zoned = Zoned::new(at, TimeZone::UTC);
            let want = cron.find_next_occurrence(&zoned, false).unwrap().timestamp();
            let got = schedule.next_after(seams::Timestamp(at.as_millisecond())).unwrap();
            prop_assert_eq!(got.at.0, want.as_millisecond(), "`{}` after {}", line, at);
            at = want;
        }
    }
}
