//! The life of a container, from its directory to its exit status.

use std::ffi::{CString, OsStr};
use std::fs::{self, File};
use std::io::Write as _;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use crate::log::{CHUNK, HEAD, Log, Stream};
use crate::number;
use crate::record::{self, End, Failure, Stage};
use crate::spec::Spec;
use crate::start::{self, Inherited};
use crate::sys::{self, Dead};
use crate::tail::Tail;

/// How long what was killed may take to be gone. It never runs on: the kernel will not let it.
const PATIENCE_MS: u64 = 10_000;

/// Runs the container whose directory this is, to its end.
pub(crate) fn run(dir: &[u8], status: OwnedFd) -> i32 {
    match begin(dir) {
        Ok((container, exit)) => {
            sys::write(&status, b"R");
            drop(status);
            container.see_to_its_end(&exit);
            0
        }
        Err(Failure { stage, errno }) => {
            let [a, b, c, d] = errno.to_be_bytes();
            sys::write(&status, &[b'F', stage as u8, a, b, c, d]);
            1
        }
    }
}

fn begin(dir: &[u8]) -> Result<(Container<'static>, File), Failure> {
    let at = |stage: Stage| move |errno: i32| Failure { stage, errno };
    let io = |stage: Stage| {
        move |error: std::io::Error| at(stage)(error.raw_os_error().unwrap_or(libc::EIO))
    };
    sys::new_session();
    // What we write may hold secrets.
    let umask = sys::umask(0o077);
    let dir = CString::new(dir).map_err(|_| at(Stage::Pid)(libc::EINVAL))?;
    sys::change_dir(&dir).map_err(at(Stage::Pid))?;
    let mut line = Vec::new();
    number::push(&mut line, u64::from(sys::own_pid().unsigned_abs()), 0);
    line.push(b'\n');
    let mut pids = File::create("pid").map_err(io(Stage::Pid))?;
    pids.write_all(&line).map_err(io(Stage::Pid))?;
    let signals = sys::catch_signals().map_err(at(Stage::Pipes))?;
    sys::become_subreaper();
    // Kept as long as we live, and we are but one.
    let text: &'static [u8] = fs::read("spec").map_err(io(Stage::Spec))?.leak();
    let spec = Spec::parse(text).ok_or(at(Stage::Spec)(libc::EINVAL))?;
    let exit = record::prepare().map_err(io(Stage::Exit))?;
    let (out, out_end) = sys::pipe().map_err(at(Stage::Pipes))?;
    let (err, err_end) = sys::pipe().map_err(at(Stage::Pipes))?;
    sys::do_not_block(&out);
    sys::do_not_block(&err);
    let inherited = Inherited { out: out_end, err: err_end, umask, pids };
    let program = start::start(&spec, inherited).inspect_err(|failure| {
        record::write(&exit, End::NeverRan(*failure), false, b"");
    })?;
    let logs = Path::new(OsStr::from_bytes(spec.logs.to_bytes()));
    let container = Container {
        program,
        own_user: spec.user.filter(|_| spec.own_user).map(|(uid, _)| uid),
        signals,
        out: Source { pipe: Some(out), stream: Stream::Out, tail: Tail::new() },
        err: Source { pipe: Some(err), stream: Stream::Err, tail: Tail::new() },
        log: Log::new(logs, spec.log_bytes),
        buffer: vec![0; HEAD + CHUNK],
        stop_grace_ms: spec.stop_grace_ms,
        stopped: false,
        kill_at: None,
    };
    Ok((container, exit))
}

/// Where output comes from.
struct Source {
    /// None once nobody can write to it any more.
    pipe: Option<OwnedFd>,
    stream: Stream,
    tail: Tail,
}

struct Container<'a> {
    /// Leads its group and its session.
    program: i32,
    /// Whoever runs as this user is part of it.
    own_user: Option<u32>,
    signals: OwnedFd,
    out: Source,
    err: Source,
    log: Log<'a>,
    buffer: Vec<u8>,
    stop_grace_ms: u64,
    stopped: bool,
    kill_at: Option<u64>,
}

