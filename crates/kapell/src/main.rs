//! `kapell`: what a person sees of it all.

mod agent;
mod cell;
mod cli;
mod clusters;
mod config;
mod drivers;
mod host;
mod http;
mod logger;
mod member;
mod metrics;
mod page;
mod problems;
mod process;
mod remote;
mod seats;
mod store;
mod summary;
mod up;
mod users;
mod workflow;

use std::process::ExitCode;

use clap::Parser as _;
use kapell_backend::executor::Stream;
use kapell_node::stdio;

use cli::{Cli, Command};
use config::Config;
use logger::Style;

/// Bad usage or a bad file: nothing was executed.
const BAD_INPUT: u8 = 2;

fn main() -> ExitCode {
    if remote::complete() {
        return ExitCode::SUCCESS;
    }
    let cli = Cli::parse();
    let config = Config::load(cli.config.as_deref(), cli.state_dir.as_deref(), |name| {
        std::env::var_os(name)
    });
    let config = match config {
        Ok(config) => config,
        Err(config::Error::File(bad)) => {
            say(&bad.render(Style::of_stderr().colour));
            return ExitCode::from(BAD_INPUT);
        }
        Err(error) => {
            say(&format!("error: {error}\n"));
            return ExitCode::from(BAD_INPUT);
        }
    };
    let done = match cli.command {
        Command::Process(args) => process::run(&args, &config),
        Command::Workflow(command) => workflow::run(command, &config),
        Command::Up(args) => up::run(&args, &config),
        Command::Host(args) => host::run(&args, &config),
        Command::Cell(args) => cell::run(&args, &config),
        Command::Seats(args) => seats::run(&args, &config),
        Command::Store(command) => store::run(command),
        Command::Remote(command) => remote::run(command, &config),
        Command::Completions { shell } => Ok(remote::completions(shell)),
        Command::Config(cli::Config::Show { output }) => Ok(workflow::show_config(&config, output)),
    };
    match done {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            say(&format!("error: {error:#}\n"));
            ExitCode::from(BAD_INPUT)
        }
    }
}

/// Writes to standard error. Nobody may be listening.
fn say(text: &str) {
    let _written = stdio::write_all(Stream::Stderr, text.as_bytes());
}

/// Writes data to standard output. Nobody may be listening.
fn print(text: &str) {
    let _written = stdio::write_all(Stream::Stdout, text.as_bytes());
}
