//! The parts that a platform is made of, each alone: commits, round trips, containers.

use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use kapell_backend::containers::{Containers as _, Limits, Output, Process, Spec, User};
use kapell_backend::process::ProcessContainers;
use kapell_core::board::Record;
use kapell_core::seat::{Epoch, Seat};
use kapell_node::system::SystemClock;
use kapell_store::file::{FileStore, Holder};
use kapell_store::model::{Commit, Fence, Key, Op, Raise, Shard};
use kapell_store::{How, Shards as _};
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::bench::site::{PATIENCE, Site};

pub fn ms(took: Duration) -> f64 {
    took.as_secs_f64() * 1000.0
}

/// A store like the platform's, with nobody else in it.
#[derive(Debug)]
pub struct Commits {
    store: FileStore,
    shard: Shard,
    fence: Fence,
}

impl Commits {
    pub async fn open(dir: &Path) -> anyhow::Result<Self> {
        let holder = Holder { pid: 0, address: None, command: String::new(), since_ms: 0 };
        let clock = Arc::new(SystemClock);
        let how = How { create: true, timeout: Duration::from_secs(5), clock };
        let store = FileStore::open(dir, &holder, &how)?;
        let raised = store.raise(Seat::FIRST, Epoch(1)).await?;
        ensure!(matches!(raised, Raise::Done(_)), "a fresh store has no leader");
        let shard = Shard { seat: Seat::FIRST, number: 0 };
        Ok(Self { store, shard, fence: Fence { epoch: Epoch(1), seq: 0 } })
    }

    /// Each record in a commit of its own, one after the other, in milliseconds.
    pub async fn each(&mut self, records: &[Record]) -> anyhow::Result<f64> {
        let ops: Vec<Op> = records
            .iter()
            .map(|record| Op::Put(Key::new(record.key().encode()), record.encode()))
            .collect();
        let begun = Instant::now();
        for op in ops {
            let committed = self.store.commit(self.shard, self.fence, &[op]).await?;
            ensure!(committed == Commit::Done, "it is alone");
            self.fence = self.fence.next();
        }
        Ok(ms(begun.elapsed()))
    }
}

