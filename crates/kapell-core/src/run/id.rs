//! The names of runs.

use std::fmt;
use std::sync::Arc;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::board::JobId;
use crate::seams::Timestamp;

/// `job:1763290800` for the run of a moment; one that somebody asked for has a drawn tail: `job:1763290800-3f9a0c1d`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunId(Arc<str>);

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
            && seconds.len() <= 12
            && seconds.bytes().all(|byte| byte.is_ascii_digit())
            && tail.len() <= 16
            && !tail.is_empty()
            && tail.bytes().all(|byte| byte.is_ascii_hexdigit());
        fits.then(|| Self(text.into()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The job that it is a run of.
    pub fn job(&self) -> &str {
        self.0.split_once(':').map_or("", |(job, _)| job)
    }

    pub fn job_id(&self) -> JobId {
        JobId::new(self.job())
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
