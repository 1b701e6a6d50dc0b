//! A host and cells, each a process of its own.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use kapell_api::client::{Client, Options, Token};
use kapell_core::board::{ActualLrp, ActualState};
use kapell_sim::bench::census;
use kapell_sim::bench::site::all;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use tokio::process::{Child, Command};

/// How long anything may take that is waited for.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

#[derive(Debug)]
pub(crate) struct Fleet {
    kapell: PathBuf,
    dir: PathBuf,
    address: String,
    _host: Child,
    pub(crate) cells: Vec<Agent>,
    pub(crate) client: Client,
}

#[derive(Debug)]
pub(crate) struct Agent {
    pub(crate) id: String,
    pub(crate) dir: PathBuf,
    more: Vec<String>,
    running: Option<Child>,
}

impl Agent {
    pub(crate) fn pid(&self) -> anyhow::Result<i32> {
        let running = self.running.as_ref().context("it does not run")?;
        Ok(running.id().context("it has ended")?.try_into()?)
    }

    /// kill -9 of the agent and of all that it has started.
    pub(crate) async fn lose(&mut self) -> anyhow::Result<()> {
        let mut running = self.running.take().context("it does not run")?;
        running.kill().await?;
        census::end_shims(&self.dir)?;
        Ok(())
    }

    /// Its work goes on, if there is any.
    async fn stop(&mut self) -> anyhow::Result<()> {
        let pid = self.pid()?;
        kill(Pid::from_raw(pid), Signal::SIGTERM)?;
        let mut running = self.running.take().context("it does not run")?;
        tokio::time::timeout(PATIENCE, running.wait()).await.context("it does not end")??;
        Ok(())
    }
}

impl Fleet {
    /// Starts a host that leads, with these settings.
    pub(crate) async fn start(
        kapell: &Path,
        dir: PathBuf,
        settings: &[(&str, String)],
    ) -> anyhow::Result<Self> {
        std::fs::create_dir_all(&dir)?;
        let open = std::os::unix::fs::PermissionsExt::from_mode(0o711);
        std::fs::set_permissions(&dir, open)?;
        let port = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let address = format!("127.0.0.1:{port}");
        let mut command = plain(kapell, &dir.join("host.log"))?;
        command.args(["host", "--log", "json", "--listen", &address, "--advertise", &address]);
        command.args(["--store", &format!("file:{}", dir.join("store").display())]);
        command.arg("--state-dir").arg(dir.join("state"));
        command.envs(settings.iter().map(|(name, value)| (name, value)));
        let host = command.spawn().context("kapell does not start")?;
        let begun = Instant::now();
        let token = loop {
            match std::fs::read_to_string(dir.join("state/token")) {
                Ok(token) if !token.is_empty() => break token,
                _ => ensure!(begun.elapsed() < PATIENCE, "there is no token"),
            }
            tokio::time::sleep(census::PAUSE).await;
        };
        let token = Some(Token::new(token.trim().to_owned()));
        let options = Options { token, patience: PATIENCE, ..Options::default() };
        let client = Client::new(&format!("http://{address}"), options)?;
        // Its token is there before it listens.
        while let Err(error) = client.cells().await {
            if begun.elapsed() >= PATIENCE {
                return Err(error).context("it does not answer");
            }
            tokio::time::sleep(census::PAUSE).await;
        }
        let kapell = kapell.to_owned();
        Ok(Self { kapell, dir, address, _host: host, cells: Vec::new(), client })
    }

    /// Adds a cell in a zone of its own, and waits until the board knows it.
    pub(crate) async fn add_cell(&mut self, more: &[&str]) -> anyhow::Result<()> {
        let id = format!("cell-{}", self.cells.len());
        let dir = self.dir.join(&id);
        let more = more.iter().map(|&word| word.to_owned()).collect();
        self.cells.push(Agent { id, dir, more, running: None });
        self.start_cell(self.cells.len() - 1).await
    }

