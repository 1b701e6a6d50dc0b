//! Where work runs. A driver here starts, watches and ends things; it decides nothing.

pub mod both;
pub mod containers;
pub mod executor;
pub mod exit;
pub mod heap;
pub mod image;
#[cfg(feature = "kubernetes")]
pub mod kubernetes;
pub mod local;
pub mod oci;
pub mod own_file;
pub mod process;
pub mod supervisor;

mod descendants;
mod spawn;
mod terminal;
#[cfg(test)]
mod testing;
mod wait;
mod watched;
