//! What every driver must prove, for drivers in this crate and outside of it.
//!
//! A driver says in a [`Place`] how to make and open its stores and runs [`conforms`], or the
//! groups one by one. A group runs its cases side by side on one fresh store, each on keys and a
//! seat of its own, so that the times to live that they wait for pass together. Every case that
//! fails is reported, by name.
//!
//! Real time is used: nobody can speed up the clock of a server. A case that a slow machine
//! has disturbed begins again; it never fails for that.

mod bench;
mod bytes;
mod chance;
mod clock;
mod commit;
mod cuts;
mod delete;
mod expiry;
mod histories;
pub mod history;
mod insert;
mod limits;
mod list;
#[cfg(test)]
mod mutants;
mod place;
pub mod processes;
pub mod proxy;
mod races;
mod raise;
mod read;
mod scan;
mod skip;
mod suite;
mod swap;
mod timed;
mod verdict;
mod watch;

pub use chance::drawn;
pub use clock::{Shifted, how, shifted};
pub use place::{Fresh, Place};
pub use skip::skip;
pub use suite::{
    conforms, cut_connections, fenced_commits, histories, races, scan_while_committing,
    skewed_clocks, ttl_storage,
};
pub use verdict::{Failures, Verdict, Wrong};
