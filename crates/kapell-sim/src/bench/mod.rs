//! What benchmarks share.

pub mod census;
pub mod handoff;
pub mod hosts;
pub mod instances;
pub mod parts;
pub mod population;
pub mod show;
pub mod site;
pub mod takeover;
pub mod usage;
pub mod watch;
