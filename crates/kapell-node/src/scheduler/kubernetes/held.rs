//! What is known of the Jobs and pods of all attempts, as the watches tell it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kapell_backend::kubernetes::{Calls, Event};
use kapell_core::kubernetes::{
    Job, JobSight, Life, Metadata, Pod, PodSight, Presence, Standing, attempt_of, is_overlooked,
    judge, life,
};
use tokio::sync::Mutex as Door;

use crate::scheduler::backend::Attempt;

/// Where a Job is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Spot {
    pub(super) cluster: Arc<str>,
    pub(super) namespace: Arc<str>,
}

/// One attempt.
#[derive(Debug, Clone)]
pub(super) struct Held {
    pub(super) spot: Spot,
    /// Of its Job.
    pub(super) name: String,
    pub(super) job: Presence<JobSight>,
    pub(super) pod: Presence<PodSight>,
    pub(super) calls: Calls,
    /// What was last told to keep it from starting.
    pub(super) hindrance: Option<String>,
    pub(super) log: Arc<Door<Log>>,
    /// Somebody follows its log, or has fetched it.
    pub(super) is_read: bool,
    /// Somebody asks for its pod.
    pub(super) is_asked_for: bool,
    /// Nobody wants it any more: it goes when the cluster has let go of it.
    pub(super) released: bool,
}

/// How much of a log is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Log {
    #[default]
    Nothing,
    All,
}

impl Held {
    pub(super) fn new(spot: Spot, name: String) -> Self {
        Self {
            spot,
            name,
            job: Presence::Unseen,
            pod: Presence::Unseen,
            calls: Calls::default(),
            hindrance: None,
            log: Arc::default(),
            is_read: false,
            is_asked_for: false,
            released: false,
        }
    }

    pub(super) fn standing(&self) -> Standing {
        judge(&self.job, &self.pod)
    }

    /// How far one of its containers is.
    pub(super) fn life(&self, container: &str) -> Life {
        life(&self.job, &self.pod, container)
    }

    /// Its pod is to be asked for.
    pub(super) fn is_overlooked(&self) -> bool {
        is_overlooked(&self.job, &self.pod)
    }

    /// Its pod runs, or may come to run.
    pub(super) fn may_run(&self) -> bool {
        let is_over = match self.standing() {
            Standing::Ended { .. } | Standing::Hopeless { .. } => true,
            Standing::Waits { .. } | Standing::Runs { .. } => false,
        };
        !is_over || matches!(&self.pod, Presence::There(pod) if pod.end.is_none() || pod.deleting)
    }

    /// Something of it was seen, if only once.
    fn is_seen(&self) -> bool {
        self.job != Presence::Unseen || self.pod != Presence::Unseen
    }

    fn is_gone(&self) -> bool {
        !self.job.is_there() && !self.pod.is_there()
    }
}

/// An object of a cluster that belongs to an attempt.
pub(super) trait Part: Sized {
    type Sight: for<'a> From<&'a Self>;

    fn metadata(&self) -> &Metadata;
    fn of(held: &mut Held) -> &mut Presence<Self::Sight>;
    /// The name of the Job.
    fn job_name(&self) -> &str;
}

impl Part for Job {
    type Sight = JobSight;

    fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    fn of(held: &mut Held) -> &mut Presence<JobSight> {
        &mut held.job
    }

    fn job_name(&self) -> &str {
        &self.metadata.name
    }
}

impl Part for Pod {
    type Sight = PodSight;

    fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    fn of(held: &mut Held) -> &mut Presence<PodSight> {
        &mut held.pod
    }

    fn job_name(&self) -> &str {
        self.metadata.labels.get("batch.kubernetes.io/job-name").map_or("", String::as_str)
    }
}

/// All attempts.
#[derive(Debug, Default)]
pub(super) struct Book {
    pub(super) all: BTreeMap<Attempt, Held>,
    /// Those that were not taken, with what it took to find out. Of them there is nothing to look for.
    pub(super) refused: BTreeMap<Attempt, Calls>,
}

impl Book {
    /// Takes in an event, and names those of whom there may be something to tell.
    pub(super) fn take<T: Part>(&mut self, spot: &Spot, event: Event<T>) -> Vec<Attempt> {
        match event {
            Event::All(items) => {
                let mut there = BTreeSet::new();
                for item in &items {
                    there.extend(self.see(spot, item));
                }
                let mut changed: Vec<Attempt> = there.iter().cloned().collect();
                for (attempt, held) in &mut self.all {
                    if held.spot == *spot && !there.contains(attempt) && T::of(held).is_there() {
                        let part = T::of(held);
                        *part = std::mem::take(part).gone();
                        changed.push(attempt.clone());
                    }
                }
                changed
            }
            Event::Seen(item) => self.see(spot, &item).into_iter().collect(),
            Event::Gone(item) => {
                let attempt = self.see(spot, &item);
                if let Some(held) = attempt.as_ref().and_then(|it| self.all.get_mut(it)) {
                    let part = T::of(held);
                    *part = std::mem::take(part).gone();
                }
                attempt.into_iter().collect()
            }
            Event::Blind(_) => Vec::new(),
        }
    }

    fn see<T: Part>(&mut self, spot: &Spot, item: &T) -> Option<Attempt> {
        let found = attempt_of(item.metadata())?;
        let attempt = Attempt { run_id: found.run_id, number: found.attempt };
        let new = || Held::new(spot.clone(), item.job_name().to_owned());
        let held = self.all.entry(attempt.clone()).or_insert_with(new);
        *T::of(held) = Presence::There(T::Sight::from(item));
        Some(attempt)
    }

    /// Takes in the pods of an attempt, as the cluster has told them to whoever asked; false if they were seen meanwhile.
    pub(super) fn found(&mut self, attempt: &Attempt, pods: &[Pod]) -> bool {
        let Some(held) = self.all.get_mut(attempt).filter(|held| held.is_overlooked()) else {
            return false;
        };
        held.pod = pods.first().map_or(Presence::Absent, |pod| Presence::There(pod.into()));
        true
    }

    /// Notes that nothing came of an attempt, unless it was seen nonetheless. False if it was.
    pub(super) fn refuse(&mut self, attempt: &Attempt) -> bool {
        if self.all.get(attempt).is_some_and(Held::is_seen) {
            return false;
        }
        let calls = self.all.remove(attempt).map(|held| held.calls).unwrap_or_default();
        self.refused.entry(attempt.clone()).or_insert(calls);
        true
    }

    /// How often a cluster was asked for something on behalf of an attempt.
    pub(super) fn calls(&self, attempt: &Attempt) -> u32 {
        let held = self.all.get(attempt).map(|held| &held.calls);
        held.or_else(|| self.refused.get(attempt)).map_or(0, Calls::count)
    }

    /// Forgets those that nobody wants and that are gone.
    pub(super) fn clear(&mut self, attempts: &[Attempt]) {
        for attempt in attempts {
            if self.all.get(attempt).is_some_and(|held| held.released && held.is_gone()) {
                self.all.remove(attempt);
            }
        }
    }
}
