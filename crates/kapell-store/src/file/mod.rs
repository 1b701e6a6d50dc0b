//! `file:`: a store in a directory, for one process at a time.
//!
//! All of it is in memory; on disk is a log of what has changed, and now and then a snapshot that
//! replaces the log before it. One thread writes: what is asked while it waits for the disk is
//! written together, with one flush, and is answered after that flush and not before.

mod bulk;
mod code;
mod compact;
mod desk;
mod dir;
mod frame;
mod holder;
mod job;
mod log;
mod note;
mod recover;
mod segment;
mod snapshot;
mod store;
#[cfg(test)]
mod tests;
mod writer;

pub use holder::{Holder, Peek, peek};
pub use note::Note;
pub use store::FileStore;
