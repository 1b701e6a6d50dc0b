//! One program that runs.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

use super::dirs::Dir;
use super::kernel;
use super::spawn::{Order, Spawner};
use crate::hidden::Hidden;
use crate::log::{Log, Stream};
use crate::record::{self, End, Failure, Flags, Stage};
use crate::source::{Source, drain};
use crate::spec::Spec;
use crate::start::candidates;
use crate::sys;

pub(super) struct Program {
    pub(super) guid: Vec<u8>,
    pub(super) out: Source,
    pub(super) err: Source,
    pub(super) log: Log,
    pub(super) dir: Option<Dir>,
    /// Not later than anything that it has started.
    pub(super) born_ticks: u64,
    stop_grace_ms: u64,
    stopped: bool,
    pub(super) kill_at: Option<u64>,
    pub(super) end: Option<Ended>,
    /// Nobody wants to know how it ends.
    pub(super) is_released: bool,
}

/// How a program ended, of which something may be left.
pub(super) struct Ended {
    pub(super) how: End,
    pub(super) at_ms: u64,
    /// It is told then, whatever is left, by the steady clock.
    pub(super) told_by_ms: u64,
}

/// How long what was killed may take to be gone.
const PATIENCE_MS: u64 = 10_000;

/// What all programs are started with.
pub(super) struct Starter {
    pub(super) spawner: Spawner,
    pub(super) umask: u32,
    pub(super) pid: i32,
}

impl Starter {
    /// Starts what a spec says; tells its number too.
    pub(super) fn start(
        &mut self,
        guid: &[u8],
        text: &[u8],
        dir: Dir,
    ) -> Result<(i32, Program), (Failure, Dir)> {
        match self.try_start(text, &dir) {
            Ok((pid, mut program)) => {
                (program.guid, program.dir) = (guid.to_vec(), Some(dir));
                Ok((pid, program))
            }
            Err(failure) => Err((failure, dir)),
        }
    }

    fn try_start(&mut self, text: &[u8], dir: &Dir) -> Result<(i32, Program), Failure> {
        let at = |stage: Stage| move |errno: i32| Failure { stage, errno };
        let mut spec = Spec::parse(text).ok_or(at(Stage::Spec)(libc::EINVAL))?;
        if spec.home.is_none() {
            // The null pointer stays at the end.
            let end = spec.environment.pop();
            spec.environment.push(dir.home.as_ptr());
            spec.environment.extend(end);
        }
        let (out, out_end) = sys::pipe().map_err(at(Stage::Pipes))?;
        let (err, err_end) = sys::pipe().map_err(at(Stage::Pipes))?;
        sys::do_not_block(&out);
        sys::do_not_block(&err);
        let born_ticks = kernel::ticks();
        let order = Order {
            programs: &candidates(&spec),
            arguments: &spec.arguments,
            environment: &spec.environment,
            dir: spec.dir.unwrap_or(dir.path()),
            dir_stage: if spec.dir.is_some() { Stage::Dir } else { Stage::Work },
            output: [&out_end, &err_end],
            umask: self.umask,
            descriptors: spec.descriptors,
            parent: self.pid,
        };
        let pid = self.spawner.spawn(&order)?;
        let hidden = Hidden::default();
        let logs = spec.logs.map(|logs| PathBuf::from(OsStr::from_bytes(logs.to_bytes())));
        let program = Program {
            guid: Vec::new(),
            out: Source::new(out, Stream::Out, &hidden),
            err: Source::new(err, Stream::Err, &hidden),
            log: Log::fresh(logs, spec.log_bytes, spec.log_rate),
            dir: None,
            born_ticks,
            stop_grace_ms: spec.stop_grace_ms,
            stopped: false,
            kill_at: None,
            end: None,
            is_released: false,
        };
        Ok((pid, program))
    }
}

impl Program {
    /// Asks it to end. If it does not, it is killed after its grace.
    pub(super) fn stop(&mut self, pid: i32) {
        if self.stopped || self.end.is_some() {
            return;
        }
        self.stopped = true;
        self.kill_at = Some(sys::monotonic_ms().saturating_add(self.stop_grace_ms));
        sys::signal(-pid, libc::SIGTERM);
        // Who is stopped could not heed it.
        sys::signal(-pid, libc::SIGCONT);
    }

    pub(super) fn kill(&mut self, pid: i32) {
        self.stopped = true;
        self.kill_at = None;
        // Of one that has ended the number may be somebody else's.
        if self.end.is_none() {
            sys::signal(-pid, libc::SIGKILL);
        }
    }

    pub(super) fn ended(&mut self, how: End, at_ms: u64) {
        self.kill_at = None;
        let told_by_ms = sys::monotonic_ms() + PATIENCE_MS;
        self.end = Some(Ended { how, at_ms, told_by_ms });
    }

    /// Takes the rest of what it wrote; the record of how it ended.
    pub(super) fn finish(&mut self, end: End, buffer: &mut [u8]) -> Vec<u8> {
        let Self { out, err, log, .. } = self;
        for source in [&mut *out, &mut *err] {
            drain(source, log, buffer);
            source.end(log, buffer);
        }
        log.finish();
        let words = match err.tail.last_line() {
            b"" => out.tail.last_line(),
            words => words,
        };
        record::encode(end, Flags { stopped: self.stopped, out_of_memory: false }, words)
    }
}
