//! `kapell host`: waits for a seat and conducts while it is held.

mod beacon;
mod face;
pub(crate) mod log;
mod membership;
mod schedule;
pub(crate) mod signals;

use std::net::SocketAddr;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use async_trait::async_trait;
use kapell_api::client::{self, Options};
use kapell_backend::exit::exit_now;
use kapell_backend::heap;
use kapell_core::seams::Clock;
use kapell_core::seat::Seat;
use kapell_node::access::{AccessService, ClusterKey, Disagreement, agree};
use kapell_node::audit::{Journal, Real};
use kapell_node::board::{self, BoardService};
use kapell_node::conductor::{
    self, Conductor, DeadMan, LogTrace, Problem, ProblemSignal, TokioTasks,
};
use kapell_node::elections::{Elections, Killer, Leased, Locked, LockedParts, Parts, Refusal};
use kapell_node::link::{HttpCallbacks, HttpCells};
use kapell_node::scheduler::janitor::Janitor;
use kapell_node::scheduler::local;
use kapell_node::scheduler::logs::RunLogs;
use kapell_node::scheduler::{self, HostSupplies, Keeps, SchedulerService, Supplies};
use kapell_node::system::{SystemClock, SystemIds};
use kapell_store::{How, Location, Store};
use tokio::task::JoinSet;

use crate::cli;
use crate::clusters;
use crate::config::Config;
use crate::http::{self, Listen, Server, TlsFiles, Token, secret};
use crate::say;
use crate::store::{self, RESTORE, holder};
use beacon::Beacon;
use face::HostFace;
use membership::Membership;
use signals::Signals;
pub(crate) use signals::Stop;

/// The dead man's switch ended the process.
const KILLED: i32 = 70;
/// A problem ended it.
const PROBLEM: u8 = 1;
/// Between a problem of the services and the next launch.
const PAUSE: Duration = Duration::from_secs(1);
/// How long the last word may take.
const LAST_WORD: Duration = Duration::from_millis(100);
/// Set for a program image that follows one which has lost its seat.
const STARTED_OVER: &str = "KAPELL_STARTED_OVER";

/// Done once a host leads.
pub(crate) type Led = Pin<Box<dyn Future<Output = ()> + Send>>;

/// What runs beside a host in its process.
#[async_trait]
pub(crate) trait Companion: std::fmt::Debug + Send + Sync {
    /// The host listens. It will lead when `led` is done.
    async fn begin(&self, local: SocketAddr, token: &Token, led: Led) -> anyhow::Result<()>;

    /// The host was told to stop, and leads for as long as this takes.
    async fn end(&self, stop: Stop);
}

/// How a host ends.
enum Ending {
    Stopped(Stop),
    Problem(Arc<Problem>),
    /// The seat was lost: what comes next begins with a new process.
    StartOver(Arc<Problem>),
}

pub(crate) fn run(args: &cli::Host, config: &Config) -> anyhow::Result<u8> {
    run_with(args, config, None)
}

/// The same, with something beside it.
pub(crate) fn run_with(
    args: &cli::Host,
    config: &Config,
    companion: Option<&dyn Companion>,
) -> anyhow::Result<u8> {
    let name = if companion.is_some() { "kapell up" } else { "kapell host" };
    log::begin(args.log);
    match block_on(Host::run(args, config, companion))?? {
        Ending::Stopped(stop) => {
            say(&format!("{name}: stopped on {}\n", stop.name()));
            Ok(0)
        }
        Ending::Problem(problem) => {
            say(&format!("{name}: {:#}\n", anyhow::Error::new(problem)));
            Ok(PROBLEM)
        }
        Ending::StartOver(problem) => {
            say(&format!("{name}: {:#}; starting over\n", anyhow::Error::new(problem)));
            // The killer of the lost seat cannot be disarmed and goes with this program image.
            let mut words = std::env::args_os();
            let mut command = std::process::Command::new("/proc/self/exe");
            command.arg0(words.next().unwrap_or_default()).args(words).env(STARTED_OVER, "1");
            Err(command.exec()).context("cannot start over")
        }
    }
}

