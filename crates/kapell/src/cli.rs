//! The command line.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use kapell_core::workflow::parse_duration;

use crate::remote::Command as Remote;
use crate::remote::Shell;

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
    /// Run a whole platform on this machine
    Up(Up),
    /// Run a host: wait for a seat, and conduct while it is held
    Host(Host),
    /// Run a cell: do the work that hosts hand out
    Cell(Box<Cell>),
    /// Show who holds which seat
    Seats(Seats),
    /// Back up, restore and copy stores
    #[command(subcommand)]
    Store(StoreCommand),
    #[command(flatten)]
    Remote(Remote),
    /// Show settings
    #[command(subcommand)]
    Config(Config),
    /// Print what makes a shell complete commands, options and ids
    Completions {
        #[arg(value_enum)]
        shell: Shell,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum StoreCommand {
    /// Write all that a store holds to a file
    Backup {
        /// The store, as for --store
        from: String,
        /// The file, which must not be there yet
        to: PathBuf,
    },
    /// Put a backup into a store
    Restore {
        /// The file
        from: PathBuf,
        /// The store, as for --store; made if it is not there
        to: String,
        /// Delete the records that are there before
        #[arg(long)]
        replace: bool,
    },
    /// Put all that a store holds into another one
    Copy {
        /// The store, as for --store
        from: String,
        /// The other store, as for --store; made if it is not there
        to: String,
        /// Delete the records that are there before
        #[arg(long)]
        replace: bool,
    },
}

/// Which store, for every command that needs one.
#[derive(Debug, Args)]
pub(crate) struct Store {
    /// Where state is kept: file:DIR, etcd://HOST:PORT, postgres://USER@HOST/DATABASE, cassandra://HOST/KEYSPACE, dynamodb://REGION/TABLE, mem: [env: KAPELL_STORE=]
    #[arg(long, value_name = "URL")]
    pub(crate) store: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Host {
    #[command(flatten)]
    pub(crate) store: Store,
    /// How many seats the cluster has; this host takes one
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(crate) seats: u32,
    /// How long a seat is held without word from its holder
    #[arg(long, value_name = "DURATION", default_value = "20s", value_parser = lease)]
    pub(crate) lease: Duration,
    /// How long to wait for a seat with --once
    #[arg(long, value_name = "DURATION", default_value = "120s", value_parser = duration)]
    pub(crate) window: Duration,
    /// Where to listen; any address but loopback is served by TLS
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:7070")]
    pub(crate) listen: SocketAddr,
    /// Where others reach this host
    #[arg(long, value_name = "ADDR", value_parser = address)]
    pub(crate) advertise: String,
    /// Launch once, and end with the first problem
    #[arg(long)]
    pub(crate) once: bool,
    #[command(flatten)]
    pub(crate) access: Access,
    /// How the log is written to standard error
    #[arg(long, value_enum, default_value_t = Output::Text)]
    pub(crate) log: Output,
}

impl Host {
    /// A host of this machine alone, with a store of its own.
    pub(crate) fn local(store: String, listen: SocketAddr, log: Output) -> Self {
        Self {
            store: Store { store: Some(store) },
            seats: 1,
            lease: Duration::from_secs(20),
            window: Duration::from_secs(120),
            listen,
            advertise: listen.to_string(),
            once: false,
            access: Access {
                token_file: None,
                tls_cert: None,
                tls_key: None,
                tls_ca: None,
                allow_host: Vec::new(),
            },
            log,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct Up {
    /// Where everything is kept [default: up in the state directory]
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
    /// Where records are kept, if not in DIR: what `kapell host --store` takes
    #[arg(long, value_name = "URL")]
    pub(crate) store: Option<String>,
    /// Where to listen on this machine
    #[arg(long, value_name = "PORT", default_value_t = 7070)]
    pub(crate) port: u16,
    /// Have something run to look at
    #[arg(long)]
    pub(crate) demo: bool,
    #[command(flatten)]
    pub(crate) rooted: Rooted,
    /// How the log is written to standard error
    #[arg(long, value_enum, default_value_t = Output::Text)]
    pub(crate) log: Output,
}

#[derive(Debug, Args)]
pub(crate) struct Cell {
    /// Where the hosts listen [default: http://127.0.0.1:7070]
    #[arg(long, value_name = "URL[,URL]", env = "KAPELL_URL", hide_env_values = true)]
    pub(crate) url: Option<String>,
    /// Join the hosts' cluster by a token that `kapell token create --role cell-join` printed, unless DIR tells that it did before
    #[arg(long, value_name = "TOKEN", env = "KAPELL_JOIN", hide_env_values = true)]
    pub(crate) join: Option<String>,
    /// Its name among cells [default: the one used in DIR before, or a new one]
    #[arg(long)]
    pub(crate) id: Option<String>,
    /// Where its containers and their logs are kept [default: cell in the state directory]
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
    /// What fails together: instances are spread over zones
    #[arg(long, default_value = "")]
    pub(crate) zone: String,
    /// Where to listen; any address but loopback needs TLS
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:0")]
    pub(crate) listen: SocketAddr,
    /// Where hosts reach this cell [default: where it listens]
    #[arg(long, value_name = "ADDR", value_parser = address)]
    pub(crate) advertise: Option<String>,
    /// Memory for work [default: all that the machine has]
    #[arg(long, value_name = "MB")]
    pub(crate) memory: Option<u32>,
    /// Disk for work [default: what is free in DIR]
    #[arg(long, value_name = "MB")]
    pub(crate) disk: Option<u32>,
    /// Containers at once
    #[arg(long, value_name = "N", default_value_t = 1024)]
    pub(crate) containers: u32,
    /// What work must ask for to be placed here
    #[arg(long, value_name = "TAG")]
    pub(crate) tag: Vec<String>,
    /// What work may ask for besides
    #[arg(long, value_name = "TAG")]
    pub(crate) optional_tag: Vec<String>,
    /// Take work again although an earlier agent in DIR was being evacuated
    #[arg(long)]
    pub(crate) stay: bool,
    #[command(flatten)]
    pub(crate) rooted: Rooted,
    #[command(flatten)]
    pub(crate) access: Access,
    /// How the log is written to standard error
    #[arg(long, value_enum, default_value_t = Output::Text)]
    pub(crate) log: Output,
}

/// Work that brings its own root file system.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct Rooted {
    /// Run work with a `rootfs` too, by runc; needs root, and changes this machine's packet filter
    #[arg(long)]
    pub(crate) oci: bool,
    /// Images and directories of this machine may lie below it
    #[arg(long, value_name = "DIR", requires = "oci")]
    pub(crate) image_root: Vec<PathBuf>,
    /// Where images come from that name no registry
    #[arg(long, value_name = "HOST", requires = "oci")]
    pub(crate) registry: Option<String>,
    /// A registry that is spoken to without TLS
    #[arg(long, value_name = "HOST", requires = "oci")]
    pub(crate) insecure_registry: Vec<String>,
    /// Whose certificates registries must have, in PEM [default: what the system trusts]
    #[arg(long, value_name = "FILE", requires = "oci")]
    pub(crate) registry_ca: Option<PathBuf>,
    /// Let containers use the network of this machine instead of one of their own
    #[arg(long, requires = "oci")]
    pub(crate) host_network: bool,
}

/// Who may talk to the listener, and how.
#[derive(Debug, Args)]
pub(crate) struct Access {
    /// The token that every request must bear; made if it is missing [default: token in the state directory]
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
    /// Certificate chain of the listener, in PEM [default: one of the cluster's own, where TLS is needed]
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub(crate) tls_cert: Option<PathBuf>,
    /// Private key of the listener, in PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(crate) tls_key: Option<PathBuf>,
    /// Whose certificates other hosts must have, in PEM [default: those of --tls-cert]
    #[arg(long, value_name = "FILE")]
    pub(crate) tls_ca: Option<PathBuf>,
    /// A further name that clients may call this host by
    #[arg(long = "allow-host", value_name = "NAME")]
    pub(crate) allow_host: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Seats {
    #[command(flatten)]
    pub(crate) store: Store,
    #[arg(long, value_enum, default_value_t = Output::Text)]
    pub(crate) output: Output,
}

pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    parse_duration(text)
        .filter(|duration| !duration.is_zero())
        .ok_or_else(|| "write a duration such as 20s".to_owned())
}

/// The specified bounds of a time to live.
fn lease(text: &str) -> Result<Duration, String> {
    let bounds = Duration::from_secs(1)..=Duration::from_secs(365 * 86_400);
    duration(text).and_then(|lease| {
        bounds.contains(&lease).then_some(lease).ok_or_else(|| "a lease is 1s to 365d".to_owned())
    })
}

fn address(text: &str) -> Result<String, String> {
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    let port = rest.unwrap_or(text).rsplit_once(':').and_then(|(host, port)| {
        (!host.is_empty() && !host.contains('/')).then(|| port.parse::<u16>().ok())?
    });
    match port {
        Some(1..) => Ok(text.to_owned()),
        Some(0) | None => Err("write HOST:PORT".to_owned()),
    }
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
    /// Run steps on the cells of these hosts, all but those with `executor: local`
    #[arg(long, value_name = "URL[,URL]")]
    pub(crate) on: Option<String>,
    /// Write figures of the run to a file, in Prometheus' text format
    #[arg(long, value_name = "FILE")]
    pub(crate) metrics: Option<PathBuf>,
    /// The workflow file
    pub(crate) file: PathBuf,
    /// Values of the parameters `$1`, `$2`, …
    #[arg(value_name = "PARAM")]
    pub(crate) params: Vec<String>,
}

pub(crate) fn name_and_value(text: &str) -> Result<(String, String), String> {
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
