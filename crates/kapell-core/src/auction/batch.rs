//! A batch of work, each unit once, in the order in which it is placed.

use std::sync::Arc;

use rustc_hash::{FxBuildHasher, FxHashMap, FxHashSet};

use super::Work;
use super::kind::Kind;
use super::unplaced::Unplaced;
use crate::board::{LrpKey, ProcessGuid, Resources, TaskGuid};

#[derive(Debug, Default)]
pub(super) struct Batch {
    pub(super) work: Vec<Work>,
    pub(super) units: Vec<Unit>,
    pub(super) kinds: Vec<Kind>,
    pub(super) wishes: Vec<Wish>,
    pub(super) processes: Processes,
}

/// One unit, by numbers.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Unit {
    pub(super) work: u32,
    pub(super) wish: u32,
    /// Tasks have [`NO_PROCESS`]: an option would take twice the room, and there are very many units.
    process: u32,
    /// Of an instance; of units that are being put in order, the number of their size.
    index: u32,
}

/// Stands for the process of a task.
const NO_PROCESS: u32 = u32::MAX;

impl Unit {
    /// Tasks have none.
    pub(super) const fn process(self) -> Option<u32> {
        if self.process == NO_PROCESS { None } else { Some(self.process) }
    }
}

/// A unit and its place in the order, which names it too.
#[derive(Debug, Clone, Copy)]
struct Ranked {
    order: u128,
    unit: Unit,
}

/// All that decides where a unit fits.
#[derive(Debug)]
pub(super) struct Wish {
    pub(super) kind: u32,
    pub(super) wanted: Resources,
    pub(super) refused: Option<Refused>,
}

/// Why nothing of a wish can be placed any more: what is free only shrinks.
#[derive(Debug)]
pub(super) struct Refused {
    /// How much was starting: as long as that is the same, nothing has been placed.
    pub(super) at: u64,
    pub(super) why: Unplaced,
    pub(super) text: Arc<str>,
}

/// The processes of a batch.
#[derive(Debug, Default)]
pub(super) struct Processes {
    numbers: FxHashMap<ProcessGuid, u32>,
    /// How many units each of them has.
    instances: Vec<u32>,
}

impl Processes {
    fn add(&mut self, guid: &ProcessGuid) -> u32 {
        let number = self.number(guid).unwrap_or_else(|| {
            let next = number(self.instances.len());
            self.numbers.insert(guid.clone(), next);
            self.instances.push(0);
            next
        });
        self.add_to(number)
    }

    fn add_to(&mut self, process: u32) -> u32 {
        self.instances[process as usize] += 1;
        process
    }

    pub(super) fn number(&self, guid: &ProcessGuid) -> Option<u32> {
        self.numbers.get(guid).copied()
    }

    pub(super) fn instances(&self) -> impl Iterator<Item = u32> {
        self.instances.iter().copied()
    }

    /// Gives them new numbers, in the order in which they are first placed: what lies in the order of their numbers is
    /// then walked through from one end to the other.
    fn number_in_order(&mut self, units: &mut [Unit]) {
        let mut renamed = vec![NO_PROCESS; self.instances.len()];
        let mut instances = Vec::with_capacity(self.instances.len());
        for unit in units.iter_mut().filter(|unit| unit.process != NO_PROCESS) {
            let name = &mut renamed[unit.process as usize];
            if *name == NO_PROCESS {
                *name = number(instances.len());
                instances.push(self.instances[unit.process as usize]);
            }
            unit.process = *name;
        }
        // All of them have units, so all have a new number.
        for process in self.numbers.values_mut() {
            *process = renamed[*process as usize];
        }
        self.instances = instances;
    }

    fn by_name(&self) -> Vec<u32> {
        // Most names differ at once, and then need not be fetched to be compared.
        let mut guids: Vec<(u64, &ProcessGuid, u32)> =
            self.numbers.iter().map(|(guid, number)| (beginning(guid), guid, *number)).collect();
        guids.sort_unstable();
        guids.into_iter().map(|(_, _, process)| process).collect()
    }

    /// The place of each in the order of their names.
    fn ranks(&self) -> Vec<u32> {
        let mut ranks = vec![0; self.instances.len()];
        for (rank, process) in (0..).zip(self.by_name()) {
            ranks[process as usize] = rank;
        }
        ranks
    }
}

