//! Which cells are there. Kept in memory only: a new leader waits for them to say so again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kapell_core::board::{CellId, CellPresence};
use kapell_core::seams::Moment;

/// How often somebody is waited for once more without having been heard of in between: a host that
/// is always late loses who is gone all the same.
const CHANCES: u32 = 2;

#[derive(Debug)]
pub(super) struct Presences {
    ttl: Duration,
    cells: Mutex<Cells>,
}

#[derive(Debug)]
struct Cells {
    heard: BTreeMap<CellId, Heard>,
    awaited: BTreeSet<CellId>,
    /// Known to be away: they left, or were not heard of for too long.
    gone: BTreeMap<CellId, Gone>,
    /// Until then every cell that a record names counts as present unless it is gone.
    grace_until: Moment,
    /// How often that was put off.
    put_off: u32,
}

#[derive(Debug, Clone)]
pub(super) struct Heard {
    pub(super) presence: CellPresence,
    pub(super) at: Moment,
    /// How often it was waited for once more since then.
    forgiven: u32,
}

/// A cell that is away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Gone {
    /// When it was last heard of; this leader may never have heard of it.
    pub(super) heard: Option<Moment>,
}

impl Heard {
    /// Whether somebody else uses the id. Who does not say where they live is not told apart.
    fn is_another(&self, presence: &CellPresence) -> bool {
        let (known, new) = (&self.presence.home, &presence.home);
        !known.is_empty() && !new.is_empty() && known != new
    }
}

/// What a presence told us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct News {
    /// It says something else than before, or for the first time.
    pub(super) changed: bool,
    /// More work may fit than before.
    pub(super) room: bool,
}

impl Presences {
    pub(super) fn new(ttl: Duration, now: Moment, awaited: BTreeSet<CellId>) -> Self {
        let cells = Cells {
            heard: BTreeMap::new(),
            awaited,
            gone: BTreeMap::new(),
            grace_until: now.after(ttl),
            put_off: 0,
        };
        Self { ttl, cells: Mutex::new(cells) }
    }

    fn cells(&self) -> MutexGuard<'_, Cells> {
        self.cells.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// None if another cell is there by this id.
    pub(super) fn present(&self, presence: CellPresence, now: Moment) -> Option<News> {
        let mut cells = self.cells();
        let before = cells.heard.get(&presence.cell_id);
        if before.is_some_and(|it| now < it.at.after(self.ttl) && it.is_another(&presence)) {
            return None;
        }
        cells.awaited.remove(&presence.cell_id);
        cells.gone.remove(&presence.cell_id);
        let id = presence.cell_id.clone();
        let room_now = !presence.evacuating;
        let capacity = presence.capacity;
        let heard = Heard { presence, at: now, forgiven: 0 };
        let presence = heard.presence.clone();
        Some(match cells.heard.insert(id, heard) {
            None => News { changed: true, room: room_now },
            Some(before) => {
                let had = before.presence.capacity;
                let more = capacity.memory_mb > had.memory_mb
                    || capacity.disk_mb > had.disk_mb
                    || capacity.containers > had.containers
                    || before.presence.evacuating;
                let changed = before.presence != presence;
                News { changed, room: room_now && changed && more }
            }
        })
    }

    /// A cell was told to evacuate, and will say so itself.
    pub(super) fn evacuating(&self, cell_id: &CellId) {
        if let Some(heard) = self.cells().heard.get_mut(cell_id) {
            heard.presence.evacuating = true;
        }
    }

    /// Whether the cell was there.
    pub(super) fn leave(&self, cell_id: &CellId) -> bool {
        let mut cells = self.cells();
        let awaited = cells.awaited.remove(cell_id);
        let heard = cells.heard.remove(cell_id).map(|heard| heard.at);
        // Said twice, it was heard of when it said so first.
        if heard.is_some() || awaited || !cells.gone.contains_key(cell_id) {
            cells.gone.insert(cell_id.clone(), Gone { heard });
        }
        heard.is_some() || awaited
    }

    /// Forgets the cells whose time is over, and says which.
    pub(super) fn expire(&self, now: Moment) -> Vec<CellId> {
        let mut cells = self.cells();
        let Cells { heard, gone, .. } = &mut *cells;
        let mut lost = Vec::new();
        heard.retain(|id, heard| {
            let stays = now < heard.at.after(self.ttl);
            if !stays {
                gone.insert(id.clone(), Gone { heard: Some(heard.at) });
                lost.push(id.clone());
            }
            stays
        });
        if now >= cells.grace_until {
            let never = std::mem::take(&mut cells.awaited);
            cells.gone.extend(never.iter().map(|id| (id.clone(), Gone { heard: None })));
            lost.extend(never);
        }
        if now >= cells.grace_until.after(self.ttl) {
            cells.put_off = 0;
        }
        lost
    }

    /// Nobody could be heard: everybody has a whole time to live again, but not time and again.
    pub(super) fn forgive(&self, now: Moment) {
        let mut cells = self.cells();
        for heard in cells.heard.values_mut().filter(|heard| heard.forgiven < CHANCES) {
            heard.at = now;
            heard.forgiven += 1;
        }
        if cells.put_off < CHANCES {
            cells.put_off += 1;
            cells.grace_until = now.after(self.ttl);
        }
    }

    /// When the next cell may be lost.
    pub(super) fn next_expiry(&self) -> Option<Moment> {
        let cells = self.cells();
        let heard = cells.heard.values().map(|heard| heard.at.after(self.ttl)).min();
        let awaited = (!cells.awaited.is_empty()).then_some(cells.grace_until);
        heard.into_iter().chain(awaited).min()
    }

    /// Those of `named`, the cells that records name, that do not count as present: those that
    /// take up what the leader before us gave them may not have said yet that they are there.
    pub(super) fn absent<'a>(
        &self,
        named: impl Iterator<Item = &'a CellId>,
        now: Moment,
    ) -> BTreeSet<CellId> {
        let cells = self.cells();
        let in_grace = now < cells.grace_until;
        let is_there = |cell: &CellId| {
            (in_grace && !cells.gone.contains_key(cell))
                || cells.heard.contains_key(cell)
                || cells.awaited.contains(cell)
        };
        named.filter(|cell| !is_there(cell)).cloned().collect()
    }

    pub(super) fn get(&self, cell_id: &CellId) -> Option<CellPresence> {
        self.cells().heard.get(cell_id).map(|heard| heard.presence.clone())
    }

    /// What is known of a cell that is away.
    pub(super) fn gone(&self, cell_id: &CellId) -> Option<Gone> {
        self.cells().gone.get(cell_id).copied()
    }

    pub(super) fn heard(&self) -> Vec<Heard> {
        self.cells().heard.values().cloned().collect()
    }

    pub(super) fn awaited(&self) -> BTreeSet<CellId> {
        self.cells().awaited.clone()
    }

    /// Whether cells may still come that were there before this leader.
    pub(super) fn in_grace(&self, now: Moment) -> bool {
        now < self.cells().grace_until
    }
}
