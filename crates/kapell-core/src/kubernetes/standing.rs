//! How the work of a run stands, by what is seen of its Job and its pod.

use super::reason::{Failure, Reason};
use super::sight::{JobSight, Lasts, Life, PodEnd, PodSight, Stopped, Verdict};
use crate::seams::Timestamp;

/// What is known of an object.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Presence<T> {
    #[default]
    Unseen,
    There(T),
    /// As it was last seen.
    Gone(T),
    /// It was asked for, and is not there. Nothing was ever seen of it.
    Absent,
}

impl<T> Presence<T> {
    pub const fn last(&self) -> Option<&T> {
        match self {
            Self::Unseen | Self::Absent => None,
            Self::There(it) | Self::Gone(it) => Some(it),
        }
    }

    pub const fn is_there(&self) -> bool {
        matches!(self, Self::There(_))
    }

    #[must_use]
    pub fn gone(self) -> Self {
        match self {
            Self::There(it) | Self::Gone(it) => Self::Gone(it),
            Self::Unseen => Self::Unseen,
            Self::Absent => Self::Absent,
        }
    }
}

/// How the work stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// It has not started yet.
    Waits {
        hindrance: Option<Failure>,
    },
    Runs {
        since: Timestamp,
    },
    /// It has not run and never will.
    Hopeless {
        why: Failure,
    },
    Ended {
        began: Option<Timestamp>,
        at: Option<Timestamp>,
        exit_code: Option<i32>,
        failure: Option<Failure>,
    },
}

/// Whether its containers write no more.
pub fn is_silent(job: &Presence<JobSight>, pod: &Presence<PodSight>) -> bool {
    match pod {
        Presence::There(pod) => pod.end.is_some(),
        Presence::Gone(_) | Presence::Absent => true,
        Presence::Unseen => {
            !is_overlooked(job, pod) && job.last().is_some_and(|job| job.verdict.is_some())
        }
    }
}

/// How far a container is that goes by this name. What became of the whole pod counts for each of them.
pub fn life(job: &Presence<JobSight>, pod: &Presence<PodSight>, container: &str) -> Life {
    if is_silent(job, pod) {
        return Life::Over;
    }
    let mut all = pod.last().into_iter().flat_map(|pod| &pod.containers);
    all.find(|it| *it.name == *container).map_or(Life::Waits, |it| it.life)
}

/// Whether the pod has to be asked for: its Job is over and nothing was seen of it. Jobs and pods are watched apart, so it may
/// just not have been told of yet, and all that it wrote would be passed over.
pub fn is_overlooked(job: &Presence<JobSight>, pod: &Presence<PodSight>) -> bool {
    let is_over = |job: &JobSight| job.verdict.is_some() && job.stopped.is_none();
    matches!(pod, Presence::Unseen) && job.last().is_some_and(is_over)
}

/// Decides by both together: an end that somebody brought about has its reason from the Job.
pub fn judge(job: &Presence<JobSight>, pod: &Presence<PodSight>) -> Standing {
    if is_overlooked(job, pod) {
        return Standing::Waits { hindrance: None };
    }
    let Some(seen) = pod.last() else { return without_pod(job) };
    let Some(end) = &seen.end else { return unfinished(job, pod, seen) };
    let deleted = seen.deleting || !pod.is_there();
    let PodEnd { at, exit_code, failure, ran } = end.clone();
    // Whoever deletes a pod ends it: why is known once the Job says what became of it.
    let failure = match failure.filter(|it| deleted && by_deletion(it.reason)) {
        None => end.failure.clone(),
        Some(_) => match ended_by(job) {
            Some(why) => Some(why),
            None => return unfinished(job, &Presence::There(seen.clone()), seen),
        },
    };
    match failure {
        Some(why) if !ran => Standing::Hopeless { why },
        failure => Standing::Ended { began: seen.started, at, exit_code, failure },
    }
}

/// Whether the end of a pod that is being deleted may be because of that.
const fn by_deletion(reason: Reason) -> bool {
    match reason {
        Reason::Exit | Reason::Init | Reason::Beside | Reason::Unknown => true,
        Reason::OutOfMemory
        | Reason::CannotRun
        | Reason::Evicted
        | Reason::Preempted
        | Reason::Node
        | Reason::Image
        | Reason::Needs
        | Reason::Unschedulable
        | Reason::Deadline
        | Reason::PodDeleted
        | Reason::JobDeleted
        | Reason::Stopped => false,
    }
}

/// Who ended a pod that was deleted; none while that cannot be said.
fn ended_by(job: &Presence<JobSight>) -> Option<Failure> {
    let Some(sight) = job.last() else {
        return Some(Failure::new(Reason::PodDeleted, "by somebody else"));
    };
    if sight.stopped.is_some() {
        return Some(Failure::new(Reason::Stopped, ""));
    }
    match &sight.verdict {
        Some(Verdict::Failed { reason, message, .. }) if reason == "DeadlineExceeded" => {
            Some(Failure::new(Reason::Deadline, message.trim()))
        }
        _ if sight.deleting || !job.is_there() => {
            Some(Failure::new(Reason::JobDeleted, "by somebody else"))
        }
        Some(_) => Some(Failure::new(Reason::PodDeleted, "by somebody else")),
        None => None,
    }
}

fn unfinished(job: &Presence<JobSight>, pod: &Presence<PodSight>, seen: &PodSight) -> Standing {
    if !pod.is_there() {
        let Some(why) = ended_by(job) else { return waits(seen) };
        return match seen.started {
            None => Standing::Hopeless { why },
            Some(began) => Standing::Ended {
                began: Some(began),
                at: None,
                exit_code: None,
                failure: Some(why),
            },
        };
    }
    waits(seen)
}

fn waits(seen: &PodSight) -> Standing {
    match (seen.started, &seen.hindrance) {
        (Some(since), _) => Standing::Runs { since },
        (None, Some((why, Lasts::ForEver))) => Standing::Hopeless { why: why.clone() },
        (None, Some((why, Lasts::ForNow))) => Standing::Waits { hindrance: Some(why.clone()) },
        (None, None) => Standing::Waits { hindrance: None },
    }
}

fn without_pod(job: &Presence<JobSight>) -> Standing {
    let Some(sight) = job.last() else { return Standing::Waits { hindrance: None } };
    match &sight.verdict {
        Some(Verdict::Complete { at }) => {
            return Standing::Ended { began: None, at: *at, exit_code: Some(0), failure: None };
        }
        Some(Verdict::Failed { reason, message, at }) if sight.stopped.is_none() => {
            let reason =
                if reason == "DeadlineExceeded" { Reason::Deadline } else { Reason::Unknown };
            let text = format!("{}; its pod is gone", message.trim());
            let failure = Some(Failure::new(reason, text));
            return Standing::Ended { began: None, at: *at, exit_code: None, failure };
        }
        Some(Verdict::Failed { .. }) | None => {}
    }
    let is_over = sight.suspended || sight.verdict.is_some() || !job.is_there();
    if let Some(stopped) = sight.stopped.filter(|_| is_over) {
        let why = Failure::new(Reason::Stopped, "");
        return match stopped {
            Stopped::BeforeItRan => Standing::Hopeless { why },
            Stopped::WhileItRan => {
                Standing::Ended { began: None, at: None, exit_code: None, failure: Some(why) }
            }
        };
    }
    if !job.is_there() {
        return Standing::Hopeless { why: Failure::new(Reason::JobDeleted, "by somebody else") };
    }
    Standing::Waits { hindrance: None }
}
