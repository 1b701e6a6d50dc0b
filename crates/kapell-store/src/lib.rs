//! Where things are kept. This crate does not know what they mean.

pub mod archive;
mod book;
#[cfg(feature = "cassandra")]
pub mod cassandra;
mod check;
#[cfg(feature = "dynamodb")]
pub mod dynamodb;
mod error;
#[cfg(feature = "etcd")]
pub mod etcd;
pub mod file;
pub mod frames;
pub mod keys;
#[cfg(feature = "kubernetes")]
pub mod kubernetes;
pub mod lines;
mod location;
pub mod mem;
pub mod model;
mod open;
mod pair;
#[cfg(feature = "postgres")]
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
