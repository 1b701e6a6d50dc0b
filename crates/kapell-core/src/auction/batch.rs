//! A batch of work, each unit once, in the order in which it is placed.

use std::sync::Arc;

use rustc_hash::{FxBuildHasher, FxHashMap, FxHashSet};

use super::Work;
use super::kind::Kind;
use super::unplaced::Unplaced;
use crate::board::{ProcessGuid, Resources};

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
        self.instances[number as usize] += 1;
        number
    }

    pub(super) fn number(&self, guid: &ProcessGuid) -> Option<u32> {
        self.numbers.get(guid).copied()
    }

    pub(super) fn instances(&self) -> impl Iterator<Item = u32> {
        self.instances.iter().copied()
    }

    /// The place of each in the order of their names.
    fn ranks(&self) -> Vec<u32> {
        let mut guids: Vec<(&ProcessGuid, u32)> =
            self.numbers.iter().map(|(guid, number)| (guid, *number)).collect();
        guids.sort_unstable();
        let mut ranks = vec![0; guids.len()];
        for (rank, (_, process)) in (0..).zip(guids) {
            ranks[process as usize] = rank;
        }
        ranks
    }
}

impl Batch {
    pub(super) fn new(work: Vec<Work>) -> Self {
        let mut numbers = Numbers { distinct: true, ..Numbers::default() };
        let mut units = Vec::with_capacity(work.len());
        for (at, unit) in (0_u32..).zip(&work) {
            let before = at.checked_sub(1).map(|before| &work[before as usize]);
            units.push(numbers.unit(at, unit, before));
        }
        let units = if numbers.distinct {
            in_order_of_size(&work, &units)
        } else {
            sort_and_dedupe(&work, numbers.rank(&work, &units))
        };
        let Numbers { kinds, wishes, processes, .. } = numbers;
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
    /// As the units came they were in order of their names, so none of them is there twice.
    distinct: bool,
}

fn number(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

impl Numbers {
    fn unit(&mut self, at: u32, work: &Work, before: Option<&Work>) -> Unit {
        self.distinct &= before.is_none_or(|before| follows(before, work));
        let alike = before.is_some_and(|before| {
            (before.memory_mb(), before.disk_mb()) == (work.memory_mb(), work.disk_mb())
                && before.rootfs() == work.rootfs()
                && before.placement_tags() == work.placement_tags()
        });
        if !alike {
            self.last_wish = self.wish(work);
        }
        let wish = self.last_wish;
        let process = match work {
            Work::Lrp { key, .. } => Some(self.processes.add(&key.process_guid)),
            Work::Task { .. } => None,
        };
        Unit { work: at, wish, process }
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
    fn rank(&self, work: &[Work], units: &[Unit]) -> Vec<Ranked> {
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
            Ranked { order: order(work, name), unit: *unit }
        };
        let mut units: Vec<Ranked> = units.iter().enumerate().map(rank).collect();
        tasks.sort_unstable();
        let mut rank = 0;
        let mut last = None;
        for (guid, at) in tasks {
            rank += u32::from(last.replace(guid).is_some_and(|last| last != guid));
            let ranked = &mut units[at];
            ranked.order = order(&work[ranked.unit.work as usize], rank);
        }
        units
    }
}

/// First instances first, so that every process has one; then tasks; then all further instances.
fn order(work: &Work, name: u32) -> u128 {
    let (index, is_task) = match work {
        Work::Lrp { key, .. } => (key.index, 0),
        Work::Task { .. } => (0, 1),
    };
    let fields = [(index, 32), (is_task, 1), (!work.memory_mb(), 32), (!work.disk_mb(), 32)];
    let size =
        fields.into_iter().fold(0, |sum: u128, (field, bits)| sum << bits | u128::from(field));
    size << NAME_BITS | u128::from(name)
}

/// There is no room in memory for more names than fit into so many bits.
const NAME_BITS: u32 = 31;

/// Units that come in order of their names, in the order in which they are decided. There are few sizes, so that this
/// takes ten times as long for ten times as many.
fn in_order_of_size(work: &[Work], units: &[Unit]) -> Vec<Unit> {
    let mut number_of = FxHashMap::<u128, u32>::default();
    let mut counts = Vec::<(u128, u32)>::new();
    let mut size_of = Vec::with_capacity(units.len());
    for unit in units {
        let size = order(&work[unit.work as usize], 0);
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
    let mut sorted = vec![Unit::default(); units.len()];
    for (unit, size) in units.iter().zip(size_of) {
        let place = &mut place_of[size as usize];
        sorted[*place as usize] = *unit;
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

/// Whether the name of a unit comes after that of another.
fn follows(one: &Work, other: &Work) -> bool {
    match one {
        Work::Lrp { key: one, .. } => match other {
            Work::Lrp { key: other, .. } => one < other,
            Work::Task { .. } => true,
        },
        Work::Task { task_guid: one, .. } => match other {
            Work::Lrp { .. } => false,
            Work::Task { task_guid: other, .. } => one < other,
        },
    }
}

/// The parts of an order that say which unit it is: index, whether it is a task, and its name.
fn name(order: u128) -> (u64, u32) {
    let low = u32::try_from(order & u128::from(u32::MAX >> 1)).unwrap_or(u32::MAX);
    (u64::try_from(order >> 95).unwrap_or(u64::MAX), low)
}
