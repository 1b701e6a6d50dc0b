//! A plan that is being drawn, some units at a time.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::sync::Arc;

use super::shape::{Plan, Step, Stop, Unit, Wish};
use super::{Cells, Outline};
use crate::auction::{Auction, Limits, Placed, Work};
use crate::board::actual::LrpKey;
use crate::board::cell::{CellState, Held};
use crate::board::ids::{CellId, InstanceGuid, ProcessGuid, TaskGuid};
use crate::board::placement::{NO_ANSWER, NO_CELL};

/// Places what the wishes ask for, one after the other as they are applied.
///
/// What waits on the board is placed together with the first of them that starts something. What then
/// finds no cell finds none later either: room only shrinks, so it is not tried again.
#[derive(Debug)]
pub struct Drawing {
    wishes: Vec<Wish>,
    stops: Vec<Stop>,
    silent: Vec<CellId>,
    /// Without what they hold.
    states: Vec<CellState>,
    numbers: BTreeMap<CellId, usize>,
    /// What they hold of the processes that matter here, by number of the cell.
    held: BTreeMap<ProcessGuid, Vec<(usize, Held<LrpKey>)>>,
    rounds: VecDeque<Vec<Work>>,
    auction: Option<Auction>,
    /// What waits on the board already, and whether it belongs to a wish. All else is wished for.
    waiting: BTreeMap<Name, bool>,
    done: Vec<(Name, Result<CellId, Arc<str>>)>,
}

impl Drawing {
    pub fn new(outlines: Vec<Outline>, others: Vec<Work>, cells: Cells) -> Self {
        let refuses = outlines.iter().any(|it| it.wish.step == Step::Refused);
        let mut drawing = Self {
            wishes: Vec::with_capacity(outlines.len()),
            stops: Vec::new(),
            silent: cells.silent,
            numbers: cells.states.iter().map(|it| it.cell_id.clone()).zip(0..).collect(),
            states: cells.states,
            held: BTreeMap::new(),
            rounds: VecDeque::new(),
            auction: None,
            waiting: BTreeMap::new(),
            done: Vec::new(),
        };
        if refuses {
            drawing.wishes = outlines.into_iter().map(|it| not_done(it.wish)).collect();
            return drawing;
        }
        let mut first = Vec::new();
        let mut waits = |units: Vec<Work>, wished: bool| {
            for unit in units {
                drawing.waiting.insert(Name::of(&unit), wished);
                first.push(unit);
            }
        };
        waits(others, false);
        for outline in outlines {
            waits(outline.waits, true);
            drawing.wishes.push(outline.wish);
            drawing.stops.extend(outline.stops);
            if !outline.starts.is_empty() {
                drawing.rounds.push_back(outline.starts);
            }
        }
        drawing.take_held(&first);
        first.retain(|unit| !drawing.is_done(unit));
        match drawing.rounds.front_mut() {
            Some(round) => round.append(&mut first),
            None => drawing.rounds.push_back(first),
        }
        drawing
    }

    /// Places so many units more; answers whether there are any left.
    pub fn step(&mut self, most_units: usize) -> bool {
        let Some(auction) = &mut self.auction else {
            let Some(round) = self.rounds.pop_front() else { return false };
            self.begin(round);
            return true;
        };
        if !auction.step(most_units)
            && let Some(auction) = self.auction.take()
        {
            self.gather(&auction.finish());
        }
        true
    }

    /// Places all that is left.
    pub fn finish(mut self) -> Plan {
        while self.step(usize::MAX) {}
        self.done.sort_by(|a, b| a.0.cmp(&b.0));
        let waiting = self.waiting;
        let unit = |(name, place): (Name, Result<CellId, Arc<str>>)| {
            let (wished, waits) =
                waiting.get(&name).map_or((true, false), |wished| (*wished, true));
            let (cell_id, reason) = match place {
                Ok(cell_id) => (Some(cell_id), None),
                Err(reason) => (None, Some(reason)),
            };
            Unit { subject: name.to_string(), cell_id, reason, wished, waits }
        };
        let units: Vec<Unit> = self.done.into_iter().map(unit).collect();
        let refuses = self.wishes.iter().any(|wish| wish.step == Step::Refused);
        let lacks = units.iter().any(|unit| unit.wished && unit.cell_id.is_none());
        let fits = !refuses && !lacks;
        Plan { fits, wishes: self.wishes, units, stops: self.stops, silent: self.silent }
    }

