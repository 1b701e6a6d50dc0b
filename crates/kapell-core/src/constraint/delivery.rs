//! When a message is sent again, and when not.

use std::time::Duration;

use crate::seams::Timestamp;

/// The wait after the first call that failed; each further one is twice as long, up to the longest.
const FIRST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(300);
/// Whoever asks us to come back later than this is not called any more.
const LATEST: Duration = Duration::from_secs(3_600);

/// How one call ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    Status {
        status: u16,
        /// After which time it wants to be asked again.
        retry_after: Option<Duration>,
    },
    /// None came. It may have been called.
    None(String),
    /// It may not be called: trying again does not help.
    Refused(String),
}

/// What follows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    Delivered,
    Again { after: Duration, why: String },
    GivenUp { why: String },
}

/// Decides after the `attempt`th call, counted from 1. `drawn` is chance, of which only as much is taken as spreads
/// calls.
pub fn next(answer: &Answer, attempt: u32, most: u32, drawn: u64) -> Next {
    let why = match answer {
        Answer::Status { status: 200..=299, .. } => return Next::Delivered,
        Answer::Refused(why) => return Next::GivenUp { why: why.clone() },
        Answer::Status { status, .. } if !passes(*status) => {
            return Next::GivenUp { why: format!("the answer was {status}") };
        }
        Answer::Status { status, .. } => format!("the answer was {status}"),
        Answer::None(why) => why.clone(),
    };
    if attempt >= most {
        return Next::GivenUp { why: format!("{why} (after {attempt} calls)") };
    }
    let wanted = match answer {
        Answer::Status { status: 429 | 503, retry_after } => *retry_after,
        Answer::Status { .. } | Answer::None(_) | Answer::Refused(_) => None,
    };
    match wanted {
        Some(wanted) if wanted > LATEST => Next::GivenUp {
            why: format!("{why}, and it wants to be asked again in {}s", wanted.as_secs()),
        },
        wanted => {
            Next::Again { after: backoff(attempt, drawn).max(wanted.unwrap_or_default()), why }
        }
    }
}

/// Whether the same call may go better later.
const fn passes(status: u16) -> bool {
    matches!(status, 408 | 425 | 429 | 500..=599)
}

/// Between half of the full wait and all of it.
fn backoff(attempt: u32, drawn: u64) -> Duration {
    let full = FIRST.saturating_mul(1 << attempt.saturating_sub(1).min(16)).min(LONGEST);
    let half = u64::try_from(full.as_millis() / 2).unwrap_or(u64::MAX);
    Duration::from_millis(half + drawn % half.saturating_add(1).max(1))
}

/// The three forms that a date of HTTP may have, the usual one first.
const DATES: [&str; 3] =
    ["%a, %d %b %Y %H:%M:%S GMT", "%A, %d-%b-%y %H:%M:%S GMT", "%a %b %e %H:%M:%S %Y"];

/// How long to wait by `Retry-After`: `120` seconds, or until a date. What is neither is not waited for.
pub fn retry_after(header: &str, now: Timestamp) -> Option<Duration> {
    let header = header.trim();
    let digits =
        !header.is_empty() && header.len() <= 9 && header.bytes().all(|b| b.is_ascii_digit());
    if digits {
        return header.parse().ok().map(Duration::from_secs);
    }
    http_date(header).map(|at| at.since(now))
}

/// A date as headers say it.
pub fn http_date(text: &str) -> Option<Timestamp> {
    let read = |form: &&str| jiff::fmt::strtime::parse(form, text).ok()?.to_datetime().ok();
    let civil = DATES.iter().find_map(read)?;
    let at = jiff::tz::TimeZone::UTC.to_timestamp(civil).ok()?;
    Some(Timestamp(at.as_millisecond()))
}
