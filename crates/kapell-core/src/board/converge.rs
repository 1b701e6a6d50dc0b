//! Convergence: what is found wrong when everything is looked at.

use std::collections::btree_map::Range;
use std::collections::{BTreeMap, BTreeSet};
use std::iter::Peekable;
use std::ops::Bound;

use rustc_hash::FxHashSet;

use super::actual::{ActualLrp, ActualState, LrpKey};
use super::crash;
use super::desired::DesiredLrp;
use super::ids::{CellId, Domain, ProcessGuid, TaskGuid};
use super::records::Records;
use super::request::{Request, Retirement};
use super::rules::{Kick, kick};
use super::settings::Settings;
use super::task::{Task, TaskState};
use crate::planted::Flaw;
use crate::seams::Timestamp;

/// Everything that has to be set right, in an order that depends on the records only.
///
/// Each request is checked again when it is decided. What only waits for a cell or for the
/// auctioneer is asked for again in every pass.
pub fn converge(
    shards: &[&Records],
    present: &BTreeSet<CellId>,
    now: Timestamp,
    settings: &Settings,
) -> Vec<Request> {
    let fresh: Fresh = shards.iter().flat_map(|records| fresh(records, now)).collect();
    let pass = Pass { fresh: &fresh, now, settings };
    let all = |records: &&Records| {
        let gone = records.cells().filter(|cell| !present.contains(*cell)).cloned().collect();
        pass.slice(records, &gone, &Place::Start, usize::MAX).requests
    };
    shards.iter().flat_map(all).collect()
}

/// Domains that are fresh, and until when; without it, for ever.
pub type Fresh = BTreeMap<Domain, Option<Timestamp>>;

/// The domains of a shard that are fresh.
pub fn fresh(
    records: &Records,
    now: Timestamp,
) -> impl Iterator<Item = (Domain, Option<Timestamp>)> {
    let fresh = records.domains.values().filter(move |it| it.is_fresh(now));
    fresh.map(|it| (it.domain.clone(), it.expires_at))
}

/// What cells that are gone held. It is found without looking at anything else.
pub fn rescues(records: &Records, gone: &BTreeSet<CellId>, settings: &Settings) -> Vec<Request> {
    let mut found = Vec::new();
    for cell_id in gone {
        let is_on_it = |lrp: &ActualLrp| lrp.cell_id.as_ref() == Some(cell_id);
        let rescue = |lrp: &ActualLrp| Request::Rescue { key: lrp.key(), cell_id: cell_id.clone() };
        if !settings.planted.has(Flaw::NoRescue) {
            found.extend(records.instances_on(cell_id).map(rescue));
        }
        // Rescuing the instance on the same cell removes the twin as well.
        let is_rescued =
            |twin: &ActualLrp| records.instances.get(&twin.key()).is_some_and(is_on_it);
        let twins = records.evacuating_on(cell_id).filter(|twin| !is_rescued(twin));
        found.extend(twins.map(rescue));
        let running = records.tasks_on(cell_id).filter(|task| task.state == TaskState::Running);
        found.extend(running.map(|task| {
            let task_guid = task.guid().clone();
            Request::FailLostTask { task_guid, cell_id: cell_id.clone() }
        }));
    }
    found
}

/// The earliest moment after `now` at which a crashed instance may be restarted, or an evacuating
/// twin or a domain expires.
pub fn next_due(shards: &[&Records], now: Timestamp, settings: &Settings) -> Option<Timestamp> {
    shards.iter().filter_map(|records| records.next_due(now, settings)).min()
}

/// What one pass over all shards goes by.
#[derive(Debug, Clone, Copy)]
pub struct Pass<'a> {
    /// Of all shards.
    pub fresh: &'a Fresh,
    pub now: Timestamp,
    pub settings: &'a Settings,
}

/// How far a pass is within a shard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    Start,
    BehindProcess(ProcessGuid),
    BehindTask(TaskGuid),
}

/// What a part of a shard needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slice {
    pub requests: Vec<Request>,
    /// Where to go on, if there may be more.
    pub next: Option<Place>,
}

