use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::{Mutex as Gate, OwnedMutexGuard};

use super::digest::Digest;

/// Turns, one at a time for each digest: whoever comes second finds the work done, or does it if the
/// first gave up.
#[derive(Debug, Default)]
pub(super) struct Flights {
    gates: Mutex<BTreeMap<Digest, Weak<Gate<()>>>>,
}

/// Lasts until it is dropped.
pub(super) type Turn = OwnedMutexGuard<()>;

impl Flights {
    pub(super) async fn turn(&self, digest: &Digest) -> Turn {
        let gate = {
            let mut gates = self.gates.lock().unwrap_or_else(PoisonError::into_inner);
            gates.retain(|_, gate| gate.strong_count() > 0);
            let old = gates.get(digest).and_then(Weak::upgrade);
            old.unwrap_or_else(|| {
                let new = Arc::new(Gate::new(()));
                gates.insert(digest.clone(), Arc::downgrade(&new));
                new
            })
        };
        gate.lock_owned().await
    }
}
