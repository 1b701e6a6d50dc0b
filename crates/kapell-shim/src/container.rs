//! The life of a program, from the directory of its process to its exit status.

use std::ffi::{CStr, CString, OsStr};
use std::fs::{self, File};
use std::io::Write as _;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

use crate::group::Group;
use crate::hidden::Hidden;
use crate::log::{CHUNK, HEAD, Log, Stream};
use crate::record::{self, End, Failure, Flags, Stage};
use crate::source::{Source, drain, take};
use crate::spec::Spec;
use crate::start::{self, Inherited};
use crate::sys::{self, Dead};
use crate::{group, number};

/// How long what was killed may take to be gone, which never runs on: the kernel will not let it; and how long a launcher
/// that nobody wants any more may take to end by itself.
pub(crate) const PATIENCE_MS: u64 = 10_000;

/// Runs the program of the process whose directory this is, to its end.
pub(crate) fn run(dir: &[u8], status: OwnedFd, hidden: Option<&Hidden>) -> i32 {
    let (mut container, exit) = match begin(dir, hidden) {
        Ok(begun) => begun,
        Err(failure) => return tell_failure(&status, failure, b""),
    };
    let ended = match container.launch() {
        Ok(ended) => ended,
        Err(failure) => {
            // What a launcher says is a reason, not output.
            container.log = Log::new(None, 0, None);
            let words = container.finish(&exit, End::NeverRan(failure));
            return tell_failure(&status, failure, &words);
        }
    };
    sys::write(&status, b"R");
    drop(status);
    let end = ended.unwrap_or_else(|| container.wait_for_end());
    container.finish(&exit, end);
    0
}

pub(crate) fn tell_failure(status: &OwnedFd, failure: Failure, words: &[u8]) -> i32 {
    let mut told = vec![b'F', failure.stage as u8];
    told.extend_from_slice(&failure.errno.to_be_bytes());
    told.extend_from_slice(words);
    sys::write(status, &told);
    1
}

fn begin(dir: &[u8], hidden: Option<&Hidden>) -> Result<(Container<'static>, File), Failure> {
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
    let mut spec = Spec::parse(text).ok_or(at(Stage::Spec)(libc::EINVAL))?;
    let hidden = hidden.ok_or(at(Stage::Spec)(libc::EINVAL))?;
    hidden.add_to(&mut spec).map_err(at(Stage::Spec))?;
    let exit = record::prepare().map_err(io(Stage::Exit))?;
    let (out, out_end) = sys::pipe().map_err(at(Stage::Pipes))?;
    let (err, err_end) = sys::pipe().map_err(at(Stage::Pipes))?;
    sys::do_not_block(&out);
    sys::do_not_block(&err);
    // Of a container that begins with this program there can be none yet.
    let ooms_before = spec.oom.filter(|_| !spec.whole).map_or(0, group::out_of_memory);
    let inherited =
        Inherited { output: Some((out_end, err_end)), umask, pids: Some(pids), terminal: false };
    let program = start::start(&spec, inherited).inspect_err(|failure| {
        record::write(&exit, End::NeverRan(*failure), Flags::default(), b"");
    })?;
    let logs = spec.logs.map(|logs| PathBuf::from(OsStr::from_bytes(logs.to_bytes())));
    let container = Container {
        program,
        pid_file: spec.pid_file,
        is_launched: false,
        group: spec.group.filter(|_| spec.whole || spec.own_group).map(Group::new),
        oom: spec.oom,
        ooms_before,
        own_user: spec.user.filter(|_| spec.own_user).map(|(uid, _)| uid),
        signals,
        out: Source::new(out, Stream::Out, hidden),
        err: Source::new(err, Stream::Err, hidden),
        log: Log::new(logs, spec.log_bytes, spec.log_rate),
        buffer: vec![0; HEAD + CHUNK],
        stop_grace_ms: spec.stop_grace_ms,
        stopped: false,
        kill_at: None,
    };
    Ok((container, exit))
}

struct Container<'a> {
    /// Leads its group and its session, unless it was launched.
    program: i32,
    /// Where a launcher leaves the number of the program. Until then, the launcher is the program.
    pid_file: Option<&'a CStr>,
    /// It is somebody else who has set it up, and all of its group may not be its own.
    is_launched: bool,
    /// All of it ends with the program.
    group: Option<Group<'a>>,
    /// Where the kernel counts whom it has ended for want of memory, and how many there were before.
    oom: Option<&'a CStr>,
    ooms_before: u64,
    /// Whoever runs as this user is part of it.
    own_user: Option<u32>,
    signals: OwnedFd,
    out: Source,
    err: Source,
    log: Log,
    buffer: Vec<u8>,
    stop_grace_ms: u64,
    stopped: bool,
    kill_at: Option<u64>,
}

