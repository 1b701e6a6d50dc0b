//! What happened, for those who watch: a ring that everybody reads at their own pace.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kapell_core::board::Event;
use kapell_core::seat::Epoch;
use tokio::sync::watch;

/// How many events are kept. It is also how far a subscriber may fall behind.
pub const KEPT: usize = 8192;
/// What the kept events may weigh together, in bytes of their records.
const KEPT_BYTES: usize = 64 << 20;

/// Which event: those of a later leader come after all of an earlier one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventId {
    pub epoch: Epoch,
    pub number: u64,
}

impl EventId {
    /// `{epoch}-{number}`
    pub fn parse(text: &str) -> Option<Self> {
        let (epoch, number) = text.split_once('-')?;
        let number_of = |digits: &str| {
            let plain = digits.bytes().all(|b| b.is_ascii_digit());
            plain.then(|| digits.parse().ok()).flatten()
        };
        Some(Self { epoch: Epoch(number_of(epoch)?), number: number_of(number)? })
    }
}

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.epoch, self.number)
    }
}

/// What a subscriber gets next.
#[derive(Debug, Clone)]
pub enum Next {
    Event(EventId, Arc<Event>),
    /// Events up to this one may be missing: read again what you watch. All later ones follow.
    Gap(EventId),
}

#[derive(Debug)]
pub(super) struct Hub {
    epoch: Epoch,
    ring: Mutex<Ring>,
    /// Tells the number of the last event; none once there are no more.
    last: watch::Sender<Option<u64>>,
}

#[derive(Debug, Default)]
struct Ring {
    kept: VecDeque<(Arc<Event>, usize)>,
    bytes: usize,
    /// The number of the last event; the first is 1.
    last: u64,
}

impl Ring {
    /// The number of the oldest event that is kept, or of the next one.
    fn first(&self) -> u64 {
        self.last + 1 - u64::try_from(self.kept.len()).unwrap_or(0)
    }

    fn get(&self, number: u64) -> Option<&Arc<Event>> {
        let at = usize::try_from(number.checked_sub(self.first())?).ok()?;
        self.kept.get(at).map(|(event, _)| event)
    }
}

impl Hub {
    pub(super) fn new(epoch: Epoch) -> Self {
        Self { epoch, ring: Mutex::default(), last: watch::Sender::new(Some(0)) }
    }

    fn ring(&self) -> MutexGuard<'_, Ring> {
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }

    const fn id(&self, number: u64) -> EventId {
        EventId { epoch: self.epoch, number }
    }

    /// Tells of events in this order, each with what its records weigh.
    pub(super) fn publish(&self, events: impl IntoIterator<Item = (Event, usize)>) {
        // What is kept no longer is dropped when others may look again.
        let mut gone = Vec::new();
        let mut ring = self.ring();
        let before = ring.last;
        for (event, bytes) in events {
            ring.kept.push_back((Arc::new(event), bytes));
            ring.bytes += bytes;
            ring.last += 1;
            while ring.kept.len() > KEPT || (ring.bytes > KEPT_BYTES && ring.kept.len() > 1) {
                let Some((event, bytes)) = ring.kept.pop_front() else { break };
                ring.bytes = ring.bytes.saturating_sub(bytes);
                gone.push(event);
            }
        }
        let last = ring.last;
        // Told in the order of the numbers, so still behind the lock.
        if last > before {
            self.last.send_if_modified(|told| {
                let open = told.is_some();
                *told = told.map(|_| last);
                open
            });
        }
        drop(ring);
    }

    pub(super) fn last(&self) -> EventId {
        self.id(self.ring().last)
    }

    pub(super) fn watchers(&self) -> usize {
        self.last.receiver_count()
    }

    /// There will be no more events.
    pub(super) fn close(&self) {
        self.last.send_replace(None);
    }

    /// Where an event stands among ours, if nothing can lie between it and them.
    fn place(&self, id: EventId) -> Option<u64> {
        // Nothing happened before the first leader.
        let before_all = id == EventId { epoch: Epoch(0), number: 0 } && self.epoch == Epoch(1);
        (before_all || id.epoch == self.epoch).then_some(id.number)
    }

    pub(super) fn subscribe(self: &Arc<Self>, after: Option<EventId>) -> Subscription {
        let told = self.last.subscribe();
        let ring = self.ring();
        let (next, gap) = match after {
            None => (ring.last + 1, false),
            Some(id) => match self.place(id) {
                Some(number) if number <= ring.last && number + 1 >= ring.first() => {
                    (number + 1, false)
                }
                // What was missed is missed; all that is kept is still told.
                Some(_) | None => (ring.first(), true),
            },
        };
        drop(ring);
        Subscription { hub: Arc::clone(self), told, next, gap }
    }
}

/// Somebody who watches. It holds no events of its own: whoever falls behind what is kept gets
/// a [`Next::Gap`] and goes on with what comes after it.
#[derive(Debug)]
pub struct Subscription {
    hub: Arc<Hub>,
    told: watch::Receiver<Option<u64>>,
    next: u64,
    gap: bool,
}

impl Subscription {
    /// The next event, when there is one; none once the leader leads no more.
    pub async fn next(&mut self) -> Option<Next> {
        loop {
            // Marked before looking: what comes after the look wakes us.
            let open = self.told.borrow_and_update().is_some();
            if let Some(next) = self.ready() {
                return Some(next);
            }
            if !open || self.told.changed().await.is_err() {
                return None;
            }
        }
    }

    fn ready(&mut self) -> Option<Next> {
        let ring = self.hub.ring();
        if self.next < ring.first() {
            // Whoever is too slow for the oldest that is kept would fall behind it again at once.
            self.gap = false;
            self.next = ring.last + 1;
            return Some(Next::Gap(self.hub.id(ring.last)));
        }
        if std::mem::take(&mut self.gap) {
            return Some(Next::Gap(self.hub.id(self.next - 1)));
        }
        let event = Arc::clone(ring.get(self.next)?);
        let id = self.hub.id(self.next);
        self.next += 1;
        Some(Next::Event(id, event))
    }
}
