//! Who waits for whom, in a form that costs a few bytes an edge.

use super::{On, StepIx};

/// The other end of a dependency, and what it waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Edge {
    pub step: StepIx,
    pub on: On,
}

/// All dependencies of a workflow, both ways.
#[derive(Debug, Clone, Default)]
pub struct Graph {
    parents: Rows,
    children: Rows,
}

/// Lists of edges packed into one: row `i` is `edges[starts[i]..starts[i + 1]]`.
#[derive(Debug, Clone, Default)]
struct Rows {
    starts: Vec<u32>,
    edges: Vec<Edge>,
}

impl Rows {
    fn build(len: usize, edges: impl Iterator<Item = (StepIx, Edge)> + Clone) -> Self {
        let mut starts = vec![0_u32; len + 1];
        let mut count = 0;
        for (from, _) in edges.clone() {
            starts[from.index() + 1] += 1;
            count += 1;
        }
        for at in 1..=len {
            starts[at] += starts[at - 1];
        }
        let mut next = starts.clone();
        let mut packed = vec![Edge { step: StepIx(0), on: On::Success }; count];
        for (from, edge) in edges {
            packed[next[from.index()] as usize] = edge;
            next[from.index()] += 1;
        }
        Self { starts, edges: packed }
    }

    fn row(&self, ix: StepIx) -> &[Edge] {
        match self.starts.get(ix.index() + 1) {
            Some(&end) => &self.edges[self.starts[ix.index()] as usize..end as usize],
            None => &[],
        }
    }
}

impl Graph {
    /// Builds the graph of `len` steps from (child, parent, what the child waits for).
    pub fn build(len: usize, edges: &[(StepIx, StepIx, On)]) -> Self {
        let up = edges.iter().map(|&(child, parent, on)| (child, Edge { step: parent, on }));
        let down = edges.iter().map(|&(child, parent, on)| (parent, Edge { step: child, on }));
        Self { parents: Rows::build(len, up), children: Rows::build(len, down) }
    }

    pub fn len(&self) -> usize {
        self.parents.starts.len().saturating_sub(1)
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn edge_count(&self) -> usize {
        self.parents.edges.len()
    }

    /// What `step` waits for. A handler waits for nothing here.
    pub fn parents(&self, step: StepIx) -> &[Edge] {
        self.parents.row(step)
    }

    /// What waits for `step`.
    pub fn children(&self, step: StepIx) -> &[Edge] {
        self.children.row(step)
    }

    /// Every step that waits for `start`, directly or not, in no particular order.
    pub fn descendants(&self, start: StepIx) -> Vec<StepIx> {
        let mut seen = vec![false; self.len()];
        let mut found = Vec::new();
        let mut todo = vec![start];
        while let Some(step) = todo.pop() {
            for edge in self.children(step) {
                if !std::mem::replace(&mut seen[edge.step.index()], true) {
                    found.push(edge.step);
                    todo.push(edge.step);
                }
            }
        }
        found
    }

    /// An order in which every step comes after all it waits for; steps on a cycle are missing.
    pub fn order(&self) -> Vec<StepIx> {
        let mut waiting: Vec<usize> =
            (0..self.len()).map(|at| self.parents(StepIx::new(at)).len()).collect();
        let mut order: Vec<StepIx> =
            (0..self.len()).filter(|&at| waiting[at] == 0).map(StepIx::new).collect();
        let mut next = 0;
        while let Some(&step) = order.get(next) {
            next += 1;
            for edge in self.children(step) {
                let left = &mut waiting[edge.step.index()];
                *left -= 1;
                if *left == 0 {
                    order.push(edge.step);
                }
            }
        }
        order
    }

    /// Cycles, each as the steps one meets walking from one to what it waits for; disjoint.
    pub fn cycles(&self) -> Vec<Vec<StepIx>> {
        let order = self.order();
        if order.len() == self.len() {
            return Vec::new();
        }
        // A step that is not in the order has a parent that is not either, so the walk never ends
        // before it meets itself or an earlier walk.
        let mut walk_of = vec![0_usize; self.len()];
        for step in &order {
            walk_of[step.index()] = usize::MAX;
        }
        let mut cycles = Vec::new();
        for start in 0..self.len() {
            if walk_of[start] != 0 {
                continue;
            }
            let this_walk = start + 1;
            let mut path = Vec::new();
            let mut at = StepIx::new(start);
            while walk_of[at.index()] == 0 {
                walk_of[at.index()] = this_walk;
                path.push(at);
                let stuck = |edge: &&Edge| walk_of[edge.step.index()] != usize::MAX;
                at = self.parents(at).iter().find(stuck).expect("a stuck step waits").step;
            }
            if walk_of[at.index()] == this_walk {
                let from = path.iter().position(|&step| step == at).expect("on this path");
                cycles.push(path.split_off(from));
            }
        }
        cycles
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(len: usize, edges: &[(usize, usize)]) -> Graph {
        let edges: Vec<_> = edges
            .iter()
            .map(|&(child, parent)| (StepIx::new(child), StepIx::new(parent), On::Success))
            .collect();
        Graph::build(len, &edges)
    }

    fn plain(steps: &[StepIx]) -> Vec<usize> {
        steps.iter().map(|step| step.index()).collect()
    }

    #[test]
    fn order_puts_parents_first() {
        let graph = graph(4, &[(0, 3), (1, 0), (2, 1), (2, 3)]);
        assert_eq!(plain(&graph.order()), [3, 0, 1, 2]);
        assert!(graph.cycles().is_empty());
    }

    #[test]
    fn every_disjoint_cycle_is_found() {
        let graph = graph(7, &[(0, 1), (1, 2), (2, 0), (3, 3), (4, 0), (5, 6)]);
        let cycles: Vec<_> = graph.cycles().iter().map(|cycle| plain(cycle)).collect();
        assert_eq!(cycles, [vec![0, 1, 2], vec![3]]);
    }

    #[test]
    fn descendants_are_transitive_and_without_the_start() {
        let graph = graph(5, &[(1, 0), (2, 1), (3, 1), (4, 2), (4, 3)]);
        let mut found = plain(&graph.descendants(StepIx::new(1)));
        found.sort_unstable();
        assert_eq!(found, [2, 3, 4]);
    }
}
