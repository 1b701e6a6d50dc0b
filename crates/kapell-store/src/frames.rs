//! An append-only log of byte chunks from many sources, in the order in which they came.

use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, Read, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// The first bytes of a file: what it is, and its format version.
const MAGIC: &[u8; 8] = b"kapfrm\0\x01";
const HEAD: usize = 16;
/// A longer chunk than anyone writes: a length beyond it is damage.
const MAX_CHUNK: usize = 1 << 24;

/// Where a chunk came from and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Label {
    /// The source, by a number that the owner of the log gives meaning to.
    pub source: u32,
    /// Which stream of the source.
    pub stream: u32,
    /// Milliseconds since the log was begun.
    pub at_ms: u32,
}

/// A log being written. Its file appears with the first chunk: most runs print nothing.
#[derive(Debug)]
pub struct FrameLog {
    path: PathBuf,
    file: Option<File>,
    buffer: Vec<u8>,
}

impl FrameLog {
    pub fn new(path: PathBuf) -> Self {
        Self { path, file: None, buffer: Vec::new() }
    }

    /// Appends one chunk in one write.
    pub fn append(&mut self, label: Label, chunk: &[u8]) -> io::Result<()> {
        self.buffer.clear();
        let file = match &mut self.file {
            Some(file) => file,
            None => {
                self.buffer.extend_from_slice(MAGIC);
                let file = OpenOptions::new()
                    .append(true)
                    .create_new(true)
                    .mode(0o600)
                    .open(&self.path)?;
                self.file.insert(file)
            }
        };
        let length = u32::try_from(chunk.len()).map_err(io::Error::other)?;
        for number in [label.source, label.stream, label.at_ms, length] {
            self.buffer.extend_from_slice(&number.to_le_bytes());
        }
        self.buffer.extend_from_slice(chunk);
        file.write_all(&self.buffer)
    }
}

/// Reads a log. A chunk that was cut off while it was written ends it.
#[derive(Debug)]
pub struct Frames {
    file: BufReader<File>,
}

impl Frames {
    /// Opens a log; none if nothing was ever written to it.
    pub fn open(path: &Path) -> io::Result<Option<Self>> {
        let mut file = match File::open(path) {
            Ok(file) => BufReader::new(file),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let mut magic = [0; 8];
        file.read_exact(&mut magic)?;
        if &magic != MAGIC {
            let text =
                format!("`{}` is not an output log that this kapell can read", path.display());
            return Err(io::Error::new(io::ErrorKind::InvalidData, text));
        }
        Ok(Some(Self { file }))
    }

    /// The next chunk, into `chunk`.
    pub fn next_into(&mut self, chunk: &mut Vec<u8>) -> io::Result<Option<Label>> {
        let mut head = [0; HEAD];
        if !read_whole(&mut self.file, &mut head)? {
            return Ok(None);
        }
        let number =
            |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let length = number(12) as usize;
        if length > MAX_CHUNK {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the output log is damaged"));
        }
        chunk.resize(length, 0);
        if !read_whole(&mut self.file, chunk)? {
            return Ok(None);
        }
        Ok(Some(Label { source: number(0), stream: number(4), at_ms: number(8) }))
    }
}

fn read_whole(file: &mut impl Read, buffer: &mut [u8]) -> io::Result<bool> {
    match file.read_exact(buffer) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn label(source: u32) -> Label {
        Label { source, stream: 1, at_ms: 7 }
    }

    #[test]
    fn chunks_come_back_in_order() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("out");
        let mut log = FrameLog::new(path.clone());
        assert!(Frames::open(&path).unwrap().is_none(), "no file before the first chunk");
        log.append(label(1), b"hello").unwrap();
        log.append(label(2), &[0, 255, 10]).unwrap();
        let mut frames = Frames::open(&path).unwrap().unwrap();
        let mut chunk = Vec::new();
        assert_eq!(frames.next_into(&mut chunk).unwrap(), Some(label(1)));
        assert_eq!(chunk, b"hello");
        assert_eq!(frames.next_into(&mut chunk).unwrap(), Some(label(2)));
        assert_eq!(chunk, [0, 255, 10]);
        assert_eq!(frames.next_into(&mut chunk).unwrap(), None);
    }

    #[test]
    fn a_torn_chunk_ends_the_log() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("out");
        let mut log = FrameLog::new(path.clone());
        log.append(label(1), b"whole").unwrap();
        log.append(label(1), b"torn").unwrap();
        let bytes = std::fs::read(&path).unwrap();
        for cut in bytes.len() - 20 + 1..bytes.len() {
            std::fs::write(&path, &bytes[..cut]).unwrap();
            let mut frames = Frames::open(&path).unwrap().unwrap();
            let mut chunk = Vec::new();
            assert!(frames.next_into(&mut chunk).unwrap().is_some());
            assert_eq!(frames.next_into(&mut chunk).unwrap(), None, "cut at {cut}");
        }
    }
}
