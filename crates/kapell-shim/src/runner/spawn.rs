//! Starts a program as `posix_spawn` does: by a child that shares our memory until it has executed it.

#![expect(
    unsafe_code,
    reason = "CLONE_VFORK holds us until the child has executed its program or ended, so all that it is given \
              outlives its use of it; it makes system calls only"
)]

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::os::fd::OwnedFd;

use crate::record::{Failure, Stage};
use crate::start::execute;
use crate::sys;

/// What a child needs until it executes its program, with room to spare.
const STACK: usize = 64 << 10;

/// What is to be started.
pub(super) struct Order<'a> {
    pub(super) programs: &'a [CString],
    /// With the null pointers at their ends.
    pub(super) arguments: &'a [*const c_char],
    pub(super) environment: &'a [*const c_char],
    pub(super) dir: &'a CStr,
    /// Its own directory is ours to make; another one it may lack.
    pub(super) dir_stage: Stage,
    pub(super) output: [&'a OwnedFd; 2],
    pub(super) umask: u32,
    pub(super) descriptors: Option<u64>,
    pub(super) parent: i32,
}

struct Child<'a> {
    order: &'a Order<'a>,
    failure: Option<Failure>,
}

/// Room for what a child puts on its stack.
pub(super) struct Spawner(Vec<u8>);

impl Spawner {
    pub(super) fn new() -> Self {
        Self(vec![0; STACK])
    }

    /// Returns when the program was executed, with its number: it leads a session and a group of its own.
    pub(super) fn spawn(&mut self, order: &Order<'_>) -> Result<i32, Failure> {
        let mut child = Child { order, failure: None };
        let argument: *mut c_void = (&raw mut child).cast();
        let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
        // SAFETY: see above; the stack is aligned and grows down.
        let cloned = unsafe {
            let top = self.0.as_mut_ptr().add(STACK);
            let top = top.sub(top.addr() % 16);
            sys::check(libc::clone(begin, top.cast(), flags, argument))
        };
        let pid = cloned.map_err(|errno| Failure { stage: Stage::Fork, errno })?;
        match child.failure {
            None => Ok(pid),
            Some(failure) => {
                let mut status = 0;
                // SAFETY: writes one number.
                unsafe { libc::waitpid(pid, &raw mut status, 0) };
                Err(failure)
            }
        }
    }
}

extern "C" fn begin(argument: *mut c_void) -> c_int {
    // SAFETY: it is the child that `spawn` keeps.
    let child = unsafe { &mut *argument.cast::<Child<'_>>() };
    let Order { programs, arguments, environment, .. } = child.order;
    child.failure = Some(match prepare(child.order) {
        Ok(()) => execute(programs, arguments, environment),
        Err(failure) => failure,
    });
    sys::exit(127)
}

fn prepare(order: &Order<'_>) -> Result<(), Failure> {
    let failed = |stage: Stage| move |errno| Failure { stage, errno };
    sys::new_session();
    for (stream, pipe) in (1..).zip(order.output) {
        sys::replace(stream, pipe).map_err(failed(Stage::Pipes))?;
    }
    sys::umask(order.umask);
    if let Some(soft) = order.descriptors {
        sys::limit_descriptors(soft);
    }
    sys::no_new_privileges().map_err(failed(Stage::User))?;
    sys::change_dir(order.dir).map_err(failed(order.dir_stage))?;
    sys::die_with_parent();
    if sys::parent_pid() != order.parent {
        sys::exit(127);
    }
    sys::hold_back_no_signals();
    Ok(())
}
