//! What the rules and the actors are handed instead of reaching for it: time and identity.

use std::fmt;
use std::time::Duration;

/// A point on a clock that never jumps, counted from an origin that the owner chose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Hash)]
pub struct Moment(Duration);

impl Moment {
    pub const ZERO: Self = Self(Duration::ZERO);

    pub const fn from_origin(elapsed: Duration) -> Self {
        Self(elapsed)
    }

    pub const fn since_origin(self) -> Duration {
        self.0
    }

    /// How long it has been since `earlier`; zero if that has not happened yet.
    pub const fn since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }

    #[must_use]
    pub const fn after(self, wait: Duration) -> Self {
        Self(self.0.saturating_add(wait))
    }
}

/// Wall-clock time in milliseconds since 1970, for people and for records.
///
/// Never compared between two machines to decide anything.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
#[serde(transparent)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// How long it has been since `earlier`; zero if that has not happened yet.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }

    #[must_use]
    pub fn after(self, wait: Duration) -> Self {
        Self(self.0.saturating_add(i64::try_from(wait.as_millis()).unwrap_or(i64::MAX)))
    }

    #[must_use]
    pub fn before(self, wait: Duration) -> Self {
        Self(self.0.saturating_sub(i64::try_from(wait.as_millis()).unwrap_or(i64::MAX)))
    }

    /// The first one that is later.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

/// The time, handed in so that tests and the simulator own it.
pub trait Clock: fmt::Debug + Send + Sync {
    /// Time that never jumps, also counted while the machine sleeps where the system can tell.
    fn now(&self) -> Moment;

    /// Time as people write it.
    fn wall(&self) -> Timestamp;
}

/// Where identity and chance come from, handed in so that a run can be replayed.
pub trait Ids: fmt::Debug + Send + Sync {
    /// 64 bits nobody else has drawn.
    fn draw(&self) -> u64;
}

/// Names one run of a workflow: sortable by start time, unique by its drawn tail.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
#[serde(transparent)]
pub struct RunId(String);

impl RunId {
    /// Makes the id of a run that starts now. `stamp` is a compact, sortable wall-clock time.
    pub fn new(stamp: &str, drawn: u64) -> Self {
        Self(format!("{stamp}-{:06x}", drawn & 0xff_ffff))
    }

    /// Takes an id that a person typed or that names a directory; nothing that could be a path.
    pub fn parse(text: &str) -> Option<Self> {
        let fits = !text.is_empty()
            && text.len() <= 64
            && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
        fits.then(|| Self(text.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
