//! Runs that were: where they are kept, how they are found, and how long they stay.

use std::fs;
use std::io::{self, BufRead as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use kapell_core::journal::{self, Record, Story};
use kapell_core::seams::{RunId, Timestamp};
use kapell_store::frames::Frames;
use kapell_store::lines::{LineLog, is_being_written};

use super::journal::RunJournal;

const JOURNAL: &str = "journal.jsonl";
const OUTPUT: &str = "output.log";

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HistoryError {
    #[error("cannot keep history in `{dir}`: {reason}")]
    Unusable { dir: PathBuf, reason: String },
    #[error("there is no earlier run of `{file}`")]
    NoRun { file: String },
    #[error("there is no run `{id}`: `kapell workflow list` shows those that there are")]
    UnknownRun { id: String },
    #[error("`{id}` fits several runs: {}", .candidates.join(", "))]
    Ambiguous { id: String, candidates: Vec<String> },
    #[error("run {id} cannot be read")]
    Unreadable {
        id: String,
        #[source]
        source: io::Error,
    },
    #[error("run {id} cannot be read")]
    Damaged {
        id: String,
        #[source]
        source: journal::Error,
    },
}

/// How much history is kept of one workflow file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    pub runs: usize,
    pub age: Duration,
}

/// All runs of one user.
#[derive(Debug, Clone)]
pub struct History {
    root: PathBuf,
    /// A directory on the way there that others could have made.
    exposed: Option<PathBuf>,
}

/// One run, by where it is kept.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Run {
    pub id: RunId,
    pub dir: PathBuf,
}

/// How a run stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunStatus {
    Running,
    Succeeded,
    Failed,
    Interrupted,
    /// Neither running nor ended: its process was killed, or the machine stopped.
    Killed,
}

impl RunStatus {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Interrupted => "interrupted",
            Self::Killed => "killed",
        }
    }
}

impl History {
    /// History below a state directory. Nothing is created before the first run.
    pub fn below(state_dir: &Path) -> Self {
        Self { root: state_dir.join("runs"), exposed: None }
    }

    /// The same, where others may have made the state directory first: then it is not used at all.
    pub fn below_exposed(state_dir: &Path) -> Self {
        Self { exposed: Some(state_dir.to_owned()), ..Self::below(state_dir) }
    }

    /// Begins the journal of a run.
    pub fn create(
        &self,
        file: &Path,
        now: Timestamp,
        drawn: u64,
    ) -> Result<RunJournal, HistoryError> {
        let id = RunId::new(&stamp(now), drawn);
        let dir = self.root.join(folder(file)).join(id.as_str());
        let unusable = |reason: String| HistoryError::Unusable { dir: dir.clone(), reason };
        if let Some(exposed) = &self.exposed {
            claim(exposed).map_err(unusable)?;
        }
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&dir)
            .map_err(|error| unusable(error.to_string()))?;
        let log = LineLog::create(&dir.join(JOURNAL)).map_err(|error| {
            let cause = std::error::Error::source(&error).map(ToString::to_string);
            unusable(cause.unwrap_or_default())
        })?;
        Ok(RunJournal::new(id, dir, log))
    }

    /// Where the output of a run goes.
    pub(super) fn output_of(dir: &Path) -> PathBuf {
        dir.join(OUTPUT)
    }

    /// All runs, oldest first; of one file if asked. One that never began is none.
    pub fn runs(&self, file: Option<&Path>) -> Vec<Run> {
        self.all(file).into_iter().filter(Run::has_begun).collect()
    }

    fn all(&self, file: Option<&Path>) -> Vec<Run> {
        if self.exposed.as_ref().is_some_and(|dir| is_ours(dir).is_err()) {
            return Vec::new();
        }
        let folders = match file {
            Some(file) => vec![self.root.join(folder(file))],
            None => entries(&self.root),
        };
        let mut runs: Vec<Run> = folders
            .iter()
            .flat_map(|folder| entries(folder))
            .filter_map(|dir| {
                let id = RunId::parse(dir.file_name()?.to_str()?)?;
                dir.join(JOURNAL).is_file().then_some(Run { id, dir })
            })
            .collect();
        runs.sort();
        runs
    }

    /// The last run of a file.
    pub fn last(&self, file: &Path) -> Result<Run, HistoryError> {
        let none = || HistoryError::NoRun { file: file.display().to_string() };
        let mut runs = self.all(Some(file)).into_iter().rev();
        runs.find(|run| run.has_begun() || run.is_running()).ok_or_else(none)
    }

    /// The last run of a file that does not go on any more.
    pub fn last_ended(&self, file: &Path) -> Option<Run> {
        let mut runs = self.all(Some(file)).into_iter().rev();
        runs.find(|run| run.has_begun() && !run.is_running())
    }

    /// The run with this id, or with the only id that begins or ends so.
    pub fn find(&self, id: &str) -> Result<Run, HistoryError> {
        let mut fitting: Vec<Run> = self
            .runs(None)
            .into_iter()
            .filter(|run| run.id.as_str().starts_with(id) || run.id.as_str().ends_with(id))
            .collect();
        if let Some(exact) = fitting.iter().position(|run| run.id.as_str() == id) {
            return Ok(fitting.swap_remove(exact));
        }
        match fitting.len() {
            0 => Err(HistoryError::UnknownRun { id: id.to_owned() }),
            1 => Ok(fitting.remove(0)),
            _ => {
                let candidates = fitting.iter().take(5).map(|run| run.id.to_string()).collect();
                Err(HistoryError::Ambiguous { id: id.to_owned(), candidates })
            }
        }
    }

    /// Removes runs of a file beyond the limits, never one that is running.
    pub fn prune(&self, file: &Path, limits: Limits, now: Timestamp) {
        let runs = self.all(Some(file));
        let too_many = runs.len().saturating_sub(limits.runs.max(1));
        let oldest = now.0 - i64::try_from(limits.age.as_millis()).unwrap_or(i64::MAX);
        let eldest_kept = stamp(Timestamp(oldest.max(0)));
        let newest = runs.len().saturating_sub(1);
        for (at, run) in runs.iter().enumerate() {
            let beyond = at < too_many || (at < newest && run.id.as_str() < eldest_kept.as_str());
            if beyond && !is_being_written(&run.dir.join(JOURNAL)).unwrap_or(true) {
                // What cannot be removed now is tried again after the next run.
                let _gone = fs::remove_dir_all(&run.dir);
            }
        }
    }
}

