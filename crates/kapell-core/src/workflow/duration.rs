//! Durations as people write them: `90s`, `1m30s`, `250ms`, `1.5h`; a bare number is seconds.

use std::fmt::Write as _;
use std::time::Duration;

const UNITS: [(&str, f64); 7] = [
    ("ms", 0.001),
    ("us", 0.000_001),
    ("d", 86_400.0),
    ("h", 3_600.0),
    ("m", 60.0),
    ("s", 1.0),
    ("", 1.0),
];

/// The longest duration anyone may ask for: a hundred years.
const MAX_SECONDS: f64 = 3_155_760_000.0;

/// Reads a duration, or says nothing of it: the caller knows where it stands.
pub fn parse_duration(text: &str) -> Option<Duration> {
    let mut rest = text.trim();
    if rest.is_empty() {
        return None;
    }
    let alone = rest.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    let mut seconds = 0.0;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let number: f64 = rest[..digits].parse().ok()?;
        rest = &rest[digits..];
        let letters = rest.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(rest.len());
        let unit = rest[..letters].trim();
        if unit.is_empty() && !alone {
            return None;
        }
        let (_, factor) = UNITS.iter().find(|(name, _)| *name == unit)?;
        seconds += number * factor;
        rest = &rest[letters..];
    }
    (seconds <= MAX_SECONDS).then(|| Duration::from_secs_f64(seconds))
}

/// Writes a duration with the precision that a person reads: `3ms`, `1.4s`, `2m05s`, `3h10m`.
pub fn show_duration(duration: Duration) -> String {
    let millis = duration.as_millis();
    let mut text = String::new();
    let done = match millis {
        0..1_000 => write!(text, "{millis}ms"),
        1_000..60_000 => write!(text, "{}.{}s", millis / 1_000, millis / 100 % 10),
        60_000..3_600_000 => write!(text, "{}m{:02}s", millis / 60_000, millis / 1_000 % 60),
        _ => write!(text, "{}h{:02}m", millis / 3_600_000, millis / 60_000 % 60),
    };
    done.expect("writing to a String cannot fail");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_people_write() {
        for (text, millis) in [
            ("10s", 10_000),
            ("5", 5_000),
            ("0.5", 500),
            ("1m30s", 90_000),
            ("250ms", 250),
            ("1.5h", 5_400_000),
            ("2d", 172_800_000),
            (" 3s ", 3_000),
        ] {
            assert_eq!(parse_duration(text), Some(Duration::from_millis(millis)), "{text}");
        }
    }

    #[test]
    fn refuses_what_is_none() {
        for text in
            ["", "soon", "-1s", "10 parsecs", "1s5", "s", "1e9s", "99999999999", ".", "1..2s"]
        {
            assert_eq!(parse_duration(text), None, "{text}");
        }
    }

    #[test]
    fn shows_what_people_read() {
        for (millis, text) in
            [(3, "3ms"), (1_449, "1.4s"), (125_000, "2m05s"), (11_400_000, "3h10m")]
        {
            assert_eq!(show_duration(Duration::from_millis(millis)), text);
        }
    }
}
