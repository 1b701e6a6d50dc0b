mod commits;
mod effects;
mod fakes;
mod hub;
mod presence;
mod queues;
mod takeover;
pub(crate) mod theatre;
mod trouble;
