//! A Cassandra of one node on loopback ports, durable as in production.

mod cql;
mod jars;
mod plan;
#[cfg(test)]
mod whole;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use super::cache::Cache;
use super::certificates;
use super::process;
use super::state::State;
use super::table::{Launch, Recipe};
use crate::error::{Result, failed};
use cql::Line;
use plan::{Plan, Ports};

const NAME: &str = "cassandra";
/// Whose process it is.
const JAVA: &str = "java";
const LONGEST: Duration = Duration::from_mins(2);

/// Who may do everything on a server that is new.
const ROOT: (&str, &str) = ("cassandra", "cassandra");

/// `kapell` may make keyspaces and owns what it makes; `stranger` may log in.
const FURNITURE: [&str; 3] = [
    "CREATE ROLE IF NOT EXISTS kapell WITH PASSWORD = 'secret' AND LOGIN = true",
    "CREATE ROLE IF NOT EXISTS stranger WITH PASSWORD = 'secret' AND LOGIN = true",
    "GRANT CREATE ON ALL KEYSPACES TO kapell",
];

/// A server with users, and with TLS for those who want it.
///
/// The process on record only waits: a test may end the server and start it again, and it is another process then.
/// `pids/cassandra`, `start/cassandra` and `logs/cassandra.log` are in the directory that tests are told.
#[derive(Debug)]
pub(crate) struct Cassandra;

impl Recipe for Cassandra {
    fn install(&self, cache: &Cache) -> Result<()> {
        certificates::provide(cache)?;
        jars::provide(cache)?;
        if !jars::archive(cache).is_file() {
            // Without it a server starts as well, only later.
            if let Err(error) = make_archive(cache) {
                eprintln!("note: no archive of Cassandra's classes: {error}");
            }
        }
        Ok(())
    }

    fn launch(&self, cache: &Cache, dir: &Path) -> Result<Launch> {
        let port = lay_out(cache, dir, plan::Archive::Use)?;
        let hold = dir.join("hold");
        fs::write(&hold, "")?;
        let mut command = process::detached("tail");
        command.arg("-f").arg(hold);
        Ok(Launch { command, endpoint: format!("cassandra://kapell:secret@127.0.0.1:{port}") })
    }

    fn complete(&self, _: &Cache, dir: &Path) -> Result<()> {
        start(dir)?;
        await_login(dir).inspect_err(|_| {
            // Where it is looked for.
            let _ = fs::copy(log(dir), dir.join("log"));
        })
    }

    /// Not the cache: what a test starts again is the server that is up.
    fn programs(&self, cache: &Cache) -> Result<PathBuf> {
        let state = State::load(cache)?;
        state.get(NAME).map(|record| record.dir.clone()).ok_or_else(|| failed("it is not up"))
    }

    fn answers(&self, _: &Cache, endpoint: &str) -> bool {
        let place = endpoint.rsplit_once(['@', '/']).map(|(_, place)| place);
        place.is_some_and(|place| Line::open(place, ROOT).is_ok())
    }

    fn furnish(&self, _: &Cache, endpoint: &str) -> Result<()> {
        let place = endpoint.rsplit_once(['@', '/']).map(|(_, place)| place).unwrap_or_default();
        let mut line = Line::open(place, ROOT)?;
        FURNITURE.iter().try_for_each(|statement| line.ask(statement))
    }

    fn clear(&self, dir: &Path) -> Result<()> {
        end(dir, libc::SIGKILL)
    }
}

/// Fills the directory of a server; the port for its clients.
fn lay_out(cache: &Cache, dir: &Path, archive: plan::Archive) -> Result<u16> {
    let [clients, nodes] = process::free_ports()?;
    fs::set_permissions(dir, fs::Permissions::from_mode(0o700))?;
    for name in plan::DIRECTORIES {
        fs::create_dir_all(dir.join(name))?;
    }
    let pair = certificates::install(cache, dir)?;
    let words = format!(
        "pkcs12 -export -in {} -inkey {} -out {} -passout pass:{}",
        pair.certificate.display(),
        pair.key.display(),
        plan::KEYS,
        plan::KEYS_PASSWORD
    );
    certificates::openssl(dir, &words)?;
    let plan = Plan {
        dir,
        jars: jars::list(cache)?,
        classes: jars::archive(cache),
        archive,
        ports: Ports { clients, nodes },
    };
    for (name, text) in plan.files() {
        fs::write(dir.join(name), text)?;
    }
    fs::write(dir.join("port"), clients.to_string())?;
    Ok(clients)
}

fn start(dir: &Path) -> Result<()> {
    // The pid of one that has ended is not this one's.
    let _ = fs::remove_file(dir.join("pids").join(NAME));
    let mut command = process::detached("sh");
    command.arg(dir.join("start").join(NAME)).current_dir(dir);
    command.stdin(Stdio::null()).stdout(Stdio::null());
    command.spawn().map_err(|error| failed(format!("cannot start {NAME}: {error}")))?;
    Ok(())
}

/// Its own user is made a moment after it listens.
fn await_login(dir: &Path) -> Result<()> {
    let place = format!("127.0.0.1:{}", fs::read_to_string(dir.join("port"))?);
    let mut is_dead = false;
    let settled = process::poll(LONGEST, || {
        is_dead = pid(dir).is_some() && !is_alive(dir);
        is_dead || Line::open(&place, ROOT).is_ok()
    });
    match (is_dead, settled) {
        (true, _) => Err(failed(format!("{NAME} ended before it answered"))),
        (false, true) => Ok(()),
        (false, false) => {
            Err(failed(format!("{NAME} did not answer within {} s", LONGEST.as_secs())))
        }
    }
}

fn log(dir: &Path) -> PathBuf {
    dir.join("logs").join(format!("{NAME}.log"))
}

fn pid(dir: &Path) -> Option<u32> {
    fs::read_to_string(dir.join("pids").join(NAME)).ok()?.trim().parse().ok()
}

/// The script has written its pid before it becomes the program.
fn is_alive(dir: &Path) -> bool {
    let is_one = |pid| [JAVA, "sh"].iter().any(|each| process::is_running(pid, each, dir));
    pid(dir).is_some_and(is_one)
}

fn end(dir: &Path, signal: i32) -> Result<()> {
    let Some(pid) = pid(dir) else { return Ok(()) };
    for program in [JAVA, "sh"] {
        process::end(pid, program, dir, signal)?;
    }
    Ok(())
}

/// A server that is started once only, and writes the classes that it has loaded when it ends: later starts take a
/// third of the time.
fn make_archive(cache: &Cache) -> Result<()> {
    eprintln!("backends: an archive of Cassandra's classes, this once");
    let dir = cache.fresh("cassandra.classes")?;
    let made = lay_out(cache, &dir, plan::Archive::Make)
        .and_then(|_| start(&dir))
        .and_then(|()| await_login(&dir))
        .and_then(|()| end_slowly(&dir));
    end(&dir, libc::SIGKILL)?;
    let part = dir.join(plan::ARCHIVE);
    let made = made.and_then(|()| Ok(fs::rename(part, jars::archive(cache))?));
    fs::remove_dir_all(&dir)?;
    made
}

/// It writes the archive when it ends, and is not to be killed meanwhile.
fn end_slowly(dir: &Path) -> Result<()> {
    if let Some(pid) = pid(dir) {
        process::kill(pid, libc::SIGTERM)?;
    }
    let ended = process::poll(LONGEST, || !is_alive(dir));
    if ended { Ok(()) } else { Err(failed(format!("{NAME} does not end"))) }
}
