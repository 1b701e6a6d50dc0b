//! Real listeners on loopback, asked by hand-written requests.

mod access;
mod api;
mod audit;
mod cells;
mod certificates;
mod desk;
mod door;
mod events;
mod exec;
mod forward;
mod host_logs;
mod job_access;
mod job_pages;
mod jobs;
mod limits;
mod logs;
mod openapi;
mod pages;
mod plan;
mod query;
mod runs;
mod secrets;
mod sessions;
mod shown;
mod stop;
mod tls;
mod token;
mod upstream;

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use kapell_core::run::RunId;
use kapell_core::seams::Timestamp;
use kapell_core::seat::{Epoch, Owner, Record, Seat};
use kapell_node::access::{ClusterKey, Ledger};
use kapell_node::cell::ContainerLogs;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use desk::FakeDesk;

use super::{
    Desk, Error, Face, Health, LIMITS, Leader, Limits, Listen, Role, Scheduler, Server, Token,
    Writes,
};

const TOKEN: &str = "0123456789abcdef0123456789abcdef";
/// Longer than anything takes that does not hang.
const DEADLINE: Duration = Duration::from_secs(20);

/// A host that says what it is told to say.
struct Fake {
    owner: Owner,
    leader: Mutex<Option<Leader>>,
    role: Mutex<Role>,
    store_trouble: Mutex<Option<String>>,
    writes: Mutex<Writes>,
    board: Mutex<Option<Arc<FakeDesk>>>,
    ledger: Mutex<Option<Arc<Ledger>>>,
    scheduler: Mutex<Option<Arc<dyn Scheduler>>>,
    /// Where logs of runs lie, by run and attempt.
    run_logs: Mutex<Option<std::path::PathBuf>>,
}

impl Face for Fake {
    fn owner(&self) -> Owner {
        self.owner
    }

    fn leader(&self) -> Option<Leader> {
        self.leader.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn health(&self) -> Health {
        let role = *self.role.lock().unwrap_or_else(PoisonError::into_inner);
        let store_trouble = self.store_trouble.lock().unwrap().clone();
        let writes = self.writes.lock().unwrap().clone();
        Health { role, store_trouble, writes, since: Timestamp(7) }
    }

    fn metrics(&self) -> String {
        "kapell_host_leading 1\n".to_owned()
    }

    fn board(&self) -> Option<Arc<dyn Desk>> {
        let board = self.board.lock().unwrap_or_else(PoisonError::into_inner);
        board.clone().map(|board| board as Arc<dyn Desk>)
    }

    fn scheduler(&self) -> Option<Arc<dyn Scheduler>> {
        self.scheduler.lock().unwrap().clone()
    }

    fn run_log(&self, run_id: &RunId, attempt: u32) -> Option<ContainerLogs> {
        let dir = self.run_logs.lock().unwrap().clone()?;
        let dir = dir.join(run_id.as_str()).join(attempt.to_string());
        dir.exists().then(|| ContainerLogs { parts: vec![dir.join("main")], dir })
    }

    fn ledger(&self) -> Option<Arc<Ledger>> {
        self.ledger.lock().unwrap().clone()
    }
}

impl Fake {
    fn new(owner: u64) -> Arc<Self> {
        let owner = Owner(owner);
        Arc::new(Self {
            owner,
            leader: Mutex::new(None),
            role: Mutex::new(Role::Standby),
            store_trouble: Mutex::new(None),
            writes: Mutex::new(Writes::Forwarded),
            board: Mutex::new(None),
            ledger: Mutex::new(None),
            scheduler: Mutex::new(None),
            run_logs: Mutex::new(None),
        })
    }

    /// From now on it says that `owner` leads at `address`.
    fn follow(&self, owner: u64, address: &(impl ToString + ?Sized)) {
        let record = Record {
            epoch: Epoch(3),
            owner: Owner(owner),
            address: address.to_string(),
            since: Timestamp(0),
        };
        let here = self.owner == record.owner;
        let leader = Leader { seat: Seat::FIRST, record, expires_in_ms: Some(9000), here };
        *self.leader.lock().unwrap() = Some(leader);
    }
}

/// A listener with what it shows.
struct Host {
    server: Server,
    face: Arc<Fake>,
}

impl Host {
    async fn start(owner: u64) -> Self {
        Self::with(owner, LIMITS).await
    }

    async fn with(owner: u64, limits: Limits) -> Self {
        Self::open(owner, limits, listen("127.0.0.1:0")).await.unwrap()
    }

