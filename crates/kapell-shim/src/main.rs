//! One a process of a container: owns its pipes, its log files and its exit status, and outlives the agent.
//!
//! Called as `kapell-shim DIR LOCK STATUS [HIDDEN]`: the directory of the process, and inherited
//! descriptors. LOCK is locked and stays so while we live; on STATUS we say whether the program
//! runs; from HIDDEN we read what must not lie in a file. There are thousands of us, so: no threads, no runtime, nothing that is not needed.
//! `docs/decisions/0007-shim.md` tells more.
//!
//! `kapell-shim exec DIR CONTROL` runs a program beside that process, for as long as whoever has the other end of
//! the socket CONTROL wants it. It has our standard streams; with `exec-terminal` these are a terminal, and its own.
//!
//! `kapell-shim runner DIR LOCK BOOT [GROUP…]` does the same as a shim for many programs, for whoever is at the other
//! end of the socket in its directory; `docs/decisions/0016-runner.md` tells more.
//!
//! Lesser uses: `kapell-shim pause` is the first process of a container that has none of its own,
//! `kapell-shim end-user UID` kills all that runs as a user, and `kapell-shim true` ends well at once, in a container
//! that has no other program.

#![no_main]

mod container;
mod exec;
mod group;
mod hidden;
mod launch;
mod log;
mod mask;
mod namespaces;
mod number;
mod pause;
mod rate;
mod record;
mod root;
mod runner;
mod source;
mod spec;
mod start;
mod sys;
mod tail;
mod texts;
mod veth;

use std::ffi::{CStr, c_char, c_int};

use hidden::Hidden;

#[expect(unsafe_code, reason = "the C library calls `main` with pointers that stay valid for ever")]
#[expect(clippy::not_unsafe_ptr_arg_deref, reason = "only the C library calls it")]
#[unsafe(no_mangle)]
pub extern "C" fn main(count: c_int, arguments: *const *const c_char) -> c_int {
    // SAFETY: it is only asked for those that `count` says are there.
    let argument = |at: usize| unsafe { CStr::from_ptr(*arguments.add(at)) }.to_bytes();
    match count {
        2 if argument(1) == b"pause" => return pause::run(),
        2 if argument(1) == b"true" => return 0,
        3 if argument(1) == b"end-user" => return end_user(argument(2)),
        5.. if argument(1) == b"runner" => {
            let numbers = (5..count).filter_map(|at| usize::try_from(at).ok());
            let joins: Vec<&[u8]> = numbers.map(argument).collect();
            return runner(argument(2), argument(3), argument(4), &joins);
        }
        4 if argument(1) == b"exec" => return exec(argument(2), argument(3), false),
        4 if argument(1) == b"exec-terminal" => return exec(argument(2), argument(3), true),
        4 | 5 => {}
        _ => return 2,
    }
    let hidden = match count {
        5 => number::parse(argument(4)).and_then(|fd| Hidden::read(c_int::try_from(fd).ok()?)),
        _ => Some(Hidden::default()),
    };
    let (Some(lock), Some(status)) = (number::parse(argument(2)), number::parse(argument(3)))
    else {
        return 2;
    };
    let (Ok(lock), Ok(status)) = (c_int::try_from(lock), c_int::try_from(status)) else {
        return 2;
    };
    sys::keep_only(lock, status);
    // SAFETY: nobody else in this process knows of it, and `keep_only` has left it open.
    let status = unsafe { <std::os::fd::OwnedFd as std::os::fd::FromRawFd>::from_raw_fd(status) };
    container::run(argument(1), status, hidden.as_ref())
}

#[expect(unsafe_code, reason = "takes a descriptor that was inherited")]
fn exec(dir: &[u8], control: &[u8], terminal: bool) -> c_int {
    let Some(Ok(control)) = number::parse(control).map(c_int::try_from) else { return 2 };
    sys::keep_only(control, control);
    // SAFETY: nobody else in this process knows of it, and `keep_only` has left it open.
    let control = unsafe { <std::os::fd::OwnedFd as std::os::fd::FromRawFd>::from_raw_fd(control) };
    exec::run(dir, &control, terminal)
}

fn runner(dir: &[u8], lock: &[u8], boot: &[u8], joins: &[&[u8]]) -> c_int {
    let Some(Ok(lock)) = number::parse(lock).map(c_int::try_from) else { return 2 };
    // Open, and so locked, as long as we live.
    sys::keep_only(lock, lock);
    runner::run(dir, boot, joins)
}

fn end_user(uid: &[u8]) -> c_int {
    match number::parse(uid).map(u32::try_from) {
        Some(Ok(uid @ 1..)) => {
            sys::kill_user(uid);
            0
        }
        _ => 2,
    }
}