/// Threads of what serves others, besides those that wait for disks.
const WORKERS: u16 = 2;

/// Runs what serves others for as long as it lives, a host or a cell.
pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> anyhow::Result<T> {
    heap::share(WORKERS);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(WORKERS.into())
        .enable_all()
        .build()
        .context("cannot start")?;
    let done = runtime.block_on(future);
    runtime.shutdown_background();
    Ok(done)
}

/// A host, ready to launch.
struct Host<'a> {
    args: &'a cli::Host,
    location: Location,
    /// Where a seat is a lease; a file store is opened by whoever acquires it.
    store: Option<Arc<dyn Store>>,
    key: ClusterKey,
    how: How,
    /// What others are told.
    address: String,
    killer: Arc<dyn Killer>,
    face: Arc<HostFace>,
    stop_limit: Duration,
    board: board::Parts,
    scheduler: scheduler::Settings,
    supplies: Arc<dyn Supplies>,
    /// Where the work of runs is.
    jobs: PathBuf,
    companion: Option<&'a dyn Companion>,
}

impl<'a> Host<'a> {
    async fn run(
        args: &'a cli::Host,
        config: &Config,
        companion: Option<&'a dyn Companion>,
    ) -> anyhow::Result<Ending> {
        let mut signals = Signals::catch()?;
        let location = config.store(args.store.store.as_deref())?;
        check(args, &location)?;
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let how = How { create: true, timeout: store::TIMEOUT, clock: Arc::clone(&clock) };
        let jobs = jobs_dir(config, &location);
        let key = cluster_key(config)?;
        let logs = RunLogs::below(&jobs).with_blobs(config.blobs.as_deref(), &key.fingerprint());
        let face = Arc::new(HostFace::new(Arc::clone(&clock), &SystemIds, logs.clone()));
        let membership = Membership::of(args, config, &key)?;
        let listen = listen(args, config, &key, membership.as_ref())?;
        let (token, journal) = (listen.token.clone(), listen.audit.clone());
        if let Some(journal) = &journal {
            face.notes_in(Arc::clone(journal));
        }
        let server = http::bind(listen, Arc::<HostFace>::clone(&face)).await?;
        let local = server.local_addr();
        let advertise = reached(&args.advertise, local);
        tracing::info!(listen = %local, advertise, "listening");
        let store = if matches!(location, Location::File(_)) {
            None
        } else {
            tokio::select! {
                biased;
                opened = open_shared(&location, &how, args.lease, &key) => Some(opened?),
                stop = signals.next() => return Ok(Ending::Stopped(stop)),
            }
        };
        let killer = killer()?;
        let secure = args.access.tls_cert.is_some() || membership.is_some();
        let address = with_scheme(advertise, secure);
        let cells = Arc::new(cells(args, &token, membership.as_ref()));
        let mut keeping = JoinSet::new();
        if let Some(membership) = membership {
            keeping.spawn(membership.keep(Arc::clone(&cells)));
        }
        keeping.spawn(janitor(config, &logs, &server, &face).run());
        let keeps = Keeps { logs, address: address.as_str().into() };
        let supplies = Arc::new(supplies(config, (jobs.clone(), keeps), &cells, &clock, &key)?);
        let board = board_parts(config, cells, &clock, &face);
        if let Some(companion) = companion {
            companion.begin(local, &token, Box::pin(face.led())).await?;
        }
        let host = Self {
            args,
            location,
            store,
            key,
            how,
            address,
            killer,
            face,
            stop_limit: config.grace,
            board,
            scheduler: config.scheduler,
            supplies,
            jobs,
            companion,
        };
        let ending = host.launch_again_and_again(&mut signals).await;
        host.end_runs(&ending, &mut signals).await;
        host.close(&ending, server, journal, &mut signals).await;
        ending
    }

    /// Ends what runs have running here, if a person has ended host and cell: nobody would try it again. Their outcome is
    /// stored at the next start.
    async fn end_runs(&self, ending: &anyhow::Result<Ending>, signals: &mut Signals) {
        let (Ok(Ending::Stopped(Stop::Interrupt)), Some(_)) = (ending, self.companion) else {
            return;
        };
        tokio::select! {
            biased;
            ended = local::end_all(&self.jobs) => if let Err(why) = ended {
                say(&format!("{}: work of runs may go on: {why}\n", self.name()));
            },
            again = signals.next() => again.exit_at_once(self.name()),
        }
    }

