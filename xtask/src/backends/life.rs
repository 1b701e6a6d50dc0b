//! Starting and stopping one server.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use super::cache::Cache;
use super::process;
use super::state::{Record, State};
use super::table::Server;
use crate::error::{Error, Result, failed};

const PREFIX: &str = "kapell-backends-";
const LOG: &str = "log";
/// A port that was free may be taken a moment later.
const ATTEMPTS: u32 = 3;
const START: Duration = Duration::from_secs(60);
/// A machine under load is no reason to replace a server that others use.
const PATIENCE: Duration = Duration::from_secs(10);

static NEXT: AtomicU32 = AtomicU32::new(0);

/// How long a server is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Term {
    /// Until the last test run that uses it has ended.
    UntilUnused,
    UntilDown,
}

/// Whether a server was up before it was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    New,
    Old,
}

/// Brings a server up unless it is. The caller holds the lock.
pub(crate) fn ensure(
    cache: &Cache,
    state: &mut State,
    server: &Server,
    term: Term,
) -> Result<(Record, Standing)> {
    if let Some(mut record) = state.get(server.name).cloned() {
        if is_up(cache, server, &record) {
            if term == Term::UntilDown && !record.keep {
                record.keep = true;
                state.put(cache, record.clone())?;
            }
            return Ok((record, Standing::Old));
        }
        stop(cache, state, server)?;
    }
    server.recipe.install(cache)?;
    let mut left = ATTEMPTS;
    loop {
        left -= 1;
        match start(cache, state, server, term) {
            Err(Error::Failed(text)) if left > 0 && is_about_ports(&text) => {}
            outcome => return outcome.map(|record| (record, Standing::New)),
        }
    }
}

/// Ends a server and deletes what it wrote. The caller holds the lock.
pub(crate) fn stop(cache: &Cache, state: &mut State, server: &Server) -> Result<()> {
    let Some(record) = state.get(server.name) else { return Ok(()) };
    server.recipe.clear(&record.dir)?;
    process::end(record.pid, server.program, &record.dir, server.stop)?;
    discard(&record.dir)?;
    state.remove(cache, server.name)
}

fn is_up(cache: &Cache, server: &Server, record: &Record) -> bool {
    let runs = || process::is_running(record.pid, server.program, &record.dir);
    let answers = || server.recipe.answers(cache, &record.endpoint);
    // A dead one is not waited for.
    record.ready && process::poll(PATIENCE, || !runs() || answers()) && runs()
}

fn start(cache: &Cache, state: &mut State, server: &Server, term: Term) -> Result<Record> {
    let dir = new_dir(server.name)?;
    let outcome = attempt(cache, state, server, term, &dir);
    if outcome.is_err() {
        // What went wrong is told; nothing is left behind.
        stop(cache, state, server)?;
        discard(&dir)?;
    }
    outcome
}

fn attempt(
    cache: &Cache,
    state: &mut State,
    server: &Server,
    term: Term,
    dir: &Path,
) -> Result<Record> {
    let mut launch = server.recipe.launch(cache, dir)?;
    let log = File::create(dir.join(LOG))?;
    launch.command.current_dir(dir).stdin(Stdio::null());
    launch.command.stdout(log.try_clone()?).stderr(log);
    let mut child = launch.command.spawn().map_err(|error| {
        failed(format!("cannot start {}: {error}; is util-linux installed?", server.program))
    })?;
    let mut record = Record {
        name: server.name.to_owned(),
        pid: child.id(),
        endpoint: launch.endpoint,
        dir: dir.to_owned(),
        ready: false,
        keep: term == Term::UntilDown,
    };
    // On record before it answers, so that whoever comes after a Ctrl-C can end it.
    state.put(cache, record.clone())?;
    server
        .recipe
        .complete(cache, dir)
        .and_then(|()| await_answer(cache, server, &record, &mut child))
        .and_then(|()| server.recipe.furnish(cache, &record.endpoint))
        .map_err(|error| failed(format!("{error}{}", last_words(cache, server, dir))))?;
    record.ready = true;
    state.put(cache, record.clone())?;
    Ok(record)
}

fn await_answer(cache: &Cache, server: &Server, record: &Record, child: &mut Child) -> Result<()> {
    let mut ended = None;
    let settled = process::poll(START, || {
        ended = child.try_wait().ok().flatten();
        ended.is_some() || server.recipe.answers(cache, &record.endpoint)
    });
    let (program, endpoint) = (server.program, &record.endpoint);
    match ended {
        Some(status) => Err(failed(format!("{program} ended before it answered: {status}"))),
        None if settled => Ok(()),
        None => {
            let limit = START.as_secs();
            Err(failed(format!("{program} did not answer at {endpoint} within {limit} s")))
        }
    }
}

/// The end of the log, for a message; the whole of it stays in the cache.
fn last_words(cache: &Cache, server: &Server, dir: &Path) -> String {
    let log = dir.join(LOG);
    let text = fs::read(&log).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().collect();
    let kept = cache.path(&format!("{}.failed.log", server.name));
    let place = fs::copy(&log, &kept).map_or(String::new(), |_| format!(" ({})", kept.display()));
    let tail = &lines[lines.len().saturating_sub(20)..];
    format!("; the end of its log{place}:\n{}", tail.join("\n"))
}

fn is_about_ports(text: &str) -> bool {
    text.to_lowercase().contains("address already in use")
}

