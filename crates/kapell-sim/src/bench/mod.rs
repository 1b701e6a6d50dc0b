//! What benchmarks share.

pub mod census;
pub mod instances;
pub mod parts;
pub mod show;
pub mod site;
pub mod usage;
pub mod watch;