    /// Lets clients finish, and notes what is left to note.
    async fn close(
        &self,
        ending: &anyhow::Result<Ending>,
        server: Server,
        journal: Option<Arc<Journal>>,
        signals: &mut Signals,
    ) {
        // After a loss the killer does not wait for clients, and neither do we.
        let grace = match ending {
            Ok(Ending::Stopped(_)) => Duration::from_millis(500),
            Ok(Ending::Problem(_) | Ending::StartOver(_)) | Err(_) => Duration::ZERO,
        };
        tokio::select! {
            biased;
            () = server.stop(grace) => {}
            again = signals.next() => again.exit_at_once(self.name()),
        }
        if let (Ok(Ending::Stopped(_)), Some(journal)) = (ending, journal) {
            journal.end().await;
        }
    }

    async fn launch_again_and_again(&self, signals: &mut Signals) -> anyhow::Result<Ending> {
        loop {
            let conductor = self.provide();
            let launched = async {
                let problem: ProblemSignal =
                    conductor.launch(self.args.once.then_some(self.args.window)).await;
                problem.wait().await
            };
            let mut stop = tokio::select! {
                biased;
                problem = launched => {
                    tracing::warn!(problem = format!("{:#}", anyhow::Error::new(problem)), "stopping");
                    None
                }
                stop = signals.next() => Some(stop),
            };
            if let (Some(stop), Some(companion)) = (stop, self.companion) {
                tokio::select! {
                    biased;
                    () = companion.end(stop) => {}
                    again = signals.next() => again.exit_at_once(self.name()),
                }
            }
            self.face.stopping();
            let mut ending = std::pin::pin!(conductor.shutdown());
            let ended = loop {
                tokio::select! {
                    biased;
                    ended = &mut ending => break ended,
                    signal = signals.next() => match stop {
                        Some(_) => signal.exit_at_once(self.name()),
                        None => stop = Some(signal),
                    },
                }
            };
            match (stop, ended) {
                (Some(stop), Ok(())) => return Ok(Ending::Stopped(stop)),
                (Some(_), Err(problem)) => return Ok(Ending::Problem(problem)),
                (None, Ok(())) => {}
                (None, Err(problem)) => {
                    self.face.failed(&problem);
                    match &*problem {
                        Problem::NotAcquired(Refusal::Store(why)) => bail!("{why}"),
                        Problem::NotAcquired(Refusal::Damaged(why)) => bail!("{why}{RESTORE}"),
                        // Launching again would only use up epochs: it needs a person.
                        Problem::Unfinished | Problem::Unfit { .. } => {
                            return Ok(Ending::Problem(problem));
                        }
                        _ if self.args.once => return Ok(Ending::Problem(problem)),
                        Problem::Lost(_) => return Ok(Ending::StartOver(problem)),
                        Problem::NotAcquired(_) => {}
                        Problem::Deposed(_) | Problem::Store(_) | Problem::Service { .. } => {
                            tokio::select! {
                                biased;
                                stop = signals.next() => return Ok(Ending::Stopped(stop)),
                                () = tokio::time::sleep(PAUSE) => {}
                            }
                        }
                    }
                }
            }
        }
    }

