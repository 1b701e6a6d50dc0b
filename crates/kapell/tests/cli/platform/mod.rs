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
mod commands_exec;
mod commands_logs;
mod commands_plan;
mod commands_reach;
mod commands_screen;
mod commands_task;
mod commands_wait;
mod deletes;
mod disk;
#[cfg(feature = "dynamodb")]
mod dynamodb;
mod ends;
mod events;
pub(crate) mod fleet;
mod fuzz;
mod kills;
pub(crate) mod life;
mod load;
pub(crate) mod moves;
#[cfg(any(feature = "cassandra", feature = "dynamodb"))]
mod on_databases;
mod once;
mod overload;
mod page;
mod page_jobs;
mod programs;
mod safety;
mod secrets;
pub(crate) mod site;
mod slow;
mod steps;
mod tasks;

pub(crate) use site::Site;
