//! What benchmarks of whole platforms share.

pub mod census;
pub mod instances;
pub mod parts;
pub mod site;
pub mod watch;
