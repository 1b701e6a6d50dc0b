//! One batch on its way to the cells.

use std::sync::Arc;

use super::batch::{Batch, Refused, Unit};
use super::placed::{Failed, Placed};
use super::pool::{Pool, Reach};
use super::unplaced::{Cause, Unplaced};
use super::{Limits, Work};
use crate::board::CellState;

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
    placed: Placed,
}

impl Auction {
    /// The order of neither matters; work that is there twice is placed once.
    pub fn new(cells: Vec<CellState>, work: Vec<Work>, limits: Limits) -> Self {
        let batch = Batch::new(work);
        let pool = Pool::new(cells, &batch.processes);
        let reaches = batch.kinds.iter().map(|kind| pool.reach(kind)).collect();
        let mut placed = Placed { cells: pool.ids().to_vec(), ..Placed::default() };
        placed.assigned.reserve(batch.units.len());
        Self { batch, pool, reaches, limits, decided: 0, placed }
    }

    /// Decides about so many units more; answers whether there are any left.
    pub fn step(&mut self, most_units: usize) -> bool {
        let all = self.batch.units.len();
        let end = self.decided.saturating_add(most_units).min(all);
        for at in self.decided..end {
            let unit = self.batch.units[at];
            match self.decide(unit) {
                Ok(cell) => self.placed.assigned.push((unit.work, cell)),
                Err((why, text)) => {
                    self.placed.failed.push(Failed { work: unit.work, why, text });
                }
            }
        }
        self.decided = end;
        end < all
    }

    /// Decides about all that is left.
    pub fn finish(mut self) -> Placed {
        self.step(usize::MAX);
        Placed { work: self.batch.work, ..self.placed }
    }

    /// Reserves the best cell for a unit and answers its number, or why there is none.
    fn decide(&mut self, unit: Unit) -> Result<u32, (Unplaced, Arc<str>)> {
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
                        self.pool.reserve(best, wish.wanted, unit.process());
                        return Ok(best);
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
        Err((refused.why, Arc::clone(&refused.text)))
    }
}
