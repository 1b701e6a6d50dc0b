//! The best of many cells, found without looking at each.

use super::bid::{Bid, Measure, Rates};
use super::cell::Cell;
use super::siblings::Siblings;
use crate::board::Resources;

/// Cells under a tree of bounds: each node knows the least that a bid in it can be, and the most that is free in it.
///
/// Loads and siblings only grow in a batch and what is free only shrinks. Any order of the leaves gives the same answer.
#[derive(Debug)]
pub(super) struct Tree {
    measure: Measure,
    /// The root is at 1, the children of `n` are at `2n` and `2n + 1`; leaves make the second half.
    nodes: Vec<Node>,
    /// Where the leaf of each member is.
    leaf_of: Vec<u32>,
    /// What all cells have in common, if they do: then a unit adds as much to each of them.
    rates: Option<Rates>,
    /// How often a cell looked best and had no room, since the leaves were put in order.
    misses: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Node {
    /// The least full cell in it, the lowest of equals, and how full that is.
    base: u64,
    cell: u32,
    /// The same of all but that one: the first often has a sibling, and then this one is taken.
    next_cell: u32,
    next_base: u64,
    /// The most that is free of each.
    free: Resources,
    rates: Rates,
}

const NOBODY: Node = Node {
    base: u64::MAX,
    cell: u32::MAX,
    next_cell: u32::MAX,
    next_base: u64::MAX,
    free: Resources { memory_mb: 0, disk_mb: 0, containers: 0 },
    rates: Rates::HIGHEST,
};

impl Node {
    fn leaf(number: u32, cell: &Cell, measure: Measure) -> Self {
        let base = cell.base(measure);
        Self { base, cell: number, free: cell.free, rates: cell.rates, ..NOBODY }
    }

    fn over(left: &Self, right: &Self) -> Self {
        let is_left = (left.base, left.cell) < (right.base, right.cell);
        let (first, other) = if is_left { (left, right) } else { (right, left) };
        let (next_base, next_cell) =
            (first.next_base, first.next_cell).min((other.base, other.cell));
        let free = Resources {
            memory_mb: left.free.memory_mb.max(right.free.memory_mb),
            disk_mb: left.free.disk_mb.max(right.free.disk_mb),
            containers: left.free.containers.max(right.free.containers),
        };
        let rates = left.rates.lower(right.rates);
        Self { base: first.base, cell: first.cell, next_cell, next_base, free, rates }
    }
}

/// What is looked for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ask<'a> {
    pub(super) wanted: Resources,
    /// Where siblings are; none if there are none in the zone.
    pub(super) siblings: Option<Siblings<'a>>,
    /// No cell with room has fewer siblings.
    pub(super) fewest: u32,
}

impl Ask<'_> {
    fn siblings_on(&self, cell: u32) -> u32 {
        self.siblings.map_or(0, |siblings| siblings.on_cell(cell))
    }
}

pub(super) const fn fits(free: Resources, wanted: Resources) -> bool {
    free.memory_mb >= wanted.memory_mb
        && free.disk_mb >= wanted.disk_mb
        && free.containers >= wanted.containers
}

impl Tree {
    pub(super) fn new(measure: Measure, members: &[u32], cells: &[Cell]) -> Self {
        let leaves = members.len().next_power_of_two();
        let nodes = vec![NOBODY; 2 * leaves];
        let mut rates = members.iter().map(|member| cells[*member as usize].rates);
        let first = rates.next();
        let rates = first.filter(|first| rates.all(|rates| rates == *first));
        let mut tree = Self { measure, nodes, leaf_of: vec![0; members.len()], rates, misses: 0 };
        tree.plant(members, cells);
        tree
    }

    /// Puts cells that lack the same next to each other, so that they are passed over together.
    fn plant(&mut self, members: &[u32], cells: &[Cell]) {
        let mut order: Vec<u32> = (0..).take(members.len()).collect();
        order.sort_by_cached_key(|member| {
            let number = members[*member as usize];
            let cell = &cells[number as usize];
            (cell.rates.scarcest(cell.free), number)
        });
        let leaves = self.nodes.len() / 2;
        for (at, member) in (leaves..).zip(order) {
            let number = members[member as usize];
            self.nodes[at] = Node::leaf(number, &cells[number as usize], self.measure);
            self.leaf_of[member as usize] = u32::try_from(at).unwrap_or(u32::MAX);
        }
        for at in (1..leaves).rev() {
            self.nodes[at] = Node::over(&self.nodes[2 * at], &self.nodes[2 * at + 1]);
        }
        self.misses = 0;
    }

