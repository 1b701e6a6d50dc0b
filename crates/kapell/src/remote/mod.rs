//! The commands that talk to a host.

mod apply;
mod args;
mod audit;
mod cells;
mod complete;
mod domain;
mod events;
mod exec;
mod explain;
mod files;
mod filter;
mod follower;
mod job;
mod job_args;
mod job_import;
mod job_messages;
mod job_schema;
mod job_times;
mod logs;
mod lrp;
mod lrp_run;
mod many_jobs;
mod plan;
mod raw;
mod reach;
mod run;
mod run_text;
mod run_wait;
mod secret;
mod show;
mod sign;
mod sink;
mod steps;
mod table;
mod target;
mod task;
mod task_run;
mod text;
mod token;
mod wait;
mod workflow_files;
mod yaml;

#[cfg(test)]
mod tests;

use kapell_api::client::{Client, Error, Options};

use crate::config::Config;
use crate::say;

pub(crate) use args::{Command, Shell};
pub(crate) use complete::{complete, completions};
use job_args::JobCommand;
pub(crate) use reach::LOCAL;
use reach::Resolved;
pub(crate) use sign::Sign;
pub(crate) use steps::{cells_for, needs_cells, steps_of};

/// What was asked for did not happen.
const FAILED: u8 = 1;

pub(crate) fn run(command: Command, config: &Config) -> anyhow::Result<u8> {
    if let Command::Job(args) = &command
        && let Some(done) = without_host(&args.command)
    {
        return done;
    }
    let reach = match &command {
        Command::Apply(args) => &args.reach,
        Command::Plan(args) => &args.reach,
        Command::Lrp(args) => &args.reach,
        Command::Task(args) => &args.reach,
        Command::Job(args) => &args.reach,
        Command::Run(args) => &args.reach,
        Command::Domain(args) => &args.reach,
        Command::Cells(args) => &args.reach,
        Command::Logs(args) => &args.reach,
        Command::Exec(args) => &args.reach,
        Command::Events(args) => &args.reach,
        Command::Audit(args) => &args.reach,
        Command::Token(args) => &args.reach,
        Command::Secret(args) => &args.reach,
        Command::Explain(args) => &args.reach,
        Command::Wait(args) => &args.reach,
    };
    let resolved = Resolved::new(reach, &config.state_dir, |name| std::env::var_os(name))?;
    let has_token = resolved.token.is_some();
    let client = resolved.client(&Options::default())?;
    let is_exec = matches!(command, Command::Exec(_));
    match crate::store::block_on(perform(command, &client)) {
        Ok(code) => Ok(code),
        Err(error) => {
            say(&format!("error: {error:#}\n"));
            if let Some(hint) = error.downcast_ref().and_then(|error| hint(error, has_token)) {
                say(&format!("hint: {hint}\n"));
            }
            Ok(if is_exec { exec::failed(&error) } else { FAILED })
        }
    }
}

/// What is known here already.
fn without_host(command: &JobCommand) -> Option<anyhow::Result<u8>> {
    match command {
        JobCommand::Next(args) if args.file.is_some() => Some(job_times::next_of_file(args)),
        JobCommand::Simulate(args) => Some(job_times::simulate(args)),
        JobCommand::Schema(args) => Some(job_schema::run(args)),
        JobCommand::Import(args) if !args.apply => Some(job_import::show(args)),
        JobCommand::Next(_)
        | JobCommand::Deliveries { .. }
        | JobCommand::Import(_)
        | JobCommand::Apply(_)
        | JobCommand::List { .. }
        | JobCommand::Show { .. }
        | JobCommand::Delete { .. }
        | JobCommand::Pause { .. }
        | JobCommand::Resume { .. }
        | JobCommand::Trigger(_)
        | JobCommand::Backfill(_) => None,
    }
}

async fn perform(command: Command, client: &Client) -> anyhow::Result<u8> {
    match command {
        Command::Apply(args) => apply::run(&args, client).await,
        Command::Plan(args) => plan::run(&args, client).await,
        Command::Lrp(args) => lrp::run(args.command, client).await,
        Command::Task(args) => task::run(args.command, client).await,
        Command::Job(args) => job::run(args.command, client).await,
        Command::Run(args) => run::run(args.command, client).await,
        Command::Domain(args) => domain::run(args.command, client).await,
        Command::Cells(args) => cells::run(args, client).await,
        Command::Logs(args) => logs::run(&args, client).await,
        Command::Exec(args) => exec::run(&args, client).await,
        Command::Events(args) => events::run(&args, client).await,
        Command::Audit(args) => audit::run(&args, client).await,
        Command::Token(args) => token::run(args.command, client).await,
        Command::Secret(args) => secret::run(args.command, client).await,
        Command::Explain(args) => explain::run(&args, client).await,
        Command::Wait(args) => wait::run(&args, client).await,
    }
}

/// What a person can do about it.
fn hint(error: &Error, has_token: bool) -> Option<&'static str> {
    let refused = matches!(error, Error::Problem { status: 401 | 403, .. });
    // Another token may be of no help to whoever has the right one and may not.
    if !refused || error.problem().is_some_and(|problem| problem.code == "forbidden") {
        return None;
    }
    Some(if has_token {
        "the token is not that of this host: give another by KAPELL_TOKEN or --token-file"
    } else {
        "no token was found: give it by KAPELL_TOKEN or --token-file, or name the host's --state-dir"
    })
}