    fn is_done(&self, unit: &Work) -> bool {
        let name = Name::of(unit);
        self.done.binary_search_by(|(done, _)| done.cmp(&name)).is_ok()
    }

    /// Notes what cells hold of the processes that matter, and what waits while a cell has room
    /// reserved for it already.
    fn take_held(&mut self, first: &[Work]) {
        let all = self.rounds.iter().flatten().chain(first);
        let processes: BTreeSet<ProcessGuid> = all.filter_map(process_of).cloned().collect();
        let mut reserved = BTreeMap::new();
        for (number, cell) in self.states.iter_mut().enumerate() {
            let mut reserve = |name: Name| {
                if !cell.evacuating && self.waiting.contains_key(&name) {
                    reserved.insert(name, Ok(cell.cell_id.clone()));
                }
            };
            for task in std::mem::take(&mut cell.tasks) {
                reserve(Name::Task(task.key));
            }
            for held in std::mem::take(&mut cell.lrps) {
                reserve(Name::Lrp(held.key.clone()));
                if processes.contains(&held.key.process_guid) {
                    let guid = held.key.process_guid.clone();
                    self.held.entry(guid).or_default().push((number, held));
                }
            }
        }
        self.done.extend(reserved);
    }

    fn begin(&mut self, round: Vec<Work>) {
        if self.states.is_empty() {
            let why: Arc<str> = if self.silent.is_empty() { NO_CELL } else { NO_ANSWER }.into();
            let all = round.iter().map(|unit| (Name::of(unit), Err(Arc::clone(&why))));
            self.done.extend(all);
            return;
        }
        let mut states = self.states.clone();
        let processes: BTreeSet<&ProcessGuid> = round.iter().filter_map(process_of).collect();
        for (number, held) in processes.iter().filter_map(|guid| self.held.get(*guid)).flatten() {
            states[*number].lrps.push(held.clone());
        }
        // How many start at once only delays: in the end all that fits is placed.
        self.auction = Some(Auction::new(states, round, Limits { in_flight_starts: None }));
    }

    fn gather(&mut self, placed: &Placed) {
        for (cell_id, unit) in placed.assigned() {
            if let Some(number) = self.numbers.get(cell_id) {
                self.reserve(*number, unit);
            }
            self.done.push((Name::of(unit), Ok(cell_id.clone())));
        }
        self.done
            .extend(placed.failed().map(|(unit, why, _)| (Name::of(unit), Err(Arc::clone(why)))));
    }

    /// Has a cell stand as it does once it was given a unit.
    fn reserve(&mut self, number: usize, unit: &Work) {
        let cell = &mut self.states[number];
        let (memory_mb, disk_mb) = (unit.memory_mb(), unit.disk_mb());
        cell.available.memory_mb = cell.available.memory_mb.saturating_sub(memory_mb);
        cell.available.disk_mb = cell.available.disk_mb.saturating_sub(disk_mb);
        cell.available.containers = cell.available.containers.saturating_sub(1);
        cell.starting = cell.starting.saturating_add(1);
        // Only of what waited can siblings come later.
        if let Work::Lrp { key, .. } = unit
            && self.waiting.contains_key(&Name::of(unit))
        {
            let instance_guid = InstanceGuid::from("plan");
            let held = Held { key: key.clone(), instance_guid, memory_mb, disk_mb };
            self.held.entry(key.process_guid.clone()).or_default().push((number, held));
        }
    }
}

/// What becomes of a wish while another one is refused.
fn not_done(wish: Wish) -> Wish {
    match wish.step {
        Step::Refused | Step::Unchanged => wish,
        Step::Create | Step::ScaleUp | Step::ScaleDown | Step::Update | Step::NotDone => {
            Wish { step: Step::NotDone, fields: Vec::new(), after: wish.before, ..wish }
        }
    }
}

const fn process_of(work: &Work) -> Option<&ProcessGuid> {
    match work {
        Work::Lrp { key, .. } => Some(&key.process_guid),
        Work::Task { .. } => None,
    }
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Name {
    Lrp(LrpKey),
    Task(TaskGuid),
}

impl Name {
    fn of(work: &Work) -> Self {
        match work {
            Work::Lrp { key, .. } => Self::Lrp(key.clone()),
            Work::Task { task_guid, .. } => Self::Task(task_guid.clone()),
        }
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lrp(key) => write!(f, "lrp/{key}"),
            Self::Task(guid) => write!(f, "task/{guid}"),
        }
    }
}
