//! A length of time as people write it.

use std::fmt;
use std::time::Duration;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::workflow::parse_duration;

/// A length of time: `90s`, `1h30m`, or a number of seconds. Whole milliseconds; written so that it reads back exactly.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Length(Duration);

impl Length {
    /// The longest: a hundred years, which is the longest that can be written.
    pub const MAX: Self = Self(Duration::from_secs(3_155_760_000));

    /// To the nearest millisecond, and not longer than the longest.
    pub const fn new(duration: Duration) -> Self {
        if duration.as_secs() >= Self::MAX.0.as_secs() {
            return Self::MAX;
        }
        let (millis, nanos) =
            (duration.subsec_millis() as u64, duration.subsec_nanos() % 1_000_000);
        let up = if nanos >= 500_000 { 1 } else { 0 };
        Self(Duration::from_millis(duration.as_secs() * 1_000 + millis + up))
    }

    pub const fn get(self) -> Duration {
        self.0
    }
}

impl fmt::Display for Length {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (seconds, millis) = (self.0.as_secs(), self.0.subsec_millis());
        let parts = [(86_400, 'd'), (3_600, 'h'), (60, 'm'), (1, 's')];
        let mut left = seconds;
        for (unit, letter) in parts {
            if left >= unit {
                write!(f, "{}{letter}", left / unit)?;
                left %= unit;
            }
        }
        if millis > 0 || seconds == 0 { write!(f, "{millis}ms") } else { Ok(()) }
    }
}

impl Serialize for Length {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "a duration is a text as `2m` or a number of seconds")]
enum Written {
    Seconds(f64),
    Text(String),
}

impl<'de> Deserialize<'de> for Length {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = match Written::deserialize(from)? {
            Written::Seconds(seconds) => seconds.to_string(),
            Written::Text(text) => text,
        };
        let length = parse_duration(&text).map(Self::new);
        length.ok_or_else(|| {
            D::Error::custom(format!("`{text}` is not a duration: write it as `90s` or `1h30m`"))
        })
    }
}
