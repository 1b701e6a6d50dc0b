//! Who may go: runs that would be too many of their job or their group at once.
//!
//! The scheduler keeps one [`Places`] for all jobs. A run holds its place from its admission until it ends. Who waits goes
//! in the order of due times: the first of those whose job and group both have room. Since a run needs both only at the
//! same time and holds neither while it waits, nobody waits for somebody who waits, and nobody is passed over for ever.

use std::collections::{BTreeMap, BTreeSet};

use rustc_hash::FxHashMap;

use super::definition::{Group, JobDefinition, Overlap};
use super::holders::Holders;
use crate::board::{Domain, GroupName, JobId};
use crate::run::{RunId, StopKind};
use crate::seams::Timestamp;

/// So many runs of a job may wait for their turn. Those that make up for moments are not counted out: each is wanted.
pub const MOST_WAITING: usize = 1_000;

/// What a job says about runs at the same time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Terms {
    pub domain: Domain,
    pub overlap: Overlap,
    pub max_concurrent_runs: u32,
    pub group: Option<Group>,
}

impl Terms {
    pub fn of(definition: &JobDefinition) -> Self {
        Self {
            domain: definition.domain.clone(),
            overlap: definition.overlap,
            max_concurrent_runs: definition.max_concurrent_runs,
            group: definition.group.clone(),
        }
    }

    /// The group in which it takes turns.
    fn turns(&self) -> Option<GroupKey> {
        self.group.as_ref().map(|group| (self.domain.clone(), group.name.clone()))
    }

    /// Without it, as many as like.
    fn limit(&self) -> Option<usize> {
        match self.overlap {
            Overlap::Allow => None,
            Overlap::Skip
            | Overlap::Queue
            | Overlap::QueueOne
            | Overlap::CancelOther
            | Overlap::TerminateOther => Some(at_least_one(self.max_concurrent_runs)),
        }
    }
}

fn at_least_one(limit: u32) -> usize {
    usize::try_from(limit).unwrap_or(usize::MAX).max(1)
}

/// What becomes of a run. Each has its reason, which names the run that is in the way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    Admit {
        run: RunId,
    },
    Wait {
        run: RunId,
        behind: RunId,
        why: String,
    },
    /// It ends without having done anything.
    TurnAway {
        run: RunId,
        behind: RunId,
        why: String,
    },
    /// It holds a place that another one is to have.
    Stop {
        run: RunId,
        kind: StopKind,
        why: String,
    },
}

/// A group is one of its domain: what others call theirs is another.
type GroupKey = (Domain, GroupName);

/// Who waits: the earliest due first.
type Turn = (Timestamp, RunId);

#[derive(Debug, Clone)]
struct JobPlaces {
    terms: Terms,
    holders: Holders,
    waiting: BTreeSet<Turn>,
    /// Those that were told to stop: another one waits for their places.
    stopping: BTreeSet<RunId>,
    /// What its group has of it among those that could go.
    listed: Option<Turn>,
}

#[derive(Debug, Clone, Default)]
struct GroupPlaces {
    /// What each of its jobs says.
    limits: BTreeMap<JobId, u32>,
    holders: BTreeSet<RunId>,
    /// The first of each job that has room itself.
    ready: BTreeSet<Turn>,
}

impl GroupPlaces {
    fn limit(&self) -> usize {
        self.limits.values().min().map_or(1, |limit| at_least_one(*limit))
    }

    fn is_full(&self) -> bool {
        self.holders.len() >= self.limit()
    }

    fn is_empty(&self) -> bool {
        self.limits.is_empty() && self.holders.is_empty()
    }
}

impl JobPlaces {
    fn is_full(&self) -> bool {
        self.terms.limit().is_some_and(|limit| self.holders.len() >= limit)
    }

    /// Whether whoever asks may go, whatever `overlap` says: nobody waits, and nobody else has a say.
    fn has_room_for_anyone(&self) -> bool {
        self.terms.group.is_none() && self.waiting.is_empty() && !self.is_full()
    }

    /// Whether a run has its place, or may have it without anything to decide.
    fn takes_at_once(&mut self, run: &RunId) -> bool {
        if self.holders.contains(run) {
            return true;
        }
        let has_room = self.has_room_for_anyone();
        if has_room {
            self.holders.insert(run.clone());
        }
        has_room
    }
}

/// All places: who holds one and who waits for one.
#[derive(Debug, Clone, Default)]
pub struct Places {
    /// Nothing is decided by their order.
    jobs: FxHashMap<JobId, JobPlaces>,
    groups: BTreeMap<GroupKey, GroupPlaces>,
    /// The group in which a run holds its place, whatever its job says meanwhile.
    held_in: BTreeMap<RunId, GroupKey>,
}

