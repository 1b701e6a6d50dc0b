//! The commands about jobs and runs.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use clap_complete::engine::ArgValueCompleter;

use super::args::{Listing, Reach, Shown};
use super::complete::{Kind, ids};
use crate::cli::name_and_value;

#[derive(Debug, Args)]
pub(crate) struct Job {
    #[command(flatten)]
    pub(crate) reach: Reach,
    #[command(subcommand)]
    pub(crate) command: JobCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum JobCommand {
    /// Have the jobs that files say
    Apply(JobApply),
    /// List jobs, with their next and last runs
    #[command(visible_alias = "ls")]
    List {
        /// Only those of this domain
        #[arg(long)]
        domain: Option<String>,
        /// Only those with this tag
        #[arg(long)]
        tag: Option<String>,
        #[command(flatten)]
        list: Listing,
    },
    /// Show one and its last runs
    Show {
        #[arg(add = ArgValueCompleter::new(ids(Kind::Job)))]
        job_id: String,
        #[command(flatten)]
        list: Listing,
    },
    /// Schedule nothing more, and forget it once its last run has ended
    #[command(visible_alias = "rm")]
    Delete {
        #[arg(required = true, add = ArgValueCompleter::new(ids(Kind::Job)))]
        job_id: Vec<String>,
        /// Cancel its runs too, also those that are under way
        #[arg(long)]
        cancel_runs: bool,
    },
    /// Schedule nothing until it is resumed; it can still be triggered
    Pause {
        #[arg(required = true, add = ArgValueCompleter::new(ids(Kind::Job)))]
        job_id: Vec<String>,
        /// Why, for others
        #[arg(long, value_name = "TEXT", default_value = "")]
        note: String,
    },
    /// Go on with a job that is paused
    Resume {
        #[arg(required = true, add = ArgValueCompleter::new(ids(Kind::Job)))]
        job_id: Vec<String>,
    },
    /// Have it run once, now
    Trigger(JobTrigger),
    /// Have it run for moments that are past
    Backfill(JobBackfill),
    /// Show when it is due next
    Next(JobNext),
    /// Make jobs of a crontab: print them as YAML, or apply them
    Import(JobImport),
    /// Say what of a file would have run when; needs no host
    Simulate(JobSimulate),
    /// List the messages that jobs sent to others, the newest first
    Deliveries {
        /// Only those of this job
        #[arg(add = ArgValueCompleter::new(ids(Kind::Job)))]
        job_id: Option<String>,
        /// Only those of this run
        #[arg(long, value_name = "RUN")]
        run: Option<String>,
        #[command(flatten)]
        list: Listing,
    },
    /// Show what constraints and actions take; needs no host
    Schema(JobSchema),
}

#[derive(Debug, Args)]
pub(crate) struct JobSchema {
    /// Only those of this kind
    #[arg(value_parser = ["constraint", "action"])]
    pub(crate) kind: Option<String>,
    /// The JSON schema of this one
    #[arg(value_name = "NAME")]
    pub(crate) name: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct JobApply {
    /// A file, a directory of .yaml, .yml and .json files, or `-` for standard input
    #[arg(short, long = "file", value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// Say what would happen, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Debug, Args)]
pub(crate) struct JobTrigger {
    #[arg(add = ArgValueCompleter::new(ids(Kind::Job)))]
    pub(crate) job_id: String,
    /// A parameter of this run
    #[arg(short, long = "param", value_name = "NAME=VALUE", value_parser = name_and_value)]
    pub(crate) params: Vec<(String, String)>,
    /// Wait for it, and end with its exit code
    #[arg(short, long)]
    pub(crate) wait: bool,
    /// The same, and print what it writes
    #[arg(short, long)]
    pub(crate) follow: bool,
}

#[derive(Debug, Args)]
pub(crate) struct JobBackfill {
    #[arg(add = ArgValueCompleter::new(ids(Kind::Job)))]
    pub(crate) job_id: String,
    /// The first moment, in the time zone of the job: 02:30, "2026-11-16 02:30" or 2026-11-16T02:30:00Z
    #[arg(long, value_name = "TIME")]
    pub(crate) from: String,
    /// Before this one
    #[arg(long, value_name = "TIME")]
    pub(crate) to: String,
    /// Say which runs these would be, and make none
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Make them anew although a backfill with the same parameters has made them before
    #[arg(long)]
    pub(crate) again: bool,
    /// A parameter of these runs
    #[arg(short, long = "param", value_name = "NAME=VALUE", value_parser = name_and_value)]
    pub(crate) params: Vec<(String, String)>,
    #[command(flatten)]
    pub(crate) show: Shown,
}

#[derive(Debug, Args)]
pub(crate) struct JobNext {
    #[arg(required_unless_present = "file", add = ArgValueCompleter::new(ids(Kind::Job)))]
    pub(crate) job_id: Option<String>,
    /// A file with the job; needs no host
    #[arg(short, long, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// So many moments
    #[arg(short = 'n', long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) count: u32,
    #[command(flatten)]
    pub(crate) show: Shown,
}

#[derive(Debug, Args)]
pub(crate) struct JobImport {
    /// The crontab, or `-` for standard input
    pub(crate) crontab: PathBuf,
    /// Apply them, instead of printing them
    #[arg(long)]
    pub(crate) apply: bool,
    /// What the ids of the jobs begin with
    #[arg(long, value_name = "TEXT", default_value = "cron")]
    pub(crate) prefix: String,
    /// The time zone of lines that name none [default: that of this machine]
    #[arg(long, value_name = "ZONE")]
    pub(crate) timezone: Option<String>,
    /// The sixth column is a user, as in /etc/crontab
    #[arg(long)]
    pub(crate) system: bool,
}

#[derive(Debug, Args)]
pub(crate) struct JobSimulate {
    /// A file with jobs
    pub(crate) file: PathBuf,
    /// From this time on, in the time zone of the job: 02:30, "2026-11-16 02:30" or 2026-11-16T02:30:00Z
    #[arg(long, value_name = "TIME")]
    pub(crate) from: String,
    /// Before this one
    #[arg(long, value_name = "TIME")]
    pub(crate) to: String,
    #[command(flatten)]
    pub(crate) show: Shown,
}

#[derive(Debug, Args)]
pub(crate) struct Run {
    #[command(flatten)]
    pub(crate) reach: Reach,
    #[command(subcommand)]
    pub(crate) command: RunCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum RunCommand {
    /// List runs, the newest first
    #[command(visible_alias = "ls")]
    List(RunList),
    /// Show one, with every decision about it
    Show {
        #[arg(add = ArgValueCompleter::new(ids(Kind::Run)))]
        run_id: String,
        #[command(flatten)]
        list: Listing,
    },
    /// Print what one wrote
    Logs(RunLogs),
    /// End one, whatever it does
    Cancel {
        #[arg(required = true, add = ArgValueCompleter::new(ids(Kind::Run)))]
        run_id: Vec<String>,
        /// Kill it at once, without a word of warning
        #[arg(long)]
        now: bool,
    },
    /// Have one that has ended done once more, as a new run
    Retry {
        #[arg(add = ArgValueCompleter::new(ids(Kind::Run)))]
        run_id: String,
    },
}

#[derive(Debug, Args)]
pub(crate) struct RunList {
    /// Only those of this job
    #[arg(add = ArgValueCompleter::new(ids(Kind::Job)))]
    pub(crate) job_id: Option<String>,
    /// Only those in this state
    #[arg(long)]
    pub(crate) state: Option<String>,
    /// Only those that have not ended
    #[arg(long)]
    pub(crate) active: bool,
    /// Only those of this domain
    #[arg(long)]
    pub(crate) domain: Option<String>,
    /// So many at most
    #[arg(short = 'n', long, value_name = "N", default_value_t = 50)]
    pub(crate) limit: u32,
    #[command(flatten)]
    pub(crate) list: Listing,
}

#[derive(Debug, Args)]
pub(crate) struct RunLogs {
    #[arg(add = ArgValueCompleter::new(ids(Kind::Run)))]
    pub(crate) run_id: String,
    /// Go on with what comes, over all attempts
    #[arg(short, long)]
    pub(crate) follow: bool,
    /// Of this attempt, counted from 0 [default: the last]
    #[arg(long, value_name = "N", conflicts_with = "follow")]
    pub(crate) attempt: Option<u32>,
    /// Begin with so many last lines
    #[arg(long, value_name = "N")]
    pub(crate) tail: Option<u64>,
    /// Put the time before each line
    #[arg(long)]
    pub(crate) timestamps: bool,
}
