use std::any::Any;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use kapell_core::seams::Clock;
use kapell_store::Store;
use tokio::task::{JoinError, JoinSet};

use super::cases;
use super::world::World;

/// Where the suite gets its stores.
#[async_trait]
pub trait Stores: fmt::Debug + Send + Sync {
    /// Opens one more client of the store with this name. At first it is empty.
    async fn open(&self, store: &str) -> Arc<dyn Store>;

    /// What the members count their leases by.
    fn clock(&self) -> Arc<dyn Clock>;
}

/// How fast things go.
#[derive(Debug, Clone, Copy)]
pub struct Speed {
    /// For how long a seat is held without word from its holder.
    pub lease: Duration,
    /// How much later than it should something may be seen.
    pub slack: Duration,
    /// Whether whoever holds a seat is told when somebody else changes it. Where a store tells of nothing by itself, and to look
    /// costs a request each time, the next renewal finds out.
    pub told: bool,
    /// How many cases run at once.
    pub together: usize,
}

impl Speed {
    /// For a runtime whose time is paused: the lease is the usual one and costs nothing.
    pub const PAUSED: Self = Self {
        lease: Duration::from_secs(20),
        slack: Duration::from_millis(50),
        told: true,
        together: 1,
    };

    /// For a real server on a busy machine.
    pub const REAL: Self = Self {
        lease: Duration::from_secs(3),
        slack: Duration::from_millis(700),
        told: true,
        together: 8,
    };
}

pub(super) type Case = (&'static str, fn(World) -> Pin<Box<dyn Future<Output = ()> + Send>>);

/// The seed's `ElectionsTestSuite`: all that elections owe over any store.
///
/// Every case has a store of its own. All of them run, also after one has failed.
///
/// # Panics
/// When a case fails, with the names of all that did.
pub async fn elections_test_suite(stores: Arc<dyn Stores>, speed: Speed) {
    let mut running = JoinSet::new();
    let mut failed = Vec::new();
    for (name, case) in cases::all() {
        while running.len() >= speed.together {
            note(running.join_next().await, &mut failed);
        }
        let stores = Arc::clone(&stores);
        running.spawn(async move {
            let run = async move { case(World::new(stores, speed, name).await).await };
            let limit = speed.lease * 60;
            let mut alone = JoinSet::new();
            alone.spawn(run);
            let ended = tokio::time::timeout(limit, alone.join_next()).await;
            match ended {
                Ok(Some(Err(error))) => Some(format!("{name}: {}", reason(error))),
                Ok(_) => None,
                Err(_) => Some(format!("{name}: not over after {limit:?}")),
            }
        });
    }
    while !running.is_empty() {
        note(running.join_next().await, &mut failed);
    }
    assert!(failed.is_empty(), "{} cases failed:\n{}", failed.len(), failed.join("\n"));
}

fn note(ended: Option<Result<Option<String>, JoinError>>, failed: &mut Vec<String>) {
    match ended {
        Some(Ok(failure)) => failed.extend(failure),
        Some(Err(error)) => failed.push(error.to_string()),
        None => {}
    }
}

fn reason(error: JoinError) -> String {
    error.try_into_panic().map_or_else(|error| error.to_string(), |panic| text(&*panic))
}

fn text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default()
}
