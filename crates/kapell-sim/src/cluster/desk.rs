use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kapell_core::seams::Moment;
use kapell_core::seat::{Epoch, Record, Seat};
use kapell_node::conductor::{Step, Trace};
use kapell_node::elections::{Killer, Tenure};
use kapell_store::model::{Fence, Shard};

use crate::parts::link::{Call, Letter, Outbox};

/// What a process shares with the simulator: what it sends out, and what can be seen of it.
#[derive(Debug, Default)]
pub(super) struct Desk(Mutex<Papers>);

#[derive(Debug, Default)]
struct Papers {
    outbox: Vec<Letter>,
    seen: Vec<Seen>,
    tenure: Option<Tenure>,
    /// Under which seats and epochs services are up, or on their way up or down.
    staged: Vec<(Seat, Epoch)>,
    kill_at: Option<Moment>,
    fired: bool,
    over: bool,
}

/// Something that a process did.
#[derive(Debug)]
pub(super) enum Seen {
    Step(Step),
    Acquired {
        seat: Seat,
        epoch: Epoch,
    },
    Acknowledged {
        shard: Shard,
        at: Fence,
    },
    /// It asked to delete its record.
    Resigned {
        seat: Seat,
        epoch: Epoch,
        staged: bool,
        lost: bool,
    },
    /// A shutdown came back.
    ShutDown {
        leftover: usize,
    },
    /// What a service must never meet.
    Odd(String),
}

impl Desk {
    fn papers(&self) -> MutexGuard<'_, Papers> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is seen of a process after it was killed did not happen.
    pub(super) fn see(&self, seen: Seen) {
        let mut papers = self.papers();
        if !papers.fired {
            papers.seen.push(seen);
        }
    }

    pub(super) fn acquired(&self, tenure: &Tenure) {
        let mut papers = self.papers();
        papers.seen.push(Seen::Acquired { seat: tenure.seat(), epoch: tenure.epoch() });
        papers.tenure = Some(tenure.clone());
    }

    /// Services of this seat and epoch are up until the guard is dropped.
    pub(super) fn stage(self: &Arc<Self>, seat: Seat, epoch: Epoch) -> Staged {
        self.papers().staged.push((seat, epoch));
        Staged { desk: Arc::clone(self), seat, epoch }
    }

    pub(super) fn end(&self) {
        self.papers().over = true;
    }

    pub(super) fn take_outbox(&self) -> Vec<Letter> {
        std::mem::take(&mut self.papers().outbox)
    }

    pub(super) fn take_seen(&self) -> Vec<Seen> {
        std::mem::take(&mut self.papers().seen)
    }

    pub(super) fn kill_at(&self) -> Option<Moment> {
        self.papers().kill_at
    }

    pub(super) fn is_fired(&self) -> bool {
        self.papers().fired
    }

    pub(super) fn is_over(&self) -> bool {
        self.papers().over
    }

    /// The seat in whose name something new may be begun right now.
    pub(super) fn acts_for(&self) -> Option<Seat> {
        self.papers().tenure.as_ref().filter(|tenure| tenure.may_act()).map(Tenure::seat)
    }

    pub(super) fn is_staged(&self, seat: Seat) -> bool {
        self.papers().staged.iter().any(|(each, _)| *each == seat)
    }
}

/// Services are up.
#[derive(Debug)]
pub(super) struct Staged {
    desk: Arc<Desk>,
    seat: Seat,
    epoch: Epoch,
}

impl Drop for Staged {
    fn drop(&mut self) {
        let mut papers = self.desk.papers();
        let this = (self.seat, self.epoch);
        if let Some(at) = papers.staged.iter().position(|each| *each == this) {
            papers.staged.swap_remove(at);
        }
    }
}

impl Killer for Desk {
    fn set(&self, at: Option<Moment>) {
        self.papers().kill_at = at;
    }

    fn fire(&self, _why: &str) {
        self.papers().fired = true;
    }
}

impl Trace for Desk {
    fn step(&self, step: Step) {
        self.see(Seen::Step(step));
    }
}

impl Outbox for Desk {
    fn send(&self, letter: Letter) {
        let mut papers = self.papers();
        if papers.fired {
            return;
        }
        if let Call::Delete { old, .. } = &letter.call
            && let Some(record) = Record::decode(old)
            && let Some(tenure) = papers.tenure.as_ref().filter(|it| it.record().is_of(&record))
        {
            let (seat, epoch) = (tenure.seat(), tenure.epoch());
            let lost = tenure.loss().is_some();
            let staged = papers.staged.contains(&(seat, epoch));
            papers.seen.push(Seen::Resigned { seat, epoch, staged, lost });
        }
        papers.outbox.push(letter);
    }
}
