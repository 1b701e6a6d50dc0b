//! What is noted of those who change something, and of those who were not let in.

mod knocks;
mod record;

#[cfg(test)]
mod tests;

pub use knocks::{EVERY, Knock, Knocks, OTHERS, PEERS};
pub use record::{AuditRecord, ENTER, Outcome};
