//! The commands that talk to a host.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use clap_complete::engine::ArgValueCompleter;
use kapell_core::seams::Timestamp;

use super::complete::{Kind, ids};
use super::job_args::{Job, Run};
use super::target::Target;
use crate::cli::{duration, name_and_value};

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Have what files say: long-running processes (kind: lrp), tasks (kind: task) and jobs (kind: job)
    Apply(Apply),
    /// Say what applying files would come to: what would run where, and what would not fit
    Plan(Plan),
    /// Look at and change long-running processes
    Lrp(Lrp),
    /// Run work once, and look at it
    Task(Task),
    /// Have work run by a schedule, and look at it
    Job(Job),
    /// Look at the runs of jobs, end them and do them again
    Run(Run),
    /// Say which domains are up to date
    Domain(Domain),
    /// Show the cells, or empty one
    Cells(Cells),
    /// Print what instances and tasks write
    Logs(Logs),
    /// Run a program in the container of an instance or a task
    Exec(Exec),
    /// Print what happens
    Events(Events),
    /// Print who changed what
    Audit(Audit),
    /// Make, list and revoke tokens, for people and programs that are to do less than everything
    Token(Token),
    /// Set, list and remove secrets, which work refers to by name
    Secret(Secret),
    /// Say why something is as it is
    Explain(Explain),
    /// Wait until something is as desired
    Wait(Wait),
}

/// Which host, and how to be let in.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct Reach {
    /// Where the hosts listen [env: KAPELL_URL=] [default: that of the `kapell up` that runs, or http://127.0.0.1:7070]
    #[arg(long, global = true, value_name = "URL[,URL]")]
    pub(crate) url: Option<String>,
    /// The token of the hosts [env: KAPELL_TOKEN=, the token itself] [default: token in the state directory]
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
    /// Whose certificates the hosts must have, in PEM [env: KAPELL_CA=]
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) ca: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum Output {
    #[default]
    Text,
    Json,
    Yaml,
}

#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct Shown {
    /// How data is written
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    pub(crate) output: Output,
}

#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct Listing {
    #[command(flatten)]
    pub(crate) show: Shown,
    /// Show it again whenever it changes
    #[arg(short, long, visible_alias = "follow")]
    pub(crate) watch: bool,
}

impl Listing {
    /// Nothing but the list is asked for.
    pub(crate) fn is_plain(self) -> bool {
        self.show.output == Output::default() && !self.watch
    }
}

#[derive(Debug, Default, Args)]
pub(crate) struct Apply {
    #[command(flatten)]
    pub(crate) reach: Reach,
    /// A file, a directory of .yaml, .yml and .json files, or `-` for standard input
    #[arg(short, long = "file", value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// Say what would happen, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Plan {
    #[command(flatten)]
    pub(crate) reach: Reach,
    /// A file, a directory of .yaml, .yml and .json files, or `-` for standard input
    #[arg(short, long = "file", value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) show: Shown,
}

