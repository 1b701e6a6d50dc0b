//! Ends what is left of processes whose shims were killed.
//!
//! The program itself dies with its shim. What it had started is found by its session and group,
//! by the marks in its environment, and by the user, if that is the container's own and all of it ends.

use std::collections::BTreeSet;
use std::fs;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::run_home::RunHome;
use super::spec_file::{CONTAINER_MARK, PROCESS_MARK};
use crate::containers::Error;

/// How long a killed process may take to be gone.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long a program may take to die after its shim.
const LEADER_DIES: Duration = Duration::from_millis(300);
const PAUSE: Duration = Duration::from_millis(2);

/// A process without its shim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Left {
    /// Whoever has all of these in its environment is part of it.
    marks: Vec<Vec<u8>>,
    /// Its program led a session and a group of this number.
    program: Option<i32>,
    /// Whoever runs as this user is part of it.
    user: Option<u32>,
}

impl Left {
    pub(crate) fn of(guid: &str, name: &str, home: &RunHome) -> Result<Self, Error> {
        let header = home.header()?;
        let whole = header.as_ref().is_some_and(|header| header.whole);
        let mut marks = vec![format!("{CONTAINER_MARK}={guid}").into_bytes()];
        if !whole {
            marks.push(format!("{PROCESS_MARK}={name}").into_bytes());
        }
        let user = header.filter(|header| header.own_user).and_then(|header| header.uid());
        Ok(Self { marks, program: home.program()?, user })
    }
}

/// Looks through all processes once for all containers that wait for it, not once for each.
#[derive(Debug, Default)]
pub(crate) struct Sweeper {
    waiting: Mutex<Vec<Left>>,
    sweeping: Mutex<()>,
}

impl Sweeper {
    /// Returns when nothing of them is left.
    pub(crate) fn sweep(&self, left: impl IntoIterator<Item = Left>) {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).extend(left);
        let _one_at_a_time = self.sweeping.lock().unwrap_or_else(PoisonError::into_inner);
        let all = std::mem::take(&mut *self.waiting.lock().unwrap_or_else(PoisonError::into_inner));
        // None: somebody has swept for us while we waited.
        if !all.is_empty() {
            sweep_all(&all);
        }
    }
}

fn sweep_all(left: &[Left]) {
    let signs = Signs {
        marks: left.iter().map(|each| each.marks.clone()).collect(),
        programs: left.iter().filter_map(|each| each.program).collect(),
        users: left.iter().filter_map(|each| each.user).collect(),
    };
    let start = Instant::now();
    while start.elapsed() < PATIENCE {
        let found = find(&signs);
        if found.pids.is_empty() && (!found.leader_lives || start.elapsed() > LEADER_DIES) {
            return;
        }
        for pid in found.pids {
            let _gone = kill(Pid::from_raw(pid), Signal::SIGKILL);
        }
        std::thread::sleep(PAUSE);
    }
}

/// What to know them by.
#[derive(Debug)]
struct Signs {
    marks: BTreeSet<Vec<Vec<u8>>>,
    programs: BTreeSet<i32>,
    users: BTreeSet<u32>,
}

#[derive(Debug, Default)]
struct Found {
    pids: Vec<i32>,
    /// A process with the number of a program lives and does not bear the mark: either it is about
    /// to die, or it is somebody else's, because the number was given away again.
    leader_lives: bool,
}

#[derive(Debug)]
struct Process {
    pid: i32,
    group: i32,
    session: i32,
}

/// Everything alive that belongs to one of them.
fn find(signs: &Signs) -> Found {
    let Signs { marks, programs, users } = signs;
    let Ok(entries) = fs::read_dir("/proc") else { return Found::default() };
    let alive: Vec<Process> = entries
        .flatten()
        .filter_map(|entry| read_process(entry.file_name().to_str()?.parse().ok()?))
        .collect();
    let is_marked = |pid: &i32| has_mark(*pid, marks) || runs_as(*pid, users);
    let mut pids: BTreeSet<i32> =
        alive.iter().map(|process| process.pid).filter(is_marked).collect();
    let strange: BTreeSet<i32> = alive
        .iter()
        .map(|process| process.pid)
        .filter(|pid| programs.contains(pid) && !pids.contains(pid))
        .collect();
    let is_ours = |leader: &i32| programs.contains(leader) && !strange.contains(leader);
    let members =
        alive.iter().filter(|process| is_ours(&process.session) || is_ours(&process.group));
    pids.extend(members.map(|process| process.pid));
    Found { pids: pids.into_iter().collect(), leader_lives: !strange.is_empty() }
}

/// None if it is dead.
fn read_process(pid: i32) -> Option<Process> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    let stat = String::from_utf8_lossy(&stat);
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace();
    let is_dead = matches!(fields.next()?, "Z" | "X");
    let _parent = fields.next()?;
    let (group, session) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    (!is_dead && pid != std::process::id().cast_signed()).then_some(Process { pid, group, session })
}

fn has_mark(pid: i32, marks: &BTreeSet<Vec<Vec<u8>>>) -> bool {
    let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    let ours = |variable: &&[u8]| {
        let is_named = |name: &str| variable.starts_with(name.as_bytes());
        is_named(CONTAINER_MARK) || is_named(PROCESS_MARK)
    };
    let found: BTreeSet<&[u8]> = environment.split(|byte| *byte == 0).filter(ours).collect();
    !found.is_empty()
        && marks.iter().any(|all| all.iter().all(|mark| found.contains(mark.as_slice())))
}

/// By its real user, which no program of a container can change.
fn runs_as(pid: i32, users: &BTreeSet<u32>) -> bool {
    if users.is_empty() {
        return false;
    }
    let status = fs::read(format!("/proc/{pid}/status")).unwrap_or_default();
    let status = String::from_utf8_lossy(&status);
    let uids = status.lines().find_map(|line| line.strip_prefix("Uid:"));
    let real = uids.and_then(|uids| uids.split_ascii_whitespace().next()?.parse().ok());
    real.is_some_and(|uid| users.contains(&uid))
}
