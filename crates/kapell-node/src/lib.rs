//! The actors: each turns what happens into events for a rule in `kapell-core`, and what the rule
//! decides into I/O.

pub mod access;
pub mod auctioneer;
pub mod audit;
pub mod board;
pub mod cell;
pub mod conductor;
pub mod constraint;
pub mod elections;
mod failpoint;
pub mod flow;
pub mod link;
#[cfg(feature = "kubernetes")]
mod pod_log;
pub mod scheduler;
pub mod stdio;
pub mod system;
pub mod testing;
pub mod transfer;
pub mod webhook;
