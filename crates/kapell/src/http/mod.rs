//! What hosts and cells show over HTTP.
//!
//! A connection is served by `server`; each request passes the `door` (Host, Origin, token or a browser's `session`)
//! before a `site` answers it. That of a host is `front`: it answers itself, as the leader by `v1` and by pages, or has
//! `forward` carry the request to the leader. That of a cell is `cell`.

mod access;
mod answer;
mod audit;
mod body;
mod cell;
mod desk;
mod dial;
mod door;
mod forward;
mod frames;
mod front;
mod guests;
mod host_logs;
mod known;
mod place;
mod query;
mod read;
mod route;
mod scheduler;
pub(crate) mod secret;
mod server;
mod session;
mod site;
mod tls;
pub(crate) mod token;
mod turns;
mod v1;
mod watched;

#[cfg(test)]
mod tests;

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use kapell_api::identity::{self, Identity, Trust};
use kapell_core::run::RunId;
use kapell_core::seams::Timestamp;
use kapell_core::seat::{Owner, Record, Seat};
use kapell_node::access::{Authority, ClusterKey, Ledger};
use kapell_node::audit::Journal;
use kapell_node::cell::ContainerLogs;
use kapell_node::scheduler::janitor::KnownRuns;

use cell::CellSite;
use front::Front;
use known::Known;
use server::Shows;

pub(crate) use cell::Rep;
pub(crate) use desk::{Desk, look};
pub(crate) use scheduler::Scheduler;
pub(crate) use server::Server;
pub(crate) use token::Token;
pub(crate) use v1::{
    RunsWanted, Subject, coming, explain, explain_job, job, list_jobs, list_runs, state_named,
    whole_run,
};

/// What the listener shows of its host. Asked for every request, so nothing here may wait.
pub(crate) trait Face: Send + Sync {
    /// Who this host is among those that compete.
    fn owner(&self) -> Owner;

    /// Who leads as far as this host knows.
    fn leader(&self) -> Option<Leader>;

    fn health(&self) -> Health;

    /// All figures in Prometheus' text format, those of the board too.
    fn metrics(&self) -> String;

    /// The board, while this host leads and has loaded it.
    fn board(&self) -> Option<Arc<dyn Desk>> {
        None
    }

    /// The scheduler, while this host leads and has begun to schedule.
    fn scheduler(&self) -> Option<Arc<dyn Scheduler>> {
        None
    }

    /// Where this host keeps what an attempt of a run wrote. May read the disk.
    fn run_log(&self, _run_id: &RunId, _attempt: u32) -> Option<ContainerLogs> {
        None
    }

    /// What is known of tokens, while this host leads.
    fn ledger(&self) -> Option<Arc<Ledger>> {
        None
    }
}

/// Who holds a seat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Leader {
    pub(crate) seat: Seat,
    pub(crate) record: Record,
    pub(crate) expires_in_ms: Option<u64>,
    /// It is this host, and it may act.
    pub(crate) here: bool,
}

/// What a host does right now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    Leading,
    Standby,
    Stopping,
}

impl Role {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Leading => "leading",
            Self::Standby => "standby",
            Self::Stopping => "stopping",
        }
    }
}

/// What becomes of changes that a host is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Writes {
    Accepted,
    /// They go to the host that leads.
    Forwarded,
    /// Nothing is changed, for a reason and since a time if that is known.
    Refused {
        why: String,
        since: Option<Timestamp>,
    },
}

impl Writes {
    pub(crate) const fn name(&self) -> &'static str {
        match self {
            Self::Accepted => "accepted",
            Self::Forwarded => "forwarded",
            Self::Refused { .. } => "refused",
        }
    }
}

/// How a host is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Health {
    pub(crate) role: Role,
    /// What is wrong with the store, if it did not answer when it was last asked or takes no writes.
    pub(crate) store_trouble: Option<String>,
    pub(crate) writes: Writes,
    /// When the role began.
    pub(crate) since: Timestamp,
}

/// Where to listen and whom to let in.
#[derive(Debug)]
pub(crate) struct Listen {
    pub(crate) address: SocketAddr,
    /// Where others reach this host: `[http[s]://]HOST[:PORT]`.
    pub(crate) advertise: String,
    pub(crate) token: Token,
    /// Tokens that it signed are let in too.
    pub(crate) key: Option<ClusterKey>,
    pub(crate) tls: Option<TlsFiles>,
    /// Certificates of the cluster, ours and those of others, unless `tls` says otherwise.
    pub(crate) peers: Option<Peers>,
    /// What cells get their certificates by.
    pub(crate) vouching: Option<Vouching>,
    /// Who signed the certificates of other hosts; without it, whoever signed our own.
    pub(crate) ca: Option<PathBuf>,
    /// Where it is noted who does what.
    pub(crate) audit: Option<Arc<Journal>>,
    /// More names that requests may be meant for, as `advertise`.
    pub(crate) allowed_hosts: Vec<String>,
}

