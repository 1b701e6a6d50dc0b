//! The calls to the kernel that std does not offer.

#![expect(
    unsafe_code,
    reason = "system calls with numbers, or with pointers to values that outlive the call; there is one thread"
)]

use std::ffi::{CStr, c_int, c_uint};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd as _, OwnedFd, RawFd};

/// A process that was waited for.
pub(crate) enum Dead {
    Code(i32),
    Signal(i32),
}

pub(crate) fn errno() -> i32 {
    io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO)
}

pub(crate) fn check(answer: c_int) -> Result<c_int, i32> {
    if answer < 0 { Err(errno()) } else { Ok(answer) }
}

/// Closes all descriptors but the standard ones and these two, and keeps these from our children.
pub(crate) fn keep_only(one: RawFd, other: RawFd) {
    let (low, high) = (one.min(other), one.max(other));
    close_range(3, low - 1, 0);
    close_range(low + 1, high - 1, 0);
    close_range(high + 1, c_int::MAX, 0);
    for fd in [one, other] {
        // SAFETY: sets a flag of a descriptor.
        unsafe { libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC) };
    }
}

/// Closes every descriptor from the third on when a program is executed.
pub(crate) fn close_rest_on_exec() {
    close_range(3, c_int::MAX, libc::CLOSE_RANGE_CLOEXEC as c_uint);
}

/// Leaves a descriptor, if it is open, to the program that is executed.
pub(crate) fn keep_on_exec(fd: RawFd) {
    // SAFETY: sets a flag of a descriptor.
    unsafe { libc::fcntl(fd, libc::F_SETFD, 0) };
}

/// A file that lies in memory only, and is gone with its last descriptor.
pub(crate) fn memory_file(name: &CStr) -> Result<OwnedFd, i32> {
    // SAFETY: a text that ends with NUL; the kernel makes the descriptor for us.
    unsafe {
        check(libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC))
            .map(|fd| OwnedFd::from_raw_fd(fd))
    }
}

/// Before Linux 5.9 nothing happens: what is ours is closed on `exec` anyway.
fn close_range(first: RawFd, last: RawFd, flags: c_uint) {
    if first <= last {
        // SAFETY: none of these descriptors is used after it.
        unsafe { libc::syscall(libc::SYS_close_range, first, last, flags) };
    }
}

pub(crate) fn own_pid() -> i32 {
    // SAFETY: asks for a number.
    unsafe { libc::getpid() }
}

pub(crate) fn parent_pid() -> i32 {
    // SAFETY: asks for a number.
    unsafe { libc::getppid() }
}

/// Which permissions new files lack; tells what it was before.
pub(crate) fn umask(mask: u32) -> u32 {
    // SAFETY: numbers only.
    unsafe { libc::umask(mask) }
}

pub(crate) fn new_session() {
    // SAFETY: takes nothing. It fails only for who leads a group already.
    unsafe { libc::setsid() };
}

/// Makes the terminal that is our standard input that of our session, and gives it to its user.
pub(crate) fn take_terminal(user: Option<(u32, u32)>) -> Result<(), i32> {
    // SAFETY: numbers only.
    unsafe {
        check(libc::ioctl(0, libc::TIOCSCTTY, 0))?;
        let Some((uid, gid)) = user else { return Ok(()) };
        check(libc::fchown(0, uid, gid)).map(drop)
    }
}

pub(crate) fn change_dir(dir: &CStr) -> Result<(), i32> {
    // SAFETY: a text that ends with NUL.
    check(unsafe { libc::chdir(dir.as_ptr()) }).map(drop)
}

/// Orphans below us fall to us.
pub(crate) fn become_subreaper() {
    // SAFETY: numbers only.
    unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) };
}

/// We are killed when our parent dies.
pub(crate) fn die_with_parent() {
    // SAFETY: numbers only.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0) };
}

pub(crate) fn no_new_privileges() -> Result<(), i32> {
    // SAFETY: numbers only.
    check(unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) }).map(drop)
}

/// Becomes another user, in one group only.
pub(crate) fn become_user(uid: u32, gid: u32) -> Result<(), i32> {
    // SAFETY: an empty list of groups; numbers.
    unsafe {
        check(libc::setgroups(0, std::ptr::null()))?;
        check(libc::setgid(gid))?;
        check(libc::setuid(uid)).map(drop)
    }
}

