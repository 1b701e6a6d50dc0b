//! What to run, as the agent wrote it: texts that each end with a NUL byte.

use std::ffi::{CStr, c_char};
use std::os::fd::OwnedFd;

use crate::texts::Texts;

const MAGIC: &[u8] = b"kapell-spec-3";
const END: &[u8] = b"end";
/// The program that we are ourselves: its one argument is the file that it reads.
const LAUNCH: &[u8] = b"kapell-launch";

/// All texts are those of the file, so they already are what `execve` wants.
pub(crate) struct Spec<'a> {
    pub(crate) program: &'a CStr,
    /// Nothing: its own working directory.
    pub(crate) dir: Option<&'a CStr>,
    /// User and group, unless it runs as we do.
    pub(crate) user: Option<(u32, u32)>,
    /// Whoever runs as its user is part of it.
    pub(crate) own_user: bool,
    /// All of its container ends with it.
    pub(crate) whole: bool,
    /// It has a group to itself, and all of that ends with it.
    pub(crate) own_group: bool,
    pub(crate) stop_grace_ms: u64,
    /// Nothing: only last words are kept.
    pub(crate) logs: Option<&'a CStr>,
    pub(crate) log_bytes: u64,
    /// Bytes of output a second.
    pub(crate) log_rate: Option<u64>,
    /// How many descriptors it may have open, unless as many as we.
    pub(crate) descriptors: Option<u64>,
    /// Where a launcher tells the number of what it has started: that is the program then.
    pub(crate) pid_file: Option<&'a CStr>,
    /// What our own launcher reads, if that is the program.
    pub(crate) launch: Option<&'a CStr>,
    /// The control group that all of the container is in, if it has one.
    pub(crate) group: Option<&'a CStr>,
    /// Tells how many processes of the container the kernel has ended for want of memory.
    pub(crate) oom: Option<&'a CStr>,
    /// Files of control groups that take in who writes a zero to them.
    pub(crate) joins: Vec<&'a CStr>,
    /// With the null pointers at their ends.
    pub(crate) arguments: Vec<*const c_char>,
    pub(crate) environment: Vec<*const c_char>,
    pub(crate) path: &'a [u8],
    /// What it is told of its home.
    pub(crate) home: Option<&'a CStr>,
    /// What a launcher reads, which the file does not have.
    pub(crate) document: Option<OwnedFd>,
}

impl<'a> Spec<'a> {
    pub(crate) fn parse(bytes: &'a [u8]) -> Option<Self> {
        let mut texts = Texts(bytes);
        if texts.next()?.to_bytes() != MAGIC {
            return None;
        }
        let _boot = texts.next()?;
        let program = texts.next()?;
        let dir = texts.optional().ok()?;
        let (uid, gid) = (texts.optional_number().ok()?, texts.optional_number().ok()?);
        let user = match (uid, gid) {
            (Some(uid), Some(gid)) => Some((u32::try_from(uid).ok()?, u32::try_from(gid).ok()?)),
            _ => None,
        };
        let own_user = texts.next()?.to_bytes() == b"own";
        let ends = texts.next()?.to_bytes();
        let (whole, own_group) = (ends == b"whole", ends == b"group");
        let stop_grace_ms = texts.number()?;
        let logs = texts.optional().ok()?;
        let log_bytes = texts.number()?;
        let log_rate = texts.optional_number().ok()?;
        let descriptors = texts.optional_number().ok()?;
        let (pid_file, group, oom) =
            (texts.optional().ok()?, texts.optional().ok()?, texts.optional().ok()?);
        let joins = texts.list()?;
        let given = texts.list()?;
        let pointers = given.iter().map(|text| text.as_ptr());
        let arguments = [program.as_ptr()].into_iter().chain(pointers).chain([std::ptr::null()]);
        let arguments = arguments.collect();
        // A program of somebody else's may have any name, but no such file.
        let launch =
            given.first().copied().filter(|_| pid_file.is_some() && program.to_bytes() == LAUNCH);
        let variables = texts.list()?;
        let mut own = variables.iter().filter_map(|text| text.to_bytes().strip_prefix(b"PATH="));
        let path = own.next_back().unwrap_or(b"/usr/local/bin:/usr/bin:/bin");
        let is_home = |text: &&CStr| text.to_bytes().starts_with(b"HOME=");
        let home = variables.iter().copied().find(is_home);
        let pointers = variables.iter().map(|text| text.as_ptr());
        let environment = pointers.chain([std::ptr::null()]).collect();
        (texts.next()?.to_bytes() == END).then_some(())?;
        Some(Self {
            program,
            dir,
            user,
            own_user,
            whole,
            own_group,
            stop_grace_ms,
            logs,
            log_bytes,
            log_rate,
            descriptors,
            pid_file,
            launch,
            group,
            oom,
            joins,
            arguments,
            environment,
            path,
            home,
            document: None,
        })
    }
}
