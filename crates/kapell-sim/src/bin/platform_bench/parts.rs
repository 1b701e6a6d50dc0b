//! The parts that a platform is made of, each alone: commits, round trips, containers.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use kapell_backend::containers::{Containers as _, Spec, User};
use kapell_backend::process::ProcessContainers;
use kapell_core::board::Record;
use kapell_core::seat::{Epoch, Seat};
use kapell_node::system::SystemClock;
use kapell_store::file::{FileStore, Holder};
use kapell_store::model::{Commit, Fence, Key, Op, Raise, Shard};
use kapell_store::{How, Shards as _};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::site::Site;

pub(crate) fn ms(took: Duration) -> f64 {
    took.as_secs_f64() * 1000.0
}

/// A store like the platform's, with nobody else in it.
#[derive(Debug)]
pub(crate) struct Commits {
    store: FileStore,
    shard: Shard,
    fence: Fence,
}

impl Commits {
    pub(crate) async fn open(dir: &Path) -> anyhow::Result<Self> {
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
    pub(crate) async fn each(&mut self, records: &[Record]) -> anyhow::Result<f64> {
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

/// A connection that is kept, and the smallest question there is.
#[derive(Debug)]
pub(crate) struct RoundTrips {
    stream: TcpStream,
    request: String,
    answer: Vec<u8>,
}

impl RoundTrips {
    pub(crate) async fn open(site: &Site) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(("127.0.0.1", site.port)).await?;
        stream.set_nodelay(true)?;
        let (port, token) = (site.port, site.token()?);
        let request = format!(
            "GET /healthz HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\nauthorization: Bearer {token}\r\n\r\n"
        );
        Ok(Self { stream, request, answer: vec![0; 4096] })
    }

    /// So many, one after the other, in milliseconds.
    pub(crate) async fn each(&mut self, count: usize) -> anyhow::Result<f64> {
        let begun = Instant::now();
        for _ in 0..count {
            self.once().await?;
        }
        Ok(ms(begun.elapsed()))
    }

    async fn once(&mut self) -> anyhow::Result<()> {
        self.stream.write_all(self.request.as_bytes()).await?;
        let mut length = 0;
        while !is_whole(&self.answer[..length])? {
            let read = self.stream.read(&mut self.answer[length..]).await?;
            ensure!(read > 0, "the connection was closed");
            length += read;
        }
        ensure!(self.answer.starts_with(b"HTTP/1.1 200 "), "it is not healthy");
        Ok(())
    }
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
pub(crate) struct Spawns {
    containers: ProcessContainers,
    dir: std::path::PathBuf,
    made: u32,
}

impl Spawns {
    pub(crate) fn open(dir: &Path) -> anyhow::Result<Self> {
        use std::os::unix::fs::PermissionsExt as _;
        let containers = ProcessContainers::open(dir)?;
        std::fs::set_permissions(dir, std::fs::Permissions::from_mode(0o711))?;
        Ok(Self { containers, dir: dir.to_owned(), made: 0 })
    }

    /// Starts one and deletes it; what the start took, in milliseconds.
    pub(crate) async fn once(&mut self) -> anyhow::Result<f64> {
        self.made += 1;
        let uid = 1_000_000 + self.made;
        let is_root = nix::unistd::geteuid().is_root();
        let guid = format!("part-{}", self.made);
        let spec = Spec {
            guid: guid.clone(),
            tag: b"bench".to_vec(),
            path: "/bin/sleep".to_owned(),
            args: vec!["1000000".to_owned()],
            env: vec![("PATH".to_owned(), "/usr/bin:/bin".to_owned())],
            dir: None,
            user: if is_root { User::Id { uid, gid: uid, own: true } } else { User::Same },
            stop_grace: Duration::from_secs(1),
            logs: self.dir.join("logs").join(&guid),
            log_bytes: 1 << 20,
        };
        let begun = Instant::now();
        self.containers.run(spec).await?;
        let took = ms(begun.elapsed());
        self.containers.delete(&guid).await?;
        Ok(took)
    }
}
