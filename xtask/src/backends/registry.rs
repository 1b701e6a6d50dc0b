use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::cache::Cache;
use super::process;
use super::table::{Launch, Recipe};
use crate::command;
use crate::error::{Result, failed};
use crate::tools;

const PROGRAM: &str = "docker-registry";
const PATIENCE: Duration = Duration::from_secs(2);

/// A registry of container images for anybody, over plain HTTP.
#[derive(Debug)]
pub(crate) struct Registry;

impl Recipe for Registry {
    fn install(&self, _: &Cache) -> Result<()> {
        tools::require(&[tools::REGISTRY])
    }

    fn launch(&self, _: &Cache, dir: &Path) -> Result<Launch> {
        let [port] = process::free_ports()?;
        let data = dir.join("data");
        let settings = format!(
            "version: 0.1\nlog: {{level: warn}}\nhttp: {{addr: '127.0.0.1:{port}'}}\n\
             storage:\n  delete: {{enabled: true}}\n  filesystem: {{rootdirectory: '{}'}}\n",
            data.display()
        );
        let path = dir.join("registry.yml");
        fs::write(&path, settings)?;
        let mut command = process::detached(program()?);
        command.arg("serve").arg(path).env("OTEL_TRACES_EXPORTER", "none");
        Ok(Launch { command, endpoint: format!("http://127.0.0.1:{port}") })
    }

    fn programs(&self, _: &Cache) -> Result<PathBuf> {
        program()
    }

    fn answers(&self, _: &Cache, endpoint: &str) -> bool {
        ask(endpoint).is_some_and(|answer| answer.contains(" 200 "))
    }

    fn furnish(&self, _: &Cache, _: &str) -> Result<()> {
        Ok(())
    }
}

fn program() -> Result<PathBuf> {
    command::find(PROGRAM).ok_or_else(|| {
        failed(format!("`{PROGRAM}` is not installed: `cargo xtask backends up` does"))
    })
}

/// The first line of the answer.
fn ask(endpoint: &str) -> Option<String> {
    let address: SocketAddr = endpoint.strip_prefix("http://")?.parse().ok()?;
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    let request = format!("GET /v2/ HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).ok()?;
    let mut answer = String::new();
    stream.take(4096).read_to_string(&mut answer).ok()?;
    Some(answer.lines().next()?.to_owned())
}
