use std::sync::Arc;
use std::time::Duration;

use kapell_core::seams::Clock;

/// How a store is to be opened.
#[derive(Debug, Clone)]
pub struct How {
    /// Lay out what is missing. Without it a place without a store is an error, and stays as it is.
    pub create: bool,
    /// No call takes longer, nor does it take longer to reach the store.
    pub timeout: Duration,
    /// What stores without a clock of their own count by.
    pub clock: Arc<dyn Clock>,
}
