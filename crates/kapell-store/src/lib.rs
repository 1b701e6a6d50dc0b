//! Where things are kept. This crate does not know what they mean.

pub mod frames;
pub mod lines;
mod syncer;
