//! Where the records of a shard are found other than by their keys.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use super::actual::{ActualLrp, ActualState, LrpKey};
use super::crash;
use super::desired::DesiredLrp;
use super::domain::Freshness;
use super::ids::{CellId, Domain, JobId, ProcessGuid, TaskGuid};
use super::job_index::JobIndex;
use super::settings::Settings;
use super::task::{Task, TaskState};
use crate::seams::Timestamp;

/// Follows every change of the records, one after the other.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Index {
    cells: BTreeMap<CellId, OnCell>,
    domains: BTreeMap<Domain, InDomain>,
    /// All instances but those that run: nearly all do, so a list of them would save nobody a look.
    states: [BTreeSet<LrpKey>; ActualState::ALL.len()],
    counts: [usize; ActualState::ALL.len()],
    tasks: [BTreeSet<TaskGuid>; TaskState::ALL.len()],
    due: Due,
    pub(super) jobs: JobIndex,
}

/// What names a cell.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct OnCell {
    pub(super) instances: Sorted<LrpKey>,
    pub(super) evacuating: Sorted<LrpKey>,
    pub(super) tasks: Sorted<TaskGuid>,
}

/// What names a domain.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct InDomain {
    /// With how many records each: what is desired, its instances and their twins.
    pub(super) processes: BTreeMap<ProcessGuid, u32>,
    pub(super) tasks: BTreeSet<TaskGuid>,
    /// With how many records each: the job and its runs.
    pub(super) jobs: BTreeMap<JobId, u32>,
}

/// When something becomes due.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Due {
    /// How long a crashed instance waits depends on its crashes and on settings that are not
    /// known here: within a number of crashes all wait for equally long.
    crashed: BTreeMap<u32, BTreeSet<(Timestamp, LrpKey)>>,
    twins: BTreeSet<(Timestamp, LrpKey)>,
    domains: BTreeSet<(Timestamp, Domain)>,
}

/// A set that takes no more room than it has members. A cell names few records of a shard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Sorted<K>(Vec<K>);

impl<K> Default for Sorted<K> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<K: Ord> Sorted<K> {
    fn insert(&mut self, key: K) {
        if let Err(place) = self.0.binary_search(&key) {
            self.0.insert(place, key);
        }
    }

    fn remove(&mut self, key: &K) {
        if let Ok(place) = self.0.binary_search(key) {
            self.0.remove(place);
        }
    }

    pub(super) const fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn iter(&self) -> std::slice::Iter<'_, K> {
        self.0.iter()
    }
}

impl OnCell {
    fn is_empty(&self) -> bool {
        self.instances.0.is_empty() && self.evacuating.0.is_empty() && self.tasks.0.is_empty()
    }
}

impl InDomain {
    fn is_empty(&self) -> bool {
        self.processes.is_empty() && self.tasks.is_empty() && self.jobs.is_empty()
    }
}

/// How the records are asked for.
impl Index {
    pub(super) fn cells(&self) -> impl Iterator<Item = &CellId> {
        self.cells.keys()
    }

    pub(super) fn on_cell(&self, cell_id: &CellId) -> Option<&OnCell> {
        self.cells.get(cell_id)
    }

    pub(super) fn in_domain(&self, domain: &Domain) -> Option<&InDomain> {
        self.domains.get(domain)
    }

    /// Empty for RUNNING.
    pub(super) const fn as_state(&self, state: ActualState) -> &BTreeSet<LrpKey> {
        &self.states[state as usize]
    }

    pub(super) const fn count(&self, state: ActualState) -> usize {
        self.counts[state as usize]
    }

    pub(super) const fn tasks_as(&self, state: TaskState) -> &BTreeSet<TaskGuid> {
        &self.tasks[state as usize]
    }

