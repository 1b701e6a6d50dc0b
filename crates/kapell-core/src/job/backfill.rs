//! Runs for moments that have passed, because somebody asks for them.

use std::collections::BTreeMap;

use uuid::Uuid;

use super::request::NewRun;
use crate::board::JobId;
use crate::run::{Run, RunId, Trigger};
use crate::schedule::Moments;
use crate::seams::Timestamp;

/// So many runs one backfill makes.
pub const MOST: usize = 1_000;

/// What a backfill comes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Backfill {
    /// The oldest moment first; each is to be triggered.
    pub runs: Vec<NewRun>,
    /// Moments that a calendar excludes: no run is made for them here either.
    pub excluded: usize,
}

/// Why nothing is made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    #[error("`from` must be before `to`")]
    Backwards,
    #[error("`to` must not be later than now: what is to come is scheduled anyway")]
    Future,
    #[error("these are more than {MOST} runs: the first {MOST} of them are before {} (in milliseconds since 1970); ask for less at once", until.0)]
    TooMany { until: Timestamp },
}

/// What is in the ids of all runs of a backfill. Those of the same parameters and key have the same: what is asked for again,
/// because an answer was lost, makes no moment a second run.
pub fn tail(parameters: &BTreeMap<String, String>, key: &str) -> u64 {
    let mut text = String::new();
    let pairs = parameters.iter().flat_map(|(name, value)| [name.as_str(), value.as_str()]);
    // With their lengths, no two lists of texts read alike.
    for part in pairs.chain([key]) {
        text.push_str(&format!("{}:{part}", part.len()));
    }
    Uuid::new_v5(&Uuid::NAMESPACE_OID, text.as_bytes()).as_u64_pair().0
}

/// Whether a run that is there is the very one that a backfill asks for, whoever asked for it first.
pub fn is_same(run: &Run, asked: &NewRun) -> bool {
    run.run_id == asked.run_id
        && run.scheduled_at == asked.scheduled_at
        && run.parameters == asked.parameters
        && matches!(run.trigger, Trigger::Backfill { .. })
}

/// The moments from `from` until before `to` as runs, due now, with a [`tail`] in their ids.
pub fn plan(
    job_id: &JobId,
    moments: &impl Moments,
    (from, to): (Timestamp, Timestamp),
    now: Timestamp,
    who: &str,
    tail: u64,
) -> Result<Backfill, Refused> {
    if from >= to {
        return Err(Refused::Backwards);
    }
    if to > now {
        return Err(Refused::Future);
    }
    let mut backfill = Backfill { runs: Vec::new(), excluded: 0 };
    let mut at = Timestamp(from.0.saturating_sub(1));
    // Of what is excluded there may be as much as likes.
    for _ in 0..100 * MOST {
        let Some(next) = moments.next_after(at).filter(|next| next.at < to) else {
            return Ok(backfill);
        };
        at = next.at;
        if next.excluded.is_some() {
            backfill.excluded += 1;
            continue;
        }
        if backfill.runs.len() == MOST {
            break;
        }
        backfill.runs.push(NewRun {
            run_id: RunId::asked_for(job_id, at, tail),
            scheduled_at: at,
            due_at: now,
            trigger: Trigger::Backfill { who: who.into() },
            parameters: BTreeMap::new(),
        });
    }
    Err(Refused::TooMany { until: at })
}
