//! How far a job is.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::definition::JobDefinition;
use super::figure::Figure;
use super::request::NewRun;
use crate::board::{Domain, JobId};
use crate::run::{Run, RunId};
use crate::seams::Timestamp;

/// So many moments that came to nothing are remembered, the newest.
pub const PASSED_KEPT: usize = 50;
/// So many actions of runs are remembered that were counted, the newest.
pub const TAKEN_KEPT: usize = 128;
/// So many figures a job may have.
pub const MOST_FIGURES: usize = 64;
/// Of so many revisions it is known since when they count, the newest.
pub const REVISED_KEPT: usize = 16;

/// What is noted of a job besides its definition, which is a record of its own for each revision that some run needs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    pub job_id: JobId,
    pub domain: Domain,
    /// Of the definition that counts; grows with every change of it.
    pub revision: u64,
    /// Since when changes of it count, the latest last: what was due before goes by what it began with.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub revised: Vec<Revised>,
    /// Every moment up to this one was dealt with. A run says the same of its own moment, so this one is written only
    /// for moments that came to nothing and when such a run is forgotten.
    pub mark: Timestamp,
    /// Moments that a clock which was ahead had passed over, and that come after all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub again: Option<Again>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<Pause>,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub failures_in_a_row: u32,
    /// So many moments are passed over, by `skipNextInstance`.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub skip_next: u32,
    /// Moments of runs that were made already and are passed over, by the same.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skips: Vec<Timestamp>,
    /// Actions that were counted here: one that is taken again after a crash is not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub taken: Vec<ActionId>,
    /// By the action `metric` of its runs.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub figures: BTreeMap<String, Figure>,
    /// Deleted; it is there until its last run has ended.
    #[serde(default, skip_serializing_if = "is_false")]
    pub removed: bool,
    /// With it all its runs were to end, and not only those that wait for their time.
    #[serde(default, skip_serializing_if = "is_false")]
    pub cancels_runs: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub passed: Vec<Passed>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    /// Grows with every change.
    pub version: u64,
}

/// A job that was taken back stands at its mark, whatever its runs say, until it has been through what was passed over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Again {
    /// The last moment that was passed over.
    pub until: Timestamp,
    /// Where the job stood, and stands again after that: what lies between was dealt with.
    pub resume: Timestamp,
}

impl Job {
    /// Every moment up to this one was dealt with.
    pub(super) fn reach(&mut self, to: Timestamp) {
        self.mark = self.mark.max(to);
        if let Some(again) = self.again.take_if(|again| again.until <= self.mark) {
            self.mark = self.mark.max(again.resume);
        }
    }

    /// Stands at an earlier time again, from which moments were passed over although they have yet to come. False if there
    /// are none.
    pub(super) fn take_back(&mut self, stands: Timestamp, to: Timestamp) -> bool {
        let Some(at) = self.passed.iter().position(|passed| passed.comes_after_all(to)) else {
            return false;
        };
        let passed = &mut self.passed[at];
        let mark = Timestamp(passed.from.0.saturating_sub(1)).max(to);
        self.again = Some(Again { until: passed.to, resume: stands });
        self.mark = mark;
        if passed.from <= mark {
            (passed.to, passed.count) = (mark, 0);
        } else {
            self.passed.remove(at);
        }
        true
    }

    /// Remembers moments that came to nothing, the newest. The job stood at `stands` before, and has these `runs` besides.
    pub(super) fn pass(
        &mut self,
        stands: Timestamp,
        runs: &[NewRun],
        passed: impl IntoIterator<Item = Passed>,
    ) {
        for next in passed {
            match self.passed.last_mut() {
                Some(last) if last.joins(&next) && last.to < next.from => {
                    let between =
                        |run: &NewRun| last.to < run.scheduled_at && run.scheduled_at < next.from;
                    // Who stands behind it came there by runs.
                    last.around_runs |= last.to < stands || runs.iter().any(between);
                    last.join(&next);
                }
                Some(_) | None => self.passed.push(next),
            }
        }
        let over = self.passed.len().saturating_sub(PASSED_KEPT);
        self.passed.drain(..over);
    }

    /// The same of what was planned: what an action had passed over is not passed over again.
    pub(super) fn count_passed(&mut self, stands: Timestamp, runs: &[NewRun], passed: Vec<Passed>) {
        let skipped = passed.iter().filter(|passed| passed.why == PassReason::SkippedByAction);
        let skipped = skipped.fold(0_u32, |sum, passed| sum.saturating_add(passed.count));
        self.skip_next = self.skip_next.saturating_sub(skipped);
        self.pass(stands, runs, passed);
    }