    /// Takes in what has become of a cell.
    pub(super) fn update(&mut self, cell: &Cell) {
        let mut at = self.leaf_of[cell.member as usize] as usize;
        self.nodes[at] = Node::leaf(self.nodes[at].cell, cell, self.measure);
        while at > 1 {
            at /= 2;
            let node = Node::over(&self.nodes[2 * at], &self.nodes[2 * at + 1]);
            if node == self.nodes[at] {
                break;
            }
            self.nodes[at] = node;
        }
    }

    /// The best of `best` and all that is in here.
    pub(super) fn search(
        &mut self,
        members: &[u32],
        cells: &[Cell],
        ask: &Ask<'_>,
        best: Bid,
    ) -> Bid {
        let share = self.rates.map(|rates| rates.share(ask.wanted, self.measure));
        let mut search = Search { tree: self, cells, ask, share, best, misses: 0 };
        if let Some(bound) = search.promise(&search.tree.nodes[1]) {
            search.visit(1, bound);
        }
        let Search { best, misses, .. } = search;
        self.misses += misses;
        // As many as it costs to put them in order.
        if self.misses > 16 * members.len() {
            self.plant(members, cells);
        }
        best
    }
}

struct Search<'a> {
    tree: &'a Tree,
    cells: &'a [Cell],
    ask: &'a Ask<'a>,
    /// What the unit adds to a cell, if it is as much for all.
    share: Option<u64>,
    best: Bid,
    misses: usize,
}

impl Search<'_> {
    fn share(&self, rates: Rates) -> u64 {
        self.share.unwrap_or_else(|| rates.share(self.ask.wanted, self.tree.measure))
    }

    /// The least that a bid in a node can be, if that is better than the best so far.
    fn promise(&self, node: &Node) -> Option<Bid> {
        if !fits(node.free, self.ask.wanted) {
            return None;
        }
        // Of all that cost as much as this, none has a lower number: it would have the same base.
        let bound = Bid::new(self.ask.fewest, node.base + self.share(node.rates), node.cell);
        (bound < self.best).then_some(bound)
    }

    /// Looks into a node of this promise.
    fn visit(&mut self, mut at: usize, bound: Bid) {
        if self.try_cell(bound) || self.try_next(&self.tree.nodes[at]) {
            return;
        }
        // What is left of the node are the other halves on the way down to that cell. The better the best so far, the less
        // there is to see: the largest come first.
        while let Some(left) = self.tree.nodes.get(2 * at) {
            let is_left = left.cell == bound.cell();
            let (with, without) = (2 * at + usize::from(!is_left), 2 * at + usize::from(is_left));
            if let Some(bound) = self.promise(&self.tree.nodes[without]) {
                self.visit(without, bound);
            }
            if self.best <= bound {
                return;
            }
            at = with;
        }
    }

    /// The same for the second least full cell of a node, once the least full one has bid.
    fn try_next(&mut self, node: &Node) -> bool {
        if node.next_cell == NOBODY.cell {
            return true;
        }
        let load = node.next_base + self.share(node.rates);
        self.try_cell(Bid::new(self.ask.fewest, load, node.next_cell))
    }

    /// Has the least full cell of a node bid; answers whether nothing else in the node can be better.
    fn try_cell(&mut self, bound: Bid) -> bool {
        let cell = &self.cells[bound.cell() as usize];
        if !fits(cell.free, self.ask.wanted) {
            self.misses += 1;
            return false;
        }
        let load = cell.base(self.tree.measure) + self.share(cell.rates);
        let bid = Bid::new(self.ask.siblings_on(bound.cell()), load, bound.cell());
        self.best = self.best.min(bid);
        bid == bound
    }
}
