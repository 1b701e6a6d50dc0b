//! The control groups of a container, as far as a shim has to do with them.

use std::ffi::{CStr, OsStr};
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use crate::{number, sys};

/// The group that all of a container is in.
pub(crate) struct Group<'a>(&'a Path);

impl<'a> Group<'a> {
    pub(crate) fn new(dir: &'a CStr) -> Self {
        Self(Path::new(OsStr::from_bytes(dir.to_bytes())))
    }

    /// Kills all that is in it; false if nothing was.
    pub(crate) fn kill(&self) -> bool {
        let members = fs::read(self.0.join("cgroup.procs")).unwrap_or_default();
        if members.is_empty() {
            return false;
        }
        // Nothing is born any more, so who is quicker than we are gains nothing by it.
        let limit = OpenOptions::new().write(true).open(self.0.join("pids.max"));
        let _without_it_too = limit.and_then(|mut limit| limit.write_all(b"0"));
        let numbers = members.split(u8::is_ascii_whitespace).filter_map(number::parse);
        for pid in numbers.filter_map(|pid| i32::try_from(pid).ok()).filter(|pid| *pid > 1) {
            sys::signal(pid, libc::SIGKILL);
        }
        true
    }
}

/// How many processes the kernel has ended for want of memory, as this file counts them.
pub(crate) fn out_of_memory(file: &CStr) -> u64 {
    let text = fs::read(OsStr::from_bytes(file.to_bytes())).unwrap_or_default();
    let mut lines = text.split(|byte| *byte == b'\n');
    lines.find_map(|line| number::parse(line.strip_prefix(b"oom_kill ")?)).unwrap_or(0)
}
