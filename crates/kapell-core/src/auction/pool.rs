//! The cells of one batch, as full as they become while work is placed.

use std::collections::BTreeMap;

use super::batch::{Processes, Wish};
use super::bid::{Bid, Measure};
use super::cell::Cell;
use super::kind::{Kind, Match, Offer};
use super::siblings::{AllSiblings, Fewest};
use super::tree::{Ask, Tree};
use super::unplaced::{Cause, Unplaced};
use crate::board::{CellId, CellState, Resources};

#[derive(Debug)]
pub(super) struct Pool {
    /// In order of their ids.
    ids: Vec<CellId>,
    cells: Vec<Cell>,
    /// Which group a cell is in, if it takes work.
    group_of: Vec<Option<u32>>,
    groups: Vec<Group>,
    evacuating: u32,
    unhealthy: u32,
    starting: u64,
    siblings: AllSiblings,
    fewest: Fewest,
}

/// Cells of one zone that offer the same.
#[derive(Debug)]
struct Group {
    zone: u32,
    offer: Offer,
    members: Vec<u32>,
    lrps: Option<Tree>,
    tasks: Option<Tree>,
}

/// Where a kind of work may go.
#[derive(Debug)]
pub(super) struct Reach {
    groups: Vec<InZone>,
    other_rootfs: u32,
    other_tags: u32,
}

/// A group and its zone.
#[derive(Debug)]
struct InZone {
    at: u32,
    zone: u32,
}

impl Reach {
    pub(super) fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }
}