/// Not in the cache: a server may run as a user who cannot enter our home directory.
fn new_dir(name: &str) -> Result<PathBuf> {
    let serial = NEXT.fetch_add(1, Ordering::Relaxed);
    let name = format!("{PREFIX}{name}-{}-{serial}", std::process::id());
    let dir = std::env::temp_dir().join(name);
    // `create_dir` refuses a directory that is already there: nobody else can have planted it.
    fs::create_dir(&dir).map_err(|error| failed(format!("{}: {error}", dir.display())))?;
    Ok(dir)
}

fn discard(dir: &Path) -> Result<()> {
    let name = dir.file_name().unwrap_or_default().to_string_lossy();
    // The path comes from a file: what we cannot have made we do not delete.
    if !name.starts_with(PREFIX) || !dir.exists() {
        return Ok(());
    }
    let mut outcome = Ok(());
    // Children of a server that was killed write until they notice.
    process::poll(PATIENCE, || {
        outcome = fs::remove_dir_all(dir);
        outcome.is_ok() || !dir.exists()
    });
    match outcome {
        Err(error) if dir.exists() => {
            Err(failed(format!("cannot delete {}: {error}", dir.display())))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::table::{Launch, Recipe};
    use super::*;
    use crate::scratch::Scratch;

    /// Runs a shell that waits, and answers once the shell has written a file.
    #[derive(Debug)]
    struct Fake {
        script: &'static str,
    }

    impl Recipe for Fake {
        fn install(&self, _: &Cache) -> Result<()> {
            Ok(())
        }

        fn launch(&self, _: &Cache, dir: &Path) -> Result<Launch> {
            let mut command = process::detached("sh");
            command.args(["-c", self.script, "sh"]).arg(dir);
            Ok(Launch { command, endpoint: dir.display().to_string() })
        }

        fn programs(&self, _: &Cache) -> Result<PathBuf> {
            Ok(PathBuf::from("sh"))
        }

        fn answers(&self, _: &Cache, endpoint: &str) -> bool {
            Path::new(endpoint).join("here").exists()
        }

        fn furnish(&self, _: &Cache, _: &str) -> Result<()> {
            Ok(())
        }

        fn complete(&self, cache: &Cache, dir: &Path) -> Result<()> {
            let state = State::load(cache)?;
            assert!(state.get("fake").is_some_and(|record| record.dir == dir), "not on record");
            Ok(fs::write(beside(dir), "")?)
        }

        fn clear(&self, dir: &Path) -> Result<()> {
            fs::remove_file(beside(dir))
                .map_err(|error| failed(format!("nothing to clear: {error}")))
        }
    }

    /// What such a server has outside of its directory.
    fn beside(dir: &Path) -> PathBuf {
        dir.with_extension("beside")
    }

    fn server(recipe: &'static Fake) -> Server {
        let (variable, authority) = ("X", None);
        Server {
            name: "fake",
            program: "sh",
            stop: libc::SIGTERM,
            variable,
            authority,
            programs: None,
            recipe,
        }
    }

    /// `tail` waits for the shell itself, so nothing is left behind when the shell is killed.
    const WAITS: &str = "touch here; tail --pid=$$ -s 0.1 -f /dev/null";

    #[test]
    fn a_server_that_is_up_is_kept_and_one_that_died_is_replaced() {
        let scratch = Scratch::new("life").unwrap();
        let cache = Cache::at(scratch.path());
        let mut state = State::default();
        let server = server(&Fake { script: WAITS });
        let (first, standing) = ensure(&cache, &mut state, &server, Term::UntilUnused).unwrap();
        assert!(first.ready && !first.keep && standing == Standing::New);
        assert!(beside(&first.dir).exists());
        let (second, standing) = ensure(&cache, &mut state, &server, Term::UntilDown).unwrap();
        assert_eq!((second.pid, second.keep, standing), (first.pid, true, Standing::Old));
        process::end(first.pid, "sh", &first.dir, libc::SIGKILL).unwrap();
        let (third, standing) = ensure(&cache, &mut state, &server, Term::UntilDown).unwrap();
        assert!(third.pid != first.pid && standing == Standing::New);
        assert!(!first.dir.exists(), "the dead one's directory");
        assert!(!beside(&first.dir).exists(), "what the dead one had elsewhere");
        stop(&cache, &mut state, &server).unwrap();
        assert!(!process::is_running(third.pid, "sh", &third.dir) && !third.dir.exists());
        assert!(!beside(&third.dir).exists());
        assert_eq!(state, State::default());
    }

    #[test]
    fn a_server_that_dies_at_once_is_an_error_with_the_end_of_its_log() {
        let scratch = Scratch::new("life").unwrap();
        let cache = Cache::at(scratch.path());
        let mut state = State::default();
        let server = server(&Fake { script: "echo no such luck; exit 3" });
        let error = ensure(&cache, &mut state, &server, Term::UntilDown).unwrap_err().to_string();
        assert!(
            error.starts_with("sh ended before it answered: exit status: 3; the end"),
            "{error}"
        );
        assert!(error.ends_with("fake.failed.log):\nno such luck"), "{error}");
        assert_eq!(state, State::default());
    }

    #[test]
    fn deletes_only_what_it_can_have_made() {
        let scratch = Scratch::new("life").unwrap();
        discard(scratch.path()).unwrap();
        assert!(scratch.path().exists());
    }
}
