use std::collections::HashSet;
use std::fmt;
use std::hash::Hash;

/// Something that changes one step at a time.
pub trait Model {
    type State: Clone + Eq + Hash;

    /// Every state that a call can lead to if it got the answer that it got; none if it cannot
    /// have got it here.
    fn step(&self, state: &Self::State, call: usize) -> Vec<Self::State>;

    /// When a call began and, if that is known, ended. Calls are numbered by their beginning.
    fn times(&self, call: usize) -> (u64, Option<u64>);

    fn calls(&self) -> usize;

    /// Whether a call that was told that it failed may have done some of what it was asked for.
    fn may_have_acted(&self, _call: usize) -> bool {
        false
    }
}

/// No order of the calls explains their answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inexplicable {
    /// How many calls can be explained at best.
    pub explained: usize,
    /// The calls one of which should have come next.
    pub stuck: Vec<usize>,
}

impl fmt::Display for Inexplicable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} calls can be explained, then none of {:?}", self.explained, self.stuck)
    }
}

impl std::error::Error for Inexplicable {}

/// A point of the search: which calls have had their effect, and what came out.
struct Node<State> {
    taken: Box<[u64]>,
    count: usize,
    /// All calls before this one are taken.
    low: usize,
    state: State,
}

impl<State> Node<State> {
    fn has(&self, call: usize) -> bool {
        self.taken[call / 64] >> (call % 64) & 1 == 1
    }

    fn with(&self, call: usize, state: State, calls: usize) -> Self {
        let mut taken = self.taken.clone();
        taken[call / 64] |= 1 << (call % 64);
        let mut next = Self { taken, count: self.count + 1, low: self.low, state };
        while next.low < calls && next.has(next.low) {
            next.low += 1;
        }
        next
    }

    /// The calls that may come next: those that no other open call must precede.
    fn next_calls(&self, model: &impl Model) -> Vec<usize> {
        let mut first_end = u64::MAX;
        let mut open = Vec::new();
        for call in (self.low..model.calls()).filter(|call| !self.has(*call)) {
            let (begin, end) = model.times(call);
            if begin > first_end {
                break;
            }
            first_end = first_end.min(end.unwrap_or(u64::MAX));
            open.push(call);
        }
        open.retain(|call| model.times(*call).0 < first_end);
        open.sort_by_key(|call| model.times(*call).1.unwrap_or(u64::MAX));
        open
    }
}

/// Looks for an order that explains all answers: Wing and Gong's search, depth first, which
/// never visits the same set of calls with the same state twice (Lowe).
pub fn explain<M: Model>(model: &M, start: M::State) -> Result<(), Inexplicable> {
    let calls = model.calls();
    let answered = |call: &usize| model.times(*call).1.is_some();
    let wanted: Vec<usize> = (0..calls).filter(answered).collect();
    let taken = vec![0; calls.div_ceil(64)].into_boxed_slice();
    let mut open = vec![Node { taken, count: 0, low: 0, state: start }];
    let mut visited = HashSet::new();
    let mut best = Inexplicable { explained: 0, stuck: Vec::new() };
    while let Some(node) = open.pop() {
        if wanted.iter().all(|call| node.has(*call)) {
            return Ok(());
        }
        if !visited.insert((node.taken.clone(), node.state.clone())) {
            continue;
        }
        let next = node.next_calls(model);
        if node.count >= best.explained {
            best = Inexplicable { explained: node.count, stuck: next.clone() };
        }
        let mut followers = Vec::new();
        for call in next {
            let states = model.step(&node.state, call);
            let changes_nothing = states.contains(&node.state) && answered(&call);
            let can_change = states.iter().any(|state| *state != node.state);
            if changes_nothing && !(can_change && model.may_have_acted(call)) {
                // Whatever comes later can come after it as well: no other choice is better.
                followers = vec![node.with(call, node.state.clone(), calls)];
                break;
            }
            // A call without an answer that changes nothing need not be taken at all.
            let told = states.into_iter().filter(|state| changes_nothing || *state != node.state);
            followers.extend(told.map(|state| node.with(call, state, calls)));
        }
        open.extend(followers.into_iter().rev());
    }
    Err(best)
}
