//! A cell in this process: its containers, its listener, and its way to the board.

use std::fs;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use anyhow::Context as _;
use async_trait::async_trait;
use kapell_api::client::{self, Options};
use kapell_api::identity::Subject;
use kapell_api::v1::{Cancel, Problem, Stop, Work, WorkAnswer};
use kapell_backend::containers::{self, Containers, Exec, Session};
use kapell_core::board::{CellId, CellState, Resources};
use kapell_core::seams::Ids as _;
use kapell_core::seat::Epoch;
use kapell_node::cell::{
    Cell, CellSettings, ContainerLogs, HttpTransfers, LocalProbes, LogOf, Parts,
};
use kapell_node::link::HttpBoard;
use kapell_node::system::{SystemClock, SystemIds};
use serde_json::json;
use tokio::task::JoinSet;

use crate::cli::Rooted;
use crate::drivers;
use crate::http::{self, Listen, Peers, Rep, Server, TlsFiles, Token};
use crate::member::Member;
use crate::users;

/// How long clients may go on with what they read when the cell ends.
const GRACE: Duration = Duration::from_millis(500);

/// How long it may take until a download or an upload is answered.
const ANSWER: Duration = Duration::from_secs(60);

/// What a cell is to be.
#[derive(Debug)]
pub(crate) struct Plan {
    /// Without it, the one that was used here before, or a new one.
    pub(crate) id: Option<String>,
    pub(crate) dir: PathBuf,
    pub(crate) zone: String,
    /// Where hosts listen, with commas between.
    pub(crate) hosts: String,
    /// None: it has joined or will, and bears a certificate.
    pub(crate) token: Option<Token>,
    /// Lets it join if it has not.
    pub(crate) join: Option<String>,
    pub(crate) listen: SocketAddr,
    /// Where hosts reach it, `HOST:PORT`; without it, where it listens.
    pub(crate) advertise: Option<String>,
    pub(crate) tls: Option<TlsFiles>,
    pub(crate) ca: Option<PathBuf>,
    pub(crate) allowed_hosts: Vec<String>,
    /// Without it, what the machine has.
    pub(crate) memory_mb: Option<u32>,
    pub(crate) disk_mb: Option<u32>,
    pub(crate) containers: u32,
    pub(crate) placement_tags: Vec<String>,
    pub(crate) optional_placement_tags: Vec<String>,
    /// It takes work although an earlier agent here was being evacuated.
    pub(crate) stay: bool,
    pub(crate) rooted: Rooted,
    pub(crate) image_cache_bytes: u64,
    pub(crate) settings: CellSettings,
}

/// A cell that works.
#[derive(Debug)]
pub(crate) struct Agent {
    pub(crate) cell: Cell,
    containers: Arc<dyn Containers>,
    running: JoinSet<()>,
    /// Ends with the agent.
    _renewing: JoinSet<()>,
    /// Set when it begins to work.
    works: Arc<AtomicBool>,
    server: Server,
}

