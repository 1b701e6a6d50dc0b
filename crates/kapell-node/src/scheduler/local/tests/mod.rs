mod conformance;
mod killed;
mod orders;
mod places;
mod rig;
mod workflows;

pub(crate) use rig::{command, work};