    /// The name of the cell or the domain as others have it, to be shared with them.
    pub(super) fn shared(&self, lrp: &mut ActualLrp) {
        if let Some((known, _)) = self.domains.get_key_value(&lrp.domain) {
            lrp.domain = known.clone();
        }
        let cell = lrp.cell_id.as_ref().and_then(|cell| self.cells.get_key_value(cell));
        if let Some((known, _)) = cell {
            lrp.cell_id = Some(known.clone());
        }
    }

    /// The earliest moment after `now` at which a crashed instance that is wanted may be
    /// restarted, or an evacuating twin or a domain expires.
    pub(super) fn next_due(
        &self,
        now: Timestamp,
        settings: &Settings,
        is_wanted: impl Fn(&LrpKey) -> bool,
    ) -> Option<Timestamp> {
        let due = &self.due;
        let least = LrpKey { process_guid: "".into(), index: 0 };
        let restart = |(count, waiting): (&u32, &BTreeSet<(Timestamp, LrpKey)>)| {
            let wait = crash::wait_after(*count, settings)?;
            let from = (now.before(wait).next(), least.clone());
            let mut later = waiting.range((Bound::Included(from), Bound::Unbounded));
            later.find(|(_, key)| is_wanted(key)).map(|(since, _)| since.after(wait))
        };
        let from = now.next();
        let twin = due.twins.range((Bound::Included((from, least.clone())), Bound::Unbounded));
        let domain = (from, Domain::new(""));
        let domain = due.domains.range((Bound::Included(domain), Bound::Unbounded));
        let restarts = due.crashed.iter().filter_map(restart);
        restarts.chain(twin.map(|(at, _)| *at).next()).chain(domain.map(|(at, _)| *at).next()).min()
    }
}

/// How it follows.
impl Index {
    pub(super) fn actual(
        &mut self,
        key: &LrpKey,
        before: Option<&ActualLrp>,
        after: Option<&ActualLrp>,
    ) {
        let cell = |lrp: Option<&ActualLrp>| lrp.and_then(|lrp| lrp.cell_id.clone());
        let is_twin = after.or(before).is_some_and(|lrp| lrp.evacuating);
        let on = |on: &mut OnCell, is: bool| {
            let keys = if is_twin { &mut on.evacuating } else { &mut on.instances };
            if is { keys.insert(key.clone()) } else { keys.remove(key) }
        };
        self.move_cell(cell(before), cell(after), on);
        let domain = |lrp: Option<&ActualLrp>| lrp.map(|lrp| lrp.domain.clone());
        self.move_process(&key.process_guid, domain(before), domain(after));
        if is_twin {
            let at = |lrp: Option<&ActualLrp>| lrp.and_then(|twin| twin.expires_at);
            follow(&mut self.due.twins, at(before), at(after), key);
        } else {
            self.instance(key, before, after);
        }
    }

    fn instance(&mut self, key: &LrpKey, before: Option<&ActualLrp>, after: Option<&ActualLrp>) {
        for (lrp, is) in [(before, false), (after, true)] {
            let Some(lrp) = lrp else { continue };
            let state = lrp.state as usize;
            self.counts[state] = if is { self.counts[state] + 1 } else { self.counts[state] - 1 };
            match lrp.state {
                ActualState::Running => {}
                ActualState::Unclaimed | ActualState::Claimed => {
                    put(&mut self.states[state], key, is);
                }
                ActualState::Crashed => {
                    put(&mut self.states[state], key, is);
                    let waiting = self.due.crashed.entry(lrp.crash_count).or_default();
                    put(waiting, &(lrp.since, key.clone()), is);
                    if waiting.is_empty() {
                        self.due.crashed.remove(&lrp.crash_count);
                    }
                }
            }
        }
    }

    pub(super) fn desired(
        &mut self,
        guid: &ProcessGuid,
        before: Option<&DesiredLrp>,
        after: Option<&DesiredLrp>,
    ) {
        let domain = |lrp: Option<&DesiredLrp>| lrp.map(|lrp| lrp.domain.clone());
        self.move_process(guid, domain(before), domain(after));
    }