    /// Starts its agent, again after it was lost.
    pub(crate) async fn start_cell(&mut self, at: usize) -> anyhow::Result<()> {
        let cell = self.cells.get_mut(at).context("such a cell")?;
        let mut command = plain(&self.kapell, &self.dir.join(format!("{}.log", cell.id)))?;
        command.args(["cell", "--log", "json", "--url", &format!("http://{}", self.address)]);
        command.args(["--id", &cell.id, "--zone", &cell.id]).args(&cell.more);
        command.arg("--dir").arg(&cell.dir).arg("--state-dir").arg(self.dir.join("state"));
        cell.running = Some(command.spawn().context("kapell does not start")?);
        let id = cell.id.clone();
        let begun = Instant::now();
        loop {
            let cells = self.client.cells().await?.items;
            let is_it = |id_there: &str, state: &str| id_there == id && state == "present";
            if cells.iter().any(|it| is_it(it.presence.cell_id.as_str(), &it.state)) {
                return Ok(());
            }
            ensure!(begun.elapsed() < PATIENCE, "the cell is not there");
            tokio::time::sleep(census::PAUSE).await;
        }
    }

    /// Desires something, and waits until so many run.
    pub(crate) async fn desire(&self, lrp: Value, count: u32) -> anyhow::Result<Vec<ActualLrp>> {
        self.client.desire(&serde_json::from_value(lrp)?).await?;
        let begun = Instant::now();
        loop {
            let instances = self.client.actual_lrps(all()).await?.items;
            let runs = |lrp: &&ActualLrp| lrp.state == ActualState::Running;
            if instances.iter().filter(runs).count() == count as usize {
                return Ok(instances);
            }
            ensure!(begun.elapsed() < PATIENCE, "they do not run");
            tokio::time::sleep(census::PAUSE).await;
        }
    }

    pub(crate) fn shims(&self) -> anyhow::Result<Vec<i32>> {
        census::shims(&self.dir)
    }

    /// Removes what is desired, and waits until nothing of it is left.
    pub(crate) async fn clear(&self) -> anyhow::Result<()> {
        let instances = self.client.actual_lrps(all()).await?.items;
        let groups = groups(&instances);
        for lrp in self.client.desired_lrps().await?.items {
            self.client.remove_desired(lrp.process_guid.as_str()).await?;
        }
        let begun = Instant::now();
        while !self.shims()?.is_empty()
            || !self.client.actual_lrps(all()).await?.items.is_empty()
            || self.has_containers()
            || groups.iter().any(|group| group.exists())
        {
            ensure!(begun.elapsed() < PATIENCE, "instances do not end");
            tokio::time::sleep(census::PAUSE).await;
        }
        Ok(())
    }

    fn has_containers(&self) -> bool {
        let places = ["containers", "oci/containers"];
        let is_full = |dir: PathBuf| dir.read_dir().is_ok_and(|mut it| it.next().is_some());
        self.cells.iter().any(|cell| places.iter().any(|place| is_full(cell.dir.join(place))))
    }

    /// Ends all of it, so that nothing is left on the machine.
    pub(crate) async fn end(mut self) -> anyhow::Result<()> {
        self.clear().await?;
        for cell in &mut self.cells {
            cell.stop().await?;
        }
        Ok(())
    }
}

/// The control groups of instances, which an agent removes last of all.
fn groups(instances: &[ActualLrp]) -> Vec<PathBuf> {
    let guids: Vec<&str> =
        instances.iter().filter_map(|lrp| Some(lrp.instance_guid.as_ref()?.as_str())).collect();
    let below = |dir: PathBuf| dir.read_dir().into_iter().flatten().flatten().map(|it| it.path());
    let hierarchies = below("/sys/fs/cgroup".into()).chain(["/sys/fs/cgroup".into()]);
    let agents = hierarchies.flat_map(|hierarchy| below(hierarchy.join("kapell")));
    let all = agents.flat_map(below);
    let is_one = |group: &PathBuf| {
        let name = group.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| guids.contains(&name))
    };
    all.filter(is_one).collect()
}

/// Dropped, it is killed.
fn plain(kapell: &Path, log: &Path) -> anyhow::Result<Command> {
    let mut command = Command::new(kapell);
    command.env_clear().env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin").kill_on_drop(true);
    let log = File::options().create(true).append(true).open(log)?;
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
    Ok(command)
}
