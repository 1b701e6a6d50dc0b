//! Jobs in a simulated platform: those who want them, where their work is done, what their constraints say.

mod checker;
pub(super) mod client;
pub(super) mod ground;
mod place;
pub(super) mod supplies;
pub(super) mod want;
pub(super) mod yard;

pub(super) use checker::LONGEST_ACTION;