impl Container<'_> {
    fn see_to_its_end(mut self, exit: &File) {
        let end = loop {
            let timeout = self.kill_at.map(|at| at.saturating_sub(sys::monotonic_ms()));
            let [signal, out, err] = self.wait(timeout);
            if out {
                take(&mut self.out, &mut self.log, &mut self.buffer);
            }
            if err {
                take(&mut self.err, &mut self.log, &mut self.buffer);
            }
            if signal && let Some(end) = self.heed_signals() {
                break end;
            }
            if self.kill_at.is_some_and(|at| at <= sys::monotonic_ms()) {
                self.kill_at = None;
                self.kill_all();
            }
        };
        self.sweep();
        drain(&mut self.out, &mut self.log, &mut self.buffer);
        drain(&mut self.err, &mut self.log, &mut self.buffer);
        self.log.finish();
        let words = match self.err.tail.last_line() {
            b"" => self.out.tail.last_line(),
            words => words,
        };
        record::write(exit, end, self.stopped, words);
    }

    fn wait(&self, timeout_ms: Option<u64>) -> [bool; 3] {
        let fd = |source: &Source| source.pipe.as_ref().map_or(-1, AsRawFd::as_raw_fd);
        sys::poll([self.signals.as_raw_fd(), fd(&self.out), fd(&self.err)], timeout_ms)
    }

    /// Tells how the program has ended, if it has.
    fn heed_signals(&mut self) -> Option<End> {
        let mut end = None;
        while let Some(signal) = sys::next_signal(&self.signals) {
            match signal {
                libc::SIGTERM if !self.stopped => {
                    self.stopped = true;
                    self.kill_at = Some(sys::monotonic_ms().saturating_add(self.stop_grace_ms));
                    sys::signal(-self.program, libc::SIGTERM);
                    // Who is stopped could not heed it.
                    sys::signal(-self.program, libc::SIGCONT);
                }
                libc::SIGUSR1 => {
                    self.stopped = true;
                    self.kill_at = Some(0);
                }
                libc::SIGCHLD => end = end.or(self.reap()),
                _ => {}
            }
        }
        end
    }

    fn reap(&self) -> Option<End> {
        // Before it is waited for: until then nobody else can have its number.
        if sys::has_ended(self.program) {
            sys::signal(-self.program, libc::SIGKILL);
        }
        let mut end = None;
        while let Ok(Some((pid, dead))) = sys::reap() {
            if pid == self.program {
                end = Some(match dead {
                    Dead::Code(code) => End::Code(code),
                    Dead::Signal(signal) => End::Signal(signal),
                });
            }
        }
        end
    }

    fn kill_all(&self) {
        sys::signal(-self.program, libc::SIGKILL);
        for pid in children() {
            sys::signal(pid, libc::SIGKILL);
        }
    }

    /// Ends all that is left. Orphans fall to us in waves, so one round is not enough.
    fn sweep(&self) {
        if let Some(uid) = self.own_user {
            sys::kill_user(uid);
        }
        let deadline = sys::monotonic_ms() + PATIENCE_MS;
        loop {
            match sys::reap() {
                Ok(Some(_)) => {}
                Ok(None) if sys::monotonic_ms() < deadline => {
                    for pid in children() {
                        sys::signal(pid, libc::SIGKILL);
                    }
                    sys::poll([self.signals.as_raw_fd(), -1, -1], Some(20));
                    while sys::next_signal(&self.signals).is_some() {}
                }
                Ok(None) | Err(_) => return,
            }
        }
    }
}

/// Reads once.
fn take(source: &mut Source, log: &mut Log<'_>, buffer: &mut [u8]) -> usize {
    let Some(pipe) = &source.pipe else { return 0 };
    match sys::read(pipe, &mut buffer[HEAD..HEAD + log.chunk()]) {
        Ok(length @ 1..) => {
            source.tail.push(&buffer[HEAD..HEAD + length]);
            log.write(source.stream, &mut buffer[..HEAD + length]);
            length
        }
        Err(libc::EAGAIN | libc::EINTR) => 0,
        Ok(0) | Err(_) => {
            source.pipe = None;
            0
        }
    }
}

/// Takes what is there now. Someone else may hold the pipe open and write on: that is not awaited.
fn drain(source: &mut Source, log: &mut Log<'_>, buffer: &mut [u8]) {
    let mut left = source.pipe.as_ref().map_or(0, sys::waiting);
    while left > 0 {
        match take(source, log, buffer) {
            0 => return,
            taken => left = left.saturating_sub(taken),
        }
    }
}

/// Processes that have us as their parent.
fn children() -> Vec<i32> {
    let mut path = Vec::from(*b"/proc/self/task/");
    number::push(&mut path, u64::from(sys::own_pid().unsigned_abs()), 0);
    path.extend_from_slice(b"/children");
    let list = fs::read(OsStr::from_bytes(&path)).unwrap_or_else(|_| children_by_scan());
    list.split(u8::is_ascii_whitespace)
        .filter_map(number::parse)
        .filter_map(|pid| i32::try_from(pid).ok())
        .collect()
}

/// For kernels that do not list children: reads every process's parent.
fn children_by_scan() -> Vec<u8> {
    let mut found = Vec::new();
    let own = u64::from(sys::own_pid().unsigned_abs());
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Ok(stat) = fs::read(entry.path().join("stat")) else { continue };
        let after = stat.iter().rposition(|byte| *byte == b')').map_or(0, |at| at + 1);
        // After the name: state, then parent.
        let parent = stat[after..].split(|byte| *byte == b' ').nth(2).and_then(number::parse);
        if parent == Some(own) {
            found.extend_from_slice(entry.file_name().as_bytes());
            found.push(b' ');
        }
    }
    found
}
