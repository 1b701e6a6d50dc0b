//! Kapell's HTTP interface: the types on the wire, and the client that the command line, cells and hosts use.

pub mod client;
pub mod identity;
pub mod v1;
