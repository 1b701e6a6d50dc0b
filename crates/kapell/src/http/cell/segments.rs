//! Reading the files that shims write while they write them.

use std::collections::{BTreeSet, VecDeque};
use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use kapell_core::log::{Decoder, Frame, Stream};
use kapell_core::seams::Timestamp;

/// How much is read at once.
const PIECE: usize = 128 * 1024;
/// How much of an end is looked for in memory.
const TAIL_BYTES: usize = 8 * 1024 * 1024;

/// A place in the output of a series of containers.
#[derive(Debug, Default)]
pub(super) struct Reader {
    /// Containers that were read to their end.
    done: BTreeSet<PathBuf>,
    current: Option<Current>,
}

#[derive(Debug)]
struct Current {
    dir: PathBuf,
    segment: u64,
    offset: u64,
    decoder: Decoder,
    /// Nothing more of this segment can be read.
    damaged: bool,
}

impl Reader {
    /// What comes next in `dirs`, the oldest first; empty if nothing more is there now.
    pub(super) fn read(&mut self, dirs: &[PathBuf]) -> io::Result<Vec<Frame>> {
        self.done.retain(|dir| dirs.contains(dir));
        loop {
            let last = dirs.last();
            let Some(current) = &mut self.current else {
                let Some(dir) = dirs.iter().find(|dir| !self.done.contains(*dir)) else {
                    return Ok(Vec::new());
                };
                self.current = Some(Current::new(dir.clone()));
                continue;
            };
            let frames = current.read()?;
            if !frames.is_empty() {
                return Ok(frames);
            }
            if last == Some(&current.dir) {
                return Ok(Vec::new());
            }
            // A later container is there, so this one writes no more.
            self.done.insert(current.dir.clone());
            self.current = None;
        }
    }

    /// The last `lines` lines of what is there now; what comes after them is read next.
    pub(super) fn tail(&mut self, dirs: &[PathBuf], lines: u64) -> io::Result<Vec<Frame>> {
        let mut end = End { lines, ..End::default() };
        loop {
            let frames = self.read(dirs)?;
            if frames.is_empty() {
                return Ok(end.into_frames());
            }
            for frame in frames {
                end.push(frame);
            }
        }
    }
}

impl Current {
    fn new(dir: PathBuf) -> Self {
        Self { dir, segment: 0, offset: 0, decoder: Decoder::default(), damaged: false }
    }

    /// The next frames; empty at the end of the last segment.
    fn read(&mut self) -> io::Result<Vec<Frame>> {
        loop {
            // Looked for before the end is seen: a segment is whole once there is a next one.
            let next = next_segment(&self.dir, self.segment)?;
            let bytes = self.piece()?;
            self.offset += bytes.len() as u64;
            self.decoder.push(&bytes);
            let frames = self.frames();
            if !frames.is_empty() {
                return Ok(frames);
            }
            if !bytes.is_empty() {
                continue;
            }
            match next {
                Some(number) => self.move_to(number),
                None => return Ok(Vec::new()),
            }
        }
    }

    fn move_to(&mut self, segment: u64) {
        let dir = std::mem::take(&mut self.dir);
        *self = Self { segment, ..Self::new(dir) };
    }

    /// The bytes at our place.
    fn piece(&self) -> io::Result<Vec<u8>> {
        if self.damaged {
            return Ok(Vec::new());
        }
        let mut file = match File::open(self.dir.join(format!("{:08}.log", self.segment))) {
            Ok(file) => file,
            // It was too old to be kept.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        file.seek(SeekFrom::Start(self.offset))?;
        let mut bytes = Vec::new();
        file.take(PIECE as u64).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    fn frames(&mut self) -> Vec<Frame> {
        let mut frames = Vec::new();
        while !self.damaged {
            match self.decoder.next_frame() {
                Ok(Some(frame)) => frames.push(frame),
                Ok(None) => return frames,
                Err(_) => {
                    // What follows in this segment cannot be told apart any more.
                    self.damaged = true;
                    let at = frames.last().map_or(Timestamp(0), |frame: &Frame| frame.at);
                    let bytes = b"a part of the log is damaged and left out\n".to_vec();
                    frames.push(Frame { stream: Stream::Note, at, bytes });
                }
            }
        }
        frames
    }
}

/// The number of the next segment that is there.
fn next_segment(dir: &Path, after: u64) -> io::Result<Option<u64>> {
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut next = None;
    for entry in entries {
        let name = entry?.file_name();
        let number = name.to_str().and_then(|name| name.strip_suffix(".log")?.parse::<u64>().ok());
        next = match (next, number.filter(|number| *number > after)) {
            (Some(one), Some(other)) => Some(u64::min(one, other)),
            (one, other) => one.or(other),
        };
    }
    Ok(next)
}

/// The end of a log.
#[derive(Debug, Default)]
struct End {
    lines: u64,
    frames: VecDeque<Frame>,
    bytes: usize,
    /// Ends of lines in `frames`.
    ends: u64,
}

impl End {
    fn push(&mut self, frame: Frame) {
        self.bytes += frame.bytes.len();
        self.ends += ends(&frame.bytes);
        self.frames.push_back(frame);
        // One end more than is wanted: the line before the first wanted one ends there.
        while let Some(first) = self.frames.front() {
            let spare = self.ends - ends(&first.bytes) > self.lines;
            if self.frames.len() == 1 || !(spare || self.bytes > TAIL_BYTES) {
                break;
            }
            self.bytes -= first.bytes.len();
            self.ends -= ends(&first.bytes);
            self.frames.pop_front();
        }
    }

    fn into_frames(mut self) -> Vec<Frame> {
        if self.lines == 0 {
            return Vec::new();
        }
        let open = self.frames.back().is_some_and(|frame| !frame.bytes.ends_with(b"\n"));
        let whole = self.ends + u64::from(open);
        let mut surplus = whole.saturating_sub(self.lines);
        while surplus > 0 {
            let Some(first) = self.frames.front_mut() else { break };
            let Some(end) = first.bytes.iter().position(|byte| *byte == b'\n') else {
                self.frames.pop_front();
                continue;
            };
            first.bytes.drain(..=end);
            surplus -= 1;
        }
        self.frames.into_iter().filter(|frame| !frame.bytes.is_empty()).collect()
    }
}

fn ends(bytes: &[u8]) -> u64 {
    bytes.iter().filter(|byte| **byte == b'\n').count() as u64
}