#[derive(Debug, Args)]
pub(crate) struct Lrp {
    #[command(flatten)]
    pub(crate) reach: Reach,
    #[command(subcommand)]
    pub(crate) command: LrpCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum LrpCommand {
    /// List long-running processes
    #[command(visible_alias = "ls")]
    List(Listing),
    /// Have a command run, and keep it running
    Run(Box<LrpRun>),
    /// Show one and its instances
    Show {
        #[arg(add = ArgValueCompleter::new(ids(Kind::Lrp)))]
        process_guid: String,
        #[command(flatten)]
        list: Listing,
    },
    /// Set the number of instances
    Scale {
        #[arg(add = ArgValueCompleter::new(ids(Kind::Lrp)))]
        process_guid: String,
        instances: u32,
    },
    /// Stop all instances and forget it
    #[command(visible_alias = "rm")]
    Delete {
        #[arg(required = true, add = ArgValueCompleter::new(ids(Kind::Lrp)))]
        process_guid: Vec<String>,
    },
}

#[derive(Debug, Args)]
pub(crate) struct LrpRun {
    /// Its guid
    pub(crate) process_guid: String,
    /// How many instances run
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) instances: u32,
    /// The domain it belongs to
    #[arg(long, default_value = "default")]
    pub(crate) domain: String,
    /// How much memory each instance needs
    #[arg(long, value_name = "MB", default_value_t = 0)]
    pub(crate) memory: u32,
    /// How much disk each instance needs
    #[arg(long, value_name = "MB", default_value_t = 0)]
    pub(crate) disk: u32,
    /// A variable of its environment
    #[arg(short, long, value_name = "NAME=VALUE", value_parser = name_and_value)]
    pub(crate) env: Vec<(String, String)>,
    /// A port that it listens on; the one it gets is in its environment as PORT
    #[arg(long, value_name = "PORT")]
    pub(crate) port: Vec<u16>,
    /// The program and its arguments
    #[arg(last = true, required = true, value_name = "CMD")]
    pub(crate) command: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Task {
    #[command(flatten)]
    pub(crate) reach: Reach,
    #[command(subcommand)]
    pub(crate) command: TaskCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TaskCommand {
    /// Run a command once
    Run(Box<TaskRun>),
    /// List tasks
    #[command(visible_alias = "ls")]
    List(Listing),
    /// Show one
    Show {
        #[arg(add = ArgValueCompleter::new(ids(Kind::Task)))]
        task_guid: String,
        #[command(flatten)]
        list: Listing,
    },
    /// End one, whatever it does
    Cancel {
        #[arg(required = true, add = ArgValueCompleter::new(ids(Kind::Task)))]
        task_guid: Vec<String>,
    },
    /// Forget one that is complete
    #[command(visible_alias = "rm")]
    Delete {
        #[arg(required = true, add = ArgValueCompleter::new(ids(Kind::Task)))]
        task_guid: Vec<String>,
    },
}

#[derive(Debug, Args)]
pub(crate) struct TaskRun {
    /// Wait for it, print what it writes, and end with its exit code
    #[arg(short, long)]
    pub(crate) wait: bool,
    /// Its guid [default: drawn]
    #[arg(long, value_name = "GUID")]
    pub(crate) name: Option<String>,
    /// The domain it belongs to
    #[arg(long, default_value = "default")]
    pub(crate) domain: String,
    /// How much memory it needs
    #[arg(long, value_name = "MB", default_value_t = 0)]
    pub(crate) memory: u32,
    /// How much disk it needs
    #[arg(long, value_name = "MB", default_value_t = 0)]
    pub(crate) disk: u32,
    /// A variable of its environment
    #[arg(short, long, value_name = "NAME=VALUE", value_parser = name_and_value)]
    pub(crate) env: Vec<(String, String)>,
    /// The file that it writes its result to
    #[arg(long, value_name = "FILE", default_value = "")]
    pub(crate) result_file: String,
    /// Forget it when it is complete
    #[arg(long, requires = "wait")]
    pub(crate) rm: bool,
    /// The program and its arguments
    #[arg(last = true, required = true, value_name = "CMD")]
    pub(crate) command: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Domain {
    #[command(flatten)]
    pub(crate) reach: Reach,
    #[command(subcommand)]
    pub(crate) command: DomainCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum DomainCommand {
    /// List domains
    #[command(visible_alias = "ls")]
    List(Listing),
    /// Say that all that is desired in a domain is up to date
    Set {
        #[arg(add = ArgValueCompleter::new(ids(Kind::Domain)))]
        name: String,
        /// For how long, as 90s or 2m; 0 is for ever [default: for ever]
        #[arg(long, value_name = "DURATION", value_parser = duration)]
        ttl: Option<Duration>,
    },
}

#[derive(Debug, Args)]
pub(crate) struct Token {
    #[command(flatten)]
    pub(crate) reach: Reach,
    #[command(subcommand)]
    pub(crate) command: TokenCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TokenCommand {
    /// Make a token and print it; it is not shown again
    Create(TokenCreate),
    /// List the tokens that have not expired
    #[command(visible_alias = "ls")]
    List(Shown),
    /// Have a token count no more
    Revoke {
        /// As `kapell token list` shows it
        #[arg(required = true)]
        id: Vec<String>,
    },
}

#[derive(Debug, Args)]
pub(crate) struct Secret {
    #[command(flatten)]
    pub(crate) reach: Reach,
    #[command(subcommand)]
    pub(crate) command: SecretCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SecretCommand {
    /// Set a secret to what stands on standard input, or is typed
    Set(SecretSet),
    /// List which secrets there are; what they are is never shown
    #[command(visible_alias = "ls")]
    List {
        /// Only those of this domain
        #[arg(long)]
        domain: Option<String>,
        #[command(flatten)]
        show: Shown,
    },
    /// Remove a secret; what runs keeps it until it is started again
    #[command(visible_alias = "rm")]
    Remove {
        name: String,
        /// The domain it belongs to
        #[arg(long, default_value = "default")]
        domain: String,
    },
}

#[derive(Debug, Args)]
pub(crate) struct SecretSet {
    /// Letters, digits, `-` and `_`
    pub(crate) name: String,
    /// The domain it belongs to: only work of that domain can refer to it
    #[arg(long, default_value = "default")]
    pub(crate) domain: String,
    /// Read the value from a file; as with standard input, one line end behind it is left out
    #[arg(long, value_name = "FILE")]
    pub(crate) from_file: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct TokenCreate {
    /// What it allows
    #[arg(long, value_enum)]
    pub(crate) role: TokenRole,
    /// A domain that it is for [default: all]
    #[arg(long, value_name = "DOMAIN")]
    pub(crate) domain: Vec<String>,
    /// The cell that may join by it [default: any new one]
    #[arg(long, value_name = "ID")]
    pub(crate) cell: Option<String>,
    /// How long it counts
    #[arg(long, value_name = "DURATION", default_value = "12h", value_parser = duration)]
    pub(crate) ttl: Duration,
    /// Who will bear it
    #[arg(long, value_name = "WHO", default_value = "")]
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) show: Shown,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TokenRole {
    /// Change and read
    Operator,
    /// Read
    Reader,
    /// Join as a cell, once
    CellJoin,
}

#[derive(Debug, Args)]
pub(crate) struct Cells {
    #[command(flatten)]
    pub(crate) reach: Reach,
    #[command(flatten)]
    pub(crate) list: Listing,
    #[command(subcommand)]
    pub(crate) command: Option<CellsCommand>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum CellsCommand {
    /// Move all work of a cell to others
    Evacuate {
        #[arg(add = ArgValueCompleter::new(ids(Kind::Cell)))]
        cell_id: String,
    },
}

#[derive(Debug, Args)]
pub(crate) struct Exec {
    #[command(flatten)]
    pub(crate) reach: Reach,
    /// Pass on standard input
    #[arg(short, long)]
    pub(crate) interactive: bool,
    /// Give it a terminal [default: if standard input and output are one]
    #[arg(short, long, conflicts_with = "no_tty")]
    pub(crate) tty: bool,
    /// Give it no terminal
    #[arg(short = 'T', long)]
    pub(crate) no_tty: bool,
    /// An instance (web/0) or a task (task/GUID)
    #[arg(add = ArgValueCompleter::new(ids(Kind::Logs)))]
    pub(crate) of: Target,
    /// The program and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Logs {
    #[command(flatten)]
    pub(crate) reach: Reach,
    /// Go on with what comes
    #[arg(short, long)]
    pub(crate) follow: bool,
    /// Begin with so many last lines
    #[arg(long, value_name = "N")]
    pub(crate) tail: Option<u64>,
    /// Put the time before each line
    #[arg(long)]
    pub(crate) timestamps: bool,
    /// An instance (web/0), all instances (web), a task (task/GUID), or a run (run/ID)
    #[arg(add = ArgValueCompleter::new(ids(Kind::Logs)))]
    pub(crate) of: Target,
}

#[derive(Debug, Args)]
pub(crate) struct Events {
    #[command(flatten)]
    pub(crate) reach: Reach,
    /// Go on with what comes
    #[arg(short, long)]
    pub(crate) follow: bool,
    /// Only what came after this event
    #[arg(long, value_name = "ID")]
    pub(crate) after: Option<String>,
    #[command(flatten)]
    pub(crate) show: Shown,
}

#[derive(Debug, Args)]
pub(crate) struct Audit {
    #[command(flatten)]
    pub(crate) reach: Reach,
    /// Go on with what comes
    #[arg(short, long)]
    pub(crate) follow: bool,
    /// Nothing older: so long ago (2h), or a time such as 2026-01-31T12:00:00Z
    #[arg(long, value_name = "TIME", value_parser = super::audit::since)]
    pub(crate) since: Option<Timestamp>,
    #[command(flatten)]
    pub(crate) show: Shown,
}

#[derive(Debug, Args)]
pub(crate) struct Explain {
    #[command(flatten)]
    pub(crate) reach: Reach,
    /// lrp/GUID/INDEX, lrp/GUID, task/GUID, cell/ID, job/ID or run/ID
    #[arg(add = ArgValueCompleter::new(ids(Kind::Explain)))]
    pub(crate) what: Target,
    /// Why a job did or did not run then, in its time zone: 02:30, "2026-11-16 02:30" or 2026-11-16T02:30:00Z
    #[arg(long, value_name = "TIME")]
    pub(crate) at: Option<String>,
    #[command(flatten)]
    pub(crate) show: Shown,
}

#[derive(Debug, Args)]
pub(crate) struct Wait {
    #[command(flatten)]
    pub(crate) reach: Reach,
    /// lrp/GUID: all instances run; task/GUID: it is complete; run/ID: it has ended well; domain/NAME: it is fresh; cell/ID: it is there
    #[arg(add = ArgValueCompleter::new(ids(Kind::Any)))]
    pub(crate) of: Target,
    /// How long at most
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = duration)]
    pub(crate) timeout: Duration,
}

/// A shell that we can be completed in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Shell {
    Bash,
    Zsh,
    Fish,
    Elvish,
    Powershell,
}

impl Shell {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Bash => "bash",
            Self::Zsh => "zsh",
            Self::Fish => "fish",
            Self::Elvish => "elvish",
            Self::Powershell => "powershell",
        }
    }
}
