//! Starts processes, cheaper than the C library does.
//!
//! `posix_spawn` of glibc before 2.38 asks for and resets every one of 64 signals in every child:
//! 120 system calls of about 170 that a small program makes in all. We know which signals we
//! handle. The rest is what `posix_spawn` does too: a child that shares our memory until it has
//! executed its program, so the cost does not grow with ours.

use std::collections::BTreeMap;
use std::ffi::{CStr, CString, OsStr, OsString, c_char, c_int, c_void};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd, RawFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::signal::{SigSet, SigmaskHow, pthread_sigmask};
use nix::unistd::{Pid, pipe2};

/// Signals for which this process may have handlers, or which it ignores.
const HANDLED: [c_int; 7] = [
    libc::SIGHUP,
    libc::SIGINT,
    libc::SIGQUIT,
    libc::SIGPIPE,
    libc::SIGTERM,
    libc::SIGCHLD,
    libc::SIGWINCH,
];
/// What the child needs until it executes its program, with room to spare.
const STACK: usize = 64 << 10;
const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// What to start.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Order<'a> {
    pub(crate) program: &'a OsStr,
    pub(crate) args: &'a [OsString],
    pub(crate) dir: Option<&'a Path>,
    /// Over the environment of this process.
    pub(crate) env: &'a [(OsString, OsString)],
}

/// A process that was started, in a process group of its own.
#[derive(Debug)]
pub(crate) struct Spawned {
    pub(crate) pid: Pid,
    pub(crate) process: OwnedFd,
    /// Our ends of its output; they do not block.
    pub(crate) stdout: OwnedFd,
    pub(crate) stderr: OwnedFd,
}

/// Starts processes, and remembers what is the same for all of them.
#[derive(Debug, Default)]
pub(crate) struct Spawner {
    nothing: OnceLock<File>,
    inherited: OnceLock<Vec<CString>>,
    /// Signals that a child resets.
    reset: OnceLock<Vec<c_int>>,
    /// Where programs were found in PATH.
    found: Mutex<BTreeMap<OsString, CString>>,
    stack: Mutex<Vec<u8>>,
}

/// What the child reads and writes. It shares our memory while we wait for it.
struct Child<'a> {
    stdin: RawFd,
    stdout: RawFd,
    stderr: RawFd,
    dir: *const c_char,
    /// Paths to try, in this order.
    programs: &'a [CString],
    argv: *const *const c_char,
    envp: *const *const c_char,
    reset: &'a [c_int],
    descriptors: *const libc::rlimit,
    /// Why none could be executed.
    errno: c_int,
    /// Which one is being executed.
    chosen: usize,
}

impl Spawner {
    pub(crate) fn spawn(&self, order: &Order<'_>) -> io::Result<Spawned> {
        if order.program.as_bytes().contains(&b'/') {
            return self
                .spawn_one_of(order, &[c_string(order.program)?])
                .map(|(spawned, _)| spawned);
        }
        let may_remember = !order.env.iter().any(|(name, _)| name == "PATH");
        let remembered = self.found().get(order.program).filter(|_| may_remember).cloned();
        if let Some(path) = remembered
            && let Ok((spawned, _)) = self.spawn_one_of(order, &[path])
        {
            return Ok(spawned);
        }
        let candidates = candidates(order);
        let (spawned, chosen) = self.spawn_one_of(order, &candidates)?;
        if may_remember {
            self.found().insert(order.program.to_owned(), candidates[chosen].clone());
        }
        Ok(spawned)
    }

    fn found(&self) -> MutexGuard<'_, BTreeMap<OsString, CString>> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts the first of `programs` that can be executed, and tells which.
    fn spawn_one_of(
        &self,
        order: &Order<'_>,
        programs: &[CString],
    ) -> io::Result<(Spawned, usize)> {
        let mut argv = vec![c_string(order.program)?];
        for arg in order.args {
            argv.push(c_string(arg)?);
        }
        let own = own_variables(order)?;
        let envp = self.environment(&own);
        let dir = order.dir.map(|dir| c_string(dir.as_os_str())).transpose()?;
        let (stdout, child_stdout) = output_pipe()?;
        let (stderr, child_stderr) = output_pipe()?;
        let argv: Vec<*const c_char> = pointers(argv.iter().map(CString::as_c_str));
        let mut child = Child {
            stdin: self.nothing()?.as_raw_fd(),
            stdout: child_stdout.as_raw_fd(),
            stderr: child_stderr.as_raw_fd(),
            dir: dir.as_ref().map_or(std::ptr::null(), |dir| dir.as_ptr()),
            programs,
            reset: self.reset.get_or_init(signals_to_reset),
            descriptors: allowed_descriptors().map_or(std::ptr::null(), std::ptr::from_ref),
            argv: argv.as_ptr(),
            envp: envp.as_ptr(),
            errno: 0,
            chosen: 0,
        };
        let (pid, process) = self.clone_process(&mut child)?;
        Ok((Spawned { pid, process, stdout, stderr }, child.chosen))
    }