    const fn name(&self) -> &'static str {
        if self.companion.is_some() { "kapell up" } else { "kapell host" }
    }

    fn provide(&self) -> Conductor {
        let clock = Arc::clone(&self.how.clock);
        let elections: Arc<dyn Elections> = match (&self.store, &self.location) {
            (None, Location::File(dir)) => Arc::new(Locked::new(LockedParts {
                dir: dir.clone(),
                how: self.how.clone(),
                clock,
                ids: Arc::new(SystemIds),
                address: self.address.clone(),
                command: "kapell host".to_owned(),
            })),
            (store, _) => Arc::new(Leased::new(Parts {
                store: store.clone().expect("opened before"),
                clock,
                ids: Arc::new(SystemIds),
                killer: Arc::clone(&self.killer),
                lease: self.args.lease,
                address: self.address.clone(),
            })),
        };
        self.face.launching(Arc::clone(&elections), self.args.seats);
        Conductor::provide(conductor::Parts {
            elections,
            seats: Seat::all(self.args.seats).collect(),
            pipeline: vec![
                Arc::new(AccessService {
                    key: self.key.clone(),
                    clock: Arc::clone(&self.how.clock),
                    ids: Arc::new(SystemIds),
                    slot: self.face.access(),
                }),
                Arc::new(BoardService::new(self.board.clone())),
                Arc::new(SchedulerService::new(scheduler::Parts {
                    settings: self.scheduler,
                    clock: Arc::clone(&self.how.clock),
                    board: self.face.slot(),
                    supplies: Arc::clone(&self.supplies),
                    slot: self.face.scheduler(),
                })),
                Arc::new(Beacon::new(Arc::clone(&self.face))),
            ],
            tasks: Arc::new(TokioTasks::default()),
            trace: Arc::new(LogTrace),
            killer: Arc::clone(&self.killer),
            stop_limit: self.stop_limit,
        })
    }
}

/// Where others reach us: port 0 stands for whichever we got.
fn reached(advertise: &str, local: SocketAddr) -> String {
    match advertise.strip_suffix(":0") {
        Some(host) => format!("{host}:{}", local.port()),
        None => advertise.to_owned(),
    }
}

/// What others are told, with how they are to talk to us.
fn with_scheme(advertise: String, secure: bool) -> String {
    if secure && !advertise.contains("://") { format!("https://{advertise}") } else { advertise }
}

/// Refuses what cannot work, before anything is done.
fn check(args: &cli::Host, location: &Location) -> anyhow::Result<()> {
    if let Some(shortest) = location.shortest_ttl().filter(|shortest| args.lease < *shortest) {
        bail!(
            "a lease of {:?} is shorter than etcd can honour: use --lease {shortest:?} or longer",
            args.lease
        );
    }
    if matches!(location, Location::File(_)) && args.seats != 1 {
        bail!("a file store has one seat, its lock: use --seats 1, or another store");
    }
    Ok(())
}

fn cluster_key(config: &Config) -> anyhow::Result<ClusterKey> {
    let path = config.state_dir.join("cluster.key");
    Ok(ClusterKey::new(&secret::load_or_create(secret::CLUSTER_KEY, &path)?)?)
}

fn killer() -> anyhow::Result<Arc<dyn Killer>> {
    let killer = DeadMan::new(|why| {
        last_word(format!("kapell host: killed: {why}\n"));
        exit_now(KILLED)
    });
    Ok(Arc::new(killer.context("cannot make the killer's timer")?))
}

/// Where processes of runs and their logs are kept: beside a store that is a directory, for they belong to it.
fn jobs_dir(config: &Config, location: &Location) -> PathBuf {
    let Location::File(dir) = location else { return config.state_dir.join("jobs") };
    let mut name = dir.file_name().unwrap_or_default().to_owned();
    name.push("-jobs");
    dir.with_file_name(name)
}

/// What the scheduler works with when this host leads.
fn supplies(
    config: &Config,
    (data_dir, keeps): (PathBuf, Keeps),
    cells: &Arc<HttpCells>,
    clock: &Arc<dyn Clock>,
    key: &ClusterKey,
) -> anyhow::Result<HostSupplies> {
    Ok(HostSupplies {
        data_dir,
        keeps,
        program: std::env::current_exe().context("cannot tell which program this is")?,
        clock: Arc::clone(clock),
        ids: Arc::new(SystemIds),
        cells: Arc::<HttpCells>::clone(cells),
        task_logs: Arc::<HttpCells>::clone(cells),
        key: key.clone(),
        clusters: clusters::settings(config)?,
        owner: key.fingerprint(),
        start_timeout: config.scheduler.start_timeout,
    })
}