impl Agent {
    /// Makes a cell, which begins to work when `ready` is done.
    pub(crate) async fn start(
        mut plan: Plan,
        ready: impl Future<Output = ()> + Send + 'static,
    ) -> anyhow::Result<Self> {
        make_dir(&plan.dir)?;
        let containers = drivers::open(&plan.dir, &plan.rooted, plan.image_cache_bytes)?;
        if plan.stay {
            Cell::stay(&plan.dir);
        }
        let Identity { id, home } = identity(&plan)?;
        if plan.settings.users.is_some() {
            let dir = std::path::absolute(&plan.dir)?;
            plan.settings.users = Some(users::block(&dir, Path::new(users::CLAIMS))?);
        }
        let member = Member::enter(&plan.dir, &id, &plan.hosts, plan.join.as_deref()).await?;
        let late = Arc::new(Late { id: id.clone(), cell: OnceLock::new() });
        let advertise = plan.advertise.clone().unwrap_or_else(|| plan.listen.to_string());
        let listen = listen(&plan, advertise, member.as_ref())?;
        let server = http::bind_cell(listen, Arc::<Late>::clone(&late)).await?;
        let scheme = if plan.tls.is_some() || member.is_some() { "https" } else { "http" };
        let place = plan.advertise.clone().unwrap_or_else(|| server.local_addr().to_string());
        let tls = member.as_ref().map(|it| it.trust.client(Subject::Host, Some(&it.identity)));
        let options = Options {
            token: plan.token.as_ref().map(|token| client::Token::new(token.as_str())),
            tls: tls.transpose()?,
            ca: plan.ca.clone().or_else(|| plan.tls.as_ref().map(|tls| tls.cert.clone())),
            ..Options::default()
        };
        let board = HttpBoard::new(&plan.hosts, options)?;
        let (memory_mb, disk_mb) = (plan.memory_mb, plan.disk_mb);
        let capacity = Resources {
            memory_mb: memory_mb.unwrap_or_else(memory_of_machine),
            disk_mb: disk_mb.unwrap_or_else(|| free_disk(&plan.dir)),
            containers: plan.containers,
        };
        let advertise_host = host_of(&place, plan.listen.ip());
        let (cell, running) = Cell::start(Parts {
            id,
            home,
            dir: Some(plan.dir),
            settings: plan.settings,
            clock: Arc::new(SystemClock),
            ids: Arc::new(SystemIds),
            containers: Arc::clone(&containers),
            transfers: Arc::new(HttpTransfers::new(None, ANSWER)),
            probes: Arc::new(LocalProbes),
            board: Arc::new(board.clone()),
            capacity,
            zone: plan.zone,
            url: format!("{scheme}://{place}"),
            advertise_host,
            placement_tags: plan.placement_tags,
            optional_placement_tags: plan.optional_placement_tags,
        })
        .await?;
        let _first = late.cell.set(cell.clone());
        let works = Arc::new(AtomicBool::new(false));
        let begins = Arc::clone(&works);
        let mut renewing = JoinSet::new();
        if let Some(member) = member {
            renewing.spawn(member.keep(board));
        }
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            ready.await;
            begins.store(true, Ordering::SeqCst);
            running.run().await;
        });
        Ok(Self { cell, containers, running: tasks, _renewing: renewing, works, server })
    }

    /// Ends the cell; its work is stopped or goes on.
    pub(crate) async fn stop(mut self, stop_work: bool) {
        self.cell.shutdown(stop_work);
        if self.works.load(Ordering::SeqCst) {
            // It ends or it panicked; either way it is over.
            let _ended = self.running.join_next().await;
        } else {
            self.running.shutdown().await;
        }
        self.server.stop(GRACE).await;
        // Not by dropping it: somebody may hold it until the process is gone.
        self.containers.close().await;
    }
}

fn listen(plan: &Plan, advertise: String, member: Option<&Member>) -> anyhow::Result<Listen> {
    let peers = |it: &Member| Peers { trust: it.trust.clone(), identity: it.identity.clone() };
    Ok(Listen {
        address: plan.listen,
        advertise,
        token: listener_token(plan)?,
        key: None,
        tls: plan.tls.clone(),
        peers: member.map(peers),
        vouching: None,
        ca: plan.ca.clone(),
        audit: None,
        allowed_hosts: plan.allowed_hosts.clone(),
    })
}

/// What lets hosts in that bear a token. Nobody knows that of a cell that joined: hosts show a certificate.
fn listener_token(plan: &Plan) -> anyhow::Result<Token> {
    match &plan.token {
        Some(token) => Ok(token.clone()),
        None => Token::drawn().context("no random bytes"),
    }
}

/// Answers before there is a cell, which must know where it is reached before it is there.
#[derive(Debug)]
struct Late {
    id: CellId,
    cell: OnceLock<Cell>,
}

impl Late {
    fn cell(&self) -> Result<&Cell, Problem> {
        self.cell.get().ok_or_else(|| Problem {
            code: "starting".to_owned(),
            message: "this cell is being started".to_owned(),
            details: json!({}),
        })
    }
}

#[async_trait]
impl Rep for Late {
    fn id(&self) -> CellId {
        self.id.clone()
    }