impl Run {
    pub fn story(&self) -> Result<Story, HistoryError> {
        let id = || self.id.to_string();
        let mut bytes = fs::read(self.dir.join(JOURNAL))
            .map_err(|source| HistoryError::Unreadable { id: id(), source })?;
        // A last line that was cut off may end within a character.
        bytes.truncate(bytes.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1));
        let text = String::from_utf8(bytes).map_err(|error| {
            let good = &error.as_bytes()[..error.utf8_error().valid_up_to()];
            let line = 1 + good.iter().filter(|&&byte| byte == b'\n').count();
            let source = journal::Error::Damaged { line, problem: "it is not UTF-8".to_owned() };
            HistoryError::Damaged { id: id(), source }
        })?;
        Story::read(&text).map_err(|source| HistoryError::Damaged { id: id(), source })
    }

    /// Whether the head is whole, with all it keeps of an earlier run: one that was killed before
    /// that never ran a step.
    fn has_begun(&self) -> bool {
        let Ok(journal) = fs::File::open(self.dir.join(JOURNAL)) else { return false };
        let mut journal = io::BufReader::new(journal);
        let mut line = Vec::new();
        let mut next_is_whole = |line: &mut Vec<u8>| {
            line.clear();
            journal.read_until(b'\n', line).is_ok() && line.ends_with(b"\n")
        };
        if !next_is_whole(&mut line) {
            return false;
        }
        let kept = match serde_json::from_slice(&line) {
            Ok(Record::Run(header)) => header.kept,
            Ok(Record::Node(_) | Record::End(_)) | Err(_) => 0,
        };
        (0..kept).all(|_| next_is_whole(&mut line))
    }

    pub fn is_running(&self) -> bool {
        is_being_written(&self.dir.join(JOURNAL)).unwrap_or(false)
    }

    pub fn status(&self, story: &Story) -> RunStatus {
        match story.end.as_ref().map(|end| end.verdict.as_str()) {
            Some("succeeded") => RunStatus::Succeeded,
            Some("interrupted") => RunStatus::Interrupted,
            Some(_) => RunStatus::Failed,
            None if self.is_running() => RunStatus::Running,
            None => RunStatus::Killed,
        }
    }

    /// The output of its steps; none if they wrote nothing.
    pub fn output(&self) -> io::Result<Option<Frames>> {
        Frames::open(&self.dir.join(OUTPUT))
    }
}

/// Makes a directory that only we can use, or finds it so.
fn claim(dir: &Path) -> Result<(), String> {
    match fs::DirBuilder::new().mode(0o700).create(dir) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => is_ours(dir),
        made => made.map_err(|error| error.to_string()),
    }
}

/// Whether a directory is ours and nobody else can put anything there.
fn is_ours(dir: &Path) -> Result<(), String> {
    let found = fs::symlink_metadata(dir).map_err(|error| error.to_string())?;
    let shown = dir.display();
    if !found.is_dir() {
        return Err(format!("`{shown}` is no directory"));
    }
    if found.uid() != crate::system::user() {
        return Err(format!("`{shown}` belongs to another user"));
    }
    if found.mode() & 0o022 != 0 {
        return Err(format!("others may write to `{shown}`"));
    }
    Ok(())
}

fn entries(dir: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(dir) else { return Vec::new() };
    entries.flatten().map(|entry| entry.path()).collect()
}

/// A compact time that sorts as text.
fn stamp(at: Timestamp) -> String {
    let time = jiff::Timestamp::from_millisecond(at.0).unwrap_or_default();
    time.strftime("%Y%m%d-%H%M%S%3f").to_string()
}

