//! Reading the files that one shim writes while it writes them.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use kapell_core::log::{Decoder, Frame, Stream};
use kapell_core::seams::Timestamp;

/// How much is read at once.
pub(super) const PIECE: u64 = 128 * 1024;

/// A place in the output of one program of a container.
#[derive(Debug)]
pub(super) struct Part {
    dir: PathBuf,
    /// The segment to be opened next; none while there was none.
    next: Option<u64>,
    /// Kept open, so that it can be read to its end though it was removed.
    open: Option<Segment>,
    until: Until,
    /// Nothing more is there before `until`.
    ended: bool,
    /// What was read and not yet taken.
    held: VecDeque<Frame>,
    /// A remark for the next frame that is read.
    gap: Option<String>,
    last: Timestamp,
}

/// The end of what was there when it was looked: the newest segment and its length.
#[derive(Debug, Clone, Copy, Default)]
struct Until {
    segment: u64,
    length: u64,
}

#[derive(Debug)]
struct Segment {
    number: u64,
    file: File,
    offset: u64,
    decoder: Decoder,
    /// Nothing more of it can be read.
    damaged: bool,
}

impl Part {
    pub(super) fn new(dir: PathBuf) -> Self {
        Self {
            dir,
            next: None,
            open: None,
            until: Until::default(),
            ended: true,
            held: VecDeque::new(),
            gap: None,
            last: Timestamp(0),
        }
    }

    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Sees how much is there now. What was removed before the `first` look is nobody's loss.
    pub(super) fn look(&mut self, first: bool) -> io::Result<()> {
        let there = segments(&self.dir)?;
        let (Some(&oldest), Some(&newest)) = (there.first(), there.last()) else { return Ok(()) };
        let length = length(&self.dir, newest)?;
        let begin = if first { oldest } else { oldest.min(1) };
        self.next.get_or_insert(begin);
        self.until = Until { segment: newest, length };
        self.ended = false;
        Ok(())
    }

    /// The time of the next frame before the end that was seen.
    pub(super) fn peek(&mut self) -> io::Result<Option<Timestamp>> {
        while self.held.is_empty() && !self.ended {
            self.fill()?;
        }
        Ok(self.held.front().map(|frame| frame.at))
    }

    pub(super) fn take(&mut self) -> Option<Frame> {
        self.held.pop_front()
    }

    fn fill(&mut self) -> io::Result<()> {
        let Some(segment) = &mut self.open else { return self.open_next() };
        // There is a later one, so this one is whole.
        let is_whole = segment.number < self.until.segment;
        let most = if is_whole { PIECE } else { self.until.length.saturating_sub(segment.offset) };
        let count = segment.read(most.min(PIECE))?;
        let frames = segment.frames(self.last);
        if count == 0 && is_whole {
            self.next = Some(segment.number + 1);
            self.open = None;
        } else if count == 0 {
            self.ended = true;
        }
        if let (Some(first), Some(last)) = (frames.first(), frames.last()) {
            self.last = last.at;
            self.held.extend(self.gap.take().map(|text| note(first.at, &text)));
        }
        self.held.extend(frames);
        Ok(())
    }

    fn open_next(&mut self) -> io::Result<()> {
        let next = self.next.filter(|next| *next <= self.until.segment);
        let Some(next) = next else {
            self.ended = true;
            return Ok(());
        };
        let there = segments(&self.dir)?;
        match there.iter().copied().find(|number| *number >= next) {
            Some(number) if number <= self.until.segment => {
                let file = match File::open(path(&self.dir, number)) {
                    Ok(file) => file,
                    // Removed just now: the next one that is there is found when this is tried again.
                    Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
                    Err(error) => return Err(error),
                };
                if number > next {
                    self.gap = Some(self.missing(number - next, &there)?);
                }
                let decoder = Decoder::default();
                self.open = Some(Segment { number, file, offset: 0, decoder, damaged: false });
            }
            // All that was seen is gone; it is told with what is seen next.
            Some(_) => self.ended = true,
            None => {
                let newest = u64::from(self.until.length > 0);
                let count = self.until.segment - next + newest;
                if count > 0 {
                    let text = self.missing(count, &there)?;
                    self.held.push_back(note(self.last, &text));
                }
                self.next = Some(self.until.segment + 1);
                self.ended = true;
            }
        }
        Ok(())
    }

    /// Files are of one size, so those that are there tell how long the others were.
    fn missing(&self, count: u64, there: &[u64]) -> io::Result<String> {
        let mut longest = self.until.length;
        for number in there {
            longest = longest.max(length(&self.dir, *number)?);
        }
        let files = if count == 1 { "file" } else { "files" };
        let bytes = count.saturating_mul(longest);
        Ok(format!(
            "{count} {files} of this log were removed before they were read: about {bytes} bytes may be missing\n"
        ))
    }
}

impl Segment {
    /// Reads on, and says how much there was.
    fn read(&mut self, most: u64) -> io::Result<usize> {
        if self.damaged || most == 0 {
            return Ok(0);
        }
        self.file.seek(SeekFrom::Start(self.offset))?;
        let mut bytes = Vec::new();
        (&self.file).take(most).read_to_end(&mut bytes)?;
        self.offset += bytes.len() as u64;
        self.decoder.push(&bytes);
        Ok(bytes.len())
    }

    fn frames(&mut self, before: Timestamp) -> Vec<Frame> {
        let mut frames: Vec<Frame> = Vec::new();
        while !self.damaged {
            match self.decoder.next_frame() {
                Ok(Some(frame)) => frames.push(frame),
                Ok(None) => return frames,
                Err(_) => {
                    // What follows in this segment cannot be told apart any more.
                    self.damaged = true;
                    let at = frames.last().map_or(before, |frame| frame.at);
                    frames.push(note(at, "a part of the log is damaged and left out\n"));
                }
            }
        }
        frames
    }
}

fn note(at: Timestamp, text: &str) -> Frame {
    Frame { stream: Stream::Note, at, bytes: text.as_bytes().to_vec() }
}

fn path(dir: &Path, segment: u64) -> PathBuf {
    dir.join(format!("{segment:08}.log"))
}

/// Nothing of one that was removed just now.
fn length(dir: &Path, segment: u64) -> io::Result<u64> {
    match fs::metadata(path(dir, segment)) {
        Ok(about) => Ok(about.len()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
        Err(error) => Err(error),
    }
}

/// The numbers of those that are there, in order.
fn segments(dir: &Path) -> io::Result<Vec<u64>> {
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut numbers = Vec::new();
    for entry in entries {
        let name = entry?.file_name();
        let number = name.to_str().and_then(|name| name.strip_suffix(".log")?.parse::<u64>().ok());
        numbers.extend(number);
    }
    numbers.sort_unstable();
    Ok(numbers)
}
