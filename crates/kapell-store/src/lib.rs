//! Where things are kept. This crate does not know what they mean.

pub mod archive;
mod book;
mod check;
mod error;
pub mod etcd;
pub mod file;
pub mod frames;
pub mod keys;
pub mod lines;
mod location;
pub mod mem;
pub mod model;
mod open;
pub mod postgres;
mod store;
mod syncer;
pub mod testing;
mod watch;

pub use error::Error;
pub use location::Location;
pub use open::How;
pub use store::{Shards, Store, Ttl};
pub use watch::{Bell, Cut, Watch};
