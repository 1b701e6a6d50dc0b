//! The committed records of a shard.

use std::collections::BTreeSet;
use std::collections::btree_map::{self, BTreeMap, Entry};
use std::ops::{Bound, Deref};
use std::sync::Arc;

use super::actual::{ActualLrp, ActualState, LrpKey, shown};
use super::desired::DesiredLrp;
use super::domain::Freshness;
use super::ids::{CellId, Domain, JobId, ProcessGuid, TaskGuid};
use super::index::Index;
use super::leaving::Leaving;
use super::record::{Record, RecordKey};
use super::settings::Settings;
use super::task::{Task, TaskState};
use crate::constraint::Outgoing;
use crate::job::{ActionId, Definition, Job, JobDefinition};
use crate::run::{Run, RunId};
use crate::seams::Timestamp;

/// Records by key. Everybody may look; only [`Records`] changes them, so that its indexes hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table<K, V>(pub(super) BTreeMap<K, V>);

impl<K, V> Default for Table<K, V> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<K, V> Deref for Table<K, V> {
    type Target = BTreeMap<K, V>;

    fn deref(&self) -> &BTreeMap<K, V> {
        &self.0
    }
}

impl<'a, K, V> IntoIterator for &'a Table<K, V> {
    type Item = (&'a K, &'a V);
    type IntoIter = btree_map::Iter<'a, K, V>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

/// The committed records of one shard, with indexes by cell, domain, state and due time. By
/// process they lie in order anyway.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Records {
    pub desired: Table<ProcessGuid, DesiredLrp>,
    pub instances: Table<LrpKey, ActualLrp>,
    pub evacuating: Table<LrpKey, ActualLrp>,
    pub tasks: Table<TaskGuid, Task>,
    pub domains: Table<Domain, Freshness>,
    pub jobs: Table<JobId, Job>,
    /// By job and revision.
    pub definitions: Table<(JobId, u64), Arc<JobDefinition>>,
    /// Those of a job lie together, the oldest moment first.
    pub runs: Table<RunId, Arc<Run>>,
    /// Those that wait to be sent.
    pub messages: Table<(JobId, ActionId), Box<Outgoing>>,
    pub(super) index: Index,
    /// Processes of which it is not known any more what is desired.
    /// What is not wanted of processes of which some were given up. Of most processes none are.
    leaving: BTreeMap<ProcessGuid, BTreeSet<Leaving>>,
}

/// Records being read from a store. Taken all at once they need less room and time than one
/// change after the other.
#[derive(Debug, Default)]
pub struct Gathering {
    desired: Vec<(ProcessGuid, DesiredLrp)>,
    instances: Vec<(LrpKey, ActualLrp)>,
    evacuating: Vec<(LrpKey, ActualLrp)>,
    tasks: Vec<(TaskGuid, Task)>,
    domains: Vec<(Domain, Freshness)>,
    jobs: Vec<(JobId, Job)>,
    definitions: Vec<((JobId, u64), Arc<JobDefinition>)>,
    runs: Vec<(RunId, Arc<Run>)>,
    messages: Vec<((JobId, ActionId), Box<Outgoing>)>,
}

impl Gathering {
    pub fn add(&mut self, record: Record) {
        match record {
            Record::Desired(lrp) => self.desired.push((lrp.process_guid.clone(), *lrp)),
            Record::Actual(lrp) if lrp.evacuating => self.evacuating.push((lrp.key(), *lrp)),
            Record::Actual(lrp) => self.instances.push((lrp.key(), *lrp)),
            Record::Task(task) => self.tasks.push((task.guid().clone(), *task)),
            Record::Domain(fresh) => self.domains.push((fresh.domain.clone(), fresh)),
            Record::Job(job) => self.jobs.push((job.job_id.clone(), *job)),
            Record::Definition(Definition { revision, definition }) => {
                self.definitions.push(((definition.job_id.clone(), revision), definition));
            }
            Record::Run(run) => self.runs.push((run.run_id.clone(), run)),
            Record::Message(message) => {
                self.messages.push(((message.job_id.clone(), message.id), message));
            }
        }
    }

