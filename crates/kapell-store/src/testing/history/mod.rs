//! Whether what concurrent clients were told can be explained by one step after the other.
//!
//! Every call is recorded with the moment it began and the moment its answer was there. A history
//! is right if the calls can be put into an order in which each takes effect at one point
//! between those two moments and gets the answer that it got. A call without an answer may have
//! had its effect at any time since it began, or never.

mod entry;
mod log;
mod search;
mod shard;

pub use entry::{Told, Ttl, explain_entry};
pub use log::{Call, Log};
pub use search::{Inexplicable, Model, explain};
pub use shard::{Done, Fenced, explain_shard};
