mod conformance;
mod killed;
mod lease;
mod orders;
mod places;
mod rig;
mod runner;
mod workflows;

pub(crate) use rig::{command, work};
