//! A seat that is lost while work is being made ready.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use kapell_core::board::{Domain, SecretName};
use kapell_core::election::Loss;
use kapell_core::run::Evidence;
use kapell_core::seams::{Clock as _, Timestamp};
use kapell_core::seat::{Epoch, Owner, Record, Seat};
use kapell_core::secret::Secret;
use kapell_store::mem::Mem;
use serde_json::json;
use tokio::sync::Notify;

use super::rig::{parts, work};
use crate::elections::{Standing, Tenure};
use crate::scheduler::backend::{Backend as _, Secrets};
use crate::scheduler::conformance::attempt;
use crate::scheduler::local::{LocalBackend, Parts};
use crate::system::SystemClock;

/// Secrets that come when they are let go.
#[derive(Debug, Default)]
struct HeldBack {
    asked: Notify,
    go: Notify,
}

#[async_trait]
impl Secrets for HeldBack {
    async fn open(
        &self,
        _domain: &Domain,
        names: &[SecretName],
    ) -> Result<BTreeMap<SecretName, Secret>, String> {
        self.asked.notify_one();
        self.go.notified().await;
        Ok(names.iter().map(|name| (name.clone(), Secret::new("hush"))).collect())
    }
}

fn tenure(standing: &Standing) -> Tenure {
    let record =
        Record { epoch: Epoch(1), owner: Owner(1), address: String::new(), since: Timestamp(0) };
    let store = Arc::new(Mem::new(Arc::new(SystemClock)));
    Tenure::new(Seat::FIRST, record, store, Arc::new(SystemClock), standing.clone())
}

#[tokio::test]
async fn work_whose_secrets_come_after_the_seat_is_lost_is_not_started() {
    for loses in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        let (secrets, standing) = (Arc::new(HeldBack::default()), Standing::new());
        standing.act_until(Some(SystemClock.now().after(std::time::Duration::from_secs(600))));
        let (parts, _news) = parts(dir.path(), Path::new("kapell"));
        let backend = LocalBackend::open(Parts {
            secrets: Arc::clone(&secrets) as _,
            tenure: Some(tenure(&standing)),
            ..parts
        });
        let backend = backend.await.unwrap();
        let (one, mark) = (attempt("held", 0), dir.path().join("ran"));
        let text = format!("echo x > {}", mark.display());
        let env = json!([{"name": "HIDDEN", "secret": "password"}]);
        let order = work(&one, &json!({"command": {"command": text, "env": env}}));
        let lost = async {
            secrets.asked.notified().await;
            if loses {
                standing.lose(Loss::Expired);
            }
            secrets.go.notify_one();
        };
        let (launched, ()) = tokio::join!(backend.launch(&order), lost);
        let found = backend.find(&one, &backend.place()).await;
        if loses {
            let why = launched.unwrap_err();
            assert!(why.starts_with("this host does not lead any more"), "{why}");
            assert_eq!(found, Evidence::Absent);
            assert!(!fs::exists(&mark).unwrap());
        } else {
            launched.unwrap();
            assert!(matches!(found, Evidence::Running { .. } | Evidence::Ended(_)), "{found:?}");
        }
        backend.release(&one).await;
        backend.close().await;
    }
}