fn number(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

impl Pool {
    pub(super) fn new(mut states: Vec<CellState>, processes: &Processes) -> Self {
        states.sort_by(|one, other| one.cell_id.cmp(&other.cell_id));
        states.dedup_by(|one, other| one.cell_id == other.cell_id);
        let mut zones = BTreeMap::new();
        let mut pool = Self {
            ids: Vec::with_capacity(states.len()),
            cells: Vec::with_capacity(states.len()),
            group_of: Vec::with_capacity(states.len()),
            groups: Vec::new(),
            evacuating: 0,
            unhealthy: 0,
            starting: states.iter().map(|state| u64::from(state.starting)).sum(),
            siblings: AllSiblings::expecting(processes.instances()),
            fewest: Fewest::default(),
        };
        let mut groups = BTreeMap::new();
        for state in states {
            let next = number(zones.len());
            let zone = *zones.entry(state.zone.clone()).or_insert(next);
            pool.count_siblings(&state, zone, processes);
            pool.add(&state, zone, &mut groups);
        }
        pool
    }

    fn count_siblings(&mut self, state: &CellState, zone: u32, processes: &Processes) {
        // What is on an evacuating cell leaves it.
        if state.evacuating {
            return;
        }
        let cell = number(self.cells.len());
        for held in &state.lrps {
            if let Some(process) = processes.number(&held.key.process_guid) {
                self.siblings.add(process, cell, zone);
            }
        }
    }

    fn add(&mut self, state: &CellState, zone: u32, groups: &mut BTreeMap<(u32, Offer), u32>) {
        let at = number(self.cells.len());
        let mut cell = Cell::new(state, zone);
        self.evacuating += u32::from(state.evacuating);
        self.unhealthy += u32::from(state.unhealthy && !state.evacuating);
        let up = !state.evacuating && !state.unhealthy;
        self.group_of.push(up.then(|| {
            let offer = Offer::of(state);
            let group = *groups.entry((zone, offer.clone())).or_insert_with(|| {
                let members = Vec::new();
                self.groups.push(Group { zone, offer, members, lrps: None, tasks: None });
                number(self.groups.len() - 1)
            });
            let members = &mut self.groups[group as usize].members;
            cell.member = number(members.len());
            members.push(at);
            group
        }));
        self.ids.push(state.cell_id.clone());
        self.cells.push(cell);
    }

    pub(super) fn reach(&self, kind: &Kind) -> Reach {
        let mut reach = Reach { groups: Vec::new(), other_rootfs: 0, other_tags: 0 };
        for (at, group) in (0..).zip(&self.groups) {
            let count = number(group.members.len());
            match kind.matches(&group.offer) {
                Match::Compatible => reach.groups.push(InZone { at, zone: group.zone }),
                Match::OtherRootfs => reach.other_rootfs += count,
                Match::OtherTags => reach.other_tags += count,
            }
        }
        reach
    }

    /// By number of the cell.
    pub(super) fn ids(&self) -> &[CellId] {
        &self.ids
    }

    /// How many containers are starting on all cells, with those of this batch.
    pub(super) const fn starting(&self) -> u64 {
        self.starting
    }

    /// The number of the best cell for an instance: in the zone with the fewest siblings that has room.
    pub(super) fn best_for_lrp(
        &mut self,
        process: u32,
        (at, wish): (u32, &Wish),
        reach: &Reach,
    ) -> Option<u32> {
        let siblings = self.siblings.of(process);
        let mut tried: Option<u32> = None;
        loop {
            let counts = reach.groups.iter().map(|group| siblings.in_zone(group.zone));
            let in_zone = counts.filter(|count| tried.is_none_or(|tried| tried < *count)).min()?;
            let mut best = Bid::NONE;
            for group in reach.groups.iter().filter(|group| siblings.in_zone(group.zone) == in_zone)
            {
                let fewest = self.fewest.get(process, at, group.at);
                let siblings = (in_zone > 0).then_some(siblings);
                let ask = Ask { wanted: wish.wanted, siblings, fewest };
                let Group { members, lrps, .. } = &mut self.groups[group.at as usize];
                let tree =
                    lrps.get_or_insert_with(|| Tree::new(Measure::Lrp, members, &self.cells));
                let better = tree.search(members, &self.cells, &ask, best);
                if better != best {
                    self.fewest.learn(process, at, group.at, better.siblings_on_cell());
                }
                best = better;
            }
            if best.is_some() {
                return Some(best.cell());
            }
            tried = Some(in_zone);
        }
    }

    /// The same for a task.
    pub(super) fn best_for_task(&mut self, wish: &Wish, reach: &Reach) -> Option<u32> {
        let ask = Ask { wanted: wish.wanted, siblings: None, fewest: 0 };
        let mut best = Bid::NONE;
        for group in &reach.groups {
            let Group { members, tasks, .. } = &mut self.groups[group.at as usize];
            let tree = tasks.get_or_insert_with(|| Tree::new(Measure::Task, members, &self.cells));
            best = tree.search(members, &self.cells, &ask, best);
        }
        best.is_some().then(|| best.cell())
    }

    /// Gives away a cell's room.
    pub(super) fn reserve(&mut self, at: u32, wanted: Resources, process: Option<u32>) {
        let cell = &mut self.cells[at as usize];
        cell.reserve(wanted);
        self.starting += 1;
        if let Some(group) = self.group_of[at as usize] {
            let group = &mut self.groups[group as usize];
            for tree in group.lrps.iter_mut().chain(&mut group.tasks) {
                tree.update(cell);
            }
        }
        if let Some(process) = process {
            self.siblings.add(process, at, cell.zone);
        }
    }

    /// Counts which cells fall out by what.
    pub(super) fn count_out(&self, cause: Cause, wish: &Wish, reach: &Reach) -> Unplaced {
        let mut why = Unplaced {
            cause,
            cells: number(self.cells.len()),
            evacuating: self.evacuating,
            unhealthy: self.unhealthy,
            other_rootfs: reach.other_rootfs,
            other_tags: reach.other_tags,
            lacking_memory: 0,
            lacking_disk: 0,
            lacking_containers: 0,
            wanted: wish.wanted,
            most_free: Resources::default(),
        };
        for group in &reach.groups {
            for cell in &self.groups[group.at as usize].members {
                why.count(self.cells[*cell as usize].free);
            }
        }
        why
    }
}