impl Places {
    /// A job is there, or has changed: who waits may go, and nobody loses a place.
    pub fn update(&mut self, job: &JobId, terms: Terms) -> Vec<Decision> {
        let former = self.leave_group(job);
        let (group, limit) = (terms.turns(), terms.group.as_ref().map_or(1, |group| group.limit));
        match self.jobs.get_mut(job) {
            Some(places) => places.terms = terms,
            None => {
                let (holders, waiting, stopping) = Default::default();
                self.jobs.insert(
                    job.clone(),
                    JobPlaces { terms, holders, waiting, stopping, listed: None },
                );
            }
        }
        if let Some(group) = &group {
            self.groups.entry(group.clone()).or_default().limits.insert(job.clone(), limit);
        }
        let mut decisions = self.settle(job);
        // Those of the others may go that it held back there.
        if let Some(former) = former.filter(|former| group.is_none_or(|group| group != *former)) {
            decisions.extend(self.settle_group(&former));
        }
        decisions
    }

    /// A job is gone, and so are its runs.
    pub fn forget(&mut self, job: &JobId) -> Vec<Decision> {
        let Some(places) = self.jobs.get_mut(job) else { return Vec::new() };
        places.waiting.clear();
        let holders: Vec<RunId> = places.holders.iter().cloned().collect();
        let mut decisions = Vec::new();
        for run in holders {
            decisions.extend(self.ended(&run));
        }
        let group = self.leave_group(job);
        self.jobs.remove(job);
        decisions.extend(group.into_iter().flat_map(|group| self.settle_group(&group)));
        decisions
    }

    /// A run that holds its place since before this leader: in the group that is in its own terms, whatever its job says
    /// meanwhile.
    pub fn hold(&mut self, run: &RunId, terms: &Terms) {
        let Some(places) = self.jobs.get_mut(run.job()) else { return };
        places.holders.insert(run.clone());
        if let Some(group) = terms.turns() {
            self.held_in.insert(run.clone(), group.clone());
            self.groups.entry(group).or_default().holders.insert(run.clone());
        }
        let job = run.job_id();
        self.list(&job);
    }

    /// Whether a run that was due before this leader may have been waiting for its turn: somebody holds what it needs, and it
    /// would not have been turned away.
    pub fn may_have_waited(&self, run: &RunId) -> bool {
        let Some(places) = self.jobs.get(run.job()) else { return false };
        let group = places.terms.turns().and_then(|group| self.groups.get(&group));
        if places.is_full() {
            return match places.terms.overlap {
                Overlap::Skip | Overlap::Allow => false,
                Overlap::Queue
                | Overlap::QueueOne
                | Overlap::CancelOther
                | Overlap::TerminateOther => true,
            };
        }
        group.is_some_and(GroupPlaces::is_full)
    }

    /// A run that holds a place was told to end, by this leader or the one before: its place is as good as free.
    pub fn leaves(&mut self, run: &RunId) {
        if let Some(places) = self.jobs.get_mut(&run.job_id())
            && places.holders.contains(run)
        {
            places.stopping.insert(run.clone());
        }
    }

    /// A run is due, and nobody is in its way: it has its place. Otherwise it is to ask.
    pub fn takes_at_once(&mut self, run: &RunId) -> bool {
        self.jobs.get_mut(run.job()).is_some_and(|places| places.takes_at_once(run))
    }

    /// A run is due. Of the runs that had to go for it, and of itself, the answer says what becomes.
    pub fn ask(&mut self, run: &RunId, due_at: Timestamp) -> Vec<Decision> {
        self.enter(run, due_at, false)
    }

    /// The same for a run that makes up for a moment, by a backfill or because nobody led. All of them are due at once and
    /// each is wanted, so it waits for its turn whatever `overlap` says, and nobody has to go for it.
    pub fn ask_in_turn(&mut self, run: &RunId, due_at: Timestamp) -> Vec<Decision> {
        self.enter(run, due_at, true)
    }