pub(crate) fn limit_descriptors(soft: u64) {
    // SAFETY: reads and writes a structure of ours.
    unsafe {
        let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        if libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) == 0 {
            limit.rlim_cur = soft.min(limit.rlim_max);
            libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit);
        }
    }
}

/// A pipe: where to read, where to write. Neither is left to a program that is executed.
pub(crate) fn pipe() -> Result<(OwnedFd, OwnedFd), i32> {
    let mut ends = [0; 2];
    // SAFETY: two numbers of room; the kernel has made both descriptors for us.
    unsafe {
        check(libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC))?;
        Ok((OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1])))
    }
}

pub(crate) fn do_not_block(fd: &OwnedFd) {
    // SAFETY: sets a flag of a descriptor.
    unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_SETFL, libc::O_NONBLOCK) };
}

pub(crate) fn replace(target: RawFd, with: &OwnedFd) -> Result<(), i32> {
    // SAFETY: numbers only; `target` is a standard stream, or one that nobody uses.
    check(unsafe { libc::dup2(with.as_raw_fd(), target) }).map(drop)
}

pub(crate) fn read(fd: &OwnedFd, room: &mut [u8]) -> Result<usize, i32> {
    // SAFETY: as much room as is said.
    let read = unsafe { libc::read(fd.as_raw_fd(), room.as_mut_ptr().cast(), room.len()) };
    usize::try_from(read).map_err(|_| errno())
}

pub(crate) fn write(fd: &OwnedFd, bytes: &[u8]) {
    // SAFETY: as many bytes as are said. Whoever reads may be gone, which is no concern of ours.
    unsafe { libc::write(fd.as_raw_fd(), bytes.as_ptr().cast(), bytes.len()) };
}

/// Bytes that can be read now.
pub(crate) fn waiting(fd: &OwnedFd) -> usize {
    let mut count: c_int = 0;
    // SAFETY: writes one number.
    unsafe { libc::ioctl(fd.as_raw_fd(), libc::FIONREAD, &raw mut count) };
    usize::try_from(count).unwrap_or(0)
}

/// None in the child. There is one thread, so the child may do anything.
pub(crate) fn fork() -> Result<Option<i32>, i32> {
    // SAFETY: see above.
    let pid = check(unsafe { libc::fork() })?;
    Ok((pid != 0).then_some(pid))
}

/// Kills all that runs as this user. Only the kernel can do so without missing what is just born, and
/// only for somebody who is that user.
pub(crate) fn kill_user(uid: u32) {
    // Who shares the user may kill our child before it has done its work.
    for _ in 0..100 {
        let Ok(child) = fork() else { return };
        let Some(pid) = child else {
            // SAFETY: numbers only.
            unsafe {
                if libc::setresuid(uid, uid, uid) == 0 {
                    libc::kill(-1, libc::SIGKILL);
                }
            }
            exit(0)
        };
        let mut status = 0;
        // SAFETY: writes one number.
        let waited = unsafe { libc::waitpid(pid, &raw mut status, 0) };
        if waited != pid || libc::WIFEXITED(status) {
            return;
        }
    }
}

pub(crate) fn exit(code: i32) -> ! {
    // SAFETY: does not return.
    unsafe { libc::_exit(code) }
}

/// Executes a program. Returns only if that fails.
pub(crate) fn execute(
    path: &CStr,
    arguments: &[*const libc::c_char],
    environment: &[*const libc::c_char],
) -> i32 {
    // SAFETY: both lists end with null and point to texts that end with NUL (`Spec`).
    unsafe { libc::execve(path.as_ptr(), arguments.as_ptr(), environment.as_ptr()) };
    errno()
}

pub(crate) fn exists(path: &CStr) -> bool {
    // SAFETY: a text that ends with NUL.
    unsafe { libc::access(path.as_ptr(), libc::F_OK) == 0 }
}

/// To a process, or with a negative number to a group.
pub(crate) fn signal(whom: i32, signal: c_int) {
    // SAFETY: numbers only. Whoever is gone needs no signal.
    unsafe { libc::kill(whom, signal) };
}