/// Connections that are kept, and the requests on the way, with nothing in them to commit.
#[derive(Debug)]
pub struct RoundTrips {
    host: TcpStream,
    cell: TcpStream,
    way: Vec<(Whom, String)>,
    answer: Vec<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Whom {
    Host,
    Cell,
}

impl RoundTrips {
    /// `first` is what begins it: the path and the body of something that is there already. Then the
    /// cell is asked how it stands, is given work, and makes so many reports.
    pub async fn open(site: &Site, first: (&str, &Value), reports: usize) -> anyhow::Result<Self> {
        let cells = site.client()?.cells().await?.items;
        let presence = &cells.first().context("a cell")?.presence;
        let cell_at = presence.url.trim_start_matches("http://").to_owned();
        let (host_at, token) = (format!("127.0.0.1:{}", site.port), site.token()?);
        let request = |to: &str, line: &str, body: &str| {
            format!(
                "{line} HTTP/1.1\r\nhost: {to}\r\nauthorization: Bearer {token}\r\nkapell-epoch: 1\r\n\
                 content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
                body.len()
            )
        };
        let (path, body) = first;
        let report = format!("POST /v1/cells/{}/reports", presence.cell_id);
        let mut way = vec![
            (Whom::Host, request(&host_at, &format!("POST {path}"), &body.to_string())),
            (Whom::Cell, request(&cell_at, "GET /v1/cell/state", "")),
            (Whom::Cell, request(&cell_at, "POST /v1/cell/work", r#"{"lrps":[],"tasks":[]}"#)),
        ];
        way.extend((0..reports).map(|_| (Whom::Host, request(&host_at, &report, "[]"))));
        let (host, cell) = (connect(&host_at).await?, connect(&cell_at).await?);
        Ok(Self { host, cell, way, answer: vec![0; 16 << 10] })
    }

    /// All of them, one after the other, in milliseconds.
    pub async fn each(&mut self) -> anyhow::Result<f64> {
        let begun = Instant::now();
        for (whom, request) in &self.way {
            let stream = match whom {
                Whom::Host => &mut self.host,
                Whom::Cell => &mut self.cell,
            };
            stream.write_all(request.as_bytes()).await?;
            let mut length = 0;
            while !is_whole(&self.answer[..length])? {
                let read = stream.read(&mut self.answer[length..]).await?;
                ensure!(read > 0, "the connection was closed");
                length += read;
            }
            let answer = String::from_utf8_lossy(&self.answer[..length]);
            ensure!(answer.starts_with("HTTP/1.1 200 "), "to {request}: {answer}");
        }
        Ok(ms(begun.elapsed()))
    }
}

async fn connect(to: &str) -> anyhow::Result<TcpStream> {
    let stream = TcpStream::connect(to).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

fn is_whole(answer: &[u8]) -> anyhow::Result<bool> {
    let text = std::str::from_utf8(answer)?;
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return Ok(false) };
    let head = head.to_ascii_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    Ok(body.len() >= length.context("a length")?.parse()?)
}

/// Containers with nobody who keeps records of them.
#[derive(Debug)]
pub struct Spawns {
    containers: ProcessContainers,
    dir: std::path::PathBuf,
    made: u32,
}

impl Spawns {
    pub fn open(dir: &Path) -> anyhow::Result<Self> {
        use std::os::unix::fs::PermissionsExt as _;
        let containers = ProcessContainers::open(dir)?;
        std::fs::set_permissions(dir, std::fs::Permissions::from_mode(0o711))?;
        Ok(Self { containers, dir: dir.to_owned(), made: 0 })
    }

    /// Starts one and deletes it; what the start took, in milliseconds.
    pub async fn once(&mut self, start: &Start<'_>) -> anyhow::Result<f64> {
        self.made += 1;
        let uid = 1_000_000 + self.made;
        let is_root = nix::unistd::geteuid().is_root();
        let guid = format!("part-{}", self.made);
        let spec = Spec {
            guid: guid.clone(),
            tag: b"bench".to_vec(),
            rootfs: None,
            user: if is_root { User::Id { uid, gid: uid, own: true } } else { User::Same },
            limits: start.limits,
            ports: Vec::new(),
            logs: self.dir.join("logs").join(&guid),
            log_bytes: 1 << 20,
            log_rate: None,
            sole: true,
        };
        let mut env = vec![("PATH".to_owned(), "/usr/bin:/bin".to_owned())];
        env.extend(start.port.map(|port| ("PORT".to_owned(), port.to_string())));
        let process = Process {
            name: "0".to_owned(),
            path: start.path.to_owned(),
            args: start.args.iter().map(|&word| word.to_owned()).collect(),
            env,
            secrets: Vec::new(),
            dir: None,
            user: None,
            stop_grace: Duration::from_secs(1),
            output: Output::Kept,
        };
        let begun = Instant::now();
        self.containers.create(spec).await?;
        self.containers.run(&guid, process).await?;
        if let Some(port) = start.port {
            listens(port).await?;
        }
        let took = ms(begun.elapsed());
        self.containers.delete(&guid).await?;
        Ok(took)
    }
}

/// What is to run.
#[derive(Debug, Clone, Copy)]
pub struct Start<'a> {
    pub limits: Limits,
    pub path: &'a str,
    pub args: &'a [&'a str],
    /// It is told as `PORT`, and waited for until it listens there.
    pub port: Option<u16>,
}

impl Start<'_> {
    /// A program that does nothing.
    pub const SLEEPER: Self = Self {
        limits: Limits { memory_mb: None, cpu_millis: None, pids: None },
        path: "/bin/sleep",
        args: &["1000000"],
        port: None,
    };
}

/// Asks every millisecond.
async fn listens(port: u16) -> anyhow::Result<()> {
    let begun = Instant::now();
    while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.is_err() {
        ensure!(begun.elapsed() < PATIENCE, "nobody listens");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    Ok(())
}
