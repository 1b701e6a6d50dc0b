//! The scheduler: makes runs of what is due, and leads each to its end.

pub mod backend;
pub mod cells;
#[cfg(test)]
pub(crate) mod conformance;
pub mod fake;
pub mod local;
pub mod logs;
mod teller;
mod workflow;