    pub fn end(self) -> Records {
        let mut records = Records {
            desired: Table(self.desired.into_iter().collect()),
            instances: Table(self.instances.into_iter().collect()),
            evacuating: Table(self.evacuating.into_iter().collect()),
            tasks: Table(self.tasks.into_iter().collect()),
            domains: Table(self.domains.into_iter().collect()),
            jobs: Table(self.jobs.into_iter().collect()),
            definitions: Table(self.definitions.into_iter().collect()),
            runs: Table(self.runs.into_iter().collect()),
            messages: Table(self.messages.into_iter().collect()),
            index: Index::default(),
            leaving: BTreeMap::new(),
        };
        records.index = records.indexed();
        let retiring = records.desired.values().filter(|desired| desired.retiring);
        let retiring: Vec<ProcessGuid> = retiring.map(|it| it.process_guid.clone()).collect();
        for guid in &retiring {
            records.gather_leaving(guid);
        }
        records
    }
}

impl Records {
    /// All instances of a process, in order of their index.
    pub fn instances_of(&self, guid: &ProcessGuid) -> impl Iterator<Item = &ActualLrp> {
        of(&self.instances, guid)
    }

    pub fn evacuating_of(&self, guid: &ProcessGuid) -> impl Iterator<Item = &ActualLrp> {
        of(&self.evacuating, guid)
    }

    /// What is desired under a name, as others see it.
    pub fn desired_lrp(&self, guid: &ProcessGuid) -> Option<&DesiredLrp> {
        self.desired.get(guid).filter(|lrp| !lrp.removing)
    }

    /// All that is desired, as others see it.
    pub fn desired_lrps(&self) -> impl Iterator<Item = &DesiredLrp> {
        self.desired.values().filter(|lrp| !lrp.removing)
    }

    /// Whether a reader gets this instance or twin that lies here, and not the other one of its index.
    pub fn shows(&self, lrp: &ActualLrp) -> bool {
        let chosen = if lrp.evacuating {
            shown(self.instances.get(&lrp.key()), Some(lrp))
        } else {
            shown(Some(lrp), self.evacuating.get(&lrp.key()))
        };
        chosen.is_some_and(|chosen| chosen.evacuating == lrp.evacuating)
    }

    /// Whether this is an instance that there is to be.
    pub fn wants(&self, lrp: &ActualLrp) -> bool {
        self.desired.get(&lrp.process_guid).is_some_and(|desired| desired.wants_this(lrp))
    }

    pub fn get(&self, key: &RecordKey) -> Option<Record> {
        match key {
            RecordKey::Desired(guid) => {
                self.desired.get(guid).cloned().map(Box::new).map(Record::Desired)
            }
            RecordKey::Instance(key) => {
                self.instances.get(key).cloned().map(Box::new).map(Record::Actual)
            }
            RecordKey::Evacuating(key) => {
                self.evacuating.get(key).cloned().map(Box::new).map(Record::Actual)
            }
            RecordKey::Task(guid) => self.tasks.get(guid).cloned().map(Box::new).map(Record::Task),
            RecordKey::Domain(domain) => self.domains.get(domain).cloned().map(Record::Domain),
            RecordKey::Job(job) => self.jobs.get(job).cloned().map(Box::new).map(Record::Job),
            RecordKey::Definition(job, revision) => {
                let definition = self.definition(job, *revision).cloned();
                definition.map(|definition| {
                    Record::Definition(Definition { revision: *revision, definition })
                })
            }
            RecordKey::Run(run) => self.runs.get(run).cloned().map(Record::Run),
            RecordKey::Message(job, id) => {
                self.messages.get(&(job.clone(), *id)).cloned().map(Record::Message)
            }
        }
    }
}

