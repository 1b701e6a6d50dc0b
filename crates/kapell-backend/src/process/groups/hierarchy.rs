//! One tree of control groups: of version 2 there is one for all that is controlled, of version 1 there are several.

use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::containers::{Enforced, Error, Limits};
use crate::process::trouble;

/// How long what was killed may take to be gone.
const PATIENCE: Duration = Duration::from_secs(10);
const TRIALS: usize = 20;
const PAUSE: Duration = Duration::from_millis(1);
/// As long a time the processor is shared out for, unless the kernel is told otherwise.
const PERIOD_US: u64 = 100_000;
/// The kernel takes no less.
const LEAST_QUOTA_US: u64 = 1_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

/// A tree of control groups, as a line of `mountinfo` tells of it.
#[derive(Debug)]
pub(crate) struct Mounted<'a> {
    version: Version,
    pub(crate) root: PathBuf,
    options: Option<&'a str>,
}

/// None if it is about something else.
pub(crate) fn mounted(line: &str) -> Option<Mounted<'_>> {
    let (place, about) = line.split_once(" - ")?;
    let root = PathBuf::from(unescape(place.split(' ').nth(4)?));
    let mut about = about.split(' ');
    let version = match about.next()? {
        "cgroup" => Version::One,
        "cgroup2" => Version::Two,
        _ => return None,
    };
    Some(Mounted { version, root, options: about.nth(1) })
}

#[derive(Debug)]
pub(super) struct Hierarchy {
    version: Version,
    /// Where it is mounted.
    root: PathBuf,
    /// The agent's own group.
    pub(super) dir: PathBuf,
    pub(super) controls: Enforced,
}

impl Hierarchy {
    /// From a line of `mountinfo`. None if it is no such tree, controls nothing that we limit, or may not be changed.
    pub(super) fn open(mount: &str, name: &str) -> Option<Self> {
        let Mounted { version, root, options } = mounted(mount)?;
        let controllers = match version {
            Version::One => options?.replace(',', " "),
            Version::Two => fs::read_to_string(root.join("cgroup.controllers")).ok()?,
        };
        let has = |controller| controllers.split_whitespace().any(|each| each == controller);
        let controls = Enforced { memory: has("memory"), cpu: has("cpu"), pids: has("pids") };
        if controls == Enforced::default() {
            return None;
        }
        let dir = root.join("kapell").join(name);
        let hierarchy = Self { version, root, dir, controls };
        let may = hierarchy.prepare().is_ok();
        hierarchy.leave();
        may.then_some(hierarchy)
    }

    /// Makes the agent's own group, which is there as long as there are containers.
    fn prepare(&self) -> io::Result<()> {
        // Another agent may be removing the common one at the same time.
        retry(|| fs::create_dir_all(&self.dir))?;
        match self.version {
            Version::One => Ok(()),
            Version::Two => {
                let wanted = [
                    ("+memory ", self.controls.memory),
                    ("+cpu ", self.controls.cpu),
                    ("+pids ", self.controls.pids),
                ];
                let wanted: String =
                    wanted.into_iter().filter(|(_, is_so)| *is_so).map(|(text, _)| text).collect();
                for dir in [&self.root, &self.root.join("kapell"), &self.dir] {
                    write(dir, "cgroup.subtree_control", wanted.trim_end())?;
                }
                Ok(())
            }
        }
    }

    pub(super) fn limits_any(&self, limits: &Limits) -> bool {
        let Limits { memory_mb, cpu_millis, pids } = limits;
        (self.controls.memory && memory_mb.is_some())
            || (self.controls.cpu && cpu_millis.is_some())
            || (self.controls.pids && pids.is_some())
    }

    pub(super) fn join_file(&self, guid: &str) -> PathBuf {
        // Who moves itself as one thread holds up nobody else: for a whole process, all of the machine's
        // beginnings and ends have to wait.
        self.dir.join(guid).join(match self.version {
            Version::One => "tasks",
            Version::Two => "cgroup.procs",
        })
    }

    pub(super) fn oom_file(&self, guid: &str) -> Option<PathBuf> {
        let name = match self.version {
            Version::One => "memory.oom_control",
            Version::Two => "memory.events",
        };
        self.controls.memory.then(|| self.dir.join(guid).join(name))
    }

    pub(super) fn make(&self, guid: &str, limits: &Limits) -> Result<(), Error> {
        let dir = self.dir.join(guid);
        let mut made = fs::create_dir(&dir);
        if is_absent(&made) {
            made = retry(|| self.prepare().and_then(|()| fs::create_dir(&dir)));
        }
        match made {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(error),
            Ok(()) | Err(_) => self.limit(&dir, limits),
        }
        .map_err(trouble::io("set up the control group", &dir))
    }

