//! The shim: a small static program, one a process of a container, that outlives us. See `kapell-shim`.

use std::ffi::{CStr, CString};
use std::fs::{self, File, Permissions};
use std::io::{self, Write as _};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::spawn::{PosixSpawnAttr, PosixSpawnFileActions, PosixSpawnFlags, posix_spawn};
use nix::sys::signal::SigSet;
use nix::unistd::{Pid, pipe2};

use super::hidden::Hidden;
use super::pidfd::Pidfd;
use super::trouble;
use crate::containers::Error;

static PROGRAM: &[u8] = include_bytes!(env!("KAPELL_SHIM"));
const NAME: &str = concat!("kapell-shim-", env!("KAPELL_SHIM_HASH"));

/// For so long the program may be open for writing after it was written.
const BEING_WRITTEN: Duration = Duration::from_secs(5);
const MOMENT: Duration = Duration::from_millis(1);

/// A shim that was just started.
#[derive(Debug)]
pub(crate) struct Started {
    /// None if we have no descriptor left for it: it is then looked for when it is needed.
    pub(crate) shim: Option<Pidfd>,
    /// Where it says whether its program runs.
    pub(crate) status: OwnedFd,
}

/// Puts the program into `dir`, where it is executed from, and removes those of other versions.
pub(crate) fn install(dir: &Path) -> Result<PathBuf, Error> {
    let path = dir.join(NAME);
    let is_whole =
        fs::metadata(&path).is_ok_and(|about| about.len() == PROGRAM.len().try_into().unwrap_or(0));
    if !is_whole {
        let draft = dir.join(format!("{NAME}.draft"));
        let written = File::create(&draft).and_then(|mut file| {
            file.write_all(PROGRAM)?;
            file.set_permissions(Permissions::from_mode(0o755))?;
            drop(file);
            fs::rename(&draft, &path)
        });
        written
            .inspect_err(|_| drop(fs::remove_file(&draft)))
            .map_err(trouble::io("write", &path))?;
    }
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        // Shims that run keep what they were started from.
        if entry.file_name() != NAME {
            let _gone = fs::remove_file(entry.path());
        }
    }
    Ok(path)
}

/// Starts a shim for the process with this directory. It inherits the lock and so holds it from
/// its birth, whatever becomes of us.
///
/// What is `hidden` it reads from memory.
pub(crate) fn spawn(
    program: &Path,
    home: &Path,
    lock: File,
    hidden: Option<&Hidden>,
) -> Result<Started, Error> {
    let failed = |source: io::Error| {
        let advice = if source.kind() == io::ErrorKind::PermissionDenied {
            ": is its file system mounted with `noexec`?"
        } else {
            ""
        };
        Error::Io { what: format!("cannot execute `{}`{advice}", program.display()), source }
    };
    let (status, theirs) = pipe2(OFlag::O_CLOEXEC).map_err(|errno| failed(errno.into()))?;
    let pid = execute(program, home, &lock, &theirs, hidden).map_err(failed)?;
    // From here on the lock is the shim's alone.
    drop((lock, theirs));
    Ok(Started { shim: Pidfd::open(pid.as_raw()).ok(), status })
}

/// Kills all that runs as this user. Blocks.
pub(crate) fn end_user(program: &Path, uid: u32) -> Result<(), Error> {
    let ended = Command::new(program).arg("end-user").arg(uid.to_string()).status();
    let what = || format!("cannot end what runs as user {uid}");
    match ended {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(Error::Io { what: what(), source: io::Error::other(status.to_string()) }),
        Err(source) => Err(Error::Io { what: what(), source }),
    }
}

/// Starts a shim for a program beside the process with this directory, which has these standard streams: a
/// `terminal` is its own then.
pub(crate) fn spawn_exec(
    program: &Path,
    home: &Path,
    control: &UnixStream,
    streams: &[OwnedFd; 3],
    terminal: bool,
) -> Result<Pid, Error> {
    let started = || {
        let control = control.as_raw_fd();
        let arguments = [
            c"kapell-shim".to_owned(),
            if terminal { c"exec-terminal" } else { c"exec" }.to_owned(),
            CString::new(home.as_os_str().as_bytes())?,
            CString::new(control.to_string())?,
        ];
        launch(program, streams.each_ref().map(AsRawFd::as_raw_fd), &[control], &arguments)
    };
    started().map_err(trouble::io("execute", program))
}

/// Starts a runner in its directory. It inherits the lock, as a shim does.
pub(crate) fn spawn_runner(
    program: &Path,
    dir: &Path,
    lock: &File,
    boot: &str,
    joins: &[PathBuf],
) -> Result<(), Error> {
    let started = || {
        let nothing = File::options().read(true).write(true).open("/dev/null")?;
        let lock = lock.as_raw_fd();
        let mut arguments = vec![
            c"kapell-shim".to_owned(),
            c"runner".to_owned(),
            CString::new(dir.as_os_str().as_bytes())?,
            CString::new(lock.to_string())?,
            CString::new(boot)?,
        ];
        for join in joins {
            arguments.push(CString::new(join.as_os_str().as_bytes())?);
        }
        launch(program, [nothing.as_raw_fd(); 3], &[lock], &arguments)
    };
    started().map(drop).map_err(trouble::io("execute", program))
}

fn execute(
    program: &Path,
    home: &Path,
    lock: &File,
    status: &OwnedFd,
    hidden: Option<&Hidden>,
) -> io::Result<Pid> {
    let nothing = File::options().read(true).write(true).open("/dev/null")?;
    let (lock, status) = (lock.as_raw_fd(), status.as_raw_fd());
    let hidden = hidden.map(Hidden::file).transpose()?;
    let kept: Vec<RawFd> =
        [lock, status].into_iter().chain(hidden.as_ref().map(AsRawFd::as_raw_fd)).collect();
    let mut arguments = vec![c"kapell-shim".to_owned(), CString::new(home.as_os_str().as_bytes())?];
    for fd in &kept {
        arguments.push(CString::new(fd.to_string())?);
    }
    launch(program, [nothing.as_raw_fd(); 3], &kept, &arguments)
}

fn launch(
    program: &Path,
    streams: [RawFd; 3],
    kept: &[RawFd],
    arguments: &[CString],
) -> io::Result<Pid> {
    let mut actions = PosixSpawnFileActions::init()?;
    for (fd, stream) in streams.into_iter().zip(0..) {
        actions.add_dup2(fd, stream)?;
    }
    for fd in kept {
        // Onto itself: it is then not closed when the shim is executed.
        actions.add_dup2(*fd, *fd)?;
    }
    let mut attributes = PosixSpawnAttr::init()?;
    // No signal reaches it before it is ready for it.
    attributes.set_sigmask(&SigSet::all())?;
    attributes.set_flags(PosixSpawnFlags::POSIX_SPAWN_SETSIGMASK)?;
    let environment: [&CStr; 0] = [];
    let begun = Instant::now();
    loop {
        match posix_spawn(program, &actions, &attributes, arguments, &environment) {
            // Another thread forked while the program was being written: its child has the file open until it executes.
            Err(Errno::ETXTBSY) if begun.elapsed() < BEING_WRITTEN => sleep(MOMENT),
            spawned => return Ok(spawned?),
        }
    }
}
