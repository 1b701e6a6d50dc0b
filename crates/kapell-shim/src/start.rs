//! Starts the program of a container.

use std::ffi::{CStr, CString, OsStr, c_char};
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;

use crate::hidden::DOCUMENT;
use crate::record::{Failure, Stage};
use crate::spec::Spec;
use crate::{launch, number, sys};

/// What the program gets of us, and where it leaves its number.
pub(crate) struct Inherited {
    /// Without it, it has our own.
    pub(crate) output: Option<(OwnedFd, OwnedFd)>,
    pub(crate) umask: u32,
    pub(crate) pids: Option<File>,
    /// Our own streams are a terminal, which is its own from then on.
    pub(crate) terminal: bool,
}

/// Returns when the program was executed, with its number.
pub(crate) fn start(spec: &Spec<'_>, inherited: Inherited) -> Result<i32, Failure> {
    let failed = |stage: Stage| move |errno| Failure { stage, errno };
    let (report, reporter) = sys::pipe().map_err(failed(Stage::Pipes))?;
    let shim = sys::own_pid();
    let Some(pid) = sys::fork().map_err(failed(Stage::Fork))? else {
        let failure = become_program(spec, &inherited, shim);
        let [a, b, c, d] = failure.errno.to_ne_bytes();
        sys::write(&reporter, &[failure.stage as u8, a, b, c, d]);
        sys::exit(127)
    };
    drop((reporter, inherited));
    let mut told = [0; 5];
    loop {
        match sys::read(&report, &mut told) {
            Ok(0) => return Ok(pid),
            Ok(_) => break,
            Err(libc::EINTR) => {}
            Err(errno) => return Err(Failure { stage: Stage::Fork, errno }),
        }
    }
    let [stage, a, b, c, d] = told;
    let stage = Stage::from_byte(stage).unwrap_or(Stage::Fork);
    let errno = i32::from_ne_bytes([a, b, c, d]);
    Err(Failure { stage, errno })
}

/// In the child. Returns only if the program could not be executed.
fn become_program(spec: &Spec<'_>, inherited: &Inherited, shim: i32) -> Failure {
    let failed = |stage: Stage| move |errno| Failure { stage, errno };
    let prepare = || {
        sys::new_session();
        if inherited.terminal {
            sys::take_terminal(spec.user).map_err(failed(Stage::Pipes))?;
        }
        // Written before anything runs, so that whoever has to clear up behind a killed shim knows it.
        let mut line = Vec::new();
        number::push(&mut line, u64::from(sys::own_pid().unsigned_abs()), 0);
        line.push(b'\n');
        if let Some(mut pids) = inherited.pids.as_ref() {
            let not_written = |error: std::io::Error| error.raw_os_error().unwrap_or(libc::EIO);
            pids.write_all(&line).map_err(not_written).map_err(failed(Stage::Pid))?;
        }
        if let Some((out, err)) = &inherited.output {
            sys::replace(1, out).map_err(failed(Stage::Pipes))?;
            sys::replace(2, err).map_err(failed(Stage::Pipes))?;
        }
        // While we still may.
        for group in &spec.joins {
            join(group).map_err(failed(Stage::Group))?;
        }
        sys::umask(inherited.umask);
        if let Some(soft) = spec.descriptors {
            sys::limit_descriptors(soft);
        }
        // As ourselves: others may not be allowed to walk there.
        if spec.dir.is_none() {
            sys::change_dir(c"../../work").map_err(failed(Stage::Work))?;
        }
        if let Some((uid, gid)) = spec.user {
            sys::become_user(uid, gid).map_err(failed(Stage::User))?;
        }
        // A launcher decides that for what it starts.
        if spec.pid_file.is_none() {
            sys::no_new_privileges().map_err(failed(Stage::User))?;
        }
        if let Some(dir) = spec.dir {
            sys::change_dir(dir).map_err(failed(Stage::Dir))?;
        }
        // Not earlier: who becomes another user is forgotten to die with us.
        sys::die_with_parent();
        if sys::parent_pid() != shim {
            sys::exit(127);
        }
        sys::close_rest_on_exec();
        if let Some(document) = &spec.document {
            sys::replace(DOCUMENT, document).map_err(failed(Stage::Pipes))?;
        }
        sys::reset_signals();
        Ok(())
    };
    match (prepare(), spec.launch) {
        // Not executed anew: that would only cost time.
        (Ok(()), Some(file)) => sys::exit(launch::run(file.to_bytes())),
        (Ok(()), None) => execute(&candidates(spec), &spec.arguments, &spec.environment),
        (Err(failure), _) => failure,
    }
}

fn join(group: &CStr) -> Result<(), i32> {
    let path = OsStr::from_bytes(group.to_bytes());
    let joined =
        OpenOptions::new().write(true).open(path).and_then(|mut file| file.write_all(b"0"));
    joined.map_err(|error| error.raw_os_error().unwrap_or(libc::EIO))
}

/// The files that the program of this name may be.
pub(crate) fn candidates(spec: &Spec<'_>) -> Vec<CString> {
    let name = spec.program.to_bytes();
    if name.contains(&b'/') {
        return vec![spec.program.to_owned()];
    }
    let dirs = spec.path.split(|byte| *byte == b':');
    let path = |dir: &[u8]| {
        let dir = if dir.is_empty() { b"." } else { dir };
        CString::new([dir, b"/", name].concat()).ok()
    };
    dirs.filter_map(path).collect()
}

/// Executes the first of them that can be. Returns only if none can; allocates nothing.
pub(crate) fn execute(
    candidates: &[CString],
    arguments: &[*const c_char],
    environment: &[*const c_char],
) -> Failure {
    let mut found = Failure { stage: Stage::Program, errno: libc::ENOENT };
    for path in candidates {
        let errno = sys::execute(path, arguments, environment);
        match errno {
            libc::ENOENT if sys::exists(path) => {
                return Failure { stage: Stage::Interpreter, errno };
            }
            // Another directory may have one that may be executed.
            libc::EACCES => found.errno = errno,
            libc::ENOENT | libc::ENOTDIR if candidates.len() > 1 => {}
            _ => return Failure { errno, ..found },
        }
    }
    found
}
