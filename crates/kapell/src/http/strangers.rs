//! Connections over which nobody was let in yet: they are the first to go when there is no room.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::task::AbortHandle;

/// Cheap to clone; all clones are the same.
#[derive(Debug, Clone, Default)]
pub(super) struct Strangers(Arc<Mutex<Waiting>>);

#[derive(Debug, Default)]
struct Waiting {
    next: u64,
    /// In the order in which they came.
    connections: BTreeMap<u64, Option<AbortHandle>>,
}

/// What a connection goes by. It is a stranger's until its holder is known or gone.
#[derive(Debug)]
pub(super) struct Pass {
    strangers: Strangers,
    number: u64,
}

impl Strangers {
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a connection and has it served.
    pub(super) fn enter(&self, serve: impl FnOnce(Pass) -> AbortHandle) {
        let number = {
            let mut waiting = self.waiting();
            waiting.next += 1;
            let number = waiting.next;
            waiting.connections.insert(number, None);
            number
        };
        let handle = serve(Pass { strangers: self.clone(), number });
        // It may be known or gone already.
        if let Some(connection) = self.waiting().connections.get_mut(&number) {
            *connection = Some(handle);
        }
    }

    /// Closes the one that has waited longest. False if there is none.
    pub(super) fn send_one_away(&self) -> bool {
        let longest = self.waiting().connections.pop_first();
        if let Some((_, Some(connection))) = &longest {
            connection.abort();
        }
        longest.is_some()
    }
}

impl Pass {
    /// Whoever is at the other end was let in.
    pub(super) fn known(&self) {
        self.strangers.waiting().connections.remove(&self.number);
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        self.known();
    }
}