impl Pass<'_> {
    /// Looks at about so many records of a shard. What belongs to one process is looked at together.
    ///
    /// `gone` are the cells that these very records name and that are not there: a cell may come
    /// and be named while a pass goes on.
    pub fn slice(
        &self,
        records: &Records,
        gone: &BTreeSet<CellId>,
        from: &Place,
        most: usize,
    ) -> Slice {
        let gone = gone.iter().collect();
        let mut walk = Walk { pass: *self, records, gone, left: most, requests: Vec::new() };
        let stopped = match from {
            Place::Start => walk.processes(None).or_else(|| walk.tasks(None)),
            Place::BehindProcess(guid) => walk.processes(Some(guid)).or_else(|| walk.tasks(None)),
            Place::BehindTask(guid) => walk.tasks(Some(guid)),
        };
        Slice { requests: walk.requests, next: stopped }
    }
}

/// A walk along what is desired and what is there, side by side.
struct Walk<'a> {
    pass: Pass<'a>,
    records: &'a Records,
    /// Most often there is none, and nothing to look up.
    gone: FxHashSet<&'a CellId>,
    left: usize,
    requests: Vec<Request>,
}

type Side<'a, K, V> = Peekable<Range<'a, K, V>>;

impl<'a> Walk<'a> {
    /// Where it stopped, unless it came to the end.
    fn processes(&mut self, after: Option<&ProcessGuid>) -> Option<Place> {
        let records = self.records;
        let last = after.map(|guid| LrpKey { process_guid: guid.clone(), index: u32::MAX });
        let behind = last.as_ref().map_or(Bound::Unbounded, Bound::Excluded);
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let mut desired =
            records.desired.range::<ProcessGuid, _>((from, Bound::Unbounded)).peekable();
        let mut instances =
            records.instances.range::<LrpKey, _>((behind, Bound::Unbounded)).peekable();
        let mut twins =
            records.evacuating.range::<LrpKey, _>((behind, Bound::Unbounded)).peekable();
        loop {
            let next = [
                desired.peek().map(|(guid, _)| *guid),
                instances.peek().map(|(key, _)| &key.process_guid),
                twins.peek().map(|(key, _)| &key.process_guid),
            ];
            let guid = next.into_iter().flatten().min()?;
            let wanted = desired.next_if(|(name, _)| *name == guid).map(|(_, lrp)| lrp);
            self.process(guid, wanted, &mut instances, &mut twins);
            if self.left == 0 {
                return Some(Place::BehindProcess(guid.clone()));
            }
        }
    }

    fn process(
        &mut self,
        guid: &ProcessGuid,
        desired: Option<&DesiredLrp>,
        instances: &mut Side<'a, LrpKey, ActualLrp>,
        twins: &mut Side<'a, LrpKey, ActualLrp>,
    ) {
        let (mut gap, mut all_wanted) = (0, true);
        let wants = |lrp: &ActualLrp| desired.is_some_and(|desired| desired.wants_this(lrp));
        while let Some((_, lrp)) = instances.next_if(|(key, _)| key.process_guid == *guid) {
            gap += u32::from(lrp.index == gap);
            let is_wanted = wants(lrp);
            all_wanted &= is_wanted;
            let found = self.instance(lrp, desired, is_wanted);
            self.found(found);
        }
        while let Some((_, twin)) = twins.next_if(|(key, _)| key.process_guid == *guid) {
            all_wanted &= wants(twin);
            let found = self.twin(twin);
            self.found(found);
        }
        let Some(desired) = desired else { return };
        if desired.retiring && all_wanted {
            self.requests.push(Request::Settle { process_guid: guid.clone() });
        }
        let missing = !desired.removing && gap < desired.instances;
        let unfold = || Request::Unfold { process_guid: guid.clone(), from: gap };
        self.found(missing.then(unfold));
    }

