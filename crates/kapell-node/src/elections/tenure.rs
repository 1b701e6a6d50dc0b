use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use kapell_core::election::Loss;
use kapell_core::seams::{Clock, Moment};
use kapell_core::seat::{Epoch, Record, Seat};
use kapell_store::Store;
use tokio_util::sync::CancellationToken;

/// A seat that is held. Cheap to clone; all clones are about the same holding.
#[derive(Clone)]
pub struct Tenure(Arc<Holding>);

struct Holding {
    seat: Seat,
    record: Record,
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    standing: Standing,
}

/// What the keeper of a seat shares with those who act in its name.
#[derive(Debug, Clone)]
pub struct Standing {
    /// Nanoseconds from the clock's origin. Kept apart from `lost`, so that the question
    /// whether to act needs no lock and no task to run.
    acts_until: Arc<AtomicU64>,
    lost: Arc<OnceLock<Loss>>,
    /// Cancelled at the loss. Those who wait are woken in the order in which they came.
    told: CancellationToken,
}

impl Standing {
    /// Nothing may be done yet.
    pub fn new() -> Self {
        Self { acts_until: Arc::default(), lost: Arc::default(), told: CancellationToken::new() }
    }

    /// What nothing but its holder can end.
    pub fn for_ever() -> Self {
        let standing = Self::new();
        standing.acts_until.store(u64::MAX, Ordering::SeqCst);
        standing
    }

    pub fn act_until(&self, until: Option<Moment>) {
        let nanos = until.map_or(0, |until| until.since_origin().as_nanos());
        self.acts_until.store(u64::try_from(nanos).unwrap_or(u64::MAX), Ordering::SeqCst);
    }

    /// Ends it. The first reason counts.
    pub fn lose(&self, why: Loss) {
        self.act_until(None);
        self.lost.get_or_init(|| why);
        self.told.cancel();
    }

    pub(super) fn loss(&self) -> Option<Loss> {
        self.lost.get().cloned()
    }
}

impl Default for Standing {
    fn default() -> Self {
        Self::new()
    }
}

impl Tenure {
    /// For those who keep seats; everybody else is given one.
    pub fn new(
        seat: Seat,
        record: Record,
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        standing: Standing,
    ) -> Self {
        Self(Arc::new(Holding { seat, record, store, clock, standing }))
    }

    pub fn seat(&self) -> Seat {
        self.0.seat
    }

    pub fn epoch(&self) -> Epoch {
        self.0.record.epoch
    }

    pub fn record(&self) -> &Record {
        &self.0.record
    }

    /// Where the seat's board is kept.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.0.store
    }

    /// Whether anything new may be begun in the name of the seat, right now.
    pub fn may_act(&self) -> bool {
        let until = Duration::from_nanos(self.0.standing.acts_until.load(Ordering::SeqCst));
        self.0.clock.now().since_origin() < until
    }

    /// How long that is so if nothing more is heard of the seat; none if nobody else can have it.
    pub fn acts_for(&self) -> Option<Duration> {
        let nanos = self.0.standing.acts_until.load(Ordering::SeqCst);
        let left = || Duration::from_nanos(nanos).saturating_sub(self.0.clock.now().since_origin());
        (nanos != u64::MAX).then(left)
    }

    /// Waits until the seat is lost. A seat that is given back is not lost.
    pub async fn lost(&self) -> Loss {
        self.0.standing.told.cancelled().await;
        match self.loss() {
            Some(why) => why,
            None => std::future::pending().await,
        }
    }

    /// Why the seat was lost, if it was.
    pub fn loss(&self) -> Option<Loss> {
        self.0.standing.loss()
    }
}

impl fmt::Debug for Tenure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tenure(seat {}, epoch {})", self.seat(), self.epoch())
    }
}
