//! Days and hours on which nothing is scheduled.

use std::ops::RangeInclusive;

use super::civil::{DAY_S, Date, weekday};
use super::fault::{Fault, Place};
use crate::job::Calendar;

const WEEKDAYS: [&str; 7] =
    ["sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"];

/// A calendar, once it is read.
#[derive(Debug, Clone)]
pub(super) struct Excluded {
    name: String,
    /// In days since 1970.
    dates: Vec<RangeInclusive<i64>>,
    yearly: Vec<Yearly>,
    /// Bit 0 is Sunday.
    weekdays: u8,
    hours: Option<Hours>,
}

/// Dates of every year, as month and day; one that ends before it begins goes over New Year.
#[derive(Debug, Clone, Copy)]
struct Yearly {
    first: (u32, u32),
    last: (u32, u32),
}

/// Times of day in seconds, without the last one; over midnight if that is the earlier one.
#[derive(Debug, Clone, Copy)]
struct Hours {
    from: i64,
    to: i64,
}

impl Excluded {
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Whether a local time, in seconds since 1970, is excluded.
    pub(super) fn holds(&self, local: i64) -> bool {
        let (day, time) = (local.div_euclid(DAY_S), local.rem_euclid(DAY_S));
        match self.hours {
            None => self.has_day(day),
            Some(Hours { from, to }) if from < to => {
                (from..to).contains(&time) && self.has_day(day)
            }
            // What is after midnight belongs to the day on which it began.
            Some(Hours { from, to }) => {
                (time >= from && self.has_day(day)) || (time < to && self.has_day(day - 1))
            }
        }
    }

    fn has_day(&self, day: i64) -> bool {
        if self.dates.is_empty() && self.yearly.is_empty() && self.weekdays == 0 {
            return true;
        }
        let date = Date::of(day);
        let of_year = (date.month, date.day);
        self.weekdays >> weekday(day) & 1 == 1
            || self.dates.iter().any(|range| range.contains(&day))
            || self.yearly.iter().any(|yearly| yearly.has(of_year))
    }
}

impl Yearly {
    fn has(self, day: (u32, u32)) -> bool {
        if self.first <= self.last {
            (self.first..=self.last).contains(&day)
        } else {
            day >= self.first || day <= self.last
        }
    }
}

/// Reads calendars; what is wrong with them is added to `faults`.
pub(super) fn read(calendars: &[Calendar], faults: &mut Vec<Fault>) -> Vec<Excluded> {
    calendars.iter().enumerate().map(|(at, calendar)| read_one(calendar, at, faults)).collect()
}

fn read_one(calendar: &Calendar, at: usize, faults: &mut Vec<Fault>) -> Excluded {
    let name = match calendar.name.as_str() {
        "" => format!("exclude[{at}]"),
        name => name.to_owned(),
    };
    let mut read = Excluded { name, dates: vec![], yearly: vec![], weekdays: 0, hours: None };
    for (index, text) in calendar.dates.iter().enumerate() {
        match dates(text) {
            Some(Dates::Once(range)) => read.dates.push(range),
            Some(Dates::Yearly(yearly)) => read.yearly.push(yearly),
            None => faults.push(Fault::whole(
                Place::Date(at, index),
                text,
                format!("`{text}` is no date and no range of dates"),
                "write 2026-12-24, 12-24 (every year), 2026-12-24..2027-01-02 or 12-24..01-02",
            )),
        }
    }
    for (index, text) in calendar.weekdays.iter().enumerate() {
        match weekday_named(text) {
            Some(weekday) => read.weekdays |= 1 << weekday,
            None => faults.push(Fault::whole(
                Place::Weekday(at, index),
                text,
                format!("`{text}` is no day of the week"),
                "write mon to sun, or monday to sunday",
            )),
        }
    }
    if let Some(text) = &calendar.hours {
        read.hours = hours(text);
        if read.hours.is_none() {
            faults.push(Fault::whole(
                Place::Hours(at),
                text,
                format!("`{text}` is no range of hours"),
                "write it as 22:00-06:00",
            ));
        }
    }
    if calendar.dates.is_empty() && calendar.weekdays.is_empty() && calendar.hours.is_none() {
        let help = "write `dates`, `weekdays` or `hours`, or leave it out";
        let problem = "the calendar excludes nothing".to_owned();
        faults.push(Fault::whole(Place::Calendar(at), &read.name, problem, help));
    }
    read
}

enum Dates {
    Once(RangeInclusive<i64>),
    Yearly(Yearly),
}

fn dates(text: &str) -> Option<Dates> {
    let (first, last) = text.split_once("..").unwrap_or((text, text));
    match (date(first)?, date(last)?) {
        ((None, first), (None, last)) => Some(Dates::Yearly(Yearly { first, last })),
        ((Some(first), (month, day)), (Some(last), (last_month, last_day))) => {
            let first = Date { year: first, month, day }.days();
            let last = Date { year: last, month: last_month, day: last_day }.days();
            (first <= last).then_some(Dates::Once(first..=last))
        }
        ((Some(_), _), (None, _)) | ((None, _), (Some(_), _)) => None,
    }
}

/// A year, if there is one, and a month with a day.
fn date(text: &str) -> Option<(Option<i32>, (u32, u32))> {
    let parts: Vec<&str> = text.trim().split('-').collect();
    let (year, month, day) = match parts[..] {
        [month, day] => (None, month, day),
        [year, month, day] => (Some(digits(year, 4)?), month, day),
        _ => return None,
    };
    let (month, day) = (digits(month, 2)?, digits(day, 2)?);
    let year = match year {
        Some(year) => Some(i32::try_from(year).ok()?),
        None => None,
    };
    // Without a year, 29 February is a date: it comes in some.
    let date = Date { year: year.unwrap_or(2_000), month, day };
    date.is_valid().then_some((year, (month, day)))
}

fn digits(text: &str, count: usize) -> Option<u32> {
    let plain = text.len() == count && text.bytes().all(|byte| byte.is_ascii_digit());
    plain.then(|| text.parse().ok()).flatten()
}

fn weekday_named(text: &str) -> Option<usize> {
    let text = text.trim().to_ascii_lowercase();
    WEEKDAYS.iter().position(|name| *name == text || name[..3] == text)
}

fn hours(text: &str) -> Option<Hours> {
    let (from, to) = text.split_once('-')?;
    let (from, to) = (time(from)?, time(to)?);
    (from != to && from < DAY_S).then_some(Hours { from, to })
}

fn time(text: &str) -> Option<i64> {
    let (hour, minute) = text.trim().split_once(':')?;
    let (hour, minute) = (digits(hour, 2)?, digits(minute, 2)?);
    let seconds = i64::from(hour) * 3_600 + i64::from(minute) * 60;
    (minute < 60 && seconds <= DAY_S).then_some(seconds)
}
