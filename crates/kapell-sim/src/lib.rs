//! Proofs: every order of events in a model, whole clusters under seeded faults, and the lives of
//! conductors in every order that their tasks can take.

pub mod bench;
pub mod cluster;
pub mod figure;
pub mod fleet;
pub mod lifecycle;
pub mod model;
mod parts;
