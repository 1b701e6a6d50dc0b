//! Who changed what, in files of this host.
//!
//! What is about to be done is on disk before it is done; what came of it follows without waiting. One thread writes for
//! everybody: all who wait share one sync.

mod files;
mod journal;
mod read;
mod trouble;
mod writer;

#[cfg(test)]
mod tests;

pub use files::{Disk, Limits, Real};
pub use journal::{Journal, Unavailable};
pub use read::{Bad, Page};
pub use trouble::Full;
