//! One batch on its way to the cells.

use std::sync::Arc;

use super::batch::{Batch, Refused, Unit};
use super::pool::{Pool, Reach};
use super::unplaced::{Cause, Unplaced};
use super::{Limits, Placed, Work};
use crate::board::CellState;

/// How many units are decided before they are gathered.
const AT_ONCE: usize = 64;

/// The number of a cell, or why there is none.
type Decided = Result<u32, Box<(Unplaced, Arc<str>)>>;

/// A batch of work that is placed on cells, some units at a time.
#[derive(Debug)]
pub struct Auction {
    batch: Batch,
    pool: Pool,
    /// By number of the kind.
    reaches: Vec<Reach>,
    limits: Limits,
    /// How many units are decided.
    decided: usize,
    slice: Vec<Decided>,
    taken: Vec<Option<Work>>,
    placed: Placed,
}

impl Auction {
    /// The order of neither matters; work that is there twice is placed once.
    pub fn new(cells: Vec<CellState>, work: Vec<Work>, limits: Limits) -> Self {
        let batch = Batch::new(work);
        let pool = Pool::new(cells, &batch.processes);
        let reaches = batch.kinds.iter().map(|kind| pool.reach(kind)).collect();
        let mut placed = Placed::default();
        placed.assigned.reserve(batch.units.len());
        Self {
            batch,
            pool,
            reaches,
            limits,
            decided: 0,
            slice: Vec::new(),
            taken: Vec::new(),
            placed,
        }
    }

    /// Decides about so many units more; answers whether there are any left.
    pub fn step(&mut self, most_units: usize) -> bool {
        let all = self.batch.units.len();
        let end = self.decided.saturating_add(most_units).min(all);
        while self.decided < end {
            self.decide_some(end.min(self.decided.saturating_add(AT_ONCE)));
        }
        end < all
    }

    /// What units need lies far apart in memory: it is fetched, and gathered, for many side by side.
    fn decide_some(&mut self, end: usize) {
        let begin = std::mem::replace(&mut self.decided, end);
        for at in begin..end {
            let decided = self.decide(self.batch.units[at]);
            self.slice.push(decided);
        }
        // Apart from what follows: counting who shares a cell's id would have each of them wait for the one before.
        for unit in &self.batch.units[begin..end] {
            self.taken.push(self.batch.work[unit.work as usize].take());
        }
        for (work, decided) in self.taken.drain(..).zip(self.slice.drain(..)) {
            let Some(work) = work else { continue };
            match decided {
                Ok(cell) => self.placed.assigned.push((self.pool.id(cell), work)),
                Err(refused) => {
                    self.placed.failed.push((work, refused.1));
                    self.placed.unplaced.push(refused.0);
                }
            }
        }
    }

    /// Decides about all that is left.
    pub fn finish(mut self) -> Placed {
        self.step(usize::MAX);
        self.placed
    }

    /// Reserves the best cell for a unit, or says why there is none.
    fn decide(&mut self, unit: Unit) -> Decided {
        let Batch { wishes, kinds, .. } = &mut self.batch;
        let wish = &mut wishes[unit.wish as usize];
        let reach = &self.reaches[wish.kind as usize];
        let cause = match &wish.refused {
            Some(refused) => refused.why.cause,
            None => {
                let best = match unit.process() {
                    Some(process) => self.pool.best_for_lrp(process, (unit.wish, wish), reach),
                    None => self.pool.best_for_task(wish, reach),
                };
                match best {
                    Some(best) if self.limits.allow(self.pool.starting()) => {
                        self.pool.reserve(best.cell, wish.wanted, unit.process());
                        return Ok(best.cell);
                    }
                    Some(_) => Cause::InFlightLimit,
                    None if reach.is_empty() => Cause::NoCompatibleCell,
                    None => Cause::NoRoom,
                }
            }
        };
        // What one unit could not get, none that wishes for the same gets later: only the counts change.
        let at = self.pool.starting();
        let known = wish.refused.take().filter(|refused| refused.at == at);
        let refused = known.unwrap_or_else(|| {
            let why = self.pool.count_out(cause, wish, reach);
            Refused { at, why, text: why.text(&kinds[wish.kind as usize]).into() }
        });
        let refused = wish.refused.insert(refused);
        Err(Box::new((refused.why, Arc::clone(&refused.text))))
    }
}
