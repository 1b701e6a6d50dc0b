//! One a container: owns its pipes, its log files and its exit status, and outlives the agent.
//!
//! Called as `kapell-shim DIR LOCK STATUS`: the container's directory, and two inherited
//! descriptors. LOCK is locked and stays so while we live; on STATUS we say whether the program
//! runs. There are thousands of us, so: no threads, no runtime, nothing that is not needed.
//! `docs/decisions/0007-shim.md` tells more.

#![no_main]

mod container;
mod log;
mod number;
mod record;
mod spec;
mod start;
mod sys;
mod tail;

use std::ffi::{CStr, c_char, c_int};

#[expect(unsafe_code, reason = "the C library calls `main` with pointers that stay valid for ever")]
#[expect(clippy::not_unsafe_ptr_arg_deref, reason = "only the C library calls it")]
#[unsafe(no_mangle)]
pub extern "C" fn main(count: c_int, arguments: *const *const c_char) -> c_int {
    if count != 4 {
        return 2;
    }
    // SAFETY: `count` says that these are there.
    let argument = |at: usize| unsafe { CStr::from_ptr(*arguments.add(at)) }.to_bytes();
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
    container::run(argument(1), status)
}
