//! Processes whose parents have ended: they fall to us, and end with the program that they are of.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;

use super::journal::Stories;
use super::kernel;
use super::program::Program;
use crate::container::children;
use crate::{number, sys};

/// In the environment of all that a program starts.
const MARK: &[u8] = b"KAPELL_CONTAINER=";
/// How long what was killed may take to be gone.
const PATIENCE_MS: u64 = 10_000;
/// How often the environment of a process is looked for that is about to have one, a millisecond apart.
const MOST_LOOKS: u32 = 50;
const LEAST_LOOKS: u32 = 3;

#[derive(Clone, Copy)]
enum Owner {
    Program(i32),
    /// It has neither the session nor the mark of any. When it was born, in the kernel's unit.
    Nobody {
        born: u64,
    },
}

#[derive(Default)]
pub(super) struct Orphans(BTreeMap<i32, Owner>);

impl Orphans {
    /// Its number may be somebody else's from now on.
    pub(super) fn reaped(&mut self, pid: i32) {
        self.0.remove(&pid);
    }

    /// Whether there are some of which nobody knows whose they are.
    pub(super) fn has_strangers(&self) -> bool {
        self.0.values().any(|owner| matches!(owner, Owner::Nobody { .. }))
    }

    /// Kills those of programs that have ended; tells which of these have some that are not gone yet.
    ///
    /// One that is nobody's ends as soon as no program runs that was there when it was born.
    pub(super) fn sweep(&mut self, programs: &BTreeMap<i32, Program>) -> BTreeSet<i32> {
        let mut waits = BTreeSet::new();
        let running = programs.values().filter(|program| program.end.is_none());
        let oldest = running.map(|program| program.born_ticks).min();
        for pid in children().into_iter().filter(|pid| !programs.contains_key(pid)) {
            let owner = *self.0.entry(pid).or_insert_with(|| look(pid, programs));
            let ends = match owner {
                Owner::Program(program) => {
                    waits.insert(program);
                    programs.get(&program).is_none_or(|program| program.end.is_some())
                }
                Owner::Nobody { born } => oldest.is_none_or(|oldest| born < oldest),
            };
            if ends {
                sys::signal(pid, libc::SIGKILL);
            }
        }
        waits
    }
}

fn look(pid: i32, programs: &BTreeMap<i32, Program>) -> Owner {
    if let Some(session) = kernel::session(pid).filter(|session| programs.contains_key(session)) {
        return Owner::Program(session);
    }
    let guid = mark(pid);
    let owner = programs.iter().find(|(_, program)| Some(&program.guid) == guid.as_ref());
    owner.map_or_else(|| Owner::Nobody { born: born(pid) }, |(program, _)| Owner::Program(*program))
}

fn file(pid: i32, name: &[u8]) -> Vec<u8> {
    let mut path = Vec::from(*b"/proc/");
    number::push(&mut path, u64::from(pid.unsigned_abs()), 0);
    path.extend_from_slice(name);
    fs::read(OsStr::from_bytes(&path)).unwrap_or_default()
}

/// Of which program a process says that it is.
fn mark(pid: i32) -> Option<Vec<u8>> {
    let mut environment = file(pid, b"/environ");
    for look in 0..MOST_LOOKS {
        // What is so now may not have been so when the environment was read.
        let is_certain = look >= LEAST_LOOKS && !is_between_programs(pid);
        if !environment.is_empty() || is_certain {
            break;
        }
        sys::poll([-1; 3], Some(1));
        environment = file(pid, b"/environ");
    }
    let mut variables = environment.split(|byte| *byte == 0);
    variables.find_map(|variable| variable.strip_prefix(MARK)).map(<[u8]>::to_vec)
}

/// What the kernel tells of a process, from the third field on: those before it are the number and the name.
fn stat(pid: i32) -> Vec<u8> {
    let mut stat = file(pid, b"/stat");
    let after = stat.iter().rposition(|byte| *byte == b')').map_or(0, |at| at + 2);
    stat.drain(..after.min(stat.len()));
    stat
}

/// When it was started: the twenty-second field. What cannot be read is gone, and older than all.
fn born(pid: i32) -> u64 {
    stat(pid).split(|byte| *byte == b' ').nth(19).and_then(number::parse).unwrap_or(0)
}

/// Whether a process has left one program and the next is not there yet: it has no environment then, not even an empty one.
/// The end of that is the fifty-first field.
fn is_between_programs(pid: i32) -> bool {
    let stat = stat(pid);
    let mut fields = stat.split(|byte| *byte == b' ');
    !matches!(fields.next(), None | Some(b"" | b"Z" | b"X")) && fields.nth(47) == Some(b"0")
}

/// One that has ended stays in the list until its parent asks how, which may be never.
fn has_ended(pid: i32) -> bool {
    matches!(stat(pid).first(), None | Some(b'Z' | b'X'))
}

/// Ends what programs have left that an earlier runner did not see end. Returns when nothing of them is left.
pub(super) fn end_all(stories: &Stories) {
    let deadline = sys::monotonic_ms() + PATIENCE_MS;
    let unfinished = || stories.iter().filter(|(_, story)| story.end.is_none());
    let sessions: BTreeSet<i32> = unfinished().filter_map(|(_, story)| story.pid).collect();
    let names: BTreeSet<&Vec<u8>> = unfinished().map(|(name, _)| name).collect();
    if names.is_empty() {
        return;
    }
    loop {
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        let pids = entries.filter_map(|entry| number::parse(entry.file_name().as_encoded_bytes()));
        let is_left = |pid: &i32| {
            let is_marked = mark(*pid).is_some_and(|mark| names.contains(&mark));
            // A session whose leader lives and has no mark is somebody else's who was given the number.
            let is_of =
                |leader: i32| sessions.contains(&leader) && file(leader, b"/environ").is_empty();
            let is_in = || kernel::session(*pid).is_some_and(|of| of != *pid && is_of(of));
            (is_marked || is_in()) && !has_ended(*pid)
        };
        let left: Vec<i32> =
            pids.filter_map(|pid| i32::try_from(pid).ok()).filter(is_left).collect();
        if left.is_empty() || sys::monotonic_ms() >= deadline {
            return;
        }
        for pid in left {
            sys::signal(pid, libc::SIGKILL);
        }
        sys::poll([-1; 3], Some(2));
    }
}
