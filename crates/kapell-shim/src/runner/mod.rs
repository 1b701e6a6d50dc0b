//! Runs many programs for one host: starts them, keeps what they write, waits for them, and outlives the host.
//!
//! One thread that waits for everything at once. What it does in one turn it writes down at once and tells at once, so
//! a program costs little more than its own start. When no host is there and nothing runs any more, it ends.

mod dirs;
mod ends;
mod journal;
mod kernel;
mod lease;
mod line;
mod orphans;
mod parcel;
mod program;
mod requests;
mod spawn;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{CString, OsStr};
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;

use self::dirs::Dirs;
use self::journal::{Journal, Stories};
use self::kernel::Poll;
use self::lease::Lease;
use self::line::Line;
use self::orphans::Orphans;
use self::parcel::WELCOME;
use self::program::{Program, Starter};
use self::spawn::Spawner;
use crate::log::{CHUNK, HEAD};
use crate::record::{self, End, Flags};
use crate::source::take;
use crate::sys;

/// By which rules we speak with hosts.
const RULES: &[u8] = b"kapell-runner-1";
const SOCKET: &[u8] = b"socket";
/// So many are started before it is looked what has ended.
const MOST_AT_ONCE: usize = 32;

/// How often it is looked whether what is left of programs is gone.
const AGAIN_MS: u64 = 20;
/// Who has started us comes at once.
const FIRST_HOST_MS: u64 = 10_000;

const SIGNALS: u64 = 0;
const DOOR: u64 = 1;
const LINE: u64 = 2;

/// The token of a stream of a program: numbers of processes are above 1.
const fn token(pid: i32, is_err: bool) -> u64 {
    (pid.unsigned_abs() as u64) << 2 | is_err as u64
}

/// Runs until nobody needs it any more. `boot` tells this start of the machine from others, and all of us is to be in the
/// control groups that take in who writes to `joins`.
pub(crate) fn run(dir: &[u8], boot: &[u8], joins: &[&[u8]]) -> i32 {
    let Ok(mut runner) = Runner::begin(dir, boot, joins) else { return 1 };
    while runner.is_needed() {
        runner.turn();
    }
    0
}

struct Runner {
    boot: Vec<u8>,
    poll: Poll,
    signals: OwnedFd,
    door: OwnedFd,
    line: Option<Line>,
    journal: Journal,
    stories: Stories,
    /// By their numbers.
    programs: BTreeMap<i32, Program>,
    orphans: Orphans,
    dirs: Dirs,
    starter: Starter,
    buffer: Vec<u8>,
    /// Programs that are to be killed at some time.
    timed: BTreeSet<i32>,
    /// Programs that have ended, of which something may be left.
    ending: BTreeSet<i32>,
    /// There is more to heed than one turn does.
    is_behind: bool,
    /// Until then a first host is waited for, by the steady clock.
    host_by_ms: u64,
    lease: Lease,
}

impl Runner {
    fn begin(dir: &[u8], boot: &[u8], joins: &[&[u8]]) -> Result<Self, i32> {
        let io = |error: std::io::Error| error.raw_os_error().unwrap_or(libc::EIO);
        sys::new_session();
        let umask = sys::umask(0o077);
        for group in joins {
            let file = OpenOptions::new().write(true).open(OsStr::from_bytes(group));
            file.and_then(|mut file| file.write_all(b"0")).map_err(io)?;
        }
        let path = CString::new(dir).map_err(|_| libc::EINVAL)?;
        sys::change_dir(&path)?;
        // What we leave as it is here our programs find so.
        sys::reset_signals();
        let signals = sys::catch_signals()?;
        sys::become_subreaper();
        let mut stories = journal::load(boot);
        orphans::end_all(&stories);
        let now = now_ms();
        for story in stories.values_mut().filter(|story| story.end.is_none()) {
            let record = record::encode(End::RunnerKilled, Flags::default(), b"");
            story.end = Some((now, record));
        }
        let journal = Journal::begin(boot, stories.iter()).map_err(io)?;
        let _absent = fs::remove_file("socket");
        let door = kernel::listen(SOCKET)?;
        let poll = Poll::new()?;
        poll.add(&signals, SIGNALS)?;
        poll.add(&door, DOOR)?;
        Ok(Self {
            boot: boot.to_vec(),
            poll,
            signals,
            door,
            line: None,
            journal,
            stories,
            programs: BTreeMap::new(),
            orphans: Orphans::default(),
            dirs: Dirs::new(dir),
            starter: Starter { spawner: Spawner::new(), umask, pid: sys::own_pid() },
            buffer: vec![0; HEAD + CHUNK],
            timed: BTreeSet::new(),
            ending: BTreeSet::new(),
            is_behind: false,
            host_by_ms: sys::monotonic_ms() + FIRST_HOST_MS,
            lease: Lease::Unlimited,
        })
    }

