//! A whole Kubernetes with one node, on loopback ports.

mod api;
mod audit;
mod build;
mod image;
mod kernel;
mod keys;
mod leftovers;
mod names;
mod plan;
#[cfg(test)]
mod whole;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use super::cache::Cache;
use super::process;
use super::table::{Launch, Recipe};
use crate::command;
use crate::error::{Result, failed};
use crate::tools::{self, Tool};
use api::Api;
use kernel::Settings;
use names::Names;
use plan::{Plan, Ports, STARTED};

/// Where the package has put the plugins that give pods their network.
const CNI: &str = "/usr/lib/cni";
const LONGEST: Duration = Duration::from_secs(60);

const TOOLS: &[Tool] = &[
    tools::OPENSSL,
    tools::BUSYBOX,
    tools::RUNC,
    tools::NFT,
    tools::IP,
    Tool { program: "curl", package: "curl" },
    Tool { program: "containerd", package: "containerd" },
    Tool { program: "/usr/lib/cni/bridge", package: "containernetworking-plugins" },
];

/// Everything that a cluster has: etcd, API server, controllers, scheduler, and a node that runs containers.
///
/// Its endpoint is the path of the file that makes a client its administrator. The process on record is etcd: any of
/// the others may be ended and started again by a test.
#[derive(Debug)]
pub(crate) struct Kubernetes;

impl Recipe for Kubernetes {
    fn install(&self, cache: &Cache) -> Result<()> {
        if command::output(Command::new("id").arg("-u"))? != "0" {
            return Err(failed("a node of Kubernetes is run by root"));
        }
        leftovers::require_groups()?;
        if !build::is_built(cache) {
            build::require_go()?;
        }
        tools::require(TOOLS)?;
        if build::is_built(cache) { Ok(()) } else { build::build(cache) }
    }

    fn launch(&self, cache: &Cache, dir: &Path) -> Result<Launch> {
        let [etcd, peer, server, kubelet] = process::free_ports()?;
        let plan = Plan {
            dir,
            programs: build::directory(cache),
            names: Names::of(dir),
            ports: Ports { etcd, peer, server, kubelet },
        };
        // Whoever is the administrator of the cluster may become root on its node.
        fs::set_permissions(dir, fs::Permissions::from_mode(0o700))?;
        for name in Plan::directories() {
            fs::create_dir_all(dir.join(name))?;
        }
        for (name, text) in plan.files() {
            fs::write(dir.join(name), text)?;
        }
        keys::make(dir, &plan.server())?;
        image::make(dir)?;
        let endpoint = dir.join("kubeconfig").to_string_lossy().into_owned();
        Ok(Launch { command: script(dir, "etcd"), endpoint })
    }

    fn complete(&self, _: &Cache, dir: &Path) -> Result<()> {
        Cluster { dir, names: Names::of(dir), api: Api::of(dir) }.start().inspect_err(|_| {
            // Where it is looked for, the last words at the end.
            let _ = fs::write(dir.join("log"), logs(dir));
        })
    }

    fn programs(&self, cache: &Cache) -> Result<PathBuf> {
        Ok(build::directory(cache))
    }

    fn answers(&self, _: &Cache, endpoint: &str) -> bool {
        let Some(dir) = Path::new(endpoint).parent() else { return false };
        let api = Api::of(dir);
        api.is_ready() && api.has_node() && api.has_account()
    }

    fn furnish(&self, _: &Cache, _: &str) -> Result<()> {
        Ok(())
    }

    fn clear(&self, dir: &Path) -> Result<()> {
        let cleared = leftovers::clear(dir, &Names::of(dir));
        Settings::restore(dir)?;
        cleared
    }
}

fn script(dir: &Path, name: &str) -> Command {
    let mut command = process::detached("sh");
    command.arg(dir.join("start").join(name));
    command
}

