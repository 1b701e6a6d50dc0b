//! A program beside those of a container, for as long as somebody at the agent wants it.

use std::ffi::{CStr, CString, OsStr};
use std::fs::{self, OpenOptions};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;

use crate::container::{PATIENCE_MS, children, sweep, tell_failure};
use crate::group::Group;
use crate::number;
use crate::record::{Failure, Stage};
use crate::spec::Spec;
use crate::start::{self, Inherited};
use crate::sys::{self, Dead};

/// Nobody has a longer order.
const LONGEST: u32 = 64 << 20;

/// Reads what to run from `control`, and tells there how it begins and ends. If the other end is gone, so is the program.
pub(crate) fn run(dir: &[u8], control: &OwnedFd, terminal: bool) -> i32 {
    let mut exec = match Exec::begin(dir, control, terminal) {
        Ok(begun) => begun,
        Err(failure) => return tell_failure(control, failure, b""),
    };
    if let Err(failure) = exec.launch(control) {
        sweep(&exec.signals, exec.group.as_ref());
        return tell_failure(control, failure, b"");
    }
    sys::write(control, b"R");
    let end = exec.wait(control);
    sweep(&exec.signals, exec.group.as_ref());
    if let Some(dead) = end {
        let (kind, value) = match dead {
            Dead::Code(code) => (b'C', code),
            Dead::Signal(signal) => (b'S', signal),
        };
        let [a, b, c, d] = value.to_be_bytes();
        sys::write(control, &[kind, a, b, c, d]);
    }
    0
}

struct Exec<'a> {
    /// Leads its group and its session, unless it was launched.
    program: i32,
    /// Where a launcher leaves the number of the program. Until then, the launcher is the program.
    pid_file: Option<&'a CStr>,
    is_launched: bool,
    /// All of it ends with the program.
    group: Option<Group<'a>>,
    signals: OwnedFd,
    is_wanted: bool,
    kill_at: Option<u64>,
}

impl Exec<'_> {
    fn begin(dir: &[u8], control: &OwnedFd, terminal: bool) -> Result<Self, Failure> {
        let at = |stage: Stage| move |errno: i32| Failure { stage, errno };
        sys::new_session();
        let umask = sys::umask(0o077);
        let dir = CString::new(dir).map_err(|_| at(Stage::Work)(libc::EINVAL))?;
        sys::change_dir(&dir).map_err(at(Stage::Work))?;
        let signals = sys::catch_signals().map_err(at(Stage::Pipes))?;
        sys::become_subreaper();
        // Kept as long as we live, and we are but one.
        let text: &'static [u8] = order(control).ok_or(at(Stage::Spec)(libc::EINVAL))?.leak();
        let spec = Spec::parse(text).ok_or(at(Stage::Spec)(libc::EINVAL))?;
        let inherited = Inherited { output: None, umask, pids: None, terminal };
        let program = start::start(&spec, inherited)?;
        // Whoever reads what the program writes must see its end.
        let nothing = OpenOptions::new().read(true).write(true).open("/dev/null");
        let nothing = OwnedFd::from(nothing.map_err(|_| at(Stage::Pipes)(sys::errno()))?);
        for stream in 0..3 {
            sys::replace(stream, &nothing).map_err(at(Stage::Pipes))?;
        }
        Ok(Self {
            program,
            pid_file: spec.pid_file,
            is_launched: false,
            group: spec.group.filter(|_| spec.own_group).map(Group::new),
            signals,
            is_wanted: true,
            kill_at: None,
        })
    }

    /// Waits for the launcher, if there is one, and has what it has started as the program from then on.
    fn launch(&mut self, control: &OwnedFd) -> Result<(), Failure> {
        let Some(file) = self.pid_file else { return Ok(()) };
        let failed = |errno| Failure { stage: Stage::Launcher, errno };
        match self.wait(control) {
            Some(Dead::Code(0)) => {}
            Some(Dead::Code(code)) => return Err(failed(code)),
            Some(Dead::Signal(signal)) => return Err(failed(-signal)),
            None => return Err(failed(0)),
        }
        let text = fs::read(OsStr::from_bytes(file.to_bytes())).unwrap_or_default();
        let number = number::parse(text.trim_ascii()).and_then(|pid| i32::try_from(pid).ok());
        let Some(program) = number.filter(|pid| *pid > 1 && sys::is_child(*pid)) else {
            return Err(failed(0));
        };
        (self.program, self.pid_file, self.is_launched) = (program, None, true);
        if !self.is_wanted {
            self.kill();
        }
        Ok(())
    }

    /// Waits until the program has ended; it is killed when nobody wants it any more.
    fn wait(&mut self, control: &OwnedFd) -> Option<Dead> {
        // Before it is waited for: until then nobody else can have its number.
        while !sys::has_ended(self.program) {
            let watched = if self.is_wanted { control.as_raw_fd() } else { -1 };
            let timeout = self.kill_at.map(|at| at.saturating_sub(sys::monotonic_ms()));
            let [_, heard, _] = sys::poll([self.signals.as_raw_fd(), watched, -1], timeout);
            if heard && !is_heard(control) {
                self.is_wanted = false;
                // A launcher that is cut short could leave anything behind.
                let grace = if self.pid_file.is_some() { PATIENCE_MS } else { 0 };
                self.kill_at = Some(sys::monotonic_ms() + grace);
            }
            if self.kill_at.is_some_and(|at| at <= sys::monotonic_ms()) {
                self.kill_at = None;
                self.kill();
            }
            while sys::next_signal(&self.signals).is_some() {}
            // Others of our children are orphans of it. What a launcher has started is yet to be asked for.
            if self.pid_file.is_none() {
                while children().into_iter().any(|pid| pid != self.program && reap(pid)) {}
            }
        }
        if self.pid_file.is_none() {
            self.kill();
        }
        sys::reap(self.program).ok().flatten().map(|(_, dead)| dead)
    }

    fn kill(&self) {
        // It is somebody else who has set up what was launched: all of its group may not be its own.
        sys::signal(if self.is_launched { self.program } else { -self.program }, libc::SIGKILL);
        for pid in children() {
            if pid != self.program {
                sys::signal(pid, libc::SIGKILL);
            }
        }
        self.group.as_ref().map(Group::kill);
    }
}

/// Its length, then itself.
fn order(control: &OwnedFd) -> Option<Vec<u8>> {
    let mut length = [0; 4];
    fill(control, &mut length)?;
    let length = u32::from_be_bytes(length);
    let mut text = vec![0; usize::try_from(length).ok().filter(|_| length <= LONGEST)?];
    fill(control, &mut text)?;
    Some(text)
}

fn fill(control: &OwnedFd, mut room: &mut [u8]) -> Option<()> {
    while !room.is_empty() {
        match sys::read(control, room) {
            Ok(0) => return None,
            Ok(length) => room = &mut room[length..],
            Err(libc::EINTR) => {}
            Err(_) => return None,
        }
    }
    Some(())
}

/// Whether somebody is still there.
fn is_heard(control: &OwnedFd) -> bool {
    match sys::read(control, &mut [0; 64]) {
        Ok(length) => length > 0,
        Err(errno) => errno == libc::EINTR,
    }
}

fn reap(pid: i32) -> bool {
    matches!(sys::reap(pid), Ok(Some(_)))
}