/// The one path that a file is known by, however it was named.
pub fn whole_path(file: &Path) -> PathBuf {
    fs::canonicalize(file).unwrap_or_else(|_| file.to_owned())
}

/// The folder of a file's runs: its name for people, and the whole path for certainty.
fn folder(file: &Path) -> String {
    let whole = whole_path(file);
    let stem =
        whole.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned());
    let safe: String =
        stem.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).take(40).collect();
    format!("{safe}-{:016x}", digest(whole.as_os_str().as_encoded_bytes()))
}

/// FNV-1a: tells texts apart, the same on every machine and in every version.
pub fn digest(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn history_with(runs: &[i64]) -> (tempfile::TempDir, History, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let history = History::below(dir.path());
        let file = dir.path().join("flow.yaml");
        for (at, &ms) in runs.iter().enumerate() {
            let journal = history.create(&file, Timestamp(ms), at as u64).unwrap();
            fs::write(journal.dir.join(JOURNAL), "begun\n").unwrap();
        }
        (dir, history, file)
    }

    #[test]
    fn runs_come_oldest_first() {
        let (_dir, history, file) = history_with(&[5_000, 1_000, 3_000]);
        let runs = history.runs(Some(&file));
        assert_eq!(runs.len(), 3);
        assert!(runs.is_sorted());
        assert_eq!(history.last(&file).unwrap(), runs[2]);
    }

    #[test]
    fn a_run_is_found_by_a_part_of_its_id() {
        let (_dir, history, file) = history_with(&[1_000, 2_000]);
        let last = history.last(&file).unwrap();
        assert_eq!(history.find("000000").unwrap().id.as_str(), "19700101-000001000-000000");
        assert_eq!(history.find(last.id.as_str()).unwrap(), last);
        assert!(matches!(history.find("1970"), Err(HistoryError::Ambiguous { .. })));
        assert!(matches!(history.find("nope"), Err(HistoryError::UnknownRun { .. })));
    }

    #[test]
    fn history_has_limits() {
        let (_dir, history, file) = history_with(&[1_000, 2_000, 3_000, 4_000]);
        let limits = Limits { runs: 3, age: Duration::from_secs(3_600) };
        history.prune(&file, limits, Timestamp(5_000));
        assert_eq!(history.runs(Some(&file)).len(), 3);
        let short = Limits { runs: 100, age: Duration::from_secs(2) };
        history.prune(&file, short, Timestamp(6_000));
        assert_eq!(history.runs(Some(&file)).len(), 1, "the last run stays, however old");
    }

    #[test]
    fn a_run_in_progress_is_never_pruned() {
        let (_dir, history, file) = history_with(&[]);
        let running = history.create(&file, Timestamp(1_000), 1).unwrap();
        drop(history.create(&file, Timestamp(2_000), 2).unwrap());
        history.prune(&file, Limits { runs: 1, age: Duration::from_secs(1) }, Timestamp(90_000));
        assert_eq!(history.all(Some(&file)).len(), 2);
        drop(running);
    }

    #[test]
    fn half_a_first_line_is_no_run() {
        let (_dir, history, file) = history_with(&[1_000]);
        let torn = history.create(&file, Timestamp(2_000), 7).unwrap();
        fs::write(torn.dir.join(JOURNAL), r#"{"kind":"run","v":1,"id":"1970"#).unwrap();
        let running = history.last(&file).unwrap();
        assert_eq!(&running.id, torn.id(), "it may still begin");
        assert!(history.last_ended(&file).is_some_and(|run| run.id != running.id));
        drop(torn);
        assert_eq!(history.runs(None).len(), 1);
        assert_eq!(history.last(&file).unwrap(), history.runs(None)[0]);
        assert!(matches!(history.find(running.id.as_str()), Err(HistoryError::UnknownRun { .. })));
    }

    #[test]
    fn a_directory_that_others_can_change_is_not_used() {
        use std::os::unix::fs::PermissionsExt as _;
        let dir = tempfile::tempdir().unwrap();
        let (state, file) = (dir.path().join("state"), dir.path().join("flow.yaml"));
        let history = History::below_exposed(&state);
        let made = history.create(&file, Timestamp(1_000), 1).unwrap();
        fs::write(made.dir.join(JOURNAL), "begun\n").unwrap();
        let rights = || fs::metadata(&state).unwrap().permissions().mode() & 0o777;
        assert_eq!((rights(), history.runs(None).len()), (0o700, 1));
        fs::set_permissions(&state, fs::Permissions::from_mode(0o770)).unwrap();
        assert_eq!(history.runs(None).len(), 0);
        let refused = history.create(&file, Timestamp(2_000), 2).unwrap_err();
        assert!(refused.to_string().contains("others may write to"), "{refused}");
        fs::rename(&state, dir.path().join("elsewhere")).unwrap();
        std::os::unix::fs::symlink("elsewhere", &state).unwrap();
        assert!(history.create(&file, Timestamp(3_000), 3).is_err());
    }
}
