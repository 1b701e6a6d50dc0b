//! The scheduler: makes runs of what is due, and leads each to its end.
//!
//! One actor owns all runs under way. A run that waits is a value in its slab and a line in its one queue of timers; a
//! task works for it only while something is checked, launched, looked for or stopped.

mod absent;
mod actor;
mod adoption;
mod answers;
pub mod backend;
pub mod cells;
pub mod checker;
mod concierge;
#[cfg(test)]
pub(crate) mod conformance;
mod constrained;
mod entry;
mod errands;
pub mod fake;
mod generator;
mod heart;
mod histogram;
mod inbox;
mod insist;
pub mod janitor;
#[cfg(feature = "kubernetes")]
pub mod kubernetes;
mod lanes;
mod launcher;
pub mod local;
pub mod logs;
mod outbox;
mod perform;
mod service;
mod slab;
pub mod stats;
mod step;
mod supplies;
mod syncer;
mod teller;
mod timers;
mod unled;
mod workflow;

#[cfg(test)]
mod tests;

pub use inbox::{JobState, RunView, Scheduler, SchedulerSlot};
pub use lanes::Limits;
pub use service::{Parts, SchedulerService, Settings};
pub use supplies::{Backends, HostSupplies, Keeps, Opening, Supplies, Supply};
