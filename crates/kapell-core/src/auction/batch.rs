//! A batch of work, each unit once, in the order in which it is placed.

use std::sync::Arc;

use rustc_hash::{FxBuildHasher, FxHashMap, FxHashSet};

use super::Work;
use super::kind::Kind;
use super::unplaced::Unplaced;
use crate::board::{LrpKey, ProcessGuid, Resources, TaskGuid};

#[derive(Debug, Default)]
pub(super) struct Batch {
    /// Gone are those that have been placed or refused.
    pub(super) work: Vec<Option<Work>>,
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
    /// Tasks have none.
    pub(super) process: Option<u32>,
    /// Of an instance.
    index: u32,
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
        let mut renamed = vec![None; self.instances.len()];
        let mut instances = Vec::with_capacity(self.instances.len());
        for process in units.iter_mut().filter_map(|unit| unit.process.as_mut()) {
            *process = *renamed[*process as usize].get_or_insert_with(|| {
                instances.push(self.instances[*process as usize]);
                number(instances.len() - 1)
            });
        }
        for process in self.numbers.values_mut() {
            *process = renamed[*process as usize].unwrap_or(*process);
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
        let mut numbers = Numbers { distinct: true, ..Numbers::default() };
        for at in 0..number(work.len()) {
            numbers.add(at, &work);
        }
        let mut units = if numbers.distinct {
            in_order_of_size(&numbers.wishes, numbers.by_name(), work.len())
        } else {
            sort_and_dedupe(&work, numbers.rank(&work))
        };
        let Numbers { kinds, wishes, mut processes, .. } = numbers;
        processes.number_in_order(&mut units);
        let work = work.into_iter().map(Some).collect();
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
                && before.rootfs() == work.rootfs()
                && before.placement_tags() == work.placement_tags()
        });
        if !alike {
            self.last_wish = self.wish(work);
        }
        let wish = self.last_wish;
        match work {
            Work::Lrp { key, .. } => {
                let last = self.lrps.last().and_then(|last| {
                    let last = (lrp(&all[last.work as usize])?, last.process?);
                    (last.0.process_guid == key.process_guid).then_some(last)
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
                self.lrps.push(Unit { work: at, wish, process: Some(process), index });
            }
            Work::Task { task_guid, .. } => {
                let last = self.tasks.last().and_then(|last| task(&all[last.work as usize]));
                self.distinct &= last.is_none_or(|last| last < task_guid);
                self.tasks.push(Unit { work: at, wish, process: None, index: 0 });
            }
        }
    }

    /// All units in order of their names, if they are distinct.
    fn by_name(&self) -> impl Iterator<Item = Unit> + Clone {
        let mut first = 0;
        let mut ranges = Vec::with_capacity(self.processes.instances.len());
        for count in self.processes.instances() {
            ranges.push(first..first + count as usize);
            first += count as usize;
        }
        let lrps = self.processes.by_name().into_iter();
        let lrps = lrps.map(move |process| ranges[process as usize].clone());
        lrps.flat_map(|range| &self.lrps[range]).chain(&self.tasks).copied()
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
                Work::Lrp { .. } => rank_of[unit.process.unwrap_or_default() as usize],
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
    let is_task = u32::from(unit.process.is_none());
    let Resources { memory_mb, disk_mb, .. } = wishes[unit.wish as usize].wanted;
    let fields = [(unit.index, 32), (is_task, 1), (!memory_mb, 32), (!disk_mb, 32)];
    let size =
        fields.into_iter().fold(0, |sum: u128, (field, bits)| sum << bits | u128::from(field));
    size << NAME_BITS | u128::from(name)
}

/// There is no room in memory for more names than fit into so many bits.
const NAME_BITS: u32 = 31;

/// Units that come in order of their names, in the order in which they are decided. There are few sizes, so that this
/// takes ten times as long for ten times as many.
fn in_order_of_size(
    wishes: &[Wish],
    units: impl Iterator<Item = Unit> + Clone,
    count: usize,
) -> Vec<Unit> {
    let mut number_of = FxHashMap::<u128, u32>::default();
    let mut counts = Vec::<(u128, u32)>::new();
    let mut size_of = Vec::with_capacity(count);
    for unit in units.clone() {
        let size = order(&unit, wishes, 0);
        let number = *number_of.entry(size).or_insert_with(|| {
            counts.push((size, 0));
            number(counts.len() - 1)
        });
        counts[number as usize].1 += 1;
        size_of.push(number);
    }
    let mut sizes: Vec<u32> = (0..number(counts.len())).collect();
    sizes.sort_unstable_by_key(|size| counts[*size as usize].0);
    let mut place_of = vec![0; counts.len()];
    let mut next = 0;
    for size in sizes {
        place_of[size as usize] = next;
        next += counts[size as usize].1;
    }
    let mut sorted = vec![Unit::default(); count];
    for (unit, size) in units.zip(size_of) {
        let place = &mut place_of[size as usize];
        sorted[*place as usize] = unit;
        *place += 1;
    }
    sorted
}

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
