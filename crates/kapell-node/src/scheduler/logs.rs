//! What the work of runs wrote: `runs/<job>/<moment>/<attempt>` in the data directory of the host.
//!
//! It outlives the work and what a backend keeps of it, and goes with the run.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use kapell_core::log::{Frame, HEAD, LONGEST, Stream};
use kapell_core::run::RunId;
use kapell_core::seams::Timestamp;

use super::backend::Attempt;
use crate::cell::{ContainerLogs, logs};

/// What was fetched from elsewhere is cut here.
pub const MOST_FETCHED: u64 = 16 << 20;
/// The part of a log that holds what was fetched.
const FETCHED: &str = "fetched";

/// The logs of runs below one directory.
#[derive(Debug, Clone)]
pub struct RunLogs {
    dir: PathBuf,
}

impl RunLogs {
    /// Nothing is made before something is written.
    pub fn below(data_dir: &Path) -> Self {
        Self { dir: data_dir.join("runs") }
    }

    fn of_job(&self, run: &RunId) -> PathBuf {
        self.dir.join(run.job())
    }

    fn of_run(&self, run: &RunId) -> PathBuf {
        // Neither a job nor a moment is a path: the ids of runs are checked.
        let moment = run.as_str().split_once(':').map_or("", |(_, moment)| moment);
        self.of_job(run).join(moment)
    }

    /// A directory for all that is kept of an attempt.
    pub fn of(&self, attempt: &Attempt) -> PathBuf {
        self.of_run(&attempt.run_id).join(attempt.number.to_string())
    }

    /// Where its output goes, a directory each program.
    pub fn output_of(&self, attempt: &Attempt) -> PathBuf {
        self.of(attempt).join("log")
    }

    /// The output of an attempt, to be read and followed as that of a container; none if nothing is kept here.
    pub fn read(&self, attempt: &Attempt) -> Option<ContainerLogs> {
        let dir = self.output_of(attempt);
        let parts = logs::parts(&dir);
        (!parts.is_empty()).then_some(ContainerLogs { dir, parts })
    }

    /// The numbers of the attempts of a run of which something is kept.
    pub fn attempts(&self, run: &RunId) -> Vec<u32> {
        let entries = fs::read_dir(self.of_run(run)).into_iter().flatten().flatten();
        let mut numbers: Vec<u32> =
            entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
        numbers.sort_unstable();
        numbers
    }

    /// Removes all of a run that the history has forgotten.
    pub fn forget(&self, run: &RunId) -> io::Result<()> {
        match fs::remove_dir_all(self.of_run(run)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
        // Only that of a job without any run left can be removed so.
        drop(fs::remove_dir(self.of_job(run)));
        Ok(())
    }

    /// Begins to keep what was written elsewhere, in the place of what was fetched before.
    pub fn fetch(&self, attempt: &Attempt) -> io::Result<Fetched> {
        let dir = self.output_of(attempt).join(FETCHED);
        make_private(&dir)?;
        let draft = dir.join("draft");
        let file = File::create(&draft)?;
        Ok(Fetched { file, draft, to: dir.join("00000001.log"), length: 0, cut: None })
    }
}

/// Which work there is concerns its owners only.
pub(super) fn make_private(dir: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(dir)
}

/// A log on its way from elsewhere: seen only when all of it is there.
#[derive(Debug)]
pub struct Fetched {
    file: File,
    draft: PathBuf,
    to: PathBuf,
    length: u64,
    /// When the first frame came that was too much.
    cut: Option<Timestamp>,
}

impl Fetched {
    /// Keeps a frame. False once there is no room for more.
    pub fn take(&mut self, frame: &Frame) -> io::Result<bool> {
        let size = u64::try_from(HEAD + frame.bytes.len()).unwrap_or(u64::MAX);
        if self.cut.is_some() || self.length.saturating_add(size) > MOST_FETCHED {
            self.cut.get_or_insert(frame.at);
            return Ok(false);
        }
        self.file.write_all(&frame.encode())?;
        self.length += size;
        Ok(true)
    }

    /// Says in the log what became of the rest of it.
    pub fn remark(&mut self, at: Timestamp, text: &str) -> io::Result<()> {
        let mut bytes = text.as_bytes().to_vec();
        bytes.truncate(LONGEST - 1);
        bytes.push(b'\n');
        self.file.write_all(&Frame { stream: Stream::Note, at, bytes }.encode())
    }

    /// Shows it.
    pub fn finish(mut self) -> io::Result<()> {
        if let Some(at) = self.cut {
            let most = MOST_FETCHED >> 20;
            self.remark(at, &format!("the rest was cut: a log of a run keeps {most} MiB"))?;
        }
        fs::rename(&self.draft, &self.to)
    }
}
