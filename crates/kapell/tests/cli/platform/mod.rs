//! `kapell up`, hosts and cells, each test with real processes.

mod agents;
mod api;
mod api_callbacks;
mod api_lists;
mod api_logs;
mod api_openapi;
mod api_validation;
mod browser;
mod chance;
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
mod fleet;
mod kills;
mod life;
mod load;
mod moves;
mod once;
mod page;
mod programs;
mod safety;
mod site;
mod tasks;
mod zones;

use site::Site;