    /// Whether a run that was made is passed over.
    pub fn skips(&self, run: &Run) -> bool {
        run.trigger.is_of_schedule() && self.skips.contains(&run.scheduled_at)
    }

    /// A run has ended. If it was to be passed over and had begun all the same, the next one is instead.
    pub(super) fn skipped(&mut self, run: &Run) -> bool {
        if !self.skips(run) {
            return false;
        }
        self.skips.retain(|at| *at != run.scheduled_at);
        let has_begun = !run.skipped && run.started_at.is_some();
        self.skip_next = self.skip_next.saturating_add(u32::from(has_begun));
        true
    }

    /// Whether an action has not been counted yet; from now on it has.
    pub(super) fn counts(&mut self, action: ActionId) -> bool {
        if self.taken.contains(&action) {
            return false;
        }
        self.taken.push(action);
        let over = self.taken.len().saturating_sub(TAKEN_KEPT);
        self.taken.drain(..over);
        true
    }

    /// A change counts from now on.
    pub(super) fn revise(&mut self, revision: u64, at: Timestamp) {
        self.revision = revision;
        self.revised.push(Revised { revision, at });
        let over = self.revised.len().saturating_sub(REVISED_KEPT);
        self.revised.drain(..over);
    }

    /// The revision that a run goes by whose time has come: the latest that counted then, and none before the one that it
    /// was made by.
    pub fn revision_of(&self, run: &Run) -> u64 {
        let counted = self.revised.iter().rfind(|it| it.at <= run.due_at);
        counted.map_or(run.revision, |it| it.revision.max(run.revision))
    }
}

/// Since when a revision counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Revised {
    pub revision: u64,
    pub at: Timestamp,
}

/// Names what one action did for one attempt of a run: the same whenever it is done again, after a crash too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ActionId(pub u128);

impl fmt::Display for ActionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl Serialize for ActionId {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ActionId {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        let id = u128::from_str_radix(&text, 16).map(Self);
        id.map_err(|_| D::Error::custom("the id of an action has 32 hexadecimal digits"))
    }
}

/// What a job is by one of its revisions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Definition {
    pub revision: u64,
    pub definition: Arc<JobDefinition>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pause {
    pub at: Timestamp,
    pub cause: PauseCause,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PauseCause {
    Person { who: String },
    Failures { run_id: RunId },
}

/// A moment, or several in a row, that no run was made for. Of very many not all are counted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Passed {
    pub from: Timestamp,
    pub to: Timestamp,
    pub count: u32,
    /// Moments between them had runs.
    #[serde(default, skip_serializing_if = "is_false")]
    pub around_runs: bool,
    pub why: PassReason,
}

impl Passed {
    pub const fn new(from: Timestamp, to: Timestamp, count: u32, why: PassReason) -> Self {
        Self { from, to, count, around_runs: false, why }
    }

    /// Whether a job goes back for it when the clock says `now`, before its end. Not if there were runs between: which
    /// moments they had nobody can say once they are forgotten, and none is run twice.
    pub const fn comes_after_all(&self, now: Timestamp) -> bool {
        now.0 < self.to.0 && !self.around_runs
    }

    /// Whether it and a later one came to nothing for the same reason.
    pub(super) fn joins(&self, later: &Self) -> bool {
        match (&self.why, &later.why) {
            (
                PassReason::DeadlineMissed { deadline_ms: one, .. },
                PassReason::DeadlineMissed { deadline_ms: other, .. },
            ) => one == other,
            (one, other) => one == other,
        }
    }

    /// Takes in a later one; what is said of both is said of the first.
    pub(super) const fn join(&mut self, later: &Self) {
        self.to = later.to;
        self.around_runs |= later.around_runs;
        self.count = self.count.saturating_add(later.count);
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "reason")]
pub enum PassReason {
    Suspended {
        note: String,
    },
    Paused {
        note: String,
    },
    Excluded {
        calendar: String,
    },
    /// Nobody could run it in time, and `catch_up` does not make up for it.
    NotCaughtUp {
        policy: String,
    },
    /// Older than the window of `catch_up`.
    TooOld {
        window_ms: u64,
    },
    /// Later than `starting_deadline` allows.
    DeadlineMissed {
        late_ms: u64,
        deadline_ms: u64,
    },
    /// `skipNextInstance`
    SkippedByAction,
    /// A moment that a clock change maps to the instant of another.
    SameInstant,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands out references")]
const fn is_zero(count: &u32) -> bool {
    *count == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands out references")]
const fn is_false(flag: &bool) -> bool {
    !*flag
}
