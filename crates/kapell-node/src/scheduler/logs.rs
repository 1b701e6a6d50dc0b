//! What the work of runs wrote: `runs/<job>/<moment>/<attempt>` in the data directory of the host.
//!
//! It outlives the work and what a backend keeps of it, and goes with the run. If there is a place for it that outlives
//! the host (`blobs`), it is copied there when the attempt is over.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use kapell_core::log::{Decoder, Frame, HEAD, LONGEST, Stream};
use kapell_core::run::RunId;
use kapell_core::seams::Timestamp;

use super::backend::Attempt;
use crate::cell::{ContainerLogs, logs};

/// What was fetched from elsewhere is cut here.
pub const MOST_FETCHED: u64 = 16 << 20;
/// The part of a log that holds what was fetched.
const FETCHED: &str = "fetched";
const SEGMENT: &str = "00000001.log";
/// What is on its way to the shared place ends so.
const DRAFT: &str = ".draft";

/// The logs of runs below one directory.
#[derive(Debug, Clone)]
pub struct RunLogs {
    dir: PathBuf,
    /// Where they are copied to, of the same form.
    blobs: Option<PathBuf>,
}

/// What is kept of a run in one place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lying {
    pub run_id: RunId,
    /// In the place that outlives the host.
    pub is_shared: bool,
    /// On the host, and all of it in the shared place too.
    pub is_double: bool,
    /// When something of it was written last.
    pub modified: SystemTime,
    pub bytes: u64,
}

impl RunLogs {
    /// Nothing is made before something is written.
    pub fn below(data_dir: &Path) -> Self {
        Self { dir: data_dir.join("runs"), blobs: None }
    }

    /// With a place that outlives the host. Clusters do not get in each other's way there: each has its name.
    #[must_use]
    pub fn with_blobs(self, dir: Option<&Path>, cluster: &str) -> Self {
        Self { blobs: dir.map(|dir| dir.join(cluster).join("runs")), ..self }
    }

    fn of_job(&self, run: &RunId) -> PathBuf {
        self.dir.join(run.job())
    }

    fn of_run(&self, run: &RunId) -> PathBuf {
        // Neither a job nor a moment is a path: the ids of runs are checked.
        self.of_job(run).join(run.rest())
    }

    /// A directory for all that is kept of an attempt.
    pub fn of(&self, attempt: &Attempt) -> PathBuf {
        self.of_run(&attempt.run_id).join(attempt.number.to_string())
    }

    /// Where its output goes, a directory each program.
    pub fn output_of(&self, attempt: &Attempt) -> PathBuf {
        self.of(attempt).join("log")
    }

    /// The same where it outlives the host.
    fn shared(&self) -> Option<Self> {
        Some(Self { dir: self.blobs.clone()?, blobs: None })
    }

