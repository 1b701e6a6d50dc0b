use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use kapell_core::board::InstanceGuid;
use kapell_core::log::{Frame, LONGEST, Stream};
use kapell_core::seams::Timestamp;

use super::LogOf as Key;
use super::settings::CellSettings;

/// Where the output of containers lies: a directory a key, in it one a container.
#[derive(Debug, Clone)]
pub(super) struct Logs {
    /// None: nothing is kept.
    dir: Option<PathBuf>,
}

/// Where it lies what one container wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContainerLogs {
    pub dir: PathBuf,
    /// A directory each program, and one for remarks. Several may grow at the same time.
    pub parts: Vec<PathBuf>,
}

/// The output of one container.
#[derive(Debug)]
struct Kept {
    since: i64,
    guid: String,
    path: PathBuf,
}

impl Logs {
    pub(super) fn new(cell_dir: Option<&Path>) -> Self {
        Self { dir: cell_dir.map(|dir| dir.join("logs")) }
    }

    pub(super) const fn are_kept(&self) -> bool {
        self.dir.is_some()
    }

    fn dir(&self) -> &Path {
        self.dir.as_deref().unwrap_or(Path::new("logs"))
    }

    pub(super) fn of(&self, key: &Key, since: Timestamp, guid: &InstanceGuid) -> PathBuf {
        self.of_key(key).join(format!("{}-{guid}", since.0))
    }

    /// Where what a self-test writes would lie, if it wrote something.
    pub(super) fn of_self_test(&self) -> PathBuf {
        self.dir().join("self-test")
    }

    /// Those of all containers of a key, the oldest container first.
    pub(super) fn all_of(&self, key: &Key) -> Vec<ContainerLogs> {
        let kept = if self.are_kept() { kept(&self.of_key(key)) } else { Vec::new() };
        let logs = kept.into_iter().map(|each| each.path).map(|dir| {
            let parts = parts(&dir);
            ContainerLogs { dir, parts }
        });
        logs.filter(|logs| !logs.parts.is_empty()).collect()
    }

    fn of_key(&self, key: &Key) -> PathBuf {
        match key {
            Key::Lrp(key) => {
                let process = self.dir().join("lrp").join(key.process_guid.as_str());
                process.join(key.index.to_string())
            }
            Key::Task(guid) => self.dir().join("task").join(guid.as_str()),
        }
    }

    /// Removes what of a key is more than is kept. Containers that are `there` keep theirs.
    pub(super) fn prune_key(
        &self,
        key: &Key,
        there: &BTreeSet<InstanceGuid>,
        settings: &CellSettings,
    ) {
        prune(&self.of_key(key), there, settings.logs_per_key);
    }

    /// Goes through all that is kept.
    pub(super) fn prune_all(
        &self,
        there: &BTreeSet<InstanceGuid>,
        now: Timestamp,
        settings: &CellSettings,
    ) {
        let processes = directories(&self.dir().join("lrp"));
        let indices = processes.iter().flat_map(|process| directories(process));
        let mut idle: Vec<(i64, PathBuf)> = Vec::new();
        for key in indices.chain(directories(&self.dir().join("task"))) {
            let left = prune(&key, there, settings.logs_per_key);
            let in_use = left.iter().any(|each| is_there(each, there));
            // One that is empty goes only if it still is by then: somebody may be about to write there.
            if left.is_empty() && fs::remove_dir(&key).is_ok() {
                continue;
            }
            if !in_use {
                idle.push((left.last().map_or_else(|| modified(&key), |newest| newest.since), key));
            }
        }
        idle.sort();
        let too_many = idle.len().saturating_sub(settings.log_keys);
        let age = i64::try_from(settings.log_age.as_millis()).unwrap_or(i64::MAX);
        let oldest = now.0.saturating_sub(age);
        for (position, (newest, key)) in idle.into_iter().enumerate() {
            if position < too_many || newest < oldest {
                remove(&key);
            }
        }
        for process in processes {
            // Only one without any index left can be removed so.
            drop(fs::remove_dir(process));
        }
    }
}

/// What each program of a container has written, in the order in which they began.
pub(crate) fn parts(container: &Path) -> Vec<PathBuf> {
    let mut parts: Vec<(Option<SystemTime>, Option<u64>, PathBuf)> = directories(container)
        .into_iter()
        .map(|path| {
            let began = path.metadata().and_then(|about| about.created().or(about.modified()));
            let name = path.file_name().and_then(|name| name.to_str());
            // Clocks of file systems are coarse: of those that began at once, remarks come first.
            let leaf = name.and_then(|name| name.parse().ok());
            (began.ok(), leaf, path)
        })
        .collect();
    parts.sort();
    // Older agents have left the only one there was in the directory itself.
    let is_log = |entry: fs::DirEntry| entry.path().extension().is_some_and(|it| it == "log");
    let older = fs::read_dir(container).is_ok_and(|it| it.flatten().any(is_log));
    let older = older.then(|| container.to_owned());
    older.into_iter().chain(parts.into_iter().map(|(.., path)| path)).collect()
}

/// Adds a remark of ours to what a container has written. They are few: one file takes them all.
pub(super) fn say(logs: &Path, at: Timestamp, text: &str) {
    let dir = logs.join("say");
    let mut bytes = text.as_bytes().to_vec();
    bytes.truncate(LONGEST - 1);
    bytes.push(b'\n');
    let frame = Frame { stream: Stream::Note, at, bytes }.encode();
    let append = || File::options().append(true).create(true).open(dir.join("00000001.log"));
    let said = fs::create_dir_all(&dir).and_then(|()| append()?.write_all(&frame));
    if let Err(error) = said {
        tracing::warn!(dir = %dir.display(), %error, "cannot add to the logs of a container");
    }
}

fn is_there(kept: &Kept, there: &BTreeSet<InstanceGuid>) -> bool {
    there.contains(&InstanceGuid::new(kept.guid.as_str()))
}

/// Removes the oldest of a key beyond `most`, and says what is left.
fn prune(key: &Path, there: &BTreeSet<InstanceGuid>, most: usize) -> Vec<Kept> {
    let all = kept(key);
    let surplus = all.len().saturating_sub(most);
    let mut left = Vec::new();
    for (position, each) in all.into_iter().enumerate() {
        if position < surplus && !is_there(&each, there) {
            remove(&each.path);
        } else {
            left.push(each);
        }
    }
    left
}

fn kept(key: &Path) -> Vec<Kept> {
    let mut all: Vec<Kept> = directories(key)
        .into_iter()
        .filter_map(|path| {
            let (since, guid) = path.file_name()?.to_str()?.split_once('-')?;
            Some(Kept { since: since.parse().ok()?, guid: guid.to_owned(), path: path.clone() })
        })
        .collect();
    all.sort_by(|a, b| (a.since, &a.guid).cmp(&(b.since, &b.guid)));
    all
}

fn directories(of: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(of) else { return Vec::new() };
    let is_dir = |entry: &fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_dir());
    entries.filter_map(Result::ok).filter(is_dir).map(|entry| entry.path()).collect()
}

/// When something was last made or removed in a directory, in milliseconds.
fn modified(dir: &Path) -> i64 {
    let modified = dir.metadata().and_then(|about| about.modified()).ok();
    let since = modified.and_then(|at| at.duration_since(SystemTime::UNIX_EPOCH).ok());
    since.and_then(|since| i64::try_from(since.as_millis()).ok()).unwrap_or(i64::MAX)
}

fn remove(dir: &Path) {
    match fs::remove_dir_all(dir) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => tracing::warn!(dir = %dir.display(), %error, "cannot remove old logs"),
    }
}
