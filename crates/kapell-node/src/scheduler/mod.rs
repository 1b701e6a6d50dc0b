//! The scheduler: makes runs of what is due, and leads each to its end.

pub mod backend;
