//! `kapell up`: a whole platform on this machine.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::Write as _;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use async_trait::async_trait;
use kapell_api::client::{self, Client, Options};
use serde_json::json;
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::agent::{Agent, Plan};
use crate::cli;
use crate::config::Config;
use crate::host::{self, Companion, Led, Stop};
use crate::http::Token;
use crate::remote::Sign;
use crate::{print, say};

/// The only cell.
const CELL: &str = "local";
/// How long being ready may take before somebody is told that it does.
const PATIENCE: Duration = Duration::from_secs(30);
const CONTAINERS: u32 = 4096;
/// The lock of one that was killed is held until the last of its threads is gone.
const LAST_MOMENTS: Duration = Duration::from_secs(1);

pub(crate) fn run(args: &cli::Up, config: &Config) -> anyhow::Result<u8> {
    let began = Instant::now();
    let dir = args.dir.clone().unwrap_or_else(|| config.state_dir.join("up"));
    let dir =
        std::path::absolute(&dir).with_context(|| format!("cannot find `{}`", dir.display()))?;
    std::fs::create_dir_all(&dir).with_context(|| format!("cannot make `{}`", dir.display()))?;
    let _alone = alone_in(&dir)?;
    let listen = SocketAddr::from((Ipv4Addr::LOCALHOST, args.port));
    let own = || format!("file:{}", dir.join("store").display());
    let host = cli::Host::local(args.store.clone().unwrap_or_else(own), listen, args.log);
    let up = Up {
        dir,
        demo: args.demo,
        rooted: args.rooted.clone(),
        began,
        config: config.clone(),
        agent: Mutex::default(),
        greeting: Mutex::default(),
        sign: Mutex::default(),
    };
    host::run_with(&host, config, Some(&up))
}

/// Refuses a directory that another one has, before anything is done there. It is ours while the file is open.
fn alone_in(dir: &Path) -> anyhow::Result<File> {
    let path = dir.join("up.lock");
    let mut open = OpenOptions::new();
    open.read(true).write(true).create(true).truncate(false).mode(0o600);
    let mut file = open.open(&path).with_context(|| format!("cannot open `{}`", path.display()))?;
    let until = Instant::now() + LAST_MOMENTS;
    loop {
        match file.try_lock() {
            Ok(()) => break,
            Err(TryLockError::WouldBlock) if Instant::now() < until => {
                std::thread::sleep(Duration::from_millis(5));
            }
            Err(TryLockError::WouldBlock) => {
                let pid = std::fs::read_to_string(&path).unwrap_or_default();
                let who = match pid.trim() {
                    "" => String::new(),
                    pid => format!(" (process {pid})"),
                };
                let dir = dir.display();
                bail!("another `kapell up`{who} runs in `{dir}`: stop it, or give another --dir");
            }
            Err(TryLockError::Error(error)) => {
                return Err(error).with_context(|| format!("cannot lock `{}`", path.display()));
            }
        }
    }
    // Only for the text above: a full disk must not keep us from starting.
    let _noted = file.set_len(0).and_then(|()| writeln!(file, "{}", std::process::id()));
    Ok(file)
}

/// The cell beside the host.
#[derive(Debug)]
struct Up {
    dir: PathBuf,
    demo: bool,
    rooted: cli::Rooted,
    began: Instant,
    config: Config,
    agent: Mutex<Option<Agent>>,
    greeting: Mutex<JoinSet<()>>,
    sign: Mutex<Option<Sign>>,
}