    fn enter(&mut self, run: &RunId, due_at: Timestamp, in_turn: bool) -> Vec<Decision> {
        let Some(places) = self.jobs.get_mut(run.job()) else { return Vec::new() };
        if places.takes_at_once(run) {
            return vec![Decision::Admit { run: run.clone() }];
        }
        let job = run.job_id();
        let turn = (due_at, run.clone());
        if places.waiting.contains(&turn) {
            return Vec::new();
        }
        let mut decisions = Vec::new();
        if !in_turn {
            if let Some(refused) = self.refusal(&job, run).or_else(|| self.overflow(&job, run)) {
                return vec![refused];
            }
            decisions = self.make_way(&job, run);
        }
        if let Some(places) = self.jobs.get_mut(&job) {
            places.waiting.insert(turn);
        }
        decisions.extend(self.settle(&job));
        let goes = decisions
            .iter()
            .any(|made| matches!(made, Decision::Admit { run: admitted } if admitted == run));
        if !goes {
            decisions.extend(self.wait(&job, run));
        }
        decisions
    }

    /// A run has ended, or waits no more.
    pub fn ended(&mut self, run: &RunId) -> Vec<Decision> {
        if let Some(places) = self.jobs.get_mut(run.job()) {
            places.stopping.remove(run);
            if !places.holders.remove(run) {
                places.waiting.retain(|(_, waits)| waits != run);
            }
            let is_alone = places.waiting.is_empty() && places.terms.group.is_none();
            if is_alone && !self.held_in.contains_key(run) {
                return Vec::new();
            }
        }
        let job = run.job_id();
        let held_in = self.held_in.remove(run);
        if let Some(group) = held_in.as_ref().and_then(|name| self.groups.get_mut(name)) {
            group.holders.remove(run);
        }
        let mut decisions = self.settle(&job);
        decisions.extend(held_in.into_iter().flat_map(|group| self.settle_group(&group)));
        decisions
    }

    /// How many runs of the same job hold a place or wait for one.
    pub fn beside(&self, run: &RunId) -> usize {
        self.jobs.get(run.job()).map_or(0, |places| places.holders.len() + places.waiting.len())
    }

    pub fn holds(&self, run: &RunId) -> bool {
        self.jobs.get(run.job()).is_some_and(|places| places.holders.contains(run))
    }

    /// How many hold a place, and how many wait.
    pub fn count(&self) -> (usize, usize) {
        let sum = |sum: (usize, usize), it: &JobPlaces| {
            (sum.0 + it.holders.len(), sum.1 + it.waiting.len())
        };
        self.jobs.values().fold((0, 0), sum)
    }
}

/// What `overlap` says.
impl Places {
    /// Whether a run is one too many and may not wait.
    fn refusal(&self, job: &JobId, run: &RunId) -> Option<Decision> {
        let places = self.jobs.get(job)?;
        let limit = places.terms.limit()?;
        let first_waiting = places.waiting.first().map(|(_, run)| run);
        let turn_away = |behind: &RunId, why: String| {
            Some(Decision::TurnAway { run: run.clone(), behind: behind.clone(), why })
        };
        match places.terms.overlap {
            Overlap::Skip if places.holders.len() + places.waiting.len() >= limit => {
                let behind = places.holders.first().or(first_waiting)?;
                let verb =
                    if places.holders.is_empty() { "waits for its group" } else { "is under way" };
                turn_away(
                    behind,
                    format!("run `{behind}` {verb}, and at most {limit} may be (overlap: skip)"),
                )
            }
            Overlap::QueueOne => {
                let behind = first_waiting?;
                turn_away(
                    behind,
                    format!("run `{behind}` waits already, and one may (overlap: queue_one)"),
                )
            }
            Overlap::Allow
            | Overlap::Skip
            | Overlap::Queue
            | Overlap::CancelOther
            | Overlap::TerminateOther => None,
        }
    }

    /// Whether too many of its job wait: a job that falls behind for ever does not take all the memory there is.
    fn overflow(&self, job: &JobId, run: &RunId) -> Option<Decision> {
        let JobPlaces { terms, waiting, .. } = self.jobs.get(job)?;
        match terms.overlap {
            Overlap::Queue | Overlap::Allow => {}
            // Of these no more wait than may run.
            Overlap::Skip | Overlap::QueueOne | Overlap::CancelOther | Overlap::TerminateOther => {
                return None;
            }
        }
        let (_, behind) = waiting.first().filter(|_| waiting.len() >= MOST_WAITING)?;
        let (run, behind) = (run.clone(), behind.clone());
        let why =
            format!("{MOST_WAITING} runs of job `{job}` wait already, the first is `{behind}`");
        Some(Decision::TurnAway { run, behind, why })
    }

