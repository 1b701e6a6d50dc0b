use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use kapell_core::election::Loss;
use kapell_core::seams::{Clock, Moment, Timestamp};
use kapell_core::seat::{Epoch, Owner, Record, Seat};
use kapell_node::elections::{Elections, Refusal, Sight, Standing, Tenure};
use kapell_store::Store;
use tokio_util::sync::CancellationToken;

use super::script::{Acquire, a_while};
use super::service::Stages;

/// Elections that go as the script says.
#[derive(Debug)]
pub(super) struct Staged {
    pub(super) acquire: Acquire,
    pub(super) store: Arc<dyn Store>,
    pub(super) stages: Arc<Stages>,
    pub(super) standing: Standing,
    /// Cancelled when the seat is won.
    pub(super) won: CancellationToken,
    pub(super) cleanups: AtomicUsize,
    pub(super) cleaned: CancellationToken,
}

/// Time that stands still.
#[derive(Debug)]
pub(super) struct Still;

impl Clock for Still {
    fn now(&self) -> Moment {
        Moment::ZERO
    }

    fn wall(&self) -> Timestamp {
        Timestamp(0)
    }
}

impl Staged {
    /// Takes the seat away.
    pub(super) fn lose(&self) {
        self.standing.lose(Loss::Stolen(None));
    }
}

#[async_trait]
impl Elections for Staged {
    async fn acquire(&self, seats: &[Seat], window: Option<Duration>) -> Result<Tenure, Refusal> {
        a_while().await;
        assert_eq!(self.cleanups.load(Ordering::SeqCst), 0, "acquired after a cleanup");
        match self.acquire {
            Acquire::Wins => {}
            Acquire::Refused => {
                let window = window.unwrap_or_default();
                return Err(Refusal::NotAcquired { window, store_error: None });
            }
            Acquire::Never => std::future::pending().await,
        }
        self.standing.act_until(Some(Moment::from_origin(Duration::from_secs(1))));
        self.won.cancel();
        let record = Record {
            epoch: Epoch(1),
            owner: Owner(1),
            address: String::new(),
            since: Timestamp(0),
        };
        let (store, standing) = (Arc::clone(&self.store), self.standing.clone());
        Ok(Tenure::new(seats[0], record, store, Arc::new(Still), standing))
    }

    async fn release(&self, _seat: Seat) -> bool {
        false
    }

    async fn cleanup(&self) {
        let earlier = self.cleanups.fetch_add(1, Ordering::SeqCst);
        assert_eq!(earlier, 0, "cleaned up twice");
        assert!(!self.stages.is_any_up(), "the seat is given back while services are up");
        a_while().await;
        self.cleaned.cancel();
    }

    fn store_answers(&self) -> bool {
        true
    }

    fn seen(&self, _seat: Seat) -> Option<Sight> {
        None
    }
}
