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
    /// How often a cell looked best and had no room, since the leaves were put in order.
    misses: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Node {
    /// The least full cell in it, the lowest of equals, and how full that is.
    base: u64,
    cell: u32,
    /// The most that is free of each.
    free: Resources,
    rates: Rates,
}

const NOBODY: Node = Node {
    base: u64::MAX,
    cell: u32::MAX,
    free: Resources { memory_mb: 0, disk_mb: 0, containers: 0 },
    rates: Rates::HIGHEST,
};

impl Node {
    fn leaf(number: u32, cell: &Cell, measure: Measure) -> Self {
        Self { base: cell.base(measure), cell: number, free: cell.free, rates: cell.rates }
    }

    fn over(left: &Self, right: &Self) -> Self {
        let (base, cell) = (left.base, left.cell).min((right.base, right.cell));
        let free = Resources {
            memory_mb: left.free.memory_mb.max(right.free.memory_mb),
            disk_mb: left.free.disk_mb.max(right.free.disk_mb),
            containers: left.free.containers.max(right.free.containers),
        };
        Self { base, cell, free, rates: left.rates.lower(right.rates) }
    }
}

/// What is looked for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ask<'a> {
    pub(super) wanted: Resources,
    /// Where siblings are; none if there are none in the zone.
    pub(super) siblings: Option<&'a Siblings>,
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
        let mut tree = Self { measure, nodes, leaf_of: vec![0; members.len()], misses: 0 };
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
        best: Option<Bid>,
    ) -> Option<Bid> {
        let mut search = Search { tree: self, cells, ask, best, misses: 0 };
        search.visit(1, None);
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
    best: Option<Bid>,
    misses: usize,
}

impl Search<'_> {
    /// Looks into a node, of which one cell may be known to be no better than the best so far.
    fn visit(&mut self, at: usize, known: Option<u32>) {
        let node = &self.tree.nodes[at];
        let (wanted, measure) = (self.ask.wanted, self.tree.measure);
        if !fits(node.free, wanted) {
            return;
        }
        // Of all that cost as much as this, none has a lower number: it would have the same base.
        let bound = Bid {
            siblings_on_cell: self.ask.fewest,
            load: node.base + node.rates.share(wanted, measure),
            cell: node.cell,
        };
        if self.best.is_some_and(|best| best <= bound) {
            return;
        }
        let refused = node.cell;
        if Some(refused) != known {
            let cell = &self.cells[refused as usize];
            if fits(cell.free, wanted) {
                let bid = Bid {
                    siblings_on_cell: self.ask.siblings_on(refused),
                    load: node.base + cell.rates.share(wanted, measure),
                    cell: refused,
                };
                self.best = Some(self.best.map_or(bid, |best| best.min(bid)));
                if bid == bound {
                    return;
                }
            } else {
                self.misses += 1;
            }
        }
        let (left, right) = (2 * at, 2 * at + 1);
        let Some(node) = self.tree.nodes.get(left) else { return };
        let (with, without) = if node.cell == refused { (left, right) } else { (right, left) };
        // The better the best so far, the less there is to see: the half that may hold it comes first.
        self.visit(without, None);
        self.visit(with, Some(refused));
    }
}