impl Batch {
    pub(super) fn new(work: Vec<Work>) -> Self {
        let lrps = Vec::with_capacity(work.len());
        let mut numbers = Numbers { distinct: true, lrps, ..Numbers::default() };
        for at in 0..number(work.len()) {
            numbers.add(at, &work);
        }
        let mut units = if numbers.distinct {
            numbers.in_order()
        } else {
            sort_and_dedupe(&work, numbers.rank(&work))
        };
        let Numbers { kinds, wishes, mut processes, .. } = numbers;
        processes.number_in_order(&mut units);
        Self { work, units, kinds, wishes, processes }
    }
}

/// Numbers for all that units have in common.
#[derive(Debug, Default)]
struct Numbers {
    kinds: Vec<Kind>,
    wishes: Vec<Wish>,
    processes: Processes,
    kind_of: FxHashMap<Kind, u32>,
    wish_of: FxHashMap<(u32, Resources), u32>,
    last_wish: u32,
    lrps: Vec<Unit>,
    tasks: Vec<Unit>,
    /// The units of each process came together and in order, and so did tasks: none of them is there twice.
    distinct: bool,
}

/// Most instances of a process share its guid, and then it need not be fetched to be compared.
fn is_same(one: &ProcessGuid, other: &ProcessGuid) -> bool {
    std::ptr::eq(one.as_str(), other.as_str()) || one == other
}

/// The first bytes of a name, to be compared as the name is.
fn beginning(guid: &ProcessGuid) -> u64 {
    let mut bytes = [0; 8];
    for (byte, from) in bytes.iter_mut().zip(guid.as_str().bytes()) {
        *byte = from;
    }
    u64::from_be_bytes(bytes)
}

