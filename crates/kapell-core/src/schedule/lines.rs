//! All lines of a schedule, with its zone and its calendars.

use super::calendar::{self, Excluded};
use super::cron::Due;
use super::fault::{Fault, Place};
use super::line::Line;
use super::zone::{self, Zone};
use super::{Moments, Occurrence, spread};
use crate::job::{Calendar, JobDefinition, Length};
use crate::seams::Timestamp;

/// When a job is due: what its definition says of it, read once.
///
/// Moments are instants of 1970 or later. The same texts and the same seed give the same moments
/// on every host.
#[derive(Debug, Clone)]
pub struct Schedule {
    /// Apart from the others: most have no more, and a million are gone through in a row.
    first: Option<Line>,
    more: Box<[Line]>,
    zone: &'static Zone,
    exclude: Box<[Excluded]>,
    jitter_ms: u64,
    seed: u64,
}

impl Schedule {
    /// Reads a schedule, or says everything that is wrong with it.
    ///
    /// `seed`, the job's id, decides what `H` is and how long each moment is put off.
    pub fn parse(
        lines: &[String],
        timezone: &str,
        exclude: &[Calendar],
        jitter: Option<Length>,
        seed: &str,
    ) -> Result<Self, Vec<Fault>> {
        let seed = spread::of_text(seed);
        let mut faults = Vec::new();
        let mut read = Vec::with_capacity(lines.len());
        for (at, text) in lines.iter().enumerate() {
            match Line::read(text, Place::Line(at), seed) {
                Ok(line) => read.push(line),
                Err(wrong) => faults.extend(wrong),
            }
        }
        let zone = Zone::named(timezone);
        if zone.is_none() {
            faults.push(unknown_zone(timezone));
        }
        let exclude = calendar::read(exclude, &mut faults);
        let Some(zone) = zone.filter(|_| faults.is_empty()) else { return Err(faults) };
        let mut lines = read.into_iter();
        let jitter_ms = jitter.map_or(0, |jitter| jitter.get().as_millis());
        Ok(Self {
            first: lines.next(),
            more: lines.collect(),
            zone,
            exclude: exclude.into(),
            jitter_ms: u64::try_from(jitter_ms).unwrap_or(u64::MAX),
            seed,
        })
    }

    pub fn of(job: &JobDefinition) -> Result<Self, Vec<Fault>> {
        Self::parse(&job.schedule, &job.timezone, &job.exclude, job.jitter, job.job_id.as_str())
    }

    /// The name of its zone as the time zone database writes it.
    pub const fn zone(&self) -> &'static str {
        self.zone.name()
    }

    /// When the first moment after that is, excluded or not.
    pub fn next_time(&self, after: Timestamp) -> Option<Timestamp> {
        self.next(after).and_then(|(second, _)| timestamp(second))
    }

    fn next(&self, after: Timestamp) -> Option<Due> {
        let from = after.0.div_euclid(1_000).saturating_add(1).max(0);
        let first = self.first.as_ref()?.from(from, self.zone);
        self.more.iter().fold(first, |best, line| earlier(best, line.from(from, self.zone)))
    }
}

/// The earlier of both; of two at once, what one of them tells of the clock.
fn earlier(a: Option<Due>, b: Option<Due>) -> Option<Due> {
    match (a, b) {
        (Some(a), Some(b)) if a.0 == b.0 => Some((a.0, a.1.or(b.1))),
        (Some(a), Some(b)) => Some(if a.0 < b.0 { a } else { b }),
        (one, None) | (None, one) => one,
    }
}

fn timestamp(second: i64) -> Option<Timestamp> {
    second.checked_mul(1_000).map(Timestamp)
}

impl Moments for Schedule {
    fn next_after(&self, after: Timestamp) -> Option<Occurrence> {
        let (second, change) = self.next(after)?;
        let excluded = if self.exclude.is_empty() {
            None
        } else {
            let local = self.zone.local(second);
            self.exclude.iter().find(|each| each.holds(local)).map(|each| each.name().to_owned())
        };
        Some(Occurrence { at: timestamp(second)?, excluded, change })
    }

    fn put_off(&self, at: Timestamp) -> Timestamp {
        if self.jitter_ms == 0 {
            return at;
        }
        let wait = spread::mixed(self.seed, at.0.cast_unsigned()) % self.jitter_ms;
        Timestamp(at.0.saturating_add_unsigned(wait))
    }
}

fn unknown_zone(name: &str) -> Fault {
    let help = zone::nearest(name).map_or_else(
        || "write the name of a place as in `Europe/Berlin`, or UTC".to_owned(),
        |near| format!("write `{near}`"),
    );
    Fault::whole(Place::Timezone, name, format!("the time zone `{name}` is not known"), help)
}
