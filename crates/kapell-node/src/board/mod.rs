//! The board: the only writer of what is desired and what is there, while it holds the seat.
//!
//! Memory holds committed records only. Each of its shards has a keeper that decides one request
//! after the other, commits the changes of many together, and only then changes memory, tells
//! those who watch, answers, and lets happen what follows.

mod alarm;
mod apply;
mod callback;
mod circles;
mod convergence;
mod figures;
mod group;
mod handle;
mod hub;
mod keeper;
mod lanes;
mod load;
mod meters;
mod newsstand;
mod open;
mod orders;
mod outlook;
mod plan;
mod presence;
mod pruning;
mod receivers;
mod reports;
mod service;
mod sheet;
mod sights;
mod slot;
mod steady;
mod trouble;
mod watcher;

#[cfg(test)]
pub(crate) mod tests;

pub use callback::{CallbackOutcome, Callbacks};
pub use figures::Figure;
pub use handle::{Board, Declined};
pub use hub::{EventId, KEPT, Next, Subscription};
pub(crate) use lanes::Tagged;
pub use lanes::WAITING;
pub(crate) use meters::Meters;
pub use reports::decide_reports;
pub use service::{BoardService, Parts};
pub use sights::Sights;
pub use slot::BoardSlot;
pub use trouble::ReadOnly;
