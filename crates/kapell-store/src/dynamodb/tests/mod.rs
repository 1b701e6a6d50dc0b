mod faults;
mod front;
mod listing;
mod opening;
mod rest;
mod rights;
mod secured;
mod storm;
mod url;

use std::net::SocketAddr;
use std::time::Duration;

use kapell_core::seat::{Epoch, Seat};

use self::front::Front;
use super::DynamoDb;
use crate::model::{Fence, Key, Raise, Shard};
use crate::open::How;
use crate::store::Shards as _;
use crate::testing::{drawn, how, skip};

const LEASE: Option<Duration> = Some(Duration::from_secs(60));
const SHARD: Shard = Shard { seat: Seat::FIRST, number: 5 };

fn key(name: &str) -> Key {
    Key::new(name.as_bytes())
}

fn server(test: &str) -> Option<SocketAddr> {
    let url = std::env::var("KAPELL_TEST_DYNAMODB").ok().filter(|url| !url.is_empty());
    let Some(url) = url else {
        skip(&format!("dynamodb::tests::{test}"), "KAPELL_TEST_DYNAMODB names no server");
        return None;
    };
    let place = url.trim_start_matches("http://").trim_end_matches('/');
    Some(place.parse().expect("KAPELL_TEST_DYNAMODB=http://IP:PORT"))
}

/// A table of its own, and something in front of its server.
struct Place {
    server: SocketAddr,
    front: Front,
    table: String,
}

impl Place {
    async fn find(test: &str) -> Option<Self> {
        let server = server(test)?;
        let table = format!("faults-{:016x}", drawn());
        Some(Self { server, front: Front::of(server).await, table })
    }

    fn url(&self, at: SocketAddr) -> String {
        let table = &self.table;
        format!("dynamodb://local/{table}?endpoint=http://{at}&credentials=none&create=true")
    }

    /// A client that nothing stands in front of.
    async fn direct(&self) -> DynamoDb {
        DynamoDb::open(&self.url(self.server), &how()).await.expect("a store")
    }

    async fn through(&self) -> DynamoDb {
        self.through_with(&how()).await
    }

    async fn through_with(&self, how: &How) -> DynamoDb {
        DynamoDb::open(&self.url(self.front.address), how).await.expect("a store")
    }
}

async fn raised(store: &DynamoDb) -> Fence {
    let raise = store.raise(SHARD.seat, Epoch(1)).await.expect("fences");
    let Raise::Done(fences) = raise else { panic!("{raise:?}") };
    fences[usize::from(SHARD.number)]
}