    /// The output of an attempt, to be read and followed as that of a container; none if nothing is kept here.
    pub fn read(&self, attempt: &Attempt) -> Option<ContainerLogs> {
        let dir = self.output_of(attempt);
        let parts = logs::parts(&dir);
        if parts.is_empty() {
            return self.shared()?.read(attempt);
        }
        Some(ContainerLogs { dir, parts })
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

    /// Copies what an attempt wrote to where it outlives the host, if there is such a place. What is there already is
    /// all of it: nothing is seen there before it is whole.
    pub fn keep(&self, attempt: &Attempt) -> io::Result<()> {
        let Some(shared) = self.shared() else { return Ok(()) };
        let (from, to) = (self.output_of(attempt), shared.output_of(attempt));
        if to.exists() || !from.exists() {
            return Ok(());
        }
        let dir = shared.of(attempt);
        make_private(&dir)?;
        let draft = dir.join(format!("log.{}{DRAFT}", std::process::id()));
        let _left = fs::remove_dir_all(&draft);
        copy(&from, &draft)?;
        match fs::rename(&draft, &to) {
            // Somebody else has done it.
            Err(_) if to.exists() => fs::remove_dir_all(&draft),
            done => done,
        }
    }

    /// All that is kept, here and where it outlives the host.
    pub fn all(&self) -> io::Result<Vec<Lying>> {
        let mut all = listed(&self.dir, false)?;
        if let Some(shared) = self.shared() {
            for lying in &mut all {
                let is_there = |number: &u32| {
                    let attempt = Attempt { run_id: lying.run_id.clone(), number: *number };
                    shared.output_of(&attempt).exists()
                };
                lying.is_double = self.attempts(&lying.run_id).iter().all(is_there);
            }
            all.extend(listed(&shared.dir, true)?);
        }
        Ok(all)
    }

    pub fn remove(&self, lying: &Lying) -> io::Result<()> {
        match self.shared().filter(|_| lying.is_shared) {
            Some(shared) => shared.forget(&lying.run_id),
            None => self.forget(&lying.run_id),
        }
    }

    /// The same for what is still being written: it can be read as it comes. What is kept already stays, and is told to
    /// `known`, but for remarks on what became of the rest of it.
    pub fn follow(&self, attempt: &Attempt, known: impl FnMut(Frame)) -> io::Result<Fetched> {
        let dir = self.output_of(attempt).join(FETCHED);
        make_private(&dir)?;
        let to = dir.join(SEGMENT);
        let how = File::options().read(true).write(true).create(true).truncate(false).open(&to);
        let mut file = how?;
        let length = whole(&mut file, known)?;
        file.set_len(length)?;
        file.seek(SeekFrom::Start(length))?;
        Ok(Fetched { file, draft: to.clone(), to, length, cut: None })
    }

    /// Begins to keep what was written elsewhere, in the place of what was fetched before.
    pub fn fetch(&self, attempt: &Attempt) -> io::Result<Fetched> {
        let dir = self.output_of(attempt).join(FETCHED);
        make_private(&dir)?;
        let draft = dir.join("draft");
        let file = File::create(&draft)?;
        Ok(Fetched { file, draft, to: dir.join(SEGMENT), length: 0, cut: None })
    }
}

/// How many bytes of a log are whole frames of work, which it tells.
fn whole(file: &mut File, mut known: impl FnMut(Frame)) -> io::Result<u64> {
    let (mut decoder, mut chunk) = (Decoder::default(), vec![0; 64 << 10]);
    let (mut read, mut length) = (0, 0);
    loop {
        let count = file.read(&mut chunk)?;
        decoder.push(&chunk[..count]);
        // What is damaged is as good as what was not written to its end.
        while let Ok(Some(frame)) = decoder.next_frame() {
            read += size(&frame);
            if frame.stream != Stream::Note {
                length = read;
                known(frame);
            }
        }
        if count == 0 {
            return Ok(length);
        }
    }
}

/// The runs of which something lies in a directory.
fn listed(dir: &Path, is_shared: bool) -> io::Result<Vec<Lying>> {
    let mut found = Vec::new();
    for job in entries(dir)? {
        let name = job.file_name();
        let Some(job_id) = name.to_str() else { continue };
        for run in entries(&job.path())? {
            let rest = run.file_name();
            let Some(run_id) = rest.to_str().and_then(|rest| RunId::of_job(job_id, rest)) else {
                continue;
            };
            let mut seen = Seen { modified: SystemTime::UNIX_EPOCH, bytes: 0 };
            seen.take(&run.path())?;
            let Seen { modified, bytes } = seen;
            found.push(Lying { run_id, is_shared, is_double: false, modified, bytes });
        }
    }
    Ok(found)
}

struct Seen {
    modified: SystemTime,
    bytes: u64,
}

impl Seen {
    fn take(&mut self, path: &Path) -> io::Result<()> {
        // It may be gone again.
        let Ok(about) = fs::symlink_metadata(path) else { return Ok(()) };
        self.modified = self.modified.max(about.modified()?);
        if about.is_dir() {
            return entries(path)?.iter().try_for_each(|entry| self.take(&entry.path()));
        }
        self.bytes += about.len();
        Ok(())
    }
}

/// What is in a directory; nothing if there is none.
fn entries(dir: &Path) -> io::Result<Vec<fs::DirEntry>> {
    match fs::read_dir(dir) {
        Ok(entries) => entries.collect(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// Copies files and directories, and nothing else; all of it is on disk when it is done.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    make_private(to)?;
    for entry in entries(from)? {
        let (kind, to) = (entry.file_type()?, to.join(entry.file_name()));
        if kind.is_dir() {
            copy(&entry.path(), &to)?;
        } else if kind.is_file() {
            io::copy(&mut File::open(entry.path())?, &mut File::create(&to)?)?;
            File::open(&to)?.sync_all()?;
        }
    }
    File::open(to)?.sync_all()
}
/// Which work there is concerns its owners only.
pub(super) fn make_private(dir: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(dir)
}

fn size(frame: &Frame) -> u64 {
    u64::try_from(HEAD + frame.bytes.len()).unwrap_or(u64::MAX)
}

/// A log on its way from elsewhere: seen only when all of it is there, unless it is followed.
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
        let size = size(frame);
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
