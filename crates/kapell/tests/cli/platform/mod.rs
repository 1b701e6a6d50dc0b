//! `kapell up`, hosts and cells, each test with real processes.

mod access;
mod agents;
mod api;
mod api_callbacks;
mod api_lists;
mod api_logs;
mod api_openapi;
mod api_validation;
mod audit;
mod browser;
pub(crate) mod chance;
mod commands;
mod commands_completion;
mod commands_logs;
mod commands_plan;
mod commands_reach;
mod commands_screen;
mod commands_task;
mod commands_wait;
mod deletes;
mod disk;
mod ends;
mod events;
pub(crate) mod fleet;
mod kills;
pub(crate) mod life;
mod load;
pub(crate) mod moves;
mod once;
mod page;
mod programs;
mod safety;
pub(crate) mod site;
mod steps;
mod tasks;

pub(crate) use site::Site;
