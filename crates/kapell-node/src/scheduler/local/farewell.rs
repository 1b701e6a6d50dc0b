//! Ends what hosts have left, when nobody is to come back to it soon.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use kapell_core::board::{Domain, SecretName};
use kapell_core::run::StopKind;
use kapell_core::secret::Secret;
use tokio::sync::mpsc;

use super::{LocalBackend, MOST_DIRS, Parts, work_dir};
use crate::scheduler::backend::{Backend as _, Secrets};
use crate::system::{SystemClock, SystemIds};

/// Ends all work of runs below a data directory, each with its grace. How it ended is found by whoever leads next.
pub async fn end_all(data_dir: &Path) -> Result<(), String> {
    for number in 1..=MOST_DIRS {
        if !work_dir(data_dir, number).is_dir() {
            continue;
        }
        let (newsroom, _nobody_listens) = mpsc::unbounded_channel();
        let parts = Parts {
            data_dir: data_dir.to_owned(),
            newsroom,
            clock: Arc::new(SystemClock),
            ids: Arc::new(SystemIds),
            secrets: Arc::new(NoSecrets),
            program: "kapell".into(),
            tenure: None,
        };
        let work = LocalBackend::open_number(number, parts).await?;
        work.inner.stop_all(StopKind::Graceful).await;
        work.leave(StopKind::AtOnce).await;
        work.close().await;
    }
    Ok(())
}

/// Nothing is started.
#[derive(Debug)]
struct NoSecrets;

#[async_trait]
impl Secrets for NoSecrets {
    async fn open(
        &self,
        _domain: &Domain,
        _names: &[SecretName],
    ) -> Result<BTreeMap<SecretName, Secret>, String> {
        Err("nothing is started here".to_owned())
    }
}
