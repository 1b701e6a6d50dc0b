//! The real elections, with a simulator looking on.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use kapell_core::seat::Seat;
use kapell_node::elections::{Elections, Leased, Refusal, Sight, Tenure};

/// Who looks on.
pub(crate) trait Onlooker: fmt::Debug + Send + Sync {
    /// What was acquired; it may hand on another.
    fn acquired(&self, tenure: Tenure) -> Tenure;
}

#[derive(Debug)]
pub(crate) struct Observed {
    pub(crate) leased: Leased,
    pub(crate) onlooker: Arc<dyn Onlooker>,
}

#[async_trait]
impl Elections for Observed {
    async fn acquire(&self, seats: &[Seat], window: Option<Duration>) -> Result<Tenure, Refusal> {
        let tenure = self.leased.acquire(seats, window).await?;
        Ok(self.onlooker.acquired(tenure))
    }

    async fn release(&self, seat: Seat) -> bool {
        self.leased.release(seat).await
    }

    async fn cleanup(&self) {
        self.leased.cleanup().await;
    }

    fn store_answers(&self) -> bool {
        self.leased.store_answers()
    }

    fn seen(&self, seat: Seat) -> Option<Sight> {
        self.leased.seen(seat)
    }
}
