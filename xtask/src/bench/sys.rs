//! The system calls that the standard library does not offer, behind safe functions.
#![expect(unsafe_code, reason = "posix_spawn, poll and wait4 have no safe wrapper in std")]

use std::ffi::{CStr, CString, c_char, c_int, c_short};
use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::ptr;
use std::time::Duration;

unsafe extern "C" {
    static environ: *const *mut c_char;
}

/// What the kernel tells about a process that ended, those it waited for included.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    /// User and system time.
    pub(crate) cpu: Duration,
    pub(crate) max_rss_kb: u32,
}

/// Waits for a child; nothing if it still runs and `block` is false.
pub(crate) fn wait(pid: libc::pid_t, block: bool) -> io::Result<Option<Ended>> {
    let mut status = 0;
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    let flags = if block { 0 } else { libc::WNOHANG };
    let answer = retry(|| {
        // SAFETY: both pointers are to live local values of the right type.
        unsafe { libc::wait4(pid, &raw mut status, flags, usage.as_mut_ptr()) }
    })?;
    if answer == 0 {
        return Ok(None);
    }
    // SAFETY: zeroed memory is a valid `rusage`, and the kernel has filled it.
    let usage = unsafe { usage.assume_init() };
    Ok(Some(Ended {
        status: ExitStatus::from_raw(status),
        cpu: duration(usage.ru_utime) + duration(usage.ru_stime),
        max_rss_kb: u32::try_from(usage.ru_maxrss).unwrap_or(u32::MAX),
    }))
}

fn duration(time: libc::timeval) -> Duration {
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    Duration::from_secs(seconds) + Duration::from_micros(u64::try_from(time.tv_usec).unwrap_or(0))
}

/// A process with its output in two pipes.
#[derive(Debug)]
pub(crate) struct Spawned {
    pub(crate) pid: libc::pid_t,
    pub(crate) streams: [Option<File>; 2],
}

/// Starts one program over and over, each time in its own process group.
#[derive(Debug)]
pub(crate) struct Spawner {
    words: Vec<CString>,
    null: File,
}

impl Spawner {
    pub(crate) fn new(words: &[&CStr]) -> io::Result<Self> {
        let words = words.iter().map(|word| (*word).to_owned()).collect();
        Ok(Self { words, null: File::open("/dev/null")? })
    }

    pub(crate) fn start(&self) -> io::Result<Spawned> {
        let (out_read, out_write) = pipe()?;
        let (err_read, err_write) = pipe()?;
        let inherited = [self.null.as_raw_fd(), out_write.as_raw_fd(), err_write.as_raw_fd()];
        let pid = self.spawn(inherited)?;
        Ok(Spawned { pid, streams: [Some(out_read.into()), Some(err_read.into())] })
    }

    fn spawn(&self, inherited: [RawFd; 3]) -> io::Result<libc::pid_t> {
        let mut words: Vec<*mut c_char> =
            self.words.iter().map(|word| word.as_ptr().cast_mut()).collect();
        let program: *const c_char = words[0];
        words.push(ptr::null_mut());
        let mut actions = MaybeUninit::uninit();
        let mut attributes = MaybeUninit::uninit();
        let mut pid = 0;
        // SAFETY: `actions` and `attributes` are initialised before and destroyed after their use
        // and never move; `words` ends in a null pointer and its strings live in `self`.
        let outcome = unsafe {
            libc::posix_spawn_file_actions_init(actions.as_mut_ptr());
            for (from, to) in inherited.into_iter().zip(0..) {
                libc::posix_spawn_file_actions_adddup2(actions.as_mut_ptr(), from, to);
            }
            libc::posix_spawnattr_init(attributes.as_mut_ptr());
            let own_group = c_short::try_from(libc::POSIX_SPAWN_SETPGROUP).unwrap_or_default();
            libc::posix_spawnattr_setflags(attributes.as_mut_ptr(), own_group);
            let outcome = libc::posix_spawn(
                &raw mut pid,
                program,
                actions.as_ptr(),
                attributes.as_ptr(),
                words.as_ptr(),
                environ,
            );
            libc::posix_spawn_file_actions_destroy(actions.as_mut_ptr());
            libc::posix_spawnattr_destroy(attributes.as_mut_ptr());
            outcome
        };
        if outcome == 0 { Ok(pid) } else { Err(io::Error::from_raw_os_error(outcome)) }
    }
}

fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let mut ends = [0; 2];
    // SAFETY: `ends` has room for two descriptors.
    check(unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) })?;
    // SAFETY: the kernel has just made both, and nobody else knows them.
    Ok(unsafe { (OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1])) })
}

/// Waits until at least one of the descriptors can be read or has ended.
pub(crate) fn poll(waiting: &mut [libc::pollfd]) -> io::Result<()> {
    retry(|| {
        let count = libc::nfds_t::try_from(waiting.len()).unwrap_or(0);
        // SAFETY: pointer and length are of one live slice.
        unsafe { libc::poll(waiting.as_mut_ptr(), count, -1) }
    })
    .map(drop)
}

fn retry(mut call: impl FnMut() -> c_int) -> io::Result<c_int> {
    loop {
        match check(call()) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            answer => return answer,
        }
    }
}

fn check(answer: c_int) -> io::Result<c_int> {
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(answer) }
}