/// Clears up the logs of runs on this host, whoever leads.
fn janitor(config: &Config, logs: &RunLogs, server: &Server, face: &Arc<HostFace>) -> Janitor {
    let known = http::known_runs(server, Arc::<HostFace>::clone(face));
    Janitor { logs: logs.clone(), known, most_bytes: config.run_logs_bytes }
}

fn board_parts(
    config: &Config,
    cells: Arc<HttpCells>,
    clock: &Arc<dyn Clock>,
    face: &HostFace,
) -> board::Parts {
    board::Parts {
        settings: config.board.clone(),
        clock: Arc::clone(clock),
        ids: Arc::new(SystemIds),
        cells,
        callbacks: Arc::new(HttpCallbacks::new(None)),
        slot: face.slot(),
    }
}

/// The way to the cells.
fn cells(args: &cli::Host, token: &Token, membership: Option<&Membership>) -> HttpCells {
    let access = &args.access;
    let options = Options {
        token: Some(client::Token::new(token.as_str())),
        ca: access.tls_ca.clone().or_else(|| access.tls_cert.clone()),
        ..Options::default()
    };
    let joined = membership.map(|it| (it.peers.trust.clone(), it.peers.identity.clone()));
    HttpCells::new(options, joined)
}

/// Says something if standard error takes it. The process ends all the same if nobody reads
/// there and all the others wait to write.
fn last_word(text: String) {
    let (told, hear) = std::sync::mpsc::channel();
    let teller = std::thread::Builder::new().spawn(move || {
        say(&text);
        let _told = told.send(());
    });
    if teller.is_ok() {
        let _heard = hear.recv_timeout(LAST_WORD);
    }
}

/// Opens the store of a cluster. A host that lost its seat waits until the store is back.
async fn open_shared(
    location: &Location,
    how: &How,
    lease: Duration,
    key: &ClusterKey,
) -> anyhow::Result<Arc<dyn Store>> {
    let waits = std::env::var_os(STARTED_OVER).is_some();
    let store = loop {
        match location.open(&holder("kapell host"), how).await {
            Err(error) if waits && error.may_pass() => {
                let error = format!("{:#}", anyhow::Error::new(error));
                tracing::warn!(error, "the store failed; trying again");
                tokio::time::sleep(PAUSE).await;
            }
            opened => break opened?,
        }
    };
    // A store that fails just now is asked again by whoever leads.
    if let Err(why @ Disagreement::Key { .. }) = agree(&*store, key).await {
        bail!("{why}");
    }
    let shortest = store.expiry().shortest;
    if lease < shortest {
        bail!(
            "a lease of {lease:?} is shorter than {} can honour: use --lease {shortest:?} or longer",
            store.name()
        );
    }
    Ok(store)
}

/// Where it is noted who changes what, unless the settings say otherwise.
fn journal(config: &Config) -> anyhow::Result<Option<Arc<Journal>>> {
    if !config.audit {
        return Ok(None);
    }
    let (dir, disk) = (config.state_dir.join("audit"), Box::new(Real));
    let journal = Journal::open(dir, config.audit_limits, disk, Arc::new(SystemClock), &SystemIds);
    Ok(Some(Arc::new(journal.context("cannot start the thread that writes audit files")?)))
}

fn listen(
    args: &cli::Host,
    config: &Config,
    key: &ClusterKey,
    membership: Option<&Membership>,
) -> anyhow::Result<Listen> {
    let access = &args.access;
    let path = access.token_file.clone().unwrap_or_else(|| config.state_dir.join("token"));
    let tls = match (&access.tls_cert, &access.tls_key) {
        (Some(cert), Some(key)) => Some(TlsFiles { cert: cert.clone(), key: key.clone() }),
        _ => None,
    };
    Ok(Listen {
        address: args.listen,
        advertise: args.advertise.clone(),
        token: Token::load_or_create(&path)?,
        key: Some(key.clone()),
        tls,
        peers: membership.map(|it| it.peers.clone()),
        vouching: membership.map(|it| it.vouching.clone()),
        audit: journal(config)?,
        ca: access.tls_ca.clone(),
        allowed_hosts: access.allow_host.clone(),
    })
}
