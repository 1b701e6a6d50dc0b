//! A place where a step waits until the test lets it go on.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;

use nix::fcntl::OFlag;
use nix::sys::stat::Mode;

use crate::bench::{Bench, eventually};

/// A named pipe. `read _ < NAME` in a step waits there.
#[derive(Debug)]
pub(crate) struct Gate(PathBuf);

/// A step stands at the gate.
#[derive(Debug)]
pub(crate) struct Waiting(File);

impl Gate {
    pub(crate) fn new(bench: &Bench, name: &str) -> Self {
        let path = bench.path(name);
        nix::unistd::mkfifo(&path, Mode::S_IRWXU).expect("a named pipe");
        Self(path)
    }

    /// Waits until a step stands at the gate.
    #[track_caller]
    pub(crate) fn reached(&self) -> Waiting {
        let mut open = OpenOptions::new();
        open.write(true).custom_flags(OFlag::O_NONBLOCK.bits());
        // Refused for as long as nobody reads.
        Waiting(eventually("a step at the gate", || open.open(&self.0).ok()))
    }

    /// Waits for a step and lets it go on.
    #[track_caller]
    pub(crate) fn open(&self) {
        self.reached().go_on();
    }
}

impl Waiting {
    pub(crate) fn go_on(mut self) {
        self.0.write_all(b"\n").expect("somebody reads");
    }
}