    fn limit(&self, dir: &Path, limits: &Limits) -> io::Result<()> {
        if let Some(pids) = limits.pids.filter(|_| self.controls.pids) {
            write(dir, "pids.max", &pids.to_string())?;
        }
        if let Some(mb) = limits.memory_mb.filter(|_| self.controls.memory) {
            let bytes = (u64::from(mb) << 20).to_string();
            match self.version {
                Version::One => {
                    write(dir, "memory.limit_in_bytes", &bytes)?;
                    // Not every kernel counts swap.
                    let _without = write(dir, "memory.memsw.limit_in_bytes", &bytes);
                }
                Version::Two => {
                    write(dir, "memory.max", &bytes)?;
                    let _without = write(dir, "memory.swap.max", "0");
                }
            }
        }
        if let Some(millis) = limits.cpu_millis.filter(|_| self.controls.cpu) {
            let quota = (u64::from(millis) * PERIOD_US / 1000).max(LEAST_QUOTA_US);
            match self.version {
                Version::One => write(dir, "cpu.cfs_quota_us", &quota.to_string())?,
                Version::Two => write(dir, "cpu.max", &format!("{quota} {PERIOD_US}"))?,
            }
        }
        Ok(())
    }

    /// The containers that have a group here.
    pub(super) fn guids(&self) -> Vec<String> {
        below(&self.dir)
            .into_iter()
            .filter_map(|dir| dir.file_name()?.to_str().map(str::to_owned))
            .collect()
    }

    pub(super) fn kill(&self, guid: &str) -> Result<(), Error> {
        let dir = self.dir.join(guid);
        let deadline = Instant::now() + PATIENCE;
        while kill_all(&dir) {
            if Instant::now() >= deadline {
                return Err(trouble::io("end all in the control group", &dir)(
                    ErrorKind::TimedOut.into(),
                ));
            }
            std::thread::sleep(PAUSE);
        }
        Ok(())
    }

    /// Leaves nothing behind, unless there are containers or other agents.
    fn leave(&self) {
        let _in_use =
            fs::remove_dir(&self.dir).and_then(|()| fs::remove_dir(self.root.join("kapell")));
    }

    /// Kills whatever is in it first, if there is something.
    pub(super) fn remove(&self, guid: &str) -> Result<(), Error> {
        let dir = self.dir.join(guid);
        let deadline = Instant::now() + PATIENCE;
        loop {
            match remove_all(&dir) {
                Err(error)
                    if error.kind() == ErrorKind::ResourceBusy && Instant::now() < deadline =>
                {
                    self.kill(guid)?;
                    std::thread::sleep(PAUSE);
                }
                Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
                Ok(()) => {
                    self.leave();
                    return Ok(());
                }
                removed @ Err(_) => {
                    return removed.map_err(trouble::io("remove the control group", &dir));
                }
            }
        }
    }
}

/// Whether something on the way was not there.
fn is_absent(made: &io::Result<()>) -> bool {
    made.as_ref().is_err_and(|error| error.kind() == ErrorKind::NotFound)
}

/// Whoever removes what is empty does so in between a few times at most.
fn retry(step: impl Fn() -> io::Result<()>) -> io::Result<()> {
    let mut made = step();
    for _ in 0..TRIALS {
        if !is_absent(&made) {
            break;
        }
        made = step();
    }
    made
}

/// Signals all that is in a group or below it; false if nothing is.
fn kill_all(dir: &Path) -> bool {
    let mut is_any = false;
    for below in below(dir) {
        is_any |= kill_all(&below);
    }
    let members = fs::read_to_string(dir.join("cgroup.procs")).unwrap_or_default();
    if members.is_empty() {
        return is_any;
    }
    // Nothing is born any more, so who is quicker than we are gains nothing by it.
    let _where_it_can = write(dir, "pids.max", "0");
    for pid in members.lines().filter_map(|line| line.parse().ok()).filter(|pid| *pid > 1) {
        let _gone = kill(Pid::from_raw(pid), Signal::SIGKILL);
    }
    true
}

fn remove_all(dir: &Path) -> io::Result<()> {
    match fs::remove_dir(dir) {
        // There may be others below it.
        Err(error) if error.kind() == ErrorKind::ResourceBusy => {
            below(dir).iter().try_for_each(|below| remove_all(below))?;
            fs::remove_dir(dir)
        }
        removed => removed,
    }
}

fn below(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let is_dir = |entry: &fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_dir());
    entries.filter(is_dir).map(|entry| entry.path()).collect()
}

fn write(dir: &Path, file: &str, text: &str) -> io::Result<()> {
    // The kernel makes no files on demand; a tree that stands for one in a test does.
    let mut file =
        OpenOptions::new().write(true).create(true).truncate(true).open(dir.join(file))?;
    file.write_all(text.as_bytes())
}

/// Spaces and the like stand there as three octal digits.
fn unescape(text: &str) -> String {
    let mut parts = text.split('\\');
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let code = part.get(..3).and_then(|digits| u8::from_str_radix(digits, 8).ok());
        match code {
            Some(code) => {
                plain.push(char::from(code));
                plain += &part[3..];
            }
            None => {
                plain.push('\\');
                plain += part;
            }
        }
    }
    plain
}