fn number(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

impl Numbers {
    fn add(&mut self, at: u32, all: &[Work]) {
        let work = &all[at as usize];
        let alike = at.checked_sub(1).map(|before| &all[before as usize]).is_some_and(|before| {
            (before.memory_mb(), before.disk_mb()) == (work.memory_mb(), work.disk_mb())
                && before.needs() == work.needs()
        });
        if !alike {
            self.last_wish = self.wish(work);
        }
        let wish = self.last_wish;
        match work {
            Work::Lrp { key, .. } => {
                let last = self.lrps.last().and_then(|last| {
                    let (process, last) = (last.process, lrp(&all[last.work as usize])?);
                    is_same(&last.process_guid, &key.process_guid).then_some((last, process))
                });
                let process = if let Some((last, process)) = last {
                    self.distinct &= last.index < key.index;
                    self.processes.add_to(process)
                } else {
                    let known = number(self.processes.instances.len());
                    let process = self.processes.add(&key.process_guid);
                    self.distinct &= process == known;
                    process
                };
                let index = key.index;
                self.lrps.push(Unit { work: at, wish, process, index });
            }
            Work::Task { task_guid, .. } => {
                let last = self.tasks.last().and_then(|last| task(&all[last.work as usize]));
                self.distinct &= last.is_none_or(|last| last < task_guid);
                self.tasks.push(Unit { work: at, wish, process: NO_PROCESS, index: 0 });
            }
        }
    }

    /// All units in the order in which they are decided, if they are distinct. There are few sizes, so that this takes ten
    /// times as long for ten times as many.
    fn in_order(&mut self) -> Vec<Unit> {
        let mut next = self.number_sizes();
        let mut first = 0;
        let mut ranges = Vec::with_capacity(self.processes.instances.len());
        for count in self.processes.instances() {
            ranges.push((first, first + count));
            first += count;
        }
        let mut sorted = vec![Unit::default(); self.lrps.len() + self.tasks.len()];
        let mut put = |unit: &Unit| {
            let place = &mut next[unit.index as usize];
            sorted[*place as usize] = *unit;
            *place += 1;
        };
        for process in self.processes.by_name() {
            let (begin, end) = ranges[process as usize];
            self.lrps[begin as usize..end as usize].iter().for_each(&mut put);
        }
        self.tasks.iter().for_each(put);
        sorted
    }

    /// Gives each unit the number of its size instead of its index; answers where those of each size begin.
    fn number_sizes(&mut self) -> Vec<u32> {
        let mut number_of = FxHashMap::<u128, u32>::default();
        let mut counts = Vec::<(u128, u32)>::new();
        for unit in self.lrps.iter_mut().chain(&mut self.tasks) {
            let size = order(unit, &self.wishes, 0);
            unit.index = *number_of.entry(size).or_insert_with(|| {
                counts.push((size, 0));
                number(counts.len() - 1)
            });
            counts[unit.index as usize].1 += 1;
        }
        let mut sizes: Vec<u32> = (0..number(counts.len())).collect();
        sizes.sort_unstable_by_key(|size| counts[*size as usize].0);
        let mut begin_of = vec![0; counts.len()];
        let mut next = 0;
        for size in sizes {
            begin_of[size as usize] = next;
            next += counts[size as usize].1;
        }
        begin_of
    }

    fn wish(&mut self, work: &Work) -> u32 {
        let kind = Kind::of(work);
        let kinds = &mut self.kinds;
        let kind = *self.kind_of.entry(kind).or_insert_with_key(|kind| {
            kinds.push(kind.clone());
            number(kinds.len() - 1)
        });
        let (memory_mb, disk_mb) = (work.memory_mb(), work.disk_mb());
        let wanted = Resources { memory_mb, disk_mb, containers: 1 };
        let wishes = &mut self.wishes;
        *self.wish_of.entry((kind, wanted)).or_insert_with(|| {
            wishes.push(Wish { kind, wanted, refused: None });
            number(wishes.len() - 1)
        })
    }

    /// Gives each unit its place: by rank, then larger before smaller, then by name.
    fn rank(&self, work: &[Work]) -> Vec<Ranked> {
        let rank_of = self.processes.ranks();
        let mut tasks = Vec::new();
        let rank = |(at, unit): (usize, &Unit)| {
            let work = &work[unit.work as usize];
            let name = match work {
                Work::Lrp { .. } => rank_of[unit.process as usize],
                Work::Task { task_guid, .. } => {
                    tasks.push((task_guid, at));
                    0
                }
            };
            Ranked { order: order(unit, &self.wishes, name), unit: *unit }
        };
        let units = self.lrps.iter().chain(&self.tasks);
        let mut units: Vec<Ranked> = units.enumerate().map(rank).collect();
        tasks.sort_unstable();
        let mut rank = 0;
        let mut last = None;
        for (guid, at) in tasks {
            rank += u32::from(last.replace(guid).is_some_and(|last| last != guid));
            let ranked = &mut units[at];
            ranked.order = order(&ranked.unit, &self.wishes, rank);
        }
        units
    }
}

/// First instances first, so that every process has one; then tasks; then all further instances.
fn order(unit: &Unit, wishes: &[Wish], name: u32) -> u128 {
    let is_task = u32::from(unit.process == NO_PROCESS);
    let Resources { memory_mb, disk_mb, .. } = wishes[unit.wish as usize].wanted;
    let fields = [(unit.index, 32), (is_task, 1), (!memory_mb, 32), (!disk_mb, 32)];
    let size =
        fields.into_iter().fold(0, |sum: u128, (field, bits)| sum << bits | u128::from(field));
    size << NAME_BITS | u128::from(name)
}

/// There is no room in memory for more names than fit into so many bits.
const NAME_BITS: u32 = 31;

/// Of units of one name the largest stays, the first in order; what is wished for besides decides between equals.
fn sort_and_dedupe(work: &[Work], mut units: Vec<Ranked>) -> Vec<Unit> {
    let wish = |ranked: &Ranked| {
        let work = &work[ranked.unit.work as usize];
        (work.rootfs(), work.placement_tags())
    };
    units.sort_unstable_by(|one, other| {
        one.order.cmp(&other.order).then_with(|| wish(one).cmp(&wish(other)))
    });
    let mut seen = FxHashSet::with_capacity_and_hasher(units.len(), FxBuildHasher);
    units.retain(|unit| seen.insert(name(unit.order)));
    units.into_iter().map(|ranked| ranked.unit).collect()
}

fn lrp(work: &Work) -> Option<&LrpKey> {
    match work {
        Work::Lrp { key, .. } => Some(key),
        Work::Task { .. } => None,
    }
}

fn task(work: &Work) -> Option<&TaskGuid> {
    match work {
        Work::Lrp { .. } => None,
        Work::Task { task_guid, .. } => Some(task_guid),
    }
}

/// The parts of an order that say which unit it is: index, whether it is a task, and its name.
fn name(order: u128) -> (u64, u32) {
    let low = u32::try_from(order & u128::from(u32::MAX >> 1)).unwrap_or(u32::MAX);
    (u64::try_from(order >> 95).unwrap_or(u64::MAX), low)
}