    fn tasks(&mut self, after: Option<&TaskGuid>) -> Option<Place> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        for (guid, task) in self.records.tasks.range::<TaskGuid, _>((from, Bound::Unbounded)) {
            let found = self.task(task);
            self.found(found);
            if self.left == 0 {
                return Some(Place::BehindTask(guid.clone()));
            }
        }
        None
    }

    /// One more record was looked at.
    fn found(&mut self, found: Option<Request>) {
        self.left = self.left.saturating_sub(1);
        self.requests.extend(found);
    }

    fn instance(
        &mut self,
        lrp: &ActualLrp,
        desired: Option<&DesiredLrp>,
        is_wanted: bool,
    ) -> Option<Request> {
        if let Some(cell_id) = self.gone(lrp.cell_id.as_ref())
            && !self.pass.settings.planted.has(Flaw::NoRescue)
        {
            let rescue = Request::Rescue { key: lrp.key(), cell_id };
            if is_wanted || desired.is_some_and(|desired| desired.has_given_up(lrp)) {
                return Some(rescue);
            }
            // It is rescued like any other, and then it is on no cell and only in the way.
            self.requests.push(rescue);
            return self.retirement(lrp, desired);
        }
        let (now, settings) = (self.pass.now, self.pass.settings);
        if !is_wanted {
            return self.retirement(lrp, desired);
        }
        match lrp.state {
            ActualState::Unclaimed => (now.since(lrp.since) >= settings.stale_unclaimed)
                .then(|| Request::Reemit { key: lrp.key() }),
            ActualState::Claimed | ActualState::Running => None,
            ActualState::Crashed => crash::restart_at(lrp, settings)
                .filter(|at| *at <= now)
                .map(|_| Request::RestartCrashed { key: lrp.key() }),
        }
    }

    fn retirement(&self, lrp: &ActualLrp, desired: Option<&DesiredLrp>) -> Option<Request> {
        let why = if desired.is_some_and(|desired| desired.has_given_up(lrp)) {
            Retirement::Explicit
        } else {
            self.vouched(lrp)?
        };
        Some(Request::Retire { key: lrp.key(), why })
    }

    /// Whether somebody vouches that nobody wants it, and until when.
    fn vouched(&self, lrp: &ActualLrp) -> Option<Retirement> {
        if self.pass.settings.planted.has(Flaw::StaleDomainStops) {
            return Some(Retirement::Converged { fresh_until: None });
        }
        if self.records.is_forgotten(&lrp.process_guid) {
            return None;
        }
        let fresh_until = *self.pass.fresh.get(&lrp.domain)?;
        Some(Retirement::Converged { fresh_until })
    }

    fn twin(&self, twin: &ActualLrp) -> Option<Request> {
        let key: LrpKey = twin.key();
        if twin.expires_at.is_some_and(|at| at <= self.pass.now) {
            return Some(Request::ExpireEvacuating { key });
        }
        let cell_id = self.gone(twin.cell_id.as_ref())?;
        // Rescuing the instance on the same cell removes the twin as well.
        let instance = self.records.instances.get(&key);
        let rescued = instance.is_some_and(|lrp| lrp.cell_id.as_ref() == Some(&cell_id));
        (!rescued).then_some(Request::Rescue { key, cell_id })
    }

    fn task(&self, task: &Task) -> Option<Request> {
        let task_guid = task.guid().clone();
        if task.state == TaskState::Running {
            let cell_id = self.gone(task.cell_id.as_ref())?;
            return Some(Request::FailLostTask { task_guid, cell_id });
        }
        match kick(task, self.pass.now, self.pass.settings)? {
            Kick::Restart | Kick::GiveUp => Some(Request::KickPendingTask { task_guid }),
            Kick::Resolve | Kick::Demote | Kick::Delete => {
                Some(Request::KickCompletedTask { task_guid })
            }
        }
    }

    /// The cell, if it is not there.
    fn gone(&self, cell: Option<&CellId>) -> Option<CellId> {
        if self.gone.is_empty() {
            return None;
        }
        cell.filter(|cell| self.gone.contains(*cell)).cloned()
    }
}