    fn state(&self, epoch: Epoch) -> Result<CellState, Problem> {
        self.cell()?.state(epoch)
    }

    fn work(&self, epoch: Epoch, work: Work) -> Result<WorkAnswer, Problem> {
        self.cell()?.work(epoch, work)
    }

    fn stop(&self, epoch: Epoch, stop: &Stop) -> Result<(), Problem> {
        self.cell()?.stop(epoch, stop)
    }

    fn cancel(&self, epoch: Epoch, cancel: &Cancel) -> Result<(), Problem> {
        self.cell()?.cancel(epoch, cancel)
    }

    fn evacuate(&self, epoch: Epoch) -> Result<(), Problem> {
        self.cell()?.evacuate(epoch)
    }

    fn logs(&self, of: &LogOf) -> Vec<ContainerLogs> {
        self.cell.get().map(|cell| cell.logs(of)).unwrap_or_default()
    }

    fn is_live(&self, of: &LogOf) -> bool {
        self.cell.get().is_some_and(|cell| cell.is_live(of))
    }

    async fn exec(&self, of: &LogOf, exec: Exec) -> Result<Session, containers::Error> {
        match self.cell.get() {
            Some(cell) => cell.exec(of, exec).await,
            None => Err(containers::Error::Unknown(of.to_string())),
        }
    }
}

/// Others may pass through to what is theirs, and see nothing else.
fn make_dir(dir: &Path) -> anyhow::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    let failed = || format!("cannot make `{}`", dir.display());
    fs::create_dir_all(dir).with_context(failed)?;
    fs::set_permissions(dir, fs::Permissions::from_mode(0o711)).with_context(failed)
}

/// Who a cell is: its id, and what tells its directory from all others.
struct Identity {
    id: CellId,
    home: String,
}

/// The id that was given, or else the one that stands in the directory, or else a new one.
fn identity(plan: &Plan) -> anyhow::Result<Identity> {
    let path = plan.dir.join("cell-id");
    let text = match fs::read_to_string(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        read => read.with_context(|| format!("cannot read `{}`", path.display()))?,
    };
    let mut lines = text.lines().map(|line| line.trim().to_owned()).filter(|it| !it.is_empty());
    let (kept, home) = (lines.next(), lines.next());
    let id = match (&plan.id, kept) {
        (Some(id), Some(kept)) if *id != kept => anyhow::bail!(
            "`{}` belongs to the cell `{kept}`: leave --id out, or give another --dir for `{id}`",
            plan.dir.display()
        ),
        (Some(id), _) => id.clone(),
        (None, Some(kept)) => kept,
        (None, None) => format!("cell-{:08x}", SystemIds.draw() & 0xffff_ffff),
    };
    let id = CellId::from(id);
    if !id.is_valid() {
        anyhow::bail!("`{id}` is no id of a cell: write letters, digits, `-` and `_`");
    }
    let home =
        home.unwrap_or_else(|| format!("{:016x}{:016x}", SystemIds.draw(), SystemIds.draw()));
    let wanted = format!("{id}\n{home}\n");
    if text != wanted {
        let draft = plan.dir.join("cell-id.draft");
        let written = fs::write(&draft, wanted).and_then(|()| fs::rename(&draft, &path));
        written.with_context(|| format!("cannot write `{}`", path.display()))?;
    }
    Ok(Identity { id, home })
}

fn host_of(place: &str, listen: IpAddr) -> String {
    let host = place.rsplit_once(':').map_or(place, |(host, _)| host);
    if host.is_empty() { listen.to_string() } else { host.trim_matches(['[', ']']).to_owned() }
}

fn memory_of_machine() -> u32 {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let kb = text.lines().find_map(|line| {
        let rest = line.strip_prefix("MemTotal:")?;
        rest.trim().trim_end_matches(" kB").parse::<u64>().ok()
    });
    kb.and_then(|kb| u32::try_from(kb / 1024).ok()).unwrap_or(1024)
}

fn free_disk(dir: &Path) -> u32 {
    let free = kapell_node::system::free_bytes(dir).unwrap_or(1 << 30);
    u32::try_from(free >> 20).unwrap_or(u32::MAX)
}
