//! The calls to the kernel that only a runner makes.

#![expect(
    unsafe_code,
    reason = "system calls with numbers, or with pointers to values that outlive the call; there is one thread"
)]

use std::ffi::c_int;
use std::os::fd::{AsRawFd, FromRawFd as _, OwnedFd, RawFd};

use crate::sys::{check, errno};

/// So many are told of at once.
const EVENTS: usize = 256;

/// Waits for many descriptors.
pub(super) struct Poll {
    fd: OwnedFd,
    events: Vec<libc::epoll_event>,
}

impl Poll {
    pub(super) fn new() -> Result<Self, i32> {
        // SAFETY: the kernel makes the descriptor for us.
        let fd = unsafe {
            check(libc::epoll_create1(libc::EPOLL_CLOEXEC)).map(|fd| OwnedFd::from_raw_fd(fd))?
        };
        Ok(Self { fd, events: Vec::with_capacity(EVENTS) })
    }

    /// From now on, `token` is told when it can be read. It is forgotten when it is closed.
    pub(super) fn add(&self, fd: &OwnedFd, token: u64) -> Result<(), i32> {
        self.control(libc::EPOLL_CTL_ADD, fd, token, false)
    }

    /// The same, and when it can be written if somebody wants to.
    pub(super) fn change(&self, fd: &OwnedFd, token: u64, writes: bool) {
        let _cannot_fail = self.control(libc::EPOLL_CTL_MOD, fd, token, writes);
    }

    pub(super) fn remove(&self, fd: &OwnedFd) {
        let _cannot_fail = self.control(libc::EPOLL_CTL_DEL, fd, 0, false);
    }

    fn control(&self, what: c_int, fd: &OwnedFd, token: u64, writes: bool) -> Result<(), i32> {
        let events = libc::EPOLLIN | if writes { libc::EPOLLOUT } else { 0 };
        let mut event = libc::epoll_event { events: events.unsigned_abs(), u64: token };
        // SAFETY: reads a structure of ours.
        check(unsafe { libc::epoll_ctl(self.fd.as_raw_fd(), what, fd.as_raw_fd(), &raw mut event) })
            .map(drop)
    }

    /// Waits at most so long, and tells the tokens of all that is ready.
    pub(super) fn wait(&mut self, timeout_ms: Option<u64>) -> Vec<u64> {
        let timeout = timeout_ms.map_or(-1, |ms| c_int::try_from(ms).unwrap_or(c_int::MAX));
        self.events.clear();
        let room = self.events.spare_capacity_mut();
        let most = c_int::try_from(room.len()).unwrap_or(1);
        // SAFETY: as much room as is said; the kernel tells how much it has filled.
        unsafe {
            let ready =
                libc::epoll_wait(self.fd.as_raw_fd(), room.as_mut_ptr().cast(), most, timeout);
            self.events.set_len(usize::try_from(ready).unwrap_or(0));
        }
        self.events.iter().map(|event| event.u64).collect()
    }
}

/// Listens at a name in the directory that we are in.
pub(super) fn listen(name: &[u8]) -> Result<OwnedFd, i32> {
    let kind = libc::SOCK_STREAM | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: a structure of ours, with room for the name and the NUL behind it.
    unsafe {
        let fd = OwnedFd::from_raw_fd(check(libc::socket(libc::AF_UNIX, kind, 0))?);
        let mut address: libc::sockaddr_un = std::mem::zeroed();
        address.sun_family = libc::sa_family_t::try_from(libc::AF_UNIX).unwrap_or(0);
        for (room, byte) in address.sun_path.iter_mut().zip(name) {
            *room = byte.cast_signed();
        }
        let size = libc::socklen_t::try_from(size_of::<libc::sockaddr_un>()).unwrap_or(0);
        check(libc::bind(fd.as_raw_fd(), (&raw const address).cast(), size))?;
        check(libc::listen(fd.as_raw_fd(), 4))?;
        Ok(fd)
    }
}

pub(super) fn accept(door: &OwnedFd) -> Result<OwnedFd, i32> {
    let flags = libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    let nobody = std::ptr::null_mut();
    // SAFETY: nothing is to be told of the other end; the kernel makes the descriptor for us.
    unsafe {
        check(libc::accept4(door.as_raw_fd(), nobody, std::ptr::null_mut(), flags))
            .map(|fd| OwnedFd::from_raw_fd(fd))
    }
}

/// How much of it was taken. Whoever is gone sends no signal.
pub(super) fn send(fd: &OwnedFd, bytes: &[u8]) -> Result<usize, i32> {
    // SAFETY: as many bytes as are said.
    let sent = unsafe {
        libc::send(fd.as_raw_fd(), bytes.as_ptr().cast(), bytes.len(), libc::MSG_NOSIGNAL)
    };
    usize::try_from(sent).map_err(|_| errno())
}

/// Has so many bytes of room on the disk behind `from`, without the file being longer for it.
pub(super) fn make_room(fd: RawFd, from: u64, length: u64) -> Result<(), i32> {
    let (from, length) = (from.cast_signed(), length.cast_signed());
    // SAFETY: numbers only.
    match check(unsafe { libc::fallocate(fd, libc::FALLOC_FL_KEEP_SIZE, from, length) }) {
        // Not every file system knows how.
        Err(libc::EOPNOTSUPP | libc::ENOSYS) | Ok(_) => Ok(()),
        Err(errno) => Err(errno),
    }
}

/// The next child that has ended, which stays to be waited for.
pub(super) fn next_dead() -> Option<i32> {
    // SAFETY: fills a structure of ours.
    unsafe {
        let mut about: libc::siginfo_t = std::mem::zeroed();
        let options = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
        let asked = libc::waitid(libc::P_ALL, 0, &raw mut about, options);
        (asked == 0).then(|| about.si_pid()).filter(|pid| *pid != 0)
    }
}

/// Of which session a process is.
pub(super) fn session(pid: i32) -> Option<i32> {
    // SAFETY: numbers only.
    check(unsafe { libc::getsid(pid) }).ok()
}

/// Since the machine was started, in the unit in which the kernel tells when processes were.
pub(super) fn ticks() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: fills a structure of ours; asks for a number.
    let per_second = unsafe {
        libc::clock_gettime(libc::CLOCK_BOOTTIME, &raw mut now);
        libc::sysconf(libc::_SC_CLK_TCK).max(1)
    };
    let ticks = now.tv_sec * per_second + now.tv_nsec * per_second / 1_000_000_000;
    u64::try_from(ticks).unwrap_or(0)
}
