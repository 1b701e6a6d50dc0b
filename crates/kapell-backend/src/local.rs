//! Commands as processes on this machine, each in a process group of its own.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::future::poll_fn;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;

use crate::descendants;
use crate::executor::{Control, Ended, Error, Executor, Exit, Job, Later, Output, Started};
use crate::spawn::{Order, Spawned, Spawner};
use crate::watched::Watched;

/// How often it is looked whether a group is gone.
const GROUP_INTERVAL: Duration = Duration::from_millis(5);
/// How long the output of a command that has ended may stay open before it is left to linger.
const DRAIN_LIMIT: Duration = Duration::from_millis(200);

/// How long an orphan that has ended may stay a zombie while commands run.
const REAP_INTERVAL: Duration = Duration::from_secs(1);

/// Runs commands on this machine.
#[derive(Debug, Clone, Default)]
pub struct Local {
    known: Arc<Mutex<Known>>,
    spawner: Arc<Spawner>,
    /// Every process below this one came from us, so all of them are ours to wait for and to end.
    owns_all: bool,
}

/// Process groups that we made, by the id of their first process.
#[derive(Debug, Default)]
struct Known {
    running: BTreeSet<i32>,
    /// Commands that have ended, but left someone behind who holds their output open.
    lingering: BTreeSet<i32>,
}

impl Executor for Local {
    fn start(&self, job: &Job, output: Arc<dyn Output>) -> Result<Started, Error> {
        let spawned = spawn(&self.spawner, job)?;
        self.known().running.insert(spawned.pid.as_raw());
        let group = Arc::new(Group {
            pid: spawned.pid,
            told: AtomicBool::new(false),
            gone: AtomicBool::new(false),
        });
        let watched = Watched::new(spawned, output)
            .map_err(|error| Error::Lost { reason: error.to_string() })?;
        let ended = watch(self.clone(), watched, Arc::clone(&group));
        Ok(Started { control: group, ended: Box::pin(ended), settle: None })
    }
}

impl Local {
    /// For a process that starts nothing but steps, below a supervisor.
    pub fn owning_all_children() -> Self {
        Self { owns_all: true, ..Self::default() }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits now and then for orphans that fell to us while no command ended. Never resolves.
    pub async fn reap_now_and_then(&self) {
        if !self.owns_all {
            std::future::pending::<()>().await;
        }
        let mut now_and_then = tokio::time::interval(REAP_INTERVAL);
        loop {
            now_and_then.tick().await;
            self.reap_orphans();
        }
    }

    fn reap_orphans(&self) {
        if self.owns_all {
            let known = self.known();
            descendants::reap_orphans(|pid| known.running.contains(&pid.as_raw()));
        }
    }

    /// Ends what commands left behind: asks, waits for the grace, then ends it.
    pub async fn sweep(&self, grace: Duration) -> Swept {
        let left = self.left_behind();
        if left.is_empty() {
            return Swept::default();
        }
        for &(pid, send) in &left {
            let _gone = send(pid, Signal::SIGTERM);
        }
        let deadline = tokio::time::Instant::now() + grace;
        while !self.left_behind().is_empty() && tokio::time::Instant::now() < deadline {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        if self.owns_all {
            descendants::kill_all(&[]);
        }
        for &(pid, send) in &left {
            let _gone = send(pid, Signal::SIGKILL);
        }
        let mut beyond = Vec::new();
        if self.owns_all {
            beyond.extend(self.left_behind().iter().map(|(pid, _)| pid.as_raw()));
        }
        Swept { ended: left.len().saturating_sub(beyond.len()), beyond }
    }

    /// Processes, or groups of them, that outlived their commands.
    fn left_behind(&self) -> Vec<(Pid, SendSignal)> {
        if self.owns_all {
            if !descendants::any() {
                return Vec::new();
            }
            return descendants::all().into_iter().map(|pid| (pid, kill as SendSignal)).collect();
        }
        let groups = self.known().lingering.clone();
        let alive =
            groups.into_iter().map(Pid::from_raw).filter(|&group| killpg(group, None).is_ok());
        alive.map(|group| (group, killpg as SendSignal)).collect()
    }
}

/// What became of processes that commands had left behind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Swept {
    pub ended: usize,
    /// Those that could not be ended: they belong to another user.
    pub beyond: Vec<i32>,
}

/// How a signal is sent: to a process, or to a group.
type SendSignal = fn(Pid, Signal) -> nix::Result<()>;

fn spawn(spawner: &Spawner, job: &Job) -> Result<Spawned, Error> {
    let start = |program: &OsStr, args: &[OsString]| {
        spawner.spawn(&Order { program, args, dir: job.dir.as_deref(), env: &job.env })
    };
    let failed = match start(&job.program, &job.args) {
        Ok(started) => return Ok(started),
        Err(error) => error,
    };
    match &job.otherwise {
        Some((program, args)) => {
            start(program, args).map_err(|error| explain(program, job, &error))
        }
        None => Err(explain(&job.program, job, &failed)),
    }
}

/// The system says "no such file" of the program, its interpreter and the directory alike.
fn explain(program: &OsStr, job: &Job, error: &io::Error) -> Error {
    let program = program.to_string_lossy().into_owned();
    if let Some(dir) = &job.dir
        && std::fs::read_dir(dir).is_err()
    {
        return Error::BadDirectory { dir: dir.display().to_string() };
    }
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "the system has more errors than we have words"
    )]
    match error.kind() {
        io::ErrorKind::NotFound if std::path::Path::new(&program).is_file() => {
            Error::NotFound { program, hint: "; its interpreter (the `#!` line) does not exist" }
        }
        io::ErrorKind::NotFound if program.contains('/') => Error::NotFound { program, hint: "" },
        io::ErrorKind::NotFound => Error::NotFound { program, hint: " in PATH" },
        io::ErrorKind::PermissionDenied => Error::NotExecutable { program },
        io::ErrorKind::ArgumentListTooLong => Error::TooLarge { program },
        _ if matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE | libc::EAGAIN)) => {
            Error::NotStarted {
                program,
                reason: format!(
                    "{error}; lower the number of workers, or raise the limits of `ulimit -n` and `ulimit -u`"
                ),
            }
        }
        _ => Error::NotStarted { program, reason: error.to_string() },
    }
}