    /// Has others of the job go, if that is what it says.
    fn make_way(&mut self, job: &JobId, run: &RunId) -> Vec<Decision> {
        let Some(places) = self.jobs.get_mut(job) else { return Vec::new() };
        let (kind, name) = match places.terms.overlap {
            Overlap::Allow | Overlap::Skip | Overlap::Queue | Overlap::QueueOne => {
                return Vec::new();
            }
            Overlap::CancelOther => (StopKind::Graceful, "cancel_other"),
            Overlap::TerminateOther => (StopKind::AtOnce, "terminate_other"),
        };
        let limit = places.terms.limit().unwrap_or(usize::MAX);
        let mut decisions = Vec::new();
        // Those that wait for the same are replaced first: they have not begun.
        while places.waiting.len() >= limit {
            let Some((_, waits)) = places.waiting.pop_first() else { break };
            let why = format!("run `{run}` is to run instead (overlap: {name})");
            decisions.push(Decision::TurnAway { run: waits, behind: run.clone(), why });
        }
        let wanted = (places.holders.len() + places.waiting.len() + 1).saturating_sub(limit);
        let more = wanted.saturating_sub(places.stopping.len());
        let stays = |run: &&RunId| !places.stopping.contains(*run);
        let holders = places.holders.iter().filter(stays).take(more);
        for holder in holders.cloned().collect::<Vec<_>>() {
            let why = format!("run `{run}` is to run instead (overlap: {name})");
            places.stopping.insert(holder.clone());
            decisions.push(Decision::Stop { run: holder, kind, why });
        }
        decisions
    }

    /// What a run that waits is behind.
    fn wait(&self, job: &JobId, run: &RunId) -> Option<Decision> {
        let places = self.jobs.get(job)?;
        let wait = |behind: &RunId, why: String| Decision::Wait {
            run: run.clone(),
            behind: behind.clone(),
            why,
        };
        if places.is_full() {
            let behind = places.holders.first()?;
            let limit = places.terms.limit().unwrap_or(usize::MAX);
            return Some(wait(
                behind,
                format!("run `{behind}` is under way, and at most {limit} of job `{job}` may be"),
            ));
        }
        let group = places.terms.turns()?;
        let (name, places) = (&group.1, self.groups.get(&group)?);
        let behind = places.holders.first()?;
        let limit = places.limit();
        Some(wait(
            behind,
            format!("run `{behind}` is under way, and at most {limit} of group `{name}` may be"),
        ))
    }
}

/// Who goes next.
impl Places {
    /// Admits those of a job that may go.
    fn settle(&mut self, job: &JobId) -> Vec<Decision> {
        let Some(places) = self.jobs.get_mut(job) else { return Vec::new() };
        if let Some(group) = places.terms.turns() {
            self.list(job);
            return self.settle_group(&group);
        }
        let mut decisions = Vec::new();
        while !places.is_full() {
            let Some((_, run)) = places.waiting.pop_first() else { break };
            places.holders.insert(run.clone());
            decisions.push(Decision::Admit { run });
        }
        decisions
    }

    fn settle_group(&mut self, name: &GroupKey) -> Vec<Decision> {
        let mut decisions = Vec::new();
        while let Some(group) = self.groups.get_mut(name).filter(|group| !group.is_full()) {
            let Some((due_at, run)) = group.ready.pop_first() else { break };
            let job = run.job_id();
            group.holders.insert(run.clone());
            self.held_in.insert(run.clone(), name.clone());
            if let Some(places) = self.jobs.get_mut(&job) {
                places.listed = None;
                places.waiting.remove(&(due_at, run.clone()));
                places.holders.insert(run.clone());
            }
            self.list(&job);
            decisions.push(Decision::Admit { run });
        }
        if self.groups.get(name).is_some_and(GroupPlaces::is_empty) {
            self.groups.remove(name);
        }
        decisions
    }

    /// Tells the group of a job which of its runs could go, if one could.
    fn list(&mut self, job: &JobId) {
        let Some(places) = self.jobs.get_mut(job) else { return };
        let Some(group) = places.terms.turns() else { return };
        let first = places.waiting.first().filter(|_| !places.is_full()).cloned();
        if first == places.listed {
            return;
        }
        let group = self.groups.entry(group).or_default();
        if let Some(former) = &places.listed {
            group.ready.remove(former);
        }
        group.ready.extend(first.clone());
        places.listed = first;
    }

    /// A job has no say in its group any more; the group, if there is one, is to be settled.
    fn leave_group(&mut self, job: &JobId) -> Option<GroupKey> {
        let places = self.jobs.get_mut(job)?;
        let listed = places.listed.take();
        let name = places.terms.turns()?;
        let group = self.groups.get_mut(&name)?;
        group.limits.remove(job);
        if let Some(listed) = listed {
            group.ready.remove(&listed);
        }
        Some(name)
    }
}
