//! What `after` stands for.

use rustc_hash::FxHashMap;

use super::{Graph, On, StepIx};

/// How many dependencies `after` may stand for in all.
pub(super) const MAX_AFTER_EDGES: usize = 20_000_000;

/// `after: [X]` waits for X and all that depends on X, except what depends on the step itself.
/// Fails with the step at which there are too many dependencies to be meant.
///
/// `afters` are pairs of a step and what it comes after, those of one step side by side.
pub(super) fn unfold(
    len: usize,
    edges: &mut Vec<(StepIx, StepIx, On)>,
    afters: &[(StepIx, StepIx)],
) -> Result<(), StepIx> {
    if afters.is_empty() {
        return Ok(());
    }
    let depends = Graph::build(len, edges);
    let order = depends.order();
    let limit = edges.len() + MAX_AFTER_EDGES;
    edges.extend(afters.iter().map(|&(step, parent)| (step, parent, On::Success)));
    if order.len() < len {
        // There is a cycle, so the file is refused whatever comes after what.
        return Ok(());
    }
    let mut followers: FxHashMap<StepIx, Vec<StepIx>> = FxHashMap::default();
    let mut followed: usize = 0;
    for &(step, parent) in afters {
        let found = followers.entry(parent).or_insert_with(|| {
            let found = depends.descendants(parent);
            followed += found.len();
            found
        });
        if followed > MAX_AFTER_EDGES && !found.is_empty() {
            return Err(step);
        }
    }
    let mut rest = afters;
    while let Some(batch) = next_batch(&mut rest) {
        let unfolds = |&(step, parent): &(StepIx, StepIx)| {
            !followers[&parent].is_empty() && !depends.children(step).is_empty()
        };
        let own = batch.iter().any(unfolds).then(|| own_followers(&depends, &order, batch));
        let mut bit = 0;
        for (at, &(step, parent)) in batch.iter().enumerate() {
            bit += u32::from(at > 0 && batch[at - 1].0 != step);
            let is_own = |follower: StepIx| {
                follower == step
                    || own.as_ref().is_some_and(|own| own[follower.index()] >> bit & 1 == 1)
            };
            let others = followers[&parent].iter().filter(|&&follower| !is_own(follower));
            edges.extend(others.map(|&follower| (step, follower, On::Success)));
            if edges.len() > limit {
                return Err(step);
            }
        }
    }
    Ok(())
}

/// Takes the pairs of the next 64 steps.
fn next_batch<'a>(rest: &mut &'a [(StepIx, StepIx)]) -> Option<&'a [(StepIx, StepIx)]> {
    let same_step = |a: &(StepIx, StepIx), b: &(StepIx, StepIx)| a.0 == b.0;
    let length = rest.chunk_by(same_step).take(64).map(<[_]>::len).sum();
    let (batch, others) = rest.split_at(length);
    *rest = others;
    (!batch.is_empty()).then_some(batch)
}

/// For every step of the workflow: bit `n` is set if it follows the `n`th step of the batch.
///
/// One walk for 64 steps, since in a chain each has all the later ones to follow it.
fn own_followers(depends: &Graph, order: &[StepIx], batch: &[(StepIx, StepIx)]) -> Vec<u64> {
    let mut own = vec![0_u64; depends.len()];
    for (bit, pairs) in batch.chunk_by(|a, b| a.0 == b.0).enumerate() {
        own[pairs[0].0.index()] |= 1 << bit;
    }
    for &step in order {
        let mask = own[step.index()];
        if mask != 0 {
            for edge in depends.children(step) {
                own[edge.step.index()] |= mask;
            }
        }
    }
    own
}
