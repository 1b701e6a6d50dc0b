//! The user and network namespace of a container.

#![expect(
    unsafe_code,
    reason = "system calls with numbers, or with pointers to values that outlive the call; there is one thread"
)]

use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;

use crate::launch::{Trouble, trouble};
use crate::root::Ids;
use crate::{number, sys};

/// Namespaces that live as long as this does, or as something uses them.
pub(crate) struct Own {
    pub(crate) user: File,
    /// Of the process that holds them.
    pub(crate) holder: i32,
    /// Where it tells whether there is a network namespace, if there is to be one.
    told: Option<OwnedFd>,
    /// Closed, it ends.
    leash: Option<OwnedFd>,
}

/// The network namespace belongs to the user namespace, else its `/sys` could not be mounted in there. It is not
/// there yet when this returns.
pub(crate) fn make(ids: Ids, net: bool) -> Result<Own, Trouble> {
    let (theirs, leash) = sys::pipe().map_err(trouble("make a pipe"))?;
    let (told, teller) = sys::pipe().map_err(trouble("make a pipe"))?;
    let kinds = libc::CLONE_NEWUSER | libc::SIGCHLD;
    // SAFETY: a fork, as there is no stack and no shared memory; one thread, so the child may do anything.
    let pid = unsafe { libc::syscall(libc::SYS_clone, kinds, 0, 0, 0, 0) };
    let pid = i32::try_from(pid).ok().filter(|pid| *pid >= 0);
    let pid = pid.ok_or_else(sys::errno).map_err(trouble("make a user namespace"))?;
    if pid == 0 {
        drop((leash, told));
        if net {
            // SAFETY: numbers only.
            let made = sys::check(unsafe { libc::unshare(libc::CLONE_NEWNET) });
            sys::write(&teller, &made.err().unwrap_or(0).to_ne_bytes());
        }
        // Returns when the other end is closed, also if that one was killed.
        let _end = sys::read(&theirs, &mut [0]);
        sys::exit(0);
    }
    drop((theirs, teller));
    let mut map = Vec::from(*b"0 ");
    number::push(&mut map, ids.base.into(), 0);
    map.push(b' ');
    number::push(&mut map, ids.count.into(), 0);
    for name in ["uid_map", "gid_map"] {
        fs::write(of(pid, name), &map).map_err(io("map the users of a container"))?;
    }
    let user = File::open(of(pid, "ns/user")).map_err(io("open a namespace"))?;
    Ok(Own { user, holder: pid, told: net.then_some(told), leash: Some(leash) })
}

fn io(what: &'static str) -> impl Fn(std::io::Error) -> Trouble {
    move |error| Trouble { what, errno: error.raw_os_error().unwrap_or(libc::EIO) }
}

/// A file of a process.
pub(crate) fn of(pid: i32, name: &str) -> std::path::PathBuf {
    let mut path = Vec::from(*b"/proc/");
    number::push(&mut path, u64::from(pid.unsigned_abs()), 0);
    path.push(b'/');
    path.extend_from_slice(name.as_bytes());
    std::path::PathBuf::from(OsStr::from_bytes(&path))
}

pub(crate) fn enter_net(net: &File) -> Result<(), Trouble> {
    // SAFETY: a descriptor and a number.
    let entered = unsafe { libc::setns(net.as_raw_fd(), libc::CLONE_NEWNET) };
    sys::check(entered).map(drop).map_err(trouble("enter a network namespace"))
}

impl Own {
    /// Waits for the network namespace, if there is to be one.
    pub(crate) fn net(&self) -> Result<Option<File>, Trouble> {
        let what = "make a network namespace";
        let Some(told) = &self.told else { return Ok(None) };
        let mut errno = [0; 4];
        let length = sys::read(told, &mut errno).map_err(trouble(what))?;
        match (length, i32::from_ne_bytes(errno)) {
            (4, 0) => {
                File::open(of(self.holder, "ns/net")).map(Some).map_err(io("open a namespace"))
            }
            (4, errno) => Err(Trouble { what, errno }),
            _ => Err(Trouble { what, errno: libc::ECHILD }),
        }
    }

    /// Lets the process end that holds them: what has them open or mounted keeps them.
    pub(crate) fn release(&mut self) {
        drop(self.leash.take());
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        self.release();
        // SAFETY: a child of ours, which ends now.
        unsafe { libc::waitpid(self.holder, std::ptr::null_mut(), 0) };
    }
}