    fn nothing(&self) -> io::Result<&File> {
        if let Some(file) = self.nothing.get() {
            return Ok(file);
        }
        let file = File::open("/dev/null")?;
        Ok(self.nothing.get_or_init(|| file))
    }

    /// Pointers to all variables: our own environment, with the step's over it.
    fn environment(&self, own: &BTreeMap<&OsStr, CString>) -> Vec<*const c_char> {
        let inherited = self.inherited.get_or_init(|| {
            let variables = std::env::vars_os().map(|(name, value)| variable(&name, &value));
            variables.filter_map(Result::ok).collect()
        });
        let is_replaced = |entry: &CStr| {
            let name = entry.to_bytes().split(|&byte| byte == b'=').next().unwrap_or_default();
            own.contains_key(OsStr::from_bytes(name))
        };
        let kept = inherited.iter().filter(|entry| own.is_empty() || !is_replaced(entry));
        pointers(kept.map(CString::as_c_str).chain(own.values().map(CString::as_c_str)))
    }

    fn clone_process(&self, child: &mut Child<'_>) -> io::Result<(Pid, OwnedFd)> {
        let mut stack = self.stack.lock().unwrap_or_else(PoisonError::into_inner);
        stack.resize(STACK, 0);
        let mut process: c_int = -1;
        // A handler of ours must never run in the child: it shares our memory.
        let mut before = SigSet::empty();
        pthread_sigmask(SigmaskHow::SIG_BLOCK, Some(&SigSet::all()), Some(&mut before))?;
        let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::CLONE_PIDFD | libc::SIGCHLD;
        let argument: *mut c_void = std::ptr::from_mut(child).cast();
        #[expect(
            unsafe_code,
            reason = "CLONE_VFORK holds us until the child has executed or exited, so `child`, what it points to \
                      and the stack (locked, 16-byte aligned below) outlive its use of them; `process` is \
                      where CLONE_PIDFD has the kernel write the descriptor"
        )]
        let pid = unsafe {
            let top = stack.as_mut_ptr().add(STACK);
            let top = top.sub(top.addr() % 16);
            libc::clone(execute, top.cast(), flags, argument, &raw mut process)
        };
        let failed = (pid < 0).then(io::Error::last_os_error);
        pthread_sigmask(SigmaskHow::SIG_SETMASK, Some(&before), None)?;
        drop(stack);
        if let Some(error) = failed {
            return Err(error);
        }
        #[expect(
            unsafe_code,
            reason = "the kernel made this descriptor for us and nobody else knows it"
        )]
        let process = unsafe { OwnedFd::from_raw_fd(process) };
        let pid = Pid::from_raw(pid);
        if child.errno != 0 {
            let _reaped = nix::sys::wait::waitpid(pid, None);
            return Err(io::Error::from_raw_os_error(child.errno));
        }
        Ok((pid, process))
    }
}

/// Runs in the child, in our memory, while we wait: system calls only, nothing that allocates.
extern "C" fn execute(argument: *mut c_void) -> c_int {
    #[expect(
        unsafe_code,
        reason = "`argument` is the `Child` that `clone_process` keeps alive; the calls are async-signal-safe"
    )]
    unsafe {
        let child = &mut *argument.cast::<Child<'_>>();
        let default = libc::sigaction { sa_sigaction: libc::SIG_DFL, ..std::mem::zeroed() };
        for &signal in child.reset {
            libc::sigaction(signal, &raw const default, std::ptr::null_mut());
        }
        if !child.descriptors.is_null() {
            libc::setrlimit(libc::RLIMIT_NOFILE, child.descriptors);
        }
        let prepared = libc::setpgid(0, 0) == 0
            && libc::dup2(child.stdin, 0) >= 0
            && libc::dup2(child.stdout, 1) >= 0
            && libc::dup2(child.stderr, 2) >= 0
            && (child.dir.is_null() || libc::chdir(child.dir) == 0);
        if prepared {
            let mut none: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&raw mut none);
            libc::sigprocmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut());
            let mut denied = false;
            for (at, program) in child.programs.iter().enumerate() {
                child.chosen = at;
                libc::execve(program.as_ptr(), child.argv, child.envp);
                let errno = *libc::__errno_location();
                denied |= errno == libc::EACCES;
                if !matches!(errno, libc::ENOENT | libc::ENOTDIR | libc::EACCES) {
                    break;
                }
            }
            if denied && *libc::__errno_location() == libc::ENOENT {
                *libc::__errno_location() = libc::EACCES;
            }
        }
        child.errno = *libc::__errno_location();
        if child.errno == 0 {
            child.errno = libc::ENOENT;
        }
        libc::_exit(127)
    }
}

