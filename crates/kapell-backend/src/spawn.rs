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
use std::sync::{Mutex, OnceLock, PoisonError};

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::signal::{SigSet, SigmaskHow, pthread_sigmask};
use nix::unistd::{Pid, pipe2};

/// Signals for which this process may have handlers, or which it ignores.
const HANDLED: [c_int; 8] = [
    libc::SIGHUP,
    libc::SIGINT,
    libc::SIGQUIT,
    libc::SIGPIPE,
    libc::SIGTERM,
    libc::SIGCHLD,
    libc::SIGWINCH,
    libc::SIGTTOU,
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
    /// Why none could be executed.
    errno: c_int,
    /// Which one is being executed.
    chosen: usize,
}

impl Spawner {
    pub(crate) fn spawn(&self, order: &Order<'_>) -> io::Result<Spawned> {
        let program = c_string(order.program)?;
        let (programs, searched) = self.candidates(order, &program);
        let mut argv = vec![program];
        for arg in order.args {
            argv.push(c_string(arg)?);
        }
        let own = own_variables(order.env)?;
        let envp = self.environment(order.env, &own);
        let dir = order.dir.map(|dir| c_string(dir.as_os_str())).transpose()?;
        let (stdout, child_stdout) = output_pipe()?;
        let (stderr, child_stderr) = output_pipe()?;
        let argv: Vec<*const c_char> = pointers(argv.iter().map(CString::as_c_str));
        let mut child = Child {
            stdin: self.nothing()?.as_raw_fd(),
            stdout: child_stdout.as_raw_fd(),
            stderr: child_stderr.as_raw_fd(),
            dir: dir.as_ref().map_or(std::ptr::null(), |dir| dir.as_ptr()),
            programs: &programs,
            argv: argv.as_ptr(),
            envp: envp.as_ptr(),
            errno: 0,
            chosen: 0,
        };
        let (pid, process) = self.clone_process(&mut child)?;
        if searched {
            let path = programs[child.chosen].clone();
            self.found
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .insert(order.program.to_owned(), path);
        }
        Ok(Spawned { pid, process, stdout, stderr })
    }

    fn nothing(&self) -> io::Result<&File> {
        if let Some(file) = self.nothing.get() {
            return Ok(file);
        }
        let file = File::open("/dev/null")?;
        Ok(self.nothing.get_or_init(|| file))
    }

    /// Where the program may be; true if it was looked for in PATH and is worth remembering.
    fn candidates(&self, order: &Order<'_>, program: &CStr) -> (Vec<CString>, bool) {
        let bytes = order.program.as_bytes();
        if bytes.contains(&b'/') {
            return (vec![program.to_owned()], false);
        }
        let own_path =
            order.env.iter().rev().find(|(name, _)| name == "PATH").map(|(_, path)| path.clone());
        let may_remember = own_path.is_none();
        let remembered =
            self.found.lock().unwrap_or_else(PoisonError::into_inner).get(order.program).cloned();
        if let Some(path) = remembered.filter(|path| may_remember && is_there(path)) {
            return (vec![path], false);
        }
        let path =
            own_path.or_else(|| std::env::var_os("PATH")).unwrap_or_else(|| DEFAULT_PATH.into());
        let candidates = std::env::split_paths(&path)
            .filter_map(|dir| {
                let dir = if dir.as_os_str().is_empty() { Path::new(".").to_owned() } else { dir };
                CString::new(dir.join(order.program).into_os_string().into_vec()).ok()
            })
            .collect();
        (candidates, may_remember)
    }

    /// Pointers to all variables: our own environment, with the step's over it.
    fn environment(&self, env: &[(OsString, OsString)], own: &[CString]) -> Vec<*const c_char> {
        let inherited = self.inherited.get_or_init(|| {
            let variables = std::env::vars_os().map(|(name, value)| variable(&name, &value));
            variables.filter_map(Result::ok).collect()
        });
        let is_replaced = |entry: &CStr| {
            let name = entry.to_bytes().split(|&byte| byte == b'=').next().unwrap_or_default();
            env.iter().any(|(other, _)| other.as_bytes() == name)
        };
        let kept = inherited.iter().filter(|entry| env.is_empty() || !is_replaced(entry));
        pointers(kept.map(CString::as_c_str).chain(own.iter().map(CString::as_c_str)))
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
        for signal in HANDLED {
            libc::sigaction(signal, &raw const default, std::ptr::null_mut());
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

fn is_there(path: &CStr) -> bool {
    nix::unistd::access(path, nix::unistd::AccessFlags::X_OK).is_ok()
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

/// A step's variables; of several with one name the last counts.
fn own_variables(env: &[(OsString, OsString)]) -> io::Result<Vec<CString>> {
    let last = |at: usize, name: &OsString| !env[at + 1..].iter().any(|(later, _)| later == name);
    env.iter()
        .enumerate()
        .filter(|(at, (name, _))| last(*at, name))
        .map(|(_, (name, value))| variable(name, value))
        .collect()
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