/// What the indexes answer, in the order of keys.
impl Records {
    /// Every cell that a record names.
    pub fn cells(&self) -> impl Iterator<Item = &CellId> {
        self.index.cells()
    }

    pub fn instances_on(&self, cell_id: &CellId) -> impl Iterator<Item = &ActualLrp> {
        let keys = self.index.on_cell(cell_id).into_iter().flat_map(|on| on.instances.iter());
        keys.filter_map(|key| self.instances.get(key))
    }

    pub fn evacuating_on(&self, cell_id: &CellId) -> impl Iterator<Item = &ActualLrp> {
        let keys = self.index.on_cell(cell_id).into_iter().flat_map(|on| on.evacuating.iter());
        keys.filter_map(|key| self.evacuating.get(key))
    }

    pub fn tasks_on(&self, cell_id: &CellId) -> impl Iterator<Item = &Task> {
        let keys = self.index.on_cell(cell_id).into_iter().flat_map(|on| on.tasks.iter());
        keys.filter_map(|guid| self.tasks.get(guid))
    }

    /// How many instances and evacuating twins are on a cell.
    pub fn count_on(&self, cell_id: &CellId) -> usize {
        self.index.on_cell(cell_id).map_or(0, |on| on.instances.len() + on.evacuating.len())
    }

    /// What is desired in a domain, as others see it.
    pub fn desired_in(&self, domain: &Domain) -> impl Iterator<Item = &DesiredLrp> {
        let desired = self.processes_in(domain).filter_map(|guid| self.desired_lrp(guid));
        desired.filter(move |lrp| lrp.domain == *domain)
    }

    pub fn instances_in(&self, domain: &Domain) -> impl Iterator<Item = &ActualLrp> {
        let all = self.processes_in(domain).flat_map(|guid| self.instances_of(guid));
        all.filter(move |lrp| lrp.domain == *domain)
    }

    pub fn evacuating_in(&self, domain: &Domain) -> impl Iterator<Item = &ActualLrp> {
        let all = self.processes_in(domain).flat_map(|guid| self.evacuating_of(guid));
        all.filter(move |lrp| lrp.domain == *domain)
    }

    fn processes_in(&self, domain: &Domain) -> impl Iterator<Item = &ProcessGuid> {
        self.index.in_domain(domain).into_iter().flat_map(|within| within.processes.keys())
    }

    pub fn tasks_in(&self, domain: &Domain) -> impl Iterator<Item = &Task> {
        let keys = self.index.in_domain(domain).into_iter().flat_map(|within| &within.tasks);
        keys.filter_map(|guid| self.tasks.get(guid))
    }

    pub fn instances_as(&self, state: ActualState) -> impl Iterator<Item = &ActualLrp> {
        let found = self.index.as_state(state).iter().filter_map(|key| self.instances.get(key));
        let all = (state == ActualState::Running).then(|| self.instances.values());
        found.chain(all.into_iter().flatten().filter(move |lrp| lrp.state == state))
    }

    pub fn count_as(&self, state: ActualState) -> usize {
        self.index.count(state)
    }

    pub fn tasks_as(&self, state: TaskState) -> impl ExactSizeIterator<Item = &TaskGuid> {
        self.index.tasks_as(state).iter()
    }

    pub(super) fn next_due(&self, now: Timestamp, settings: &Settings) -> Option<Timestamp> {
        let is_wanted = |key: &LrpKey| self.instances.get(key).is_some_and(|lrp| self.wants(lrp));
        self.index.next_due(now, settings, is_wanted)
    }

