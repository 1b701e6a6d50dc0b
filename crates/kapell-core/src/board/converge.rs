//! Convergence: what is found wrong when everything is looked at.

use std::collections::{BTreeMap, BTreeSet};

use super::actual::{ActualLrp, ActualState, LrpKey};
use super::crash;
use super::domain::Freshness;
use super::draft::Records;
use super::ids::{CellId, Domain};
use super::request::{Request, Retirement};
use super::rules::{Kick, kick};
use super::settings::Settings;
use super::task::{Task, TaskState};
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
    let pass = Pass { present, fresh: fresh(shards, now), now, settings };
    shards.iter().flat_map(|records| pass.shard(records)).collect()
}

/// The earliest moment after `now` at which a crashed instance may be restarted, or an evacuating
/// twin or a domain expires.
pub fn next_due(shards: &[&Records], now: Timestamp, settings: &Settings) -> Option<Timestamp> {
    let due = |records: &&Records| {
        let crashed = records.instances.values().filter(|lrp| records.wants(lrp));
        let restarts = crashed.filter_map(|lrp| crash::restart_at(lrp, settings));
        let twins = records.evacuating.values().filter_map(|twin| twin.expires_at);
        let domains = records.domains.values().filter_map(|domain| domain.expires_at);
        restarts.chain(twins).chain(domains).filter(|at| *at > now).min()
    };
    shards.iter().filter_map(due).min()
}

struct Pass<'a> {
    present: &'a BTreeSet<CellId>,
    fresh: BTreeMap<&'a Domain, &'a Freshness>,
    now: Timestamp,
    settings: &'a Settings,
}

fn fresh<'a>(shards: &[&'a Records], now: Timestamp) -> BTreeMap<&'a Domain, &'a Freshness> {
    shards.iter().flat_map(|records| &records.domains).filter(|(_, it)| it.is_fresh(now)).collect()
}

impl Pass<'_> {
    fn shard(&self, records: &Records) -> Vec<Request> {
        let settled = records.desired.values().filter_map(|desired| {
            let guid = &desired.process_guid;
            let mut there = records.instances_of(guid).chain(records.evacuating_of(guid));
            (desired.retiring && there.all(|lrp| desired.wants_this(lrp)))
                .then(|| Request::Settle { process_guid: guid.clone() })
        });
        let missing = records.desired_lrps().filter_map(|desired| {
            let guid = &desired.process_guid;
            let there = records.instances_of(guid).zip(0..);
            let from = first_gap(there);
            (from < desired.instances).then(|| Request::Unfold { process_guid: guid.clone(), from })
        });
        let instances = records.instances.values();
        let instances = instances.filter_map(|lrp| self.instance(records, lrp));
        let twins = records.evacuating.values().filter_map(|twin| self.twin(records, twin));
        let tasks = records.tasks.values().filter_map(|task| self.task(task));
        instances.chain(twins).chain(settled).chain(missing).chain(tasks).collect()
    }

    fn instance(&self, records: &Records, lrp: &ActualLrp) -> Option<Request> {
        if let Some(cell_id) = self.gone(lrp.cell_id.as_ref()) {
            return Some(Request::Rescue { key: lrp.key(), cell_id });
        }
        if !records.wants(lrp) {
            let desired = records.desired.get(&lrp.process_guid);
            let why = if desired.is_some_and(|desired| desired.retiring) {
                Retirement::Explicit
            } else if self.fresh.contains_key(&lrp.domain) {
                Retirement::Converged
            } else {
                return None;
            };
            return Some(Request::Retire { key: lrp.key(), why });
        }
        match lrp.state {
            ActualState::Unclaimed => (self.now.since(lrp.since) >= self.settings.stale_unclaimed)
                .then(|| Request::Reemit { key: lrp.key() }),
            ActualState::Claimed | ActualState::Running => None,
            ActualState::Crashed => crash::restart_at(lrp, self.settings)
                .filter(|at| *at <= self.now)
                .map(|_| Request::RestartCrashed { key: lrp.key() }),
        }
    }

    fn twin(&self, records: &Records, twin: &ActualLrp) -> Option<Request> {
        let key: LrpKey = twin.key();
        if twin.expires_at.is_some_and(|at| at <= self.now) {
            return Some(Request::ExpireEvacuating { key });
        }
        let cell_id = self.gone(twin.cell_id.as_ref())?;
        // Rescuing the instance on the same cell removes the twin as well.
        let rescued =
            records.instances.get(&key).is_some_and(|lrp| lrp.cell_id.as_ref() == Some(&cell_id));
        (!rescued).then_some(Request::Rescue { key, cell_id })
    }

    fn task(&self, task: &Task) -> Option<Request> {
        let task_guid = task.guid().clone();
        if task.state == TaskState::Running {
            let cell_id = self.gone(task.cell_id.as_ref())?;
            return Some(Request::FailLostTask { task_guid, cell_id });
        }
        match kick(task, self.now, self.settings)? {
            Kick::Restart | Kick::GiveUp => Some(Request::KickPendingTask { task_guid }),
            Kick::Resolve | Kick::Demote | Kick::Delete => {
                Some(Request::KickCompletedTask { task_guid })
            }
        }
    }

    /// The cell, if it is not there.
    fn gone(&self, cell: Option<&CellId>) -> Option<CellId> {
        cell.filter(|cell| !self.present.contains(*cell)).cloned()
    }
}

/// The first index that none of the instances, in their order, has.
fn first_gap<'a>(instances: impl Iterator<Item = (&'a ActualLrp, u32)>) -> u32 {
    let mut next = 0;
    for (lrp, place) in instances {
        if lrp.index != place {
            break;
        }
        next = place + 1;
    }
    next
}