    fn is_needed(&mut self) -> bool {
        if self.line.is_none() && self.programs.is_empty() {
            // One that waits at the door must not be turned away.
            self.open_door();
        }
        let awaits_host = self.host_by_ms > sys::monotonic_ms();
        self.line.is_some() || !self.programs.is_empty() || awaits_host
    }

    /// How long there is nothing to do unless something happens.
    fn until_next(&self) -> Option<u64> {
        if self.is_behind {
            return Some(0);
        }
        let kills = self.timed.iter().filter_map(|pid| self.programs.get(pid)?.kill_at);
        let first_host = (self.line.is_none() && self.host_by_ms > 0).then_some(self.host_by_ms);
        let next = kills.chain(first_host).chain(self.lease.ends()).min();
        let wait = next.map(|at| at.saturating_sub(sys::monotonic_ms()));
        if self.ending.is_empty() {
            wait
        } else {
            Some(wait.map_or(AGAIN_MS, |ms| ms.min(AGAIN_MS)))
        }
    }

    /// Waits until something happens, and does all that is to be done then.
    fn turn(&mut self) {
        let timeout = self.until_next();
        for token in self.poll.wait(timeout) {
            match token {
                SIGNALS => self.reap(),
                DOOR => self.open_door(),
                LINE => self.line.iter_mut().for_each(Line::fill),
                stream => self.read(stream),
            }
        }
        self.heed();
        self.end_lease();
        self.kill_due();
        self.settle();
        // What is not written yet stays to be written.
        let _next_time = self.journal.flush();
        self.speak();
        if self.journal.is_long(self.stories.len()) {
            self.write_anew();
        }
    }

    fn read(&mut self, token: u64) {
        let pid = i32::try_from(token >> 2).unwrap_or(0);
        let Some(Program { out, err, log, .. }) = self.programs.get_mut(&pid) else { return };
        take(if token & 1 == 1 { err } else { out }, log, &mut self.buffer);
    }

    /// Lets in the next host, and tells it all that is here.
    fn open_door(&mut self) {
        if self.line.is_some() {
            return;
        }
        let Ok(fd) = kernel::accept(&self.door) else { return };
        if self.poll.add(&fd, LINE).is_err() {
            return;
        }
        self.poll.remove(&self.door);
        self.host_by_ms = 0;
        let mut line = Line::new(fd);
        for (guid, story) in &self.stories {
            line.tell(guid, story);
        }
        line.say(WELCOME, RULES, &[]);
        self.line = Some(line);
        // Not at the end of a turn: this may be between two, and the host says nothing before it is welcome.
        self.speak();
    }

    /// Sends what is to be told. A host that has gone is let go of once all that it sent was heeded.
    fn speak(&mut self) {
        let Some(line) = &mut self.line else { return };
        let was_full = line.is_full;
        line.flush();
        if line.is_full != was_full {
            self.poll.change(&line.fd, LINE, line.is_full);
        }
        if line.is_over && !self.is_behind {
            self.line = None;
            let _seen_when_idle = self.poll.add(&self.door, DOOR);
        }
    }

    fn write_anew(&mut self) {
        // If there is no room for it, the old one goes on.
        if let Ok(journal) = Journal::begin(&self.boot, self.stories.iter()) {
            self.journal = journal;
            let _asked_again_later = self.journal.make_room(self.programs.len());
        }
    }
}

fn now_ms() -> u64 {
    u64::try_from(sys::wall_ms()).unwrap_or(0)
}