    /// The indexes, made anew from all records.
    pub(super) fn indexed(&self) -> Index {
        let mut index = Index::default();
        for (guid, lrp) in &self.desired {
            index.desired(guid, None, Some(lrp));
        }
        for (key, lrp) in self.instances.iter().chain(&self.evacuating) {
            index.actual(key, None, Some(lrp));
        }
        for (guid, task) in &self.tasks {
            index.task(guid, None, Some(task));
        }
        for (domain, fresh) in &self.domains {
            index.domain(domain, None, Some(fresh));
        }
        for job in self.jobs.values() {
            index.job(None, Some(job));
        }
        for run in self.runs.values() {
            index.run(None, Some(run));
        }
        index.shrink();
        index
    }

    #[cfg(test)]
    pub(super) const fn index(&self) -> &Index {
        &self.index
    }
}

impl Records {
    /// Makes a committed change, and gives back what stood there before.
    pub fn apply(&mut self, key: &RecordKey, to: Option<Record>) -> Option<Record> {
        match to {
            None => {
                let before = self.remove(key);
                self.follow_leaving(key);
                before
            }
            Some(Record::Desired(lrp)) => {
                let guid = lrp.process_guid.clone();
                let before = self.desired.0.insert(guid.clone(), *lrp);
                let after = self.desired.get(&guid);
                self.index.desired(&guid, before.as_ref(), after);
                if !before.as_ref().zip(after).is_some_and(|(one, other)| one.aims_as(other)) {
                    self.gather_leaving(&guid);
                }
                before.map(Box::new).map(Record::Desired)
            }
            Some(Record::Actual(lrp)) => {
                let before = self.put_actual(*lrp);
                self.follow_leaving(key);
                before.map(Box::new).map(Record::Actual)
            }
            Some(Record::Task(task)) => {
                let guid = task.guid().clone();
                let before = self.tasks.0.insert(guid.clone(), *task);
                self.index.task(&guid, before.as_ref(), self.tasks.get(&guid));
                before.map(Box::new).map(Record::Task)
            }
            Some(Record::Domain(fresh)) => {
                let domain = fresh.domain.clone();
                let before = self.domains.0.insert(domain.clone(), fresh);
                self.index.domain(&domain, before.as_ref(), self.domains.get(&domain));
                before.map(Record::Domain)
            }
            Some(Record::Job(job)) => self.put_job(*job).map(Box::new).map(Record::Job),
            Some(Record::Definition(definition)) => {
                self.put_definition(definition).map(Record::Definition)
            }
            Some(Record::Run(run)) => self.put_run(run).map(Record::Run),
            Some(Record::Message(message)) => {
                let key = (message.job_id.clone(), message.id);
                self.messages.0.insert(key, message).map(Record::Message)
            }
        }
    }

    /// Puts a record where it belongs.
    pub fn put(&mut self, record: Record) {
        let key = record.key();
        drop(self.apply(&key, Some(record)));
    }

    /// What is desired under a name, or was until it was deleted; none if it cannot be read.
    pub fn known_desired(&self, guid: &ProcessGuid) -> Option<&DesiredLrp> {
        self.desired.get(guid).filter(|lrp| !lrp.forgotten)
    }

    /// Whether what is desired of a process cannot be read: until somebody desires it again, nobody
    /// knows that an instance of it is one too many.
    pub fn is_forgotten(&self, guid: &ProcessGuid) -> bool {
        self.desired.get(guid).is_some_and(|desired| desired.forgotten)
    }

    /// All that is not wanted of a process, if these very instances are wanted and given up in it.
    pub(super) fn leaving(&self, desired: &DesiredLrp) -> Option<&BTreeSet<Leaving>> {
        let stands = self.desired.get(&desired.process_guid)?;
        let leaving = self.leaving.get(&desired.process_guid)?;
        stands.aims_as(desired).then_some(leaving)
    }

    fn gather_leaving(&mut self, guid: &ProcessGuid) {
        let Some(desired) = self.desired.get(guid).filter(|desired| desired.retiring) else {
            self.leaving.remove(guid);
            return;
        };
        let all = self.instances_of(guid).chain(self.evacuating_of(guid));
        let leaving = all.filter(|lrp| !desired.wants_this(lrp)).map(Leaving::of).collect();
        self.leaving.insert(guid.clone(), leaving);
    }