/// All logs one after the other, those at the end that most likely say what went wrong.
fn logs(dir: &Path) -> String {
    let is_dead = |name: &&str| !is_alive(dir, name);
    let (dead, alive): (Vec<&str>, Vec<&str>) = STARTED.iter().copied().partition(is_dead);
    let inside = ["containerd", "kubelet"];
    let read = |name: &str| {
        let log = fs::read(dir.join(format!("logs/{name}.log"))).unwrap_or_default();
        let log = String::from_utf8_lossy(&log);
        if log.is_empty() { String::new() } else { format!("--- {name}\n{log}") }
    };
    alive.into_iter().chain(inside).chain(dead).map(read).collect()
}

fn pid(dir: &Path, name: &str) -> Option<u32> {
    fs::read_to_string(dir.join("pids").join(name)).ok()?.trim().parse().ok()
}

fn is_alive(dir: &Path, name: &str) -> bool {
    // A script has the name of the program that it is about to become, but for this one.
    let other = if name == "node" { "unshare" } else { name };
    let is_one = |pid| [name, other].iter().any(|each| process::is_running(pid, each, dir));
    pid(dir, name).is_some_and(is_one)
}

/// A cluster whose etcd has been started.
#[derive(Debug)]
struct Cluster<'a> {
    dir: &'a Path,
    names: Names,
    api: Api<'a>,
}

impl Cluster<'_> {
    fn start(&self) -> Result<()> {
        self.spawn("kube-apiserver")?;
        leftovers::make_groups(&self.names.group)?;
        self.connect()?;
        self.wait("the API server was ready", || self.api.is_ready())?;
        let settings = Settings::keep(self.dir)?;
        self.spawn("node")?;
        self.spawn("kube-controller-manager")?;
        self.spawn("kube-scheduler")?;
        let import = || self.import().is_ok();
        self.wait("the images were there", import)?;
        self.wait("the node was ready", || self.api.has_node())?;
        // A kubelet has its own idea of them.
        settings.put_back()?;
        self.wait("there was an account for pods", || self.api.has_account())
    }

    fn spawn(&self, name: &str) -> Result<()> {
        let mut command = script(self.dir, name);
        command.current_dir(self.dir).stdin(Stdio::null()).stdout(Stdio::null());
        command.spawn().map_err(|error| failed(format!("cannot start {name}: {error}")))?;
        Ok(())
    }

    fn wait(&self, what: &str, mut done: impl FnMut() -> bool) -> Result<()> {
        let mut dead = None;
        let settled = process::poll(LONGEST, || {
            let mut started = STARTED.iter().filter(|name| pid(self.dir, name).is_some());
            dead = started.find(|name| !is_alive(self.dir, name));
            dead.is_some() || done()
        });
        match dead {
            Some(name) => Err(failed(format!("{name} ended before {what}"))),
            None if settled => Ok(()),
            None => Err(failed(format!("it took more than {} s until {what}", LONGEST.as_secs()))),
        }
    }

    /// A bridge for the pods, over which they find the API server.
    fn connect(&self) -> Result<()> {
        let Names { bridge, pods, .. } = &self.names;
        for words in [
            format!("link add {bridge} type bridge"),
            format!("address add {pods}.1/24 dev {bridge}"),
            format!("link set {bridge} up"),
        ] {
            command::output(Command::new("ip").args(words.split(' ')))?;
        }
        // Otherwise nothing from elsewhere may go to 127.0.0.1, whatever the rules say.
        kernel::write(&format!("net/ipv4/conf/{bridge}/route_localnet"), "1")?;
        command::output(Command::new("nft").arg("-f").arg(self.dir.join("rules.nft"))).map(drop)
    }

    fn import(&self) -> Result<()> {
        let mut import = Command::new("ctr");
        import.arg("--address").arg(self.dir.join("containerd.sock"));
        import.args(["--namespace", "k8s.io", "images", "import"]).arg(self.dir.join("images.tar"));
        let output = import.output()?;
        if output.status.success() { Ok(()) } else { Err(failed("no images yet")) }
    }
}
