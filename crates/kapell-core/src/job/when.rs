//! Times as people write and read them, by the clock of a job's time zone.

use jiff::civil::{Date, DateTime, Time};
use jiff::tz::{AmbiguousOffset, TimeZone};

use crate::schedule::time_zone;
use crate::seams::Timestamp;

/// Reads `02:30` (today), `2026-11-16`, `2026-11-16 02:30` or a time with its offset.
///
/// A local time that a clock change leaves out is the first instant after it; of one that comes twice, the first is meant.
pub fn read(text: &str, timezone: &str, now: Timestamp) -> Result<Timestamp, String> {
    let text = text.trim();
    if let Ok(at) = text.parse::<jiff::Timestamp>() {
        return Ok(Timestamp(at.as_millisecond()));
    }
    let Some(zone) = time_zone(timezone) else {
        return Err(format!("there is no time zone `{timezone}`"));
    };
    let today = || instant(now).map(|now| zone.to_datetime(now).date());
    let local = match text.parse::<Time>() {
        Ok(time) if text.contains(':') && !text.contains('-') => {
            today().map(|date| date.to_datetime(time))
        }
        Ok(_) | Err(_) => {
            let midnight = |date: Date| date.to_datetime(Time::midnight());
            text.parse::<DateTime>().or_else(|_| text.parse::<Date>().map(midnight)).ok()
        }
    };
    let at = local.and_then(|local| first_instant(&zone, local));
    at.ok_or_else(|| {
        format!(
            "`{text}` is no time: write it as `02:30`, `2026-11-16 02:30` (both in {timezone}) or \
             `2026-11-16T02:30:00Z`"
        )
    })
}

fn first_instant(zone: &TimeZone, local: DateTime) -> Option<Timestamp> {
    let found = zone.to_ambiguous_timestamp(local);
    let at = match found.offset() {
        AmbiguousOffset::Unambiguous { .. } | AmbiguousOffset::Fold { .. } => {
            found.earlier().ok()?
        }
        AmbiguousOffset::Gap { .. } => {
            let before = found.earlier().ok()?;
            zone.following(before).next()?.timestamp()
        }
    };
    Some(Timestamp(at.as_millisecond()))
}

fn instant(at: Timestamp) -> Option<jiff::Timestamp> {
    jiff::Timestamp::from_millisecond(at.0).ok()
}

/// `2026-11-16 02:30:00 CET`. In a zone that nobody knows, the time in UTC.
pub fn show(at: Timestamp, timezone: &str) -> String {
    let Some(instant) = instant(at) else { return at.0.to_string() };
    let zone = time_zone(timezone).unwrap_or(TimeZone::UTC);
    instant.to_zoned(zone).strftime("%Y-%m-%d %H:%M:%S %Z").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2026-11-16 12:00 UTC.
    const NOW: Timestamp = Timestamp(1_794_830_400_000);

    fn told(text: &str, timezone: &str) -> String {
        match read(text, timezone, NOW) {
            Ok(at) => show(at, timezone),
            Err(why) => why,
        }
    }

    #[test]
    fn times_are_read_in_the_zone_of_the_job() {
        for (text, timezone, want) in [
            ("02:30", "UTC", "2026-11-16 02:30:00 UTC"),
            ("02:30", "Europe/Berlin", "2026-11-16 02:30:00 CET"),
            ("23:59:59", "Asia/Tokyo", "2026-11-16 23:59:59 JST"),
            ("2026-07-01 02:30", "Europe/Berlin", "2026-07-01 02:30:00 CEST"),
            ("2026-07-01T02:30:15", "Europe/Berlin", "2026-07-01 02:30:15 CEST"),
            ("2026-07-01", "America/New_York", "2026-07-01 00:00:00 EDT"),
            ("2026-11-16T02:30:00Z", "Europe/Berlin", "2026-11-16 03:30:00 CET"),
            ("2026-11-16T02:30:00+05:00", "UTC", "2026-11-15 21:30:00 UTC"),
        ] {
            assert_eq!(told(text, timezone), want, "{text} in {timezone}");
        }
    }

    #[test]
    fn a_clock_change_leads_to_the_first_instant() {
        assert_eq!(told("2026-03-29 02:30", "Europe/Berlin"), "2026-03-29 03:00:00 CEST");
        assert_eq!(told("2026-10-25 02:30", "Europe/Berlin"), "2026-10-25 02:30:00 CEST");
        assert_eq!(told("2026-10-04 02:10", "Australia/Lord_Howe"), "2026-10-04 02:30:00 +11");
    }

    #[test]
    fn today_is_the_day_in_that_zone() {
        let late = Timestamp(NOW.0 + 11 * 3_600_000 + 1_800_000);
        let at = read("00:10", "Europe/Berlin", late).map(|at| show(at, "Europe/Berlin"));
        assert_eq!(at.as_deref(), Ok("2026-11-17 00:10:00 CET"));
    }

    #[test]
    fn what_is_no_time_is_refused_with_what_would_be() {
        for text in ["", "soon", "25:00", "2026-13-01", "2", "10"] {
            let why = format!(
                "`{text}` is no time: write it as `02:30`, `2026-11-16 02:30` (both in UTC) or \
                 `2026-11-16T02:30:00Z`"
            );
            assert_eq!(told(text, "UTC"), why);
        }
        assert_eq!(told("02:30", "Europe/Berln"), "there is no time zone `Europe/Berln`");
    }
}
