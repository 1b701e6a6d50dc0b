//! One `kapell up`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use kapell_api::client::{Client, Options, Token};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, ChildStdout, Command};

use crate::bench::census;

pub const DOMAIN: &str = "bench";
/// How long anything may take that is waited for.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A platform with a directory, whether it runs or not.
#[derive(Debug)]
pub struct Site {
    kapell: PathBuf,
    dir: PathBuf,
    pub port: u16,
    settings: Vec<(&'static str, OsString)>,
    running: Option<Running>,
}

#[derive(Debug)]
struct Running {
    child: Child,
    out: BufReader<ChildStdout>,
}

impl Site {
    pub fn new(kapell: &Path, dir: PathBuf) -> anyhow::Result<Self> {
        let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
        let port = listener.local_addr()?.port();
        Ok(Self { kapell: kapell.to_owned(), dir, port, settings: Vec::new(), running: None })
    }

    /// Sets something for when it is started from now on.
    pub fn set(&mut self, name: &'static str, value: impl Into<OsString>) {
        self.settings.push((name, value.into()));
    }

    /// Starts it; it is not ready yet. Dropped, it is killed.
    pub fn start(&mut self) -> anyhow::Result<()> {
        let mut command = Command::new(&self.kapell);
        command.env_clear().env("PATH", "/usr/bin:/bin").args(["up", "--log", "json", "--dir"]);
        command.arg(self.dir.join("up")).arg("--state-dir").arg(self.dir.join("state"));
        command.args(["--port", &self.port.to_string()]);
        command.envs(self.settings.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.kill_on_drop(true).spawn().context("kapell does not start")?;
        let out = BufReader::new(child.stdout.take().context("its output")?);
        self.running = Some(Running { child, out });
        Ok(())
    }

    /// Waits until it says that it is ready.
    pub async fn ready(&mut self) -> anyhow::Result<()> {
        let running = self.running.as_mut().context("it does not run")?;
        let mut line = String::new();
        while !line.starts_with("kapell is up at ") {
            line.clear();
            let read = tokio::time::timeout(PATIENCE, running.out.read_line(&mut line)).await;
            ensure!(read.context("it is not ready")?? > 0, "it ended before it was ready");
        }
        Ok(())
    }

    pub fn pid(&self) -> anyhow::Result<i32> {
        let running = self.running.as_ref().context("it does not run")?;
        Ok(running.child.id().context("it has ended")?.try_into()?)
    }

    /// kill -9; what it started goes on.
    pub async fn kill(&mut self) -> anyhow::Result<()> {
        let mut running = self.running.take().context("it does not run")?;
        Ok(running.child.kill().await?)
    }

    pub fn token(&self) -> anyhow::Result<String> {
        let token = std::fs::read_to_string(self.dir.join("state/token")).context("its token")?;
        Ok(token.trim().to_owned())
    }

    pub fn client(&self) -> anyhow::Result<Client> {
        self.client_with(PATIENCE)
    }

    /// One that asks for so long while nobody leads.
    pub fn client_with(&self, patience: Duration) -> anyhow::Result<Client> {
        let token = Some(Token::new(self.token()?));
        let options = Options { token, patience, ..Options::default() };
        Ok(Client::new(&format!("http://127.0.0.1:{}", self.port), options)?)
    }

    pub fn shims(&self) -> anyhow::Result<Vec<i32>> {
        census::shims(&self.dir)
    }

    /// Removes what is desired, and waits until nothing of it runs.
    pub async fn clear(&self, client: &Client) -> anyhow::Result<()> {
        for lrp in client.desired_lrps().await?.items {
            client.remove_desired(lrp.process_guid.as_str()).await?;
        }
        let begun = Instant::now();
        while !self.shims()?.is_empty() || !client.actual_lrps(all()).await?.items.is_empty() {
            ensure!(begun.elapsed() < PATIENCE, "instances do not end");
            tokio::time::sleep(census::PAUSE).await;
        }
        Ok(())
    }
}

pub fn all<'a>() -> kapell_api::client::ActualFilter<'a> {
    kapell_api::client::ActualFilter::default()
}

/// A process of which so many instances sleep.
pub fn sleepers(guid: &str, instances: u32) -> Value {
    json!({
        "process_guid": guid,
        "domain": DOMAIN,
        "instances": instances,
        "action": {"run": {"path": "/bin/sleep", "args": ["1000000"]}},
    })
}