/// The processes of one command.
#[derive(Debug)]
struct Group {
    pid: Pid,
    told: AtomicBool,
    gone: AtomicBool,
}

impl Control for Group {
    fn signal(&self, hard: bool) {
        if self.gone.load(Ordering::Relaxed) {
            return;
        }
        self.told.store(true, Ordering::Relaxed);
        let signal = if hard { Signal::SIGKILL } else { Signal::SIGTERM };
        // The group may have ended in this moment.
        let _gone = killpg(self.pid, signal);
        if !hard {
            // A stopped process takes no notice of the request until it goes on.
            let _gone = killpg(self.pid, Signal::SIGCONT);
        }
    }
}

async fn watch(local: Local, mut watched: Watched, group: Arc<Group>) -> Result<Ended, Error> {
    let status = poll_fn(|cx| watched.poll_exit(cx)).await;
    local.known().running.remove(&group.pid.as_raw());
    let exit = status.map_err(|error| Error::Lost { reason: error.to_string() })?;
    if group.told.load(Ordering::Relaxed) {
        group_ended(&local, &mut watched, &group).await;
    } else if exit != Exit::Code(0) {
        // A command that failed takes its background processes with it.
        let _gone = killpg(group.pid, Signal::SIGTERM);
    }
    group.gone.store(true, Ordering::Relaxed);
    local.reap_orphans();
    let mut lingering: Option<Later<()>> = None;
    if watched.is_open() {
        let drained = tokio::time::timeout(DRAIN_LIMIT, poll_fn(|cx| watched.poll_drained(cx)));
        if drained.await.is_err() {
            local.known().lingering.insert(group.pid.as_raw());
            lingering = Some(Box::pin(async move { poll_fn(|cx| watched.poll_drained(cx)).await }));
        }
    }
    Ok(Ended { exit, lingering })
}

/// Waits until a group that was told to end is gone. A shell ends at once where what it started
/// may need its grace; when that is over, whoever told them ends them.
async fn group_ended(local: &Local, watched: &mut Watched, group: &Group) {
    while killpg(group.pid, None).is_ok() {
        local.reap_orphans();
        tokio::select! {
            biased;
            () = poll_fn(|cx| watched.poll_drained(cx)), if watched.is_open() => {}
            () = tokio::time::sleep(GROUP_INTERVAL) => {}
        }
    }
}

#[cfg(test)]
mod tests;
