//! What the routes and pages ask of a board: a seam, so that tests need no seat and no store.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use kapell_api::v1::{CellRecords, CellView, RecordsWanted, Welcome};
use kapell_core::board::explain::Due;
use kapell_core::board::plan::{Plan, Wishes};
use kapell_core::board::{CellId, CellPresence, Records, Reply, Request, Settings};
use kapell_core::seams::Timestamp;
use kapell_core::seat::Epoch;
use kapell_node::board::{Board, Declined, EventId, Next, ReadOnly, Sights, Subscription};
use kapell_node::link::LinkError;

#[async_trait]
pub(crate) trait Desk: fmt::Debug + Send + Sync {
    fn settings(&self) -> Settings;
    /// Whose orders cells get.
    fn epoch(&self) -> Epoch;
    /// The time by which the board decides.
    fn now(&self) -> Timestamp;
    /// What the clock on the wall says: jobs go by it.
    fn wall(&self) -> Timestamp {
        self.now()
    }
    /// Why the store takes no writes, while that is so.
    fn read_only(&self) -> Option<ReadOnly>;
    fn last_event(&self) -> EventId;
    fn events(&self, after: Option<EventId>) -> Box<dyn Watcher>;
    /// Looks at the committed records of the shard where `partition` lies.
    fn look(&self, partition: &str, at: &mut dyn FnMut(&Records));
    fn look_at_all(&self, at: &mut dyn FnMut(&Records));
    /// How runs stand that are further than their records.
    fn sights(&self) -> Arc<Sights>;
    fn cell(&self, cell_id: &CellId) -> Option<CellPresence>;
    fn cells(&self) -> Vec<CellView>;
    /// What is left to say of a cell that is gone.
    fn gone(&self, cell_id: &CellId) -> Option<CellView>;
    /// How long ago a cell did not answer, unless it has answered since.
    fn silent_since(&self, cell_id: &CellId) -> Option<Duration>;
    /// When the board looks again by itself.
    fn due(&self) -> Due;
    fn present(&self, presence: CellPresence) -> Result<Welcome, kapell_api::v1::Problem>;
    fn leave(&self, cell_id: &CellId);
    fn records(&self, cell_id: &CellId, wanted: &RecordsWanted) -> CellRecords;
    async fn ask(&self, request: Request) -> Result<Reply, Declined>;
    async fn evacuate(&self, cell_id: &CellId) -> Result<(), LinkError>;
    /// What applying this would come to. Nothing changes.
    async fn plan(&self, wishes: &Wishes) -> Plan;
}

#[async_trait]
pub(crate) trait Watcher: Send {
    /// None: the board has ended, or whoever watches was too slow.
    async fn next(&mut self) -> Option<Next>;
}

#[async_trait]
impl Desk for Board {
    fn settings(&self) -> Settings {
        Self::settings(self).clone()
    }

    fn epoch(&self) -> Epoch {
        Self::epoch(self)
    }

    fn now(&self) -> Timestamp {
        Self::now(self)
    }

    fn wall(&self) -> Timestamp {
        Self::wall(self)
    }

    fn read_only(&self) -> Option<ReadOnly> {
        Self::read_only(self)
    }

    fn last_event(&self) -> EventId {
        Self::last_event(self)
    }

    fn events(&self, after: Option<EventId>) -> Box<dyn Watcher> {
        Box::new(Self::events(self, after))
    }

    fn look(&self, partition: &str, at: &mut dyn FnMut(&Records)) {
        Self::look(self, partition, at);
    }

    fn look_at_all(&self, at: &mut dyn FnMut(&Records)) {
        Self::look_at_all(self, at);
    }

    fn sights(&self) -> Arc<Sights> {
        Arc::clone(Self::sights(self))
    }

    fn cell(&self, cell_id: &CellId) -> Option<CellPresence> {
        Self::cell(self, cell_id)
    }

    fn cells(&self) -> Vec<CellView> {
        Self::cells(self)
    }

    fn gone(&self, cell_id: &CellId) -> Option<CellView> {
        Self::gone(self, cell_id)
    }

    fn silent_since(&self, cell_id: &CellId) -> Option<Duration> {
        Self::silent_since(self, cell_id)
    }

    fn due(&self) -> Due {
        Self::due(self)
    }

    fn present(&self, presence: CellPresence) -> Result<Welcome, kapell_api::v1::Problem> {
        Self::present(self, presence)
    }

    fn leave(&self, cell_id: &CellId) {
        Self::leave(self, cell_id);
    }

    fn records(&self, cell_id: &CellId, wanted: &RecordsWanted) -> CellRecords {
        Self::records(self, cell_id, wanted)
    }

    async fn ask(&self, request: Request) -> Result<Reply, Declined> {
        Self::ask(self, request).await
    }

    async fn evacuate(&self, cell_id: &CellId) -> Result<(), LinkError> {
        Self::evacuate(self, cell_id).await
    }

    async fn plan(&self, wishes: &Wishes) -> Plan {
        Self::plan(self, wishes).await
    }
}

#[async_trait]
impl Watcher for Subscription {
    async fn next(&mut self) -> Option<Next> {
        Self::next(self).await
    }
}

/// Looks at one shard and brings something back.
pub(crate) fn look<T>(
    desk: &dyn Desk,
    partition: &str,
    at: impl FnOnce(&Records) -> T,
) -> Option<T> {
    let (mut at, mut found) = (Some(at), None);
    desk.look(partition, &mut |records| {
        if let Some(at) = at.take() {
            found = Some(at(records));
        }
    });
    found
}