/// Whether nothing happens on this signal, not even its default.
pub(crate) fn is_ignored(signal: c_int) -> bool {
    #[expect(unsafe_code, reason = "asks what happens on a signal and changes nothing")]
    unsafe {
        let mut now: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, std::ptr::null(), &raw mut now);
        now.sa_sigaction == libc::SIG_IGN
    }
}

/// The signals that we handle, and SIGPIPE, which every Rust program ignores. What we were started
/// to ignore stays so.
fn signals_to_reset() -> Vec<c_int> {
    HANDLED.into_iter().filter(|signal| *signal == libc::SIGPIPE || !is_ignored(*signal)).collect()
}

/// How many descriptors a child may have, if we allow ourselves more, which we do from now on.
pub(crate) fn allowed_descriptors() -> Option<&'static libc::rlimit> {
    static BEFORE: OnceLock<Option<libc::rlimit>> = OnceLock::new();
    BEFORE.get_or_init(allow_more_descriptors).as_ref()
}

/// Takes as many descriptors as we may have: three a running step. Tells what it was before.
fn allow_more_descriptors() -> Option<libc::rlimit> {
    let mut before = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    #[expect(unsafe_code, reason = "reads and raises a limit of this process")]
    let raised = unsafe {
        libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut before) == 0
            && before.rlim_cur < before.rlim_max
            && libc::setrlimit(
                libc::RLIMIT_NOFILE,
                &libc::rlimit { rlim_cur: before.rlim_max, ..before },
            ) == 0
    };
    raised.then_some(before)
}

/// Where PATH has the program, if it is there: the step's own PATH, else ours.
fn candidates(order: &Order<'_>) -> Vec<CString> {
    let own = order.env.iter().rev().find(|(name, _)| name == "PATH").map(|(_, path)| path.clone());
    let path = own.or_else(|| std::env::var_os("PATH")).unwrap_or_else(|| DEFAULT_PATH.into());
    std::env::split_paths(&path)
        .filter_map(|dir| {
            let dir = if dir.as_os_str().is_empty() { Path::new(".").to_owned() } else { dir };
            CString::new(dir.join(order.program).into_os_string().into_vec()).ok()
        })
        .collect()
}

fn c_string(text: &OsStr) -> io::Result<CString> {
    CString::new(text.as_bytes())
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "a NUL byte in an argument"))
}

fn variable(name: &OsStr, value: &OsStr) -> io::Result<CString> {
    let mut entry = name.to_owned();
    entry.push("=");
    entry.push(value);
    c_string(&entry)
}

/// A step's variables by name; of several with one name the last counts. Who is put into another
/// directory is told so, as a shell would.
fn own_variables<'a>(order: &Order<'a>) -> io::Result<BTreeMap<&'a OsStr, CString>> {
    let mut own = BTreeMap::new();
    if let Some(dir) = order.dir {
        let whole = std::path::absolute(dir)?;
        own.insert(OsStr::new("PWD"), variable(OsStr::new("PWD"), whole.as_os_str())?);
    }
    for (name, value) in order.env {
        own.insert(name.as_os_str(), variable(name, value)?);
    }
    Ok(own)
}

fn pointers<'a>(texts: impl Iterator<Item = &'a CStr>) -> Vec<*const c_char> {
    texts.map(CStr::as_ptr).chain([std::ptr::null()]).collect()
}

/// A pipe whose first end does not block.
fn output_pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let (ours, theirs) = pipe2(OFlag::O_CLOEXEC)?;
    fcntl(&ours, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
    Ok((ours, theirs))
}
