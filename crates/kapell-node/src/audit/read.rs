//! Reading what was noted, a page at a time.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Seek as _, SeekFrom};
use std::path::Path;
use std::str::FromStr;

use kapell_core::audit::AuditRecord;
use kapell_core::seams::Timestamp;

use super::files::{list, path};

/// Up to where it was read: a file's number and an offset in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Place {
    pub(super) file: u64,
    pub(super) offset: u64,
}

impl FromStr for Place {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (file, offset) = text.split_once('-').ok_or(())?;
        Ok(Self { file: file.parse().map_err(drop)?, offset: offset.parse().map_err(drop)? })
    }
}

/// What is to be read.
#[derive(Debug)]
pub(super) struct Wanted {
    pub(super) from: Place,
    /// The file that this process writes to, 0 before it does: it comes last, whatever others that share the directory began since.
    pub(super) current: u64,
    pub(super) since: Timestamp,
    pub(super) most: usize,
}

/// Some records, the oldest first.
#[derive(Debug, PartialEq, Eq)]
pub struct Page {
    pub records: Vec<AuditRecord>,
    /// Where the next page begins.
    pub next: String,
    /// There was no more when it was read.
    pub is_last: bool,
}

/// Why nothing can be read.
#[derive(Debug, thiserror::Error)]
#[error("the audit files cannot be read: {0}")]
pub struct Bad(pub(super) String);

impl From<io::Error> for Bad {
    fn from(error: io::Error) -> Self {
        Self(error.to_string())
    }
}

type Read = (Vec<AuditRecord>, Place, bool);

/// Reads within one file. `ours` tells whose ids are those of a process that still runs.
pub(super) fn page(dir: &Path, wanted: &Wanted, ours: impl Fn(&str) -> bool) -> Result<Read, Bad> {
    let mut files = match list(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        names => names?,
    };
    let Wanted { from, current, since, most } = *wanted;
    files.retain(|&file| file >= from.file || file == current);
    files.sort_by_key(|&file| (file == current, file));
    if current > 0 && from.file == current {
        files.retain(|&file| file == current);
    }
    let Some(&file) = files.first() else { return Ok((Vec::new(), from, true)) };
    let mut at = Place { file, offset: if file == from.file { from.offset } else { 0 } };
    let (mut records, mut unfinished) = (Vec::<AuditRecord>::new(), false);
    let mut lines = Lines::at(&path(dir, file), at.offset)?;
    let at_end = loop {
        if records.len() >= most {
            break false;
        }
        let Some(line) = lines.next()? else { break true };
        // A torn line was never acknowledged.
        let Ok(record) = serde_json::from_slice::<AuditRecord>(line) else { continue };
        if record.at < since || (record.outcome.is_none() && ours(&record.id)) {
            continue;
        }
        unfinished |= record.outcome.is_none();
        records.push(record);
    };
    at.offset = lines.offset;
    if unfinished {
        let mut ended = ended(lines)?;
        ended.extend(records.iter().filter(|it| it.outcome.is_some()).map(|it| it.id.clone()));
        if let Some(&next) = files.get(1) {
            ended.extend(self::ended(Lines::at(&path(dir, next), 0)?)?);
        }
        records.retain(|it| it.outcome.is_some() || !ended.contains(&it.id));
    }
    match files.get(1) {
        Some(&file) if at_end => Ok((records, Place { file, offset: 0 }, false)),
        Some(_) | None => Ok((records, at, at_end)),
    }
}

/// Of what is told what came of it.
fn ended(mut lines: Lines) -> io::Result<BTreeSet<String>> {
    let mut ended = BTreeSet::new();
    while let Some(line) = lines.next()? {
        if let Ok(record) = serde_json::from_slice::<AuditRecord>(line)
            && record.outcome.is_some()
        {
            ended.insert(record.id);
        }
    }
    Ok(ended)
}

/// Whole lines of a file.
struct Lines {
    file: BufReader<File>,
    line: Vec<u8>,
    /// Behind the last line.
    offset: u64,
}

impl Lines {
    fn at(path: &Path, offset: u64) -> io::Result<Self> {
        let mut file = File::open(path)?;
        file.seek(SeekFrom::Start(offset))?;
        Ok(Self { file: BufReader::new(file), line: Vec::new(), offset })
    }

    /// None at the end, also before a line that is not whole yet.
    fn next(&mut self) -> io::Result<Option<&[u8]>> {
        self.line.clear();
        let count = self.file.read_until(b'\n', &mut self.line)?;
        if self.line.last() != Some(&b'\n') {
            return Ok(None);
        }
        self.offset += count as u64;
        Ok(Some(&self.line))
    }
}