    async fn open(owner: u64, limits: Limits, listen: Listen) -> Result<Self, Error> {
        let face = Fake::new(owner);
        let server = super::bind_host(listen, face.clone(), limits).await?;
        Ok(Self { server, face })
    }

    /// A host that leads.
    async fn leading(owner: u64) -> Self {
        let host = Self::start(owner).await;
        host.face.follow(owner, &host.at());
        host
    }

    /// A host that leads and has a board.
    async fn with_board() -> (Self, Arc<FakeDesk>) {
        let (host, desk) = (Self::leading(0xa).await, FakeDesk::new());
        *host.face.board.lock().unwrap() = Some(Arc::clone(&desk));
        (host, desk)
    }

    /// Sends JSON.
    async fn send(&self, method: &str, path: &str, body: &str) -> Reply {
        let length = body.len();
        let more =
            format!("content-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}");
        self.ask(method, path, &more).await
    }

    /// A host that forwards to `leader`.
    async fn behind(leader: &impl ToString) -> Self {
        let host = Self::start(0xb).await;
        host.face.follow(0xa, leader);
        host
    }

    fn at(&self) -> SocketAddr {
        self.server.local_addr()
    }

    async fn get(&self, path: &str) -> Reply {
        self.ask("GET", path, "").await
    }

    /// Asks as one may; `more` are header lines and a body.
    async fn ask(&self, method: &str, path: &str, more: &str) -> Reply {
        let more = if more.is_empty() { "\r\n" } else { more };
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {TOKEN}\r\nconnection: close\r\n{more}",
            self.at()
        );
        send(self.at(), &request).await
    }
}

fn listen(address: &str) -> Listen {
    Listen {
        address: address.parse().unwrap(),
        advertise: "kapell.example:7070".to_owned(),
        token: token(),
        key: Some(key()),
        tls: None,
        peers: None,
        vouching: None,
        audit: None,
        ca: None,
        allowed_hosts: Vec::new(),
    }
}

fn key() -> ClusterKey {
    ClusterKey::new("a cluster key that is only for tests").unwrap()
}

fn token() -> Token {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("token");
    std::fs::write(&path, TOKEN).unwrap();
    private(&path);
    Token::load(&path).unwrap()
}

fn private(path: &std::path::Path) {
    mode(path, 0o600);
}

fn mode(path: &std::path::Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

/// An answer, taken apart.
#[derive(Debug)]
struct Reply {
    status: u16,
    head: String,
    body: String,
}

impl Reply {
    fn parse(bytes: &[u8]) -> Self {
        let text = String::from_utf8_lossy(bytes).into_owned();
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{text:?}"));
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap();
        Self { status, head: head.to_ascii_lowercase(), body: body.to_owned() }
    }

    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("{self:?}"))
    }

    /// The status and the code of a refusal, which must be a whole one.
    fn problem(&self) -> (u16, String) {
        let json = self.json();
        assert!(json["message"].is_string() && json["details"].is_object(), "{json}");
        assert!(self.has("content-type: application/json"), "{}", self.head);
        (self.status, json["code"].as_str().unwrap().to_owned())
    }

    /// The value of a header.
    fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }

    fn has(&self, line: &str) -> bool {
        self.head.lines().any(|each| each == line)
    }
}

/// Sends a request and reads until the connection is closed.
async fn send(to: SocketAddr, request: &str) -> Reply {
    exchange(TcpStream::connect(to).await.unwrap(), request).await
}

async fn exchange(mut stream: impl AsyncRead + AsyncWrite + Unpin, request: &str) -> Reply {
    stream.write_all(request.as_bytes()).await.unwrap();
    Reply::parse(&rest(&mut stream).await)
}

/// All that comes until the other end closes.
async fn rest(stream: &mut (impl AsyncRead + Unpin)) -> Vec<u8> {
    let mut bytes = Vec::new();
    // A reset ends it as well.
    let _ended = timeout(DEADLINE, stream.read_to_end(&mut bytes)).await.expect("hangs");
    bytes
}

/// Reads until `wanted` has come.
async fn until(stream: &mut (impl AsyncRead + Unpin), wanted: &str) -> String {
    let mut text = String::new();
    let read = async {
        while !text.contains(wanted) {
            let mut bytes = [0; 4096];
            let count = stream.read(&mut bytes).await.unwrap();
            assert_ne!(count, 0, "closed after {text:?}");
            text.push_str(&String::from_utf8_lossy(&bytes[..count]));
        }
    };
    timeout(DEADLINE, read).await.expect("hangs");
    text
}
