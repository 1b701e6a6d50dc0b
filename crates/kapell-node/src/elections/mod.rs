//! Elections over a store: who holds a seat, and a handle that knows when it no longer does.

mod leased;
mod locked;
mod tenure;

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use kapell_core::seams::Moment;
use kapell_core::seat::{Record, Seat};

pub use leased::{Leased, Parts};
pub use locked::{Locked, LockedParts, look};
pub use tenure::{Standing, Tenure};

/// A way to win a seat and to give it back.
#[async_trait]
pub trait Elections: fmt::Debug + Send + Sync {
    /// Waits for the first of `seats` that can be had, for at most `window`. Dropping the
    /// future ends the wait; a seat that was being won meanwhile is given back.
    async fn acquire(&self, seats: &[Seat], window: Option<Duration>) -> Result<Tenure, Refusal>;

    /// Gives a seat back, at once and for all to see. False if it is not held here.
    async fn release(&self, seat: Seat) -> bool;

    /// Gives everything back and ends every task. Nothing is acquired afterwards.
    async fn cleanup(&self);

    /// Whether the store answered when it was last asked.
    fn store_answers(&self) -> bool;

    /// Who holds a seat, as far as was last seen here.
    fn seen(&self, seat: Seat) -> Option<Sight>;
}

/// A holder that was seen, and when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sight {
    pub record: Record,
    /// When it runs out unless it is renewed; none if it does not.
    pub until: Option<Moment>,
}

/// Why no seat was acquired.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("no seat was free within {window:?}{}", because(.store_error.as_deref()))]
    NotAcquired { window: Duration, store_error: Option<String> },
    #[error("seat {0} is held here already")]
    HeldHere(Seat),
    #[error("elections were cleaned up")]
    Closed,
    #[error("{0}")]
    Store(String),
    /// The store needs a person: waiting does not help.
    #[error("{0}")]
    Damaged(String),
}

fn because(error: Option<&str>) -> String {
    error.map(|error| format!("; the store's last error: {error}")).unwrap_or_default()
}

/// A dead man's switch: ends the process at a moment unless that is put off.
pub trait Killer: fmt::Debug + Send + Sync {
    /// Ends the process then; with none, not at all.
    fn set(&self, at: Option<Moment>);

    /// Ends the process now.
    fn fire(&self, why: &str);
}
