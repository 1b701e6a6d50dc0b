mod authority;
mod key;
mod ledger;
mod secrets;

use std::sync::Arc;
use std::time::Duration;

use kapell_core::access::{Claims, Purpose, TokenId};
use kapell_core::seams::{Clock as _, Timestamp};
use kapell_store::Store;
use kapell_store::mem::Mem;

use super::*;
use crate::system::{SystemClock, SystemIds};

fn store() -> Arc<dyn Store> {
    Arc::new(Mem::new(Arc::new(SystemClock)))
}

async fn open(store: &Arc<dyn Store>) -> Ledger {
    Ledger::open(Arc::clone(store), Arc::new(SystemClock), Arc::new(SystemIds)).await.unwrap()
}

fn wanted(purpose: Purpose) -> Wanted {
    let ttl = Duration::from_secs(60);
    Wanted { purpose, domains: None, name: "ci".to_owned(), ttl, cell_id: None }
}

fn key(text: &str) -> ClusterKey {
    ClusterKey::new(&text.repeat(32)).unwrap()
}

fn claims(expires_at: Timestamp) -> Claims {
    Claims {
        id: TokenId::drawn(1),
        purpose: Purpose::Reader,
        domains: Some(["a".into(), "b".into()].into()),
        name: "ann".to_owned(),
        expires_at,
        cell_id: None,
    }
}

fn now() -> Timestamp {
    SystemClock.wall()
}