/// All signals wait until they are read from the descriptor.
pub(crate) fn catch_signals() -> Result<OwnedFd, i32> {
    // SAFETY: fills and reads a set of ours; the kernel makes the descriptor for us.
    unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const all, std::ptr::null_mut());
        let flags = libc::SFD_CLOEXEC | libc::SFD_NONBLOCK;
        check(libc::signalfd(-1, &raw const all, flags)).map(|fd| OwnedFd::from_raw_fd(fd))
    }
}

/// Every signal does what it does in a new process, and none is held back.
pub(crate) fn reset_signals() {
    // The kernel's own structure: the default, no flags, no mask. The C library would refuse to
    // change the signals that it keeps for itself.
    let default = [0_u64; 8];
    // SAFETY: reads structures of ours.
    unsafe {
        for signal in 1..=64 {
            let nothing: *mut u64 = std::ptr::null_mut();
            libc::syscall(libc::SYS_rt_sigaction, signal, default.as_ptr(), nothing, 8);
        }
    }
    hold_back_no_signals();
}

pub(crate) fn hold_back_no_signals() {
    // SAFETY: fills and reads a set of ours.
    unsafe {
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut());
    }
}

/// The next signal that has come.
pub(crate) fn next_signal(signals: &OwnedFd) -> Option<c_int> {
    let mut about = [0_u8; size_of::<libc::signalfd_siginfo>()];
    let length = read(signals, &mut about).ok()?;
    // The number stands first.
    let number = about.first_chunk().filter(|_| length == about.len())?;
    c_int::try_from(u32::from_ne_bytes(*number)).ok()
}

/// Whether a child has ended and was not waited for.
pub(crate) fn has_ended(pid: i32) -> bool {
    // SAFETY: fills a structure of ours.
    unsafe {
        let mut about: libc::siginfo_t = std::mem::zeroed();
        let options = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
        libc::waitid(libc::P_PID, pid.unsigned_abs(), &raw mut about, options) == 0
            && about.si_pid() == pid
    }
}

/// Whether it is a child of ours, alive or not waited for.
pub(crate) fn is_child(pid: i32) -> bool {
    // SAFETY: fills a structure of ours.
    unsafe {
        let mut about: libc::siginfo_t = std::mem::zeroed();
        let options = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
        libc::waitid(libc::P_PID, pid.unsigned_abs(), &raw mut about, options) == 0
    }
}

/// Waits for this child, or with -1 for any, that has ended: its number and how. Ok(None) if none has yet.
pub(crate) fn reap(whom: i32) -> Result<Option<(i32, Dead)>, i32> {
    let mut status = 0;
    // SAFETY: writes one number.
    let pid = check(unsafe { libc::waitpid(whom, &raw mut status, libc::WNOHANG) })?;
    let dead = if libc::WIFEXITED(status) {
        Dead::Code(libc::WEXITSTATUS(status))
    } else {
        Dead::Signal(libc::WTERMSIG(status))
    };
    Ok((pid != 0).then_some((pid, dead)))
}

/// Waits until one of them can be read, at most so long. A number below zero is never ready.
pub(crate) fn poll(fds: [RawFd; 3], timeout_ms: Option<u64>) -> [bool; 3] {
    let mut polled = fds.map(|fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 });
    let timeout = timeout_ms.map_or(-1, |timeout| c_int::try_from(timeout).unwrap_or(c_int::MAX));
    // SAFETY: three structures of ours.
    let ready = unsafe { libc::poll(polled.as_mut_ptr(), 3, timeout) };
    polled.map(|each| ready > 0 && each.revents != 0)
}

pub(crate) fn monotonic_ms() -> u64 {
    u64::try_from(clock(libc::CLOCK_MONOTONIC)).unwrap_or(0)
}

pub(crate) fn wall_ms() -> i64 {
    clock(libc::CLOCK_REALTIME)
}

fn clock(which: libc::clockid_t) -> i64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: fills a structure of ours.
    unsafe { libc::clock_gettime(which, &raw mut now) };
    now.tv_sec * 1000 + now.tv_nsec / 1_000_000
}
