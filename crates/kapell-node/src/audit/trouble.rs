//! What is wrong with the disk, while nothing can be noted.

use std::sync::{Mutex, PoisonError};

use kapell_core::seams::Timestamp;

/// Nothing can be noted, so nothing may be changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Full {
    pub why: String,
    pub since: Timestamp,
}

#[derive(Debug, Default)]
pub(super) struct Trouble(Mutex<Option<Full>>);

impl Trouble {
    pub(super) fn now(&self) -> Option<Full> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Nothing could be written. Said once.
    pub(super) fn begin(&self, why: &str, since: Timestamp) {
        let mut now = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if now.is_none() {
            tracing::warn!(error = why, "read-only: the audit file cannot be written");
            *now = Some(Full { why: why.to_owned(), since });
        }
    }

    pub(super) fn end(&self) {
        let mut now = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if now.take().is_some() {
            tracing::info!("read-only no more: the audit file can be written again");
        }
    }
}
