//! The board: the only writer of what is desired and what is there, while it holds the seat.

use std::sync::Arc;

use kapell_api::v1::{CellRecords, CellView, RecordsWanted, Welcome};
use kapell_core::board::{CellId, CellPresence, Event, Records, Refusal, Reply, Request, Settings};
use kapell_core::seat::Epoch;

/// A way to ask the board. Cheap to clone; of use for as long as its leader leads.
#[derive(Debug, Clone)]
pub struct Board {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared;

/// Why a request was not carried out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Declined {
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// Too much is waiting already; nothing was decided.
    #[error("the board has too much to do: ask again")]
    Busy,
    /// The seat is lost. Whether it was carried out is not known.
    #[error("this host does not lead any more")]
    NotLeading,
}

impl Board {
    pub fn epoch(&self) -> Epoch {
        unimplemented!()
    }

    pub fn settings(&self) -> &Settings {
        unimplemented!()
    }

    /// Decides a request; answers when it is committed.
    pub async fn ask(&self, _request: Request) -> Result<Reply, Declined> {
        unimplemented!()
    }

    /// Looks at the committed records of the shard where `partition` (a guid or a domain) lies.
    pub fn look<T>(&self, _partition: &str, _at: impl FnOnce(&Records) -> T) -> T {
        unimplemented!()
    }

    /// Looks at the committed records of each shard in turn.
    pub fn look_at_all(&self, _at: impl FnMut(&Records)) {
        unimplemented!()
    }

    /// A cell says that it is there.
    pub fn present(&self, _presence: CellPresence) -> Welcome {
        unimplemented!()
    }

    /// A cell says that it goes.
    pub fn leave(&self, _cell_id: &CellId) {
        unimplemented!()
    }

    pub fn cell(&self, _cell_id: &CellId) -> Option<CellPresence> {
        unimplemented!()
    }

    pub fn cells(&self) -> Vec<CellView> {
        unimplemented!()
    }

    pub fn records(&self, _cell_id: &CellId, _wanted: &RecordsWanted) -> CellRecords {
        unimplemented!()
    }

    /// Tells a cell to evacuate.
    pub async fn evacuate(&self, _cell_id: &CellId) -> Result<(), crate::link::LinkError> {
        unimplemented!()
    }

    /// The id of the last event.
    pub fn last_event(&self) -> EventId {
        unimplemented!()
    }

    /// Everything after an event, or from now on.
    pub fn events(&self, _after: Option<EventId>) -> Subscription {
        unimplemented!()
    }
}

/// Which event: those of a later leader come after all of an earlier one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventId {
    pub epoch: Epoch,
    pub number: u64,
}

impl EventId {
    /// `{epoch}-{number}`
    pub fn parse(_text: &str) -> Option<Self> {
        unimplemented!()
    }
}

/// What a subscriber gets next.
#[derive(Debug, Clone)]
pub enum Next {
    Event(EventId, Arc<Event>),
    /// Events before this one are not kept any more: read again what you watch.
    Gap(EventId),
}

/// Somebody who watches. Whoever is too slow is dropped: `next` gives none.
#[derive(Debug)]
pub struct Subscription;

impl Subscription {
    pub async fn next(&mut self) -> Option<Next> {
        unimplemented!()
    }
}
