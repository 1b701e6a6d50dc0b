//! Reading what containers wrote, one container after the other, its programs as they wrote.

use std::collections::{BTreeSet, VecDeque};
use std::io;
use std::path::PathBuf;

use kapell_core::log::Frame;
use kapell_node::cell::ContainerLogs;

use super::part::{PIECE, Part};

/// How much of an end is looked for in memory.
const TAIL_BYTES: usize = 8 * 1024 * 1024;

/// A place in the output of a series of containers.
#[derive(Debug, Default)]
pub(super) struct Reader {
    has_looked: bool,
    /// Containers that were read to their end.
    done: BTreeSet<PathBuf>,
    /// The others, the oldest first.
    open: VecDeque<Container>,
}

#[derive(Debug)]
struct Container {
    dir: PathBuf,
    parts: Vec<Part>,
}

impl Reader {
    /// Sees what is there now; that much is read, and what comes later only after another look.
    ///
    /// So what programs write at the same time is in its order, however long reading takes.
    pub(super) fn look(&mut self, all: &[ContainerLogs]) -> io::Result<()> {
        let first = !std::mem::replace(&mut self.has_looked, true);
        self.done.retain(|dir| all.iter().any(|logs| logs.dir == *dir));
        for logs in all.iter().filter(|logs| !self.done.contains(&logs.dir)) {
            let known = self.open.iter().position(|open| open.dir == logs.dir);
            let at = known.unwrap_or_else(|| {
                self.open.push_back(Container { dir: logs.dir.clone(), parts: Vec::new() });
                self.open.len() - 1
            });
            self.open[at].look(&logs.parts, first)?;
        }
        Ok(())
    }

    /// What comes next of what was seen; empty at its end.
    pub(super) fn read(&mut self) -> io::Result<Vec<Frame>> {
        while let Some(container) = self.open.front_mut() {
            let frames = container.read()?;
            if !frames.is_empty() {
                return Ok(frames);
            }
            if self.open.len() == 1 {
                break;
            }
            // A later container is there, so this one writes no more.
            self.done.extend(self.open.pop_front().map(|container| container.dir));
        }
        Ok(Vec::new())
    }

    /// The last `lines` lines of what was seen; what comes after them is read next.
    pub(super) fn tail(&mut self, lines: u64) -> io::Result<Vec<Frame>> {
        let mut end = End { lines, ..End::default() };
        loop {
            let frames = self.read()?;
            if frames.is_empty() {
                return Ok(end.into_frames());
            }
            for frame in frames {
                end.push(frame);
            }
        }
    }
}

impl Container {
    fn look(&mut self, dirs: &[PathBuf], first: bool) -> io::Result<()> {
        for dir in dirs {
            if self.parts.iter().all(|part| part.dir() != dir) {
                self.parts.push(Part::new(dir.clone()));
            }
        }
        self.parts.iter_mut().try_for_each(|part| part.look(first))
    }

    /// The next frames of all programs, by time.
    fn read(&mut self) -> io::Result<Vec<Frame>> {
        let (mut frames, mut bytes) = (Vec::new(), 0);
        while bytes < PIECE {
            let mut first = None;
            for (at, part) in self.parts.iter_mut().enumerate() {
                let here = part.peek()?.map(|time| (time, at));
                first = match (first, here) {
                    (Some(one), Some(other)) => Some(std::cmp::min(one, other)),
                    (one, other) => one.or(other),
                };
            }
            let Some(frame) = first.and_then(|(_, at)| self.parts[at].take()) else { break };
            bytes += frame.bytes.len() as u64;
            frames.push(frame);
        }
        Ok(frames)
    }
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
