use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::cache::Cache;
use super::certificates;
use super::process;
use super::table::{Launch, Recipe};
use crate::command;
use crate::error::{Result, failed};
use crate::tools;

const HOME: &str = "/usr/lib/postgresql";
const PACKAGE: &str = "postgresql-15";
const PREFERRED: &str = "15";
const NO_CLUSTER: &str = "/etc/postgresql-common/createcluster.conf";
/// Debian's user for it: the server refuses to run as root.
const USER: &str = "postgres";

/// The first line that fits decides.
const ACCESS: &str = "\
host all kapell   127.0.0.1/32 scram-sha-256
host all postgres 127.0.0.1/32 trust
";

/// Since version 15 nobody but a database's owner may make tables in its `public`.
const FURNITURE: [&str; 4] = [
    "CREATE ROLE kapell LOGIN PASSWORD 'secret'",
    "CREATE DATABASE kapell OWNER kapell",
    "GRANT CREATE ON DATABASE postgres TO kapell",
    "GRANT ALL ON SCHEMA public TO kapell",
];

/// A cluster of its own with TLS, durable as in production.
///
/// `postgres` needs no password, `kapell` has `secret`.
#[derive(Debug)]
pub(crate) struct Postgres;

impl Recipe for Postgres {
    fn install(&self, cache: &Cache) -> Result<()> {
        certificates::provide(cache)?;
        if programs().is_some() {
            return Ok(());
        }
        // The package would make and start a cluster on the default port.
        let path = Path::new(NO_CLUSTER);
        if !path.exists() && path.parent().is_some_and(|dir| fs::create_dir_all(dir).is_ok()) {
            // Without the right to write here we cannot install either, and that is told below.
            let _ = fs::write(path, "create_main_cluster = false\n");
        }
        tools::install(&[PACKAGE])?;
        directory().map(drop)
    }

    fn launch(&self, cache: &Cache, dir: &Path) -> Result<Launch> {
        let [port] = process::free_ports()?;
        let pair = certificates::install(cache, dir)?;
        let identity = Identity::choose()?;
        identity.own(dir)?;
        let data = dir.join("data");
        let mut initdb = identity.command("initdb")?;
        initdb.arg("-D").arg(&data).current_dir(dir);
        initdb.args(["-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"]);
        let output = initdb.stdin(Stdio::null()).output()?;
        if !output.status.success() {
            let text = String::from_utf8_lossy(&output.stderr);
            return Err(failed(format!("initdb: {}\n{}", output.status, text.trim())));
        }
        // Written over, not made anew: it stays the other user's file.
        fs::write(data.join("pg_hba.conf"), ACCESS)?;
        let mut command = identity.command("postgres")?;
        command.arg("-D").arg(&data);
        for setting in [
            "listen_addresses=127.0.0.1".to_owned(),
            format!("port={port}"),
            "unix_socket_directories=".to_owned(),
            "fsync=on".to_owned(),
            "max_connections=200".to_owned(),
            "shared_buffers=32MB".to_owned(),
            "password_encryption=scram-sha-256".to_owned(),
            "ssl=on".to_owned(),
            format!("ssl_cert_file={}", pair.certificate.display()),
            format!("ssl_key_file={}", pair.key.display()),
        ] {
            command.args(["-c", &setting]);
        }
        Ok(Launch { command, endpoint: format!("postgres://postgres@127.0.0.1:{port}/postgres") })
    }

    fn programs(&self, _: &Cache) -> Result<PathBuf> {
        directory()
    }

    fn answers(&self, _: &Cache, endpoint: &str) -> bool {
        let Ok(dir) = directory() else { return false };
        let mut ask = Command::new(dir.join("pg_isready"));
        ask.args(["--quiet", "--timeout", "2", "--dbname", endpoint]);
        ask.stdin(Stdio::null()).status().is_ok_and(|status| status.success())
    }

    fn furnish(&self, _: &Cache, endpoint: &str) -> Result<()> {
        let mut psql = Command::new(directory()?.join("psql"));
        psql.args(["--no-psqlrc", "--quiet", "--set", "ON_ERROR_STOP=1", "--dbname", endpoint]);
        for statement in FURNITURE {
            psql.args(["--command", statement]);
        }
        let output = psql.stdin(Stdio::null()).output()?;
        if output.status.success() {
            return Ok(());
        }
        let text = String::from_utf8_lossy(&output.stderr);
        Err(failed(format!("psql could not make the users: {}", text.trim())))
    }
}

/// The directory with the server's programs: of the preferred version, or else of any.
fn programs() -> Option<PathBuf> {
    let mut versions: Vec<OsString> = vec![PREFERRED.into()];
    let others = fs::read_dir(HOME).into_iter().flatten();
    versions.extend(others.filter_map(|entry| Some(entry.ok()?.file_name())));
    let dirs = versions.iter().map(|version| Path::new(HOME).join(version).join("bin"));
    dirs.into_iter().find(|dir| dir.join("initdb").is_file() && dir.join("postgres").is_file())
}

fn directory() -> Result<PathBuf> {
    programs()
        .ok_or_else(|| failed(format!("no PostgreSQL below {HOME}: install the package {PACKAGE}")))
}

/// As whom the server runs.
#[derive(Debug)]
enum Identity {
    Own,
    /// We are root, so it runs as [`USER`] of this group.
    Other {
        group: String,
    },
}

impl Identity {
    fn choose() -> Result<Self> {
        if command::output(Command::new("id").arg("-u"))? != "0" {
            return Ok(Self::Own);
        }
        let group = command::output(Command::new("id").args(["-g", USER])).map_err(|error| {
            failed(format!("{error}: PostgreSQL does not run as root and there is no user {USER}"))
        })?;
        Ok(Self::Other { group })
    }

    fn own(&self, dir: &Path) -> Result<()> {
        let Self::Other { group } = self else { return Ok(()) };
        let owner = format!("{USER}:{group}");
        command::output(Command::new("chown").args(["-R", &owner]).arg(dir)).map(drop)
    }

    fn command(&self, program: &str) -> Result<Command> {
        let program = directory()?.join(program);
        let Self::Other { group } = self else { return Ok(process::detached(program)) };
        let mut command = process::detached("setpriv");
        command.args(["--reuid", USER, "--regid", group, "--clear-groups", "--"]).arg(program);
        Ok(command)
    }
}
