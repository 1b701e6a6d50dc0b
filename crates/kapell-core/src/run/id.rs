//! The names of runs.

use std::cmp::Ordering;
use std::fmt;

use arcstr::ArcStr;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::board::JobId;
use crate::seams::Timestamp;

/// How many digits the seconds of an id have at most.
const LONGEST_SECONDS: usize = 12;

/// `job:1763290800` for the run of a moment; one that somebody asked for has a drawn tail: `job:1763290800-3f9a0c1d`.
///
/// In order, the runs of a job lie together, the oldest moment first.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RunId(ArcStr);

impl RunId {
    pub fn scheduled(job: &JobId, at: Timestamp) -> Self {
        Self(format!("{job}:{}", at.0.div_euclid(1000)).into())
    }

    pub fn asked_for(job: &JobId, at: Timestamp, drawn: u64) -> Self {
        Self(format!("{job}:{}-{:08x}", at.0.div_euclid(1000), drawn & 0xffff_ffff).into())
    }

    /// Takes what a person typed or what a store holds.
    pub fn parse(text: &str) -> Option<Self> {
        let (job, rest) = text.split_once(':')?;
        let (seconds, tail) = rest.split_once('-').unwrap_or((rest, "0"));
        let fits = JobId::new(job).is_valid()
            && !seconds.is_empty()
            && seconds.len() <= LONGEST_SECONDS
            && seconds.bytes().all(|byte| byte.is_ascii_digit())
            && tail.len() <= 16
            && !tail.is_empty()
            && tail.bytes().all(|byte| byte.is_ascii_hexdigit());
        fits.then(|| Self(text.into()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// What lies before and behind all runs of a job.
    pub fn bounds(job: &str) -> (Self, Self) {
        (
            Self(format!("{job}:").into()),
            Self(format!("{job}:{}", "9".repeat(LONGEST_SECONDS + 1)).into()),
        )
    }

    /// The run of a moment of this job, by what its id says behind the name of the job.
    pub fn of_job(job: &str, rest: &str) -> Option<Self> {
        Self::parse(&format!("{job}:{rest}"))
    }

    /// What its id says behind the name of the job.
    pub fn rest(&self) -> &str {
        self.0.split_once(':').map_or("", |(_, rest)| rest)
    }

    /// The moment that it is the run of; none of one that somebody asked for.
    pub fn moment(&self) -> Option<Timestamp> {
        let seconds: i64 = self.rest().parse().ok()?;
        seconds.checked_mul(1000).map(Timestamp)
    }

    /// Whether it is of no moment of a schedule: somebody asked for it.
    pub fn is_asked_for(&self) -> bool {
        self.moment().is_none()
    }

    /// The job that it is a run of.
    pub fn job(&self) -> &str {
        self.0.split_once(':').map_or("", |(job, _)| job)
    }

    pub fn job_id(&self) -> JobId {
        JobId::new(self.job())
    }
}

impl Ord for RunId {
    /// Boards compare very many: nothing but the first difference is looked at.
    fn cmp(&self, other: &Self) -> Ordering {
        let (one, two) = (self.0.as_bytes(), other.0.as_bytes());
        let same = alike(one, two);
        let rest = |id: &[u8]| id.get(same).copied();
        if one[..same].contains(&b':') {
            // Numbers of more digits are larger; of as many, the first difference tells.
            let digits = |id: &[u8]| id[same..].iter().take_while(|byte| **byte != b'-').count();
            let in_tail = one[..same]
                .iter()
                .rev()
                .take_while(|byte| **byte != b':')
                .any(|byte| *byte == b'-');
            let longer = if in_tail { Ordering::Equal } else { digits(one).cmp(&digits(two)) };
            return longer.then(rest(one).cmp(&rest(two)));
        }
        // The name of a job ends before the colon.
        let name = |id: &[u8]| rest(id).filter(|byte| *byte != b':');
        name(one).cmp(&name(two)).then(rest(one).cmp(&rest(two)))
    }
}

/// How many bytes are the same, eight at a time.
fn alike(one: &[u8], two: &[u8]) -> usize {
    let (ones, twos) = (one.as_chunks::<8>().0, two.as_chunks::<8>().0);
    let word = |bytes: &[u8; 8]| u64::from_ne_bytes(*bytes);
    let same = ones.iter().zip(twos).take_while(|(one, two)| word(one) == word(two)).count() * 8;
    let rest = one[same..].iter().zip(&two[same..]);
    same + rest.take_while(|(one, two)| one == two).count()
}

impl PartialOrd for RunId {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Serialize for RunId {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for RunId {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        Self::parse(&text)
            .ok_or_else(|| D::Error::custom(format!("`{text}` is not the id of a run")))
    }
}