/// Who we are to other hosts and cells of the cluster, and how we know them.
#[derive(Debug, Clone)]
pub(crate) struct Peers {
    pub(crate) trust: Trust,
    pub(crate) identity: Identity,
}

/// What vouches for cells, and for how long.
#[derive(Debug, Clone)]
pub(crate) struct Vouching {
    pub(crate) authority: Arc<Authority>,
    pub(crate) life: Duration,
}

/// What a host proves with that it is who it says, in PEM.
#[derive(Debug, Clone)]
pub(crate) struct TlsFiles {
    /// The certificate, then those between it and its authority.
    pub(crate) cert: PathBuf,
    pub(crate) key: PathBuf,
}

/// Why there is no listener.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error(
        "`{address}` can be reached from other machines, which needs TLS: give --tls-cert FILE --tls-key FILE, \
         or listen on 127.0.0.1"
    )]
    NeedsTls { address: SocketAddr },
    #[error(
        "`{address}` is taken by another process: stop it, or listen elsewhere by --listen (`kapell up`: --port)"
    )]
    InUse { address: SocketAddr },
    #[error("cannot listen on `{address}`")]
    Listen {
        address: SocketAddr,
        #[source]
        source: io::Error,
    },
    #[error("`{text}` is no address: write HOST, HOST:PORT or https://HOST:PORT")]
    Place { text: String },
    #[error(transparent)]
    Tls(#[from] tls::Error),
    #[error("the certificates of the cluster cannot be used")]
    Identity(#[from] identity::Error),
}

/// What a client may take of us.
#[derive(Debug, Clone, Copy)]
struct Limits {
    /// Served at once, those of cells not counted. With `reserve` and `forwards` it stays below the usual 1024 open
    /// files, so that the store can always be reached.
    connections: usize,
    /// Beside `connections`, for cells and for those of whom it is not known yet who they are.
    reserve: usize,
    /// Requests that are worked on at once, those of cells not counted: what cells say never waits for more than these.
    at_once: usize,
    /// The same with those that wait for their turn.
    requests: usize,
    /// Of those, how many may be streams, which last for as long as somebody reads.
    streams: usize,
    /// So many programs run beside those of containers, on a cell.
    execs: usize,
    /// Of requests on their way to the leader, cells have half as many again for themselves.
    forwards: usize,
    /// From the first to the last byte of a request's head, and between two requests.
    head: Duration,
    /// The bytes of a request's head.
    head_bytes: usize,
    /// From the first to the last byte of a request's body that is answered here.
    body: Duration,
    /// The bytes of a request's body that is answered here.
    body_bytes: usize,
    /// The same for what cells report and what they are told to do.
    bulk_bytes: usize,
    /// To reach the leader.
    connect: Duration,
    /// Without a byte of the request moving and without an answer of the leader, or without a byte of an answer being
    /// taken. A stream may be read for ever.
    stall: Duration,
}

const LIMITS: Limits = Limits {
    connections: 512,
    reserve: 96,
    at_once: 64,
    requests: 256,
    streams: 256,
    execs: 64,
    forwards: 192,
    head: Duration::from_secs(5),
    head_bytes: 32 * 1024,
    body: Duration::from_secs(30),
    body_bytes: 1024 * 1024,
    bulk_bytes: 4 * 1024 * 1024,
    connect: Duration::from_secs(5),
    stall: Duration::from_secs(60),
};

/// Opens the listener and serves until it is told to stop.
pub(crate) async fn bind(listen: Listen, face: Arc<dyn Face>) -> Result<Server, Error> {
    bind_host(listen, face, LIMITS).await
}

/// Asks which runs there are, in the name of a host.
pub(crate) fn known_runs(server: &Server, face: Arc<dyn Face>) -> Arc<dyn KnownRuns> {
    Arc::new(Known { face, upstream: v1::Upstream::new(server.tools.clone()) })
}

async fn bind_host(listen: Listen, face: Arc<dyn Face>, limits: Limits) -> Result<Server, Error> {
    Server::start(listen, limits, Shows::Pages, |tools| Arc::new(Front::new(face, tools))).await
}

/// Opens the listener of a cell.
pub(crate) async fn bind_cell(listen: Listen, cell: Arc<dyn Rep>) -> Result<Server, Error> {
    bind_cell_within(listen, cell, LIMITS).await
}

async fn bind_cell_within(
    listen: Listen,
    cell: Arc<dyn Rep>,
    limits: Limits,
) -> Result<Server, Error> {
    Server::start(listen, limits, Shows::Data, |tools| Arc::new(CellSite::new(cell, tools))).await
}