    /// A record has changed.
    fn follow_leaving(&mut self, key: &RecordKey) {
        let (key, evacuating) = match key {
            RecordKey::Instance(key) => (key, false),
            RecordKey::Evacuating(key) => (key, true),
            RecordKey::Desired(_)
            | RecordKey::Task(_)
            | RecordKey::Domain(_)
            | RecordKey::Job(_)
            | RecordKey::Definition(..)
            | RecordKey::Run(_)
            | RecordKey::Message(..) => return,
        };
        let Some(leaving) = self.leaving.get_mut(&key.process_guid) else { return };
        let table = if evacuating { &self.evacuating } else { &self.instances };
        let desired = self.desired.get(&key.process_guid);
        let is_wanted = |lrp: &ActualLrp| desired.is_some_and(|desired| desired.wants_this(lrp));
        let one = Leaving { index: key.index, evacuating };
        if table.get(key).is_some_and(|lrp| !is_wanted(lrp)) {
            leaving.insert(one);
        } else {
            leaving.remove(&one);
        }
    }

    fn put_actual(&mut self, mut lrp: ActualLrp) -> Option<ActualLrp> {
        self.index.shared(&mut lrp);
        let table = if lrp.evacuating { &mut self.evacuating } else { &mut self.instances };
        match table.0.entry(lrp.key()) {
            Entry::Occupied(mut stands) => {
                lrp.process_guid = stands.key().process_guid.clone();
                let before = stands.insert(lrp);
                self.index.actual(stands.key(), Some(&before), Some(stands.get()));
                Some(before)
            }
            Entry::Vacant(place) => {
                let key = place.key().clone();
                self.index.actual(&key, None, Some(place.insert(lrp)));
                None
            }
        }
    }

    fn remove(&mut self, key: &RecordKey) -> Option<Record> {
        match key {
            RecordKey::Desired(guid) => {
                let before = self.desired.0.remove(guid);
                self.index.desired(guid, before.as_ref(), None);
                self.leaving.remove(guid);
                before.map(Box::new).map(Record::Desired)
            }
            RecordKey::Instance(key) => {
                let before = self.instances.0.remove(key);
                self.index.actual(key, before.as_ref(), None);
                before.map(Box::new).map(Record::Actual)
            }
            RecordKey::Evacuating(key) => {
                let before = self.evacuating.0.remove(key);
                self.index.actual(key, before.as_ref(), None);
                before.map(Box::new).map(Record::Actual)
            }
            RecordKey::Task(guid) => {
                let before = self.tasks.0.remove(guid);
                self.index.task(guid, before.as_ref(), None);
                before.map(Box::new).map(Record::Task)
            }
            RecordKey::Domain(domain) => {
                let before = self.domains.0.remove(domain);
                self.index.domain(domain, before.as_ref(), None);
                before.map(Record::Domain)
            }
            RecordKey::Job(job) => self.remove_job(job).map(Box::new).map(Record::Job),
            RecordKey::Definition(job, revision) => {
                self.remove_definition(job, *revision).map(Record::Definition)
            }
            RecordKey::Run(run) => self.remove_run(run).map(Record::Run),
            RecordKey::Message(job, id) => {
                self.messages.0.remove(&(job.clone(), *id)).map(Record::Message)
            }
        }
    }
}

fn of<'a>(
    map: &'a BTreeMap<LrpKey, ActualLrp>,
    guid: &ProcessGuid,
) -> impl Iterator<Item = &'a ActualLrp> {
    let at = |index| LrpKey { process_guid: guid.clone(), index };
    map.range((Bound::Included(at(0)), Bound::Included(at(u32::MAX)))).map(|(_, lrp)| lrp)
}
