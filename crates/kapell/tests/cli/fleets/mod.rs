//! Many cells with hosts of their own, and work with roots of its own.

mod images;
pub(crate) mod root;
mod zones;

/// Hosts and cells that lose no time.
pub(crate) const IMPATIENT: [(&str, &str); 5] = [
    ("KAPELL_PRESENCE_TTL", "3s"),
    ("KAPELL_STALE_UNCLAIMED", "1s"),
    ("KAPELL_CONVERGE_EVERY", "1s"),
    ("KAPELL_CELL_POLL", "2s"),
    ("KAPELL_CELL_POLL_EVACUATING", "1s"),
];