#[async_trait]
impl Companion for Up {
    async fn begin(&self, local: SocketAddr, token: &Token, led: Led) -> anyhow::Result<()> {
        let url = format!("http://{local}");
        let plan = Plan {
            id: Some(CELL.to_owned()),
            dir: self.dir.join("cell"),
            zone: String::new(),
            hosts: url.clone(),
            token: Some(token.clone()),
            join: None,
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            advertise: None,
            tls: None,
            ca: None,
            allowed_hosts: Vec::new(),
            memory_mb: None,
            disk_mb: None,
            containers: CONTAINERS,
            placement_tags: Vec::new(),
            optional_placement_tags: Vec::new(),
            stay: false,
            rooted: self.rooted.clone(),
            image_cache_bytes: self.config.image_cache_bytes,
            settings: self.config.cell.clone(),
        };
        let (leads, heard) = oneshot::channel();
        let led = async move {
            led.await;
            // Whoever greets may have gone.
            let _told = leads.send(());
        };
        let agent = Agent::start(plan, led).await?;
        let cell = agent.cell.clone();
        self.greeting().spawn(async move {
            let problem = cell.refused().await;
            say(&format!("kapell up: it runs no work: {}\n", problem.message));
        });
        *self.agent() = Some(agent);
        let options = Options {
            token: Some(client::Token::new(token.as_str())),
            patience: PATIENCE / 2,
            ..Options::default()
        };
        let client = Client::new(&url, options)?;
        self.put_up_sign(&url);
        let greeting = Greeting { url, token: token.clone(), demo: self.demo, began: self.began };
        self.greeting().spawn(async move {
            // Asking before would only be asking again later.
            let _in_time = timeout(PATIENCE / 2, heard).await;
            greeting.say(client).await;
        });
        Ok(())
    }

    async fn end(&self, stop: Stop) {
        let agent = self.agent().take();
        let Some(agent) = agent else { return };
        match stop {
            Stop::Interrupt => agent.stop(true).await,
            Stop::Terminate => {
                agent.stop(false).await;
                say("kapell up: work goes on; `kapell up` takes it up again\n");
            }
        }
    }
}

impl Up {
    /// Without it commands need `--url` to find us, and that is all.
    fn put_up_sign(&self, url: &str) {
        let sign = match Sign::put_up(&self.config.state_dir, url) {
            Ok(Some(sign)) => sign,
            Ok(None) => {
                tracing::warn!("another kapell up has this state directory: give commands --url");
                return;
            }
            Err(error) => {
                tracing::warn!(%error, "commands need --url: the file `url` cannot be written");
                return;
            }
        };
        *self.sign.lock().unwrap_or_else(PoisonError::into_inner) = Some(sign);
    }

    fn agent(&self) -> MutexGuard<'_, Option<Agent>> {
        self.agent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn greeting(&self) -> MutexGuard<'_, JoinSet<()>> {
        self.greeting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a person is told when all is there.
struct Greeting {
    url: String,
    token: Token,
    demo: bool,
    began: Instant,
}

impl Greeting {
    async fn say(self, client: Client) {
        let mut told = false;
        // The client waits for a leader by itself; the cell is there a moment later.
        loop {
            match client.cells().await {
                Ok(cells) if !cells.items.is_empty() => break,
                Err(error) if !told => {
                    told = true;
                    tracing::warn!(%error, "not ready yet");
                }
                Ok(_) | Err(_) => {}
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        if self.demo {
            self.demonstrate(&client).await;
        }
        let Self { url, token, began, .. } = &self;
        let try_these = if self.demo {
            "  kapell lrp list\n  kapell logs -f demo/0\n  kapell lrp scale demo 5\n"
        } else {
            "  kapell task run --wait -- echo hello\n  kapell lrp run clock -- sh -c 'while :; do date; sleep 1; done'\n  kapell logs -f clock/0\n"
        };
        print(&format!(
            "kapell is up at {url} (ready in {} ms)\n\nOpen the page:\n  {url}/?token={}\n\nTry:\n{try_these}",
            began.elapsed().as_millis(),
            token.as_str()
        ));
    }

    async fn demonstrate(&self, client: &Client) {
        let script = "echo \"instance $INSTANCE_INDEX is up\"; while :; do date; sleep 1; done";
        let demo = json!({
            "process_guid": "demo",
            "domain": "demo",
            "instances": 3,
            "memory_mb": 16,
            "action": {"run": {"path": "/bin/sh", "args": ["-c", script]}},
            "annotation": "from kapell up --demo",
        });
        let made = match serde_json::from_value(demo) {
            Ok(lrp) => client.desire(&lrp).await.map(drop),
            Err(_) => return,
        };
        if let Err(error) = made {
            tracing::warn!(%error, "the demo could not be started");
        }
    }
}
