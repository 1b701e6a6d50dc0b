//! A place of its own for one test: files, state, and a `kapell` to run in it.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

pub(crate) use kapell_store::testing::skip;
use nix::sys::signal::Signal;

use crate::census::{MARK, Process, marked};
use crate::running::{Running, send};
use crate::text::normal;

/// Longer than anything takes here, even on a busy machine: what takes longer hangs.
pub(crate) const LIMIT: Duration = Duration::from_secs(60);

/// A directory with everything that `kapell` reads and writes in one test.
#[derive(Debug)]
pub(crate) struct Bench {
    dir: tempfile::TempDir,
    mark: String,
    env: Vec<(OsString, OsString)>,
    /// Where commands leave what they tell.
    log: Option<PathBuf>,
}

/// How a command ended, and what it wrote.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) took: Duration,
    /// The test's directory, which the normal form leaves out.
    pub(crate) dir: String,
}

impl Bench {
    pub(crate) fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let dir = tempfile::tempdir().expect("a temporary directory");
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let mark = format!("{}-{number}", std::process::id());
        for name in ["home", "tmp"] {
            fs::create_dir(dir.path().join(name)).expect("a directory");
        }
        Self { dir, mark, env: Vec::new(), log: None }
    }

    /// A bench with `flow.yaml`.
    pub(crate) fn with(flow: &str) -> Self {
        let bench = Self::new();
        bench.write("flow.yaml", flow);
        bench
    }

    /// Sets an environment variable of every later command.
    pub(crate) fn set(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.env.push((name.into(), value.as_ref().into()));
        self
    }

    /// Has every later command add what it tells on standard error to this file.
    pub(crate) fn logged(mut self, file: Option<PathBuf>) -> Self {
        self.log = file;
        self
    }

    pub(crate) fn dir(&self) -> &Path {
        self.dir.path()
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        fs::write(self.path(name), bytes).expect("a file can be written");
    }

    #[track_caller]
    pub(crate) fn read(&self, name: &str) -> String {
        let read = fs::read_to_string(self.path(name));
        read.unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    pub(crate) fn exists(&self, name: &str) -> bool {
        fs::symlink_metadata(self.path(name)).is_ok()
    }

    /// A program that runs in the test's directory and sees nothing of the caller's settings.
    pub(crate) fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(self.dir())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.path("home"))
            .env("TMPDIR", self.path("tmp"))
            .env("TZ", "UTC")
            .env("KAPELL_STATE_DIR", self.path("state"))
            .env(MARK, &self.mark)
            .envs(self.env.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null());
        command
    }

    /// `kapell` with these arguments.
    pub(crate) fn kapell(&self, args: &[&str]) -> Command {
        let mut command = self.command(env!("CARGO_BIN_EXE_kapell"));
        command.args(args);
        command
    }

    /// Starts `kapell` and returns at once.
    pub(crate) fn start(&self, args: &[&str]) -> Running {
        self.start_command(self.kapell(args))
    }

    pub(crate) fn start_command(&self, command: Command) -> Running {
        let open = |path| File::options().create(true).append(true).open(path).expect("a file");
        let log = self.log.as_ref().map(open);
        Running::start(command, self.mark.clone(), self.dir().display().to_string(), log)
    }

    /// Runs `kapell` to its end.
    pub(crate) fn run(&self, args: &[&str]) -> Ran {
        self.start(args).finish()
    }

    /// Runs `flow.yaml`, with these arguments behind it.
    pub(crate) fn flow(&self, params: &[&str]) -> Ran {
        self.run(&[&["process", "flow.yaml"], params].concat())
    }

    /// Runs a program to its end; `kapell` is in its path.
    pub(crate) fn run_command(&self, command: Command) -> Ran {
        self.start_command(command).finish()
    }

    /// Every living process that this test's commands started, themselves included.
    pub(crate) fn processes(&self) -> Vec<Process> {
        marked(&self.mark)
    }

    /// Waits until no process of this test is left.
    #[track_caller]
    pub(crate) fn all_gone_within(&self, limit: Duration) {
        let mut left = Vec::new();
        let gone = try_eventually(limit, || {
            left = self.processes();
            left.is_empty().then_some(())
        });
        assert!(gone.is_some(), "still there after {limit:?}: {left:#?}");
        // A process that forks while we look can hide from one look.
        assert!(self.processes().is_empty(), "appeared late: {:#?}", self.processes());
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        if std::thread::panicking() {
            for process in self.processes() {
                send(process.pid, Signal::SIGKILL);
            }
        }
    }
}

impl Ran {
    /// The exit code, or 128 and the signal as a shell tells it.
    pub(crate) fn code(&self) -> i32 {
        self.status.code().or(self.status.signal().map(|signal| 128 + signal)).unwrap_or(-1)
    }

    /// Asserts the exit code.
    #[track_caller]
    pub(crate) fn expect(self, code: i32) -> Self {
        assert_eq!(self.code(), code, "stdout:\n{}\nstderr:\n{}", self.stdout, self.stderr);
        self
    }

    /// Standard output with times, run ids and the test's directory replaced.
    pub(crate) fn out(&self) -> String {
        normal(&self.stdout, &self.dir)
    }

    /// Standard error, likewise.
    pub(crate) fn err(&self) -> String {
        normal(&self.stderr, &self.dir)
    }

    #[track_caller]
    pub(crate) fn stderr_has(&self, text: &str) -> &Self {
        assert!(self.err().contains(text), "no `{text}` in:\n{}", self.err());
        self
    }

    #[track_caller]
    pub(crate) fn stdout_has(&self, text: &str) -> &Self {
        assert!(self.out().contains(text), "no `{text}` in:\n{}", self.out());
        self
    }
}

/// Looks again and again until there is something to see or the time is over.
pub(crate) fn try_eventually<T>(limit: Duration, mut look: impl FnMut() -> Option<T>) -> Option<T> {
    let deadline = Instant::now() + limit;
    loop {
        let found = look();
        if found.is_some() || Instant::now() >= deadline {
            return found;
        }
        pause(Duration::from_millis(5));
    }
}

/// Looks until there is something to see.
#[track_caller]
pub(crate) fn eventually<T>(what: &str, look: impl FnMut() -> Option<T>) -> T {
    try_eventually(LIMIT, look).unwrap_or_else(|| panic!("waited {LIMIT:?} for {what}"))
}

/// Waits on a channel that nobody sends to.
pub(crate) fn pause(time: Duration) {
    let (_nobody, never) = mpsc::channel::<()>();
    assert!(never.recv_timeout(time).is_err());
}

/// Whether a program is in the path.
pub(crate) fn is_there(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|dir| dir.join(program).is_file())
}
