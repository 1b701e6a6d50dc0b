//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

/// Runs work and keeps it running.
#[derive(Debug, Parser)]
#[command(name = "kapell", version, propagate_version = true, max_term_width = 100)]
pub(crate) struct Cli {
    /// Settings file, instead of the user's own [env: KAPELL_CONFIG=]
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Where history and other state is kept
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) state_dir: Option<PathBuf>,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a workflow file
    Process(Process),
    /// Check, draw and look back at workflows
    #[command(subcommand)]
    Workflow(Workflow),
    /// Show settings
    #[command(subcommand)]
    Config(Config),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Logger {
    /// One line an event
    Stream,
    /// A live tree of all steps
    Tree,
    /// One JSON object an event, on standard output
    Json,
    /// Nothing at all
    #[value(alias = "noop")]
    None,
}

impl Logger {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Stream => "stream",
            Self::Tree => "tree",
            Self::Json => "json",
            Self::None => "none",
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct Process {
    /// How to show progress [default: stream]
    #[arg(short, long, value_enum)]
    pub(crate) logger: Option<Logger>,
    /// How many steps run at once [default: the file's `workers`, else 5]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) workers: Option<u32>,
    /// Say what would run and why, and run nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Keep what succeeded in an earlier run (the last one of FILE) and run the rest
    #[arg(long, value_name = "RUN", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    pub(crate) resume: Option<String>,
    /// Run this step and everything downstream of it
    #[arg(long, value_name = "STEP")]
    pub(crate) from: Vec<String>,
    /// Run this step and nothing else
    #[arg(long, value_name = "STEP")]
    pub(crate) only: Vec<String>,
    /// Value of a named parameter
    #[arg(short, long = "param", value_name = "NAME=VALUE", value_parser = name_and_value)]
    pub(crate) param: Vec<(String, String)>,
    /// Write figures of the run to a file, in Prometheus' text format
    #[arg(long, value_name = "FILE")]
    pub(crate) metrics: Option<PathBuf>,
    /// The workflow file
    pub(crate) file: PathBuf,
    /// Values of the parameters `$1`, `$2`, …
    #[arg(value_name = "PARAM")]
    pub(crate) params: Vec<String>,
}

fn name_and_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        Some(_) | None => Err("write NAME=VALUE".to_owned()),
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum Workflow {
    /// Check files without running anything
    Validate {
        #[arg(required = true)]
        files: Vec<PathBuf>,
    },
    /// Draw the steps of a file
    Graph {
        #[arg(long, value_enum, default_value_t = Format::Tree)]
        format: Format,
        file: PathBuf,
    },
    /// Print the JSON Schema of workflow files, for editors
    Schema,
    /// List past runs, the last one first
    List {
        /// Only runs of this file
        file: Option<PathBuf>,
        /// At most this many
        #[arg(long, default_value_t = 50)]
        limit: usize,
        #[arg(long, value_enum, default_value_t = Output::Text)]
        output: Output,
    },
    /// Show how a run went, step by step
    Show {
        /// The run, by its id or a part of it, or a workflow file for its last run [default: the last run]
        run: Option<String>,
        #[arg(long, value_enum, default_value_t = Output::Text)]
        output: Output,
    },
    /// Print what the steps of a run wrote
    Logs {
        /// The run, by its id or a part of it, or a workflow file for its last run [default: the last run]
        run: Option<String>,
        /// Only these steps
        #[arg(long = "step", value_name = "STEP")]
        steps: Vec<String>,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    Tree,
    Dot,
    Mermaid,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    Text,
    Json,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Config {
    /// Show every setting, its value and where that comes from
    Show {
        #[arg(long, value_enum, default_value_t = Output::Text)]
        output: Output,
    },
}