    pub(super) fn task(&mut self, guid: &TaskGuid, before: Option<&Task>, after: Option<&Task>) {
        let cell = |task: Option<&Task>| task.and_then(|task| task.cell_id.clone());
        self.move_cell(cell(before), cell(after), |on, is| {
            if is { on.tasks.insert(guid.clone()) } else { on.tasks.remove(guid) }
        });
        let domain = |task: Option<&Task>| task.map(|task| task.definition.domain.clone());
        self.move_domain(domain(before), domain(after), |within, is| {
            put(&mut within.tasks, guid, is);
        });
        for (task, is) in [(before, false), (after, true)] {
            if let Some(task) = task {
                put(&mut self.tasks[task.state as usize], guid, is);
            }
        }
    }

    pub(super) fn domain(
        &mut self,
        domain: &Domain,
        before: Option<&Freshness>,
        after: Option<&Freshness>,
    ) {
        let at = |fresh: Option<&Freshness>| fresh.and_then(|fresh| fresh.expires_at);
        follow(&mut self.due.domains, at(before), at(after), domain);
    }

    /// Lets go of room that only growing has taken.
    pub(super) fn shrink(&mut self) {
        for on in self.cells.values_mut() {
            on.instances.0.shrink_to_fit();
            on.evacuating.0.shrink_to_fit();
            on.tasks.0.shrink_to_fit();
        }
    }

    fn move_cell(
        &mut self,
        from: Option<CellId>,
        to: Option<CellId>,
        put: impl Fn(&mut OnCell, bool),
    ) {
        if from == to {
            return;
        }
        if let Some(from) = from
            && let Some(on) = self.cells.get_mut(&from)
        {
            put(on, false);
            if on.is_empty() {
                self.cells.remove(&from);
            }
        }
        if let Some(cell) = to {
            put(self.cells.entry(cell).or_default(), true);
        }
    }

    fn move_process(&mut self, guid: &ProcessGuid, from: Option<Domain>, to: Option<Domain>) {
        self.move_domain(from, to, |within, is| {
            let records = within.processes.entry(guid.clone()).or_default();
            *records = if is { *records + 1 } else { records.saturating_sub(1) };
            if *records == 0 {
                within.processes.remove(guid);
            }
        });
    }

    /// A record of a job has moved from a domain to another.
    pub(super) fn move_job(&mut self, job: &JobId, from: Option<&Domain>, to: Option<&Domain>) {
        self.move_domain(from.cloned(), to.cloned(), |within, is| {
            let records = within.jobs.entry(job.clone()).or_default();
            *records = if is { *records + 1 } else { records.saturating_sub(1) };
            if *records == 0 {
                within.jobs.remove(job);
            }
        });
    }

    /// The name of a domain as others have it, to be shared with them.
    pub(super) fn shared_domain(&self, domain: &mut Domain) {
        if let Some((known, _)) = self.domains.get_key_value(domain) {
            *domain = known.clone();
        }
    }

    fn move_domain(
        &mut self,
        from: Option<Domain>,
        to: Option<Domain>,
        put: impl Fn(&mut InDomain, bool),
    ) {
        if from == to {
            return;
        }
        if let Some(from) = from
            && let Some(within) = self.domains.get_mut(&from)
        {
            put(within, false);
            if within.is_empty() {
                self.domains.remove(&from);
            }
        }
        if let Some(domain) = to {
            put(self.domains.entry(domain).or_default(), true);
        }
    }
}

fn put<K: Ord + Clone>(set: &mut BTreeSet<K>, key: &K, is: bool) {
    if is {
        set.insert(key.clone());
    } else {
        set.remove(key);
    }
}

fn follow<K: Ord + Clone>(
    set: &mut BTreeSet<(Timestamp, K)>,
    before: Option<Timestamp>,
    after: Option<Timestamp>,
    key: &K,
) {
    if before == after {
        return;
    }
    if let Some(at) = before {
        set.remove(&(at, key.clone()));
    }
    if let Some(at) = after {
        set.insert((at, key.clone()));
    }
}