impl Container<'_> {
    /// Waits for the launcher, if there is one, and has what it has started as the program from then on.
    /// Tells how that has ended, if it has already.
    fn launch(&mut self) -> Result<Option<End>, Failure> {
        let Some(file) = self.pid_file else { return Ok(None) };
        let failed = |errno| Failure { stage: Stage::Launcher, errno };
        match self.wait_for_end() {
            End::Code(0) => {}
            End::Code(code) => return Err(failed(code)),
            End::Signal(signal) => return Err(failed(-signal)),
            End::NeverRan(failure) => return Err(failure),
            End::RunnerKilled => return Err(failed(0)),
        }
        let text = fs::read(OsStr::from_bytes(file.to_bytes())).unwrap_or_default();
        let number = number::parse(text.trim_ascii()).and_then(|pid| i32::try_from(pid).ok());
        let Some(program) = number.filter(|pid| *pid > 1 && sys::is_child(*pid)) else {
            return Err(failed(0));
        };
        (self.program, self.pid_file, self.is_launched) = (program, None, true);
        if self.stopped {
            self.ask_to_end();
        }
        Ok(self.reap())
    }

    fn ask_to_end(&self) {
        sys::signal(self.target(), libc::SIGTERM);
        // Who is stopped could not heed it.
        sys::signal(self.target(), libc::SIGCONT);
    }

    /// Whom a signal to the program is sent to.
    fn target(&self) -> i32 {
        if self.is_launched { self.program } else { -self.program }
    }

    fn wait_for_end(&mut self) -> End {
        loop {
            let timeout = self.kill_at.map(|at| at.saturating_sub(sys::monotonic_ms()));
            let [signal, out, err] = self.wait(timeout);
            if out {
                take(&mut self.out, &mut self.log, &mut self.buffer);
            }
            if err {
                take(&mut self.err, &mut self.log, &mut self.buffer);
            }
            if signal && let Some(end) = self.heed_signals() {
                return end;
            }
            if self.kill_at.is_some_and(|at| at <= sys::monotonic_ms()) {
                self.kill_at = None;
                self.kill_all();
            }
        }
    }

    /// Ends what is left and writes down how it ended; tells its last words.
    fn finish(mut self, exit: &File, end: End) -> Vec<u8> {
        self.sweep();
        drain(&mut self.out, &mut self.log, &mut self.buffer);
        drain(&mut self.err, &mut self.log, &mut self.buffer);
        self.out.end(&mut self.log, &mut self.buffer);
        self.err.end(&mut self.log, &mut self.buffer);
        self.log.finish();
        let words = match self.err.tail.last_line() {
            b"" => self.out.tail.last_line(),
            words => words,
        };
        let ooms = self.oom.map_or(0, group::out_of_memory);
        let flags = Flags { stopped: self.stopped, out_of_memory: ooms > self.ooms_before };
        record::write(exit, end, flags, words);
        words.to_vec()
    }

    fn wait(&self, timeout_ms: Option<u64>) -> [bool; 3] {
        // Of a launcher nothing is kept unless it fails; what its program writes meanwhile waits in the pipe.
        let is_read = self.pid_file.is_none();
        let pipe = |source: &'_ Source| source.pipe.as_ref().map_or(-1, AsRawFd::as_raw_fd);
        let fd = |source: &Source| if is_read { pipe(source) } else { -1 };
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
                    // A launcher that is cut short could leave anything behind.
                    if self.pid_file.is_none() {
                        self.ask_to_end();
                    }
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
        if !self.is_launched && self.pid_file.is_none() && sys::has_ended(self.program) {
            sys::signal(-self.program, libc::SIGKILL);
        }
        // What a launcher has started may have ended before it, and is yet to be asked for.
        let whom = if self.pid_file.is_some() { self.program } else { -1 };
        let mut end = None;
        while let Ok(Some((pid, dead))) = sys::reap(whom) {
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
        sys::signal(self.target(), libc::SIGKILL);
        for pid in children() {
            sys::signal(pid, libc::SIGKILL);
        }
    }

    fn sweep(&self) {
        if let Some(uid) = self.own_user {
            sys::kill_user(uid);
        }
        sweep(&self.signals, self.group.as_ref());
    }
}

/// Ends all that is left. Orphans fall to us in waves, so one round is not enough.
pub(crate) fn sweep(signals: &OwnedFd, group: Option<&Group>) {
    let deadline = sys::monotonic_ms() + PATIENCE_MS;
    loop {
        let has_children = match sys::reap(-1) {
            Ok(Some(_)) => continue,
            Ok(None) => true,
            Err(_) => false,
        };
        let has_members = group.is_some_and(Group::kill);
        if !(has_children || has_members) || sys::monotonic_ms() >= deadline {
            return;
        }
        for pid in children() {
            sys::signal(pid, libc::SIGKILL);
        }
        sys::poll([signals.as_raw_fd(), -1, -1], Some(if has_children { 20 } else { 2 }));
        while sys::next_signal(signals).is_some() {}
    }
}

/// Processes that have us as their parent.
pub(crate) fn children() -> Vec<i32> {
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
