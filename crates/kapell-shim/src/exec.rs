//! A program beside those of a container, for as long as somebody at the agent wants it.

use std::ffi::CString;
use std::fs::OpenOptions;
use std::os::fd::{AsRawFd as _, OwnedFd};

use crate::container::{children, tell_failure};
use crate::record::{Failure, Stage};
use crate::spec::Spec;
use crate::start::{self, Inherited};
use crate::sys::{self, Dead};

/// Nobody has a longer order.
const LONGEST: u32 = 64 << 20;
/// How long what was killed may take to be gone.
const PATIENCE_MS: u64 = 10_000;

/// Reads what to run from `control`, and tells there how it begins and ends. If the other end is gone, so is the program.
pub(crate) fn run(dir: &[u8], control: &OwnedFd) -> i32 {
    let (program, signals) = match begin(dir, control) {
        Ok(begun) => begun,
        Err(failure) => return tell_failure(control, failure, b""),
    };
    sys::write(control, b"R");
    let mut is_wanted = true;
    loop {
        let watched = if is_wanted { control.as_raw_fd() } else { -1 };
        let [_, heard, _] = sys::poll([signals.as_raw_fd(), watched, -1], None);
        if heard && !is_heard(control) {
            is_wanted = false;
            kill(program);
        }
        while sys::next_signal(&signals).is_some() {}
        // Before it is waited for: until then nobody else can have its number.
        if sys::has_ended(program) {
            break;
        }
        // Others of our children are orphans of it.
        while children().into_iter().any(|pid| pid != program && reap(pid)) {}
    }
    kill(program);
    let end = sys::reap(program);
    sweep(&signals);
    if let Ok(Some((_, dead))) = end {
        let (kind, value) = match dead {
            Dead::Code(code) => (b'C', code),
            Dead::Signal(signal) => (b'S', signal),
        };
        let [a, b, c, d] = value.to_be_bytes();
        sys::write(control, &[kind, a, b, c, d]);
    }
    0
}

fn begin(dir: &[u8], control: &OwnedFd) -> Result<(i32, OwnedFd), Failure> {
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
    let program = start::start(&spec, Inherited { output: None, umask, pids: None })?;
    // Whoever reads what the program writes must see its end.
    let nothing = OpenOptions::new().read(true).write(true).open("/dev/null");
    let nothing = OwnedFd::from(nothing.map_err(|_| at(Stage::Pipes)(sys::errno()))?);
    for stream in 0..3 {
        sys::replace(stream, &nothing).map_err(at(Stage::Pipes))?;
    }
    Ok((program, signals))
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

fn kill(program: i32) {
    sys::signal(-program, libc::SIGKILL);
    for pid in children() {
        if pid != program {
            sys::signal(pid, libc::SIGKILL);
        }
    }
}

fn reap(pid: i32) -> bool {
    matches!(sys::reap(pid), Ok(Some(_)))
}

/// Ends all that is left. Orphans fall to us in waves, so one round is not enough.
fn sweep(signals: &OwnedFd) {
    let deadline = sys::monotonic_ms() + PATIENCE_MS;
    loop {
        match sys::reap(-1) {
            Ok(Some(_)) => continue,
            Ok(None) if sys::monotonic_ms() < deadline => {}
            Ok(None) | Err(_) => return,
        }
        for pid in children() {
            sys::signal(pid, libc::SIGKILL);
        }
        sys::poll([signals.as_raw_fd(), -1, -1], Some(20));
        while sys::next_signal(signals).is_some() {}
    }
}
