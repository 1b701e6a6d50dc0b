//! From the bytes of a blob to those of a tar archive: decompressed, counted and hashed.

use std::fmt;
use std::io::{self, BufRead, BufReader, Read};

use flate2::bufread::MultiGzDecoder;
use ruzstd::decoding::StreamingDecoder;

use super::super::budget::Budget;
use super::super::digest::{Digest, Hash};

const BUFFER: usize = 128 << 10;
const GZIP: [u8; 2] = [0x1f, 0x8b];
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// The encoder's largest at its usual levels; more would be memory that a stranger takes from us.
const ZSTD_WINDOW: u64 = 128 << 20;

/// The archive in a blob.
pub(super) struct Stream<'a> {
    inner: Box<dyn Read + 'a>,
    budget: &'a Budget,
    hash: Hash,
    count: u64,
}

impl<'a> Stream<'a> {
    /// By its first bytes: what registries say of a blob's compression is not always true.
    pub(super) fn open(blob: impl Read + 'a, budget: &'a Budget) -> io::Result<Self> {
        let mut blob = BufReader::with_capacity(BUFFER, blob);
        let start = blob.fill_buf()?;
        let inner: Box<dyn Read + 'a> = if start.starts_with(&GZIP) {
            Box::new(MultiGzDecoder::new(blob))
        } else if is_zstd(start) {
            Box::new(Zstd { state: State::Between(blob) })
        } else {
            Box::new(blob)
        };
        Ok(Self { inner, budget, hash: Hash::new(), count: 0 })
    }

    /// Reads to the very end, so that checksums behind the archive are checked too.
    pub(super) fn finish(mut self) -> io::Result<(Digest, u64)> {
        io::copy(&mut self, &mut io::sink())?;
        Ok((self.hash.finish(), self.count))
    }
}

impl Read for Stream<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.inner.read(buffer)?;
        self.budget.take_bytes(length as u64)?;
        self.hash.update(&buffer[..length]);
        self.count += length as u64;
        Ok(length)
    }
}

impl fmt::Debug for Stream<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stream").field("count", &self.count).finish_non_exhaustive()
    }
}

/// Frames one after the other; the decoder knows one only.
struct Zstd<R: BufRead> {
    state: State<R>,
}

enum State<R: BufRead> {
    Between(R),
    Inside(Box<StreamingDecoder<R, ruzstd::decoding::FrameDecoder>>),
    Ended,
}

impl<R: BufRead> Read for Zstd<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match std::mem::replace(&mut self.state, State::Ended) {
                State::Ended => return Ok(0),
                State::Between(source) => self.state = next_frame(source)?,
                State::Inside(mut frame) => {
                    let length = frame.read(buffer)?;
                    if length > 0 || buffer.is_empty() {
                        self.state = State::Inside(frame);
                        return Ok(length);
                    }
                    check_frame(&frame)?;
                    self.state = State::Between(frame.into_inner());
                }
            }
        }
    }
}

fn next_frame<R: BufRead>(mut source: R) -> io::Result<State<R>> {
    loop {
        let start = source.fill_buf()?;
        if start.is_empty() {
            return Ok(State::Ended);
        }
        // What others put between frames says how long it is.
        if start[0] & 0xf0 == 0x50 {
            let mut head = [0; 8];
            source.read_exact(&mut head)?;
            let length = u32::from_le_bytes([head[4], head[5], head[6], head[7]]).into();
            if head[1..4] != [0x2a, 0x4d, 0x18]
                || io::copy(&mut source.by_ref().take(length), &mut io::sink())? != length
            {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            continue;
        }
        let frame = StreamingDecoder::new_with_max_window_size(source, ZSTD_WINDOW);
        let frame = frame.map_err(|error| io::Error::other(format!("bad zstd: {error}")))?;
        return Ok(State::Inside(Box::new(frame)));
    }
}

fn check_frame<R: BufRead>(
    frame: &StreamingDecoder<R, ruzstd::decoding::FrameDecoder>,
) -> io::Result<()> {
    let (said, is) =
        (frame.decoder.get_checksum_from_data(), frame.decoder.get_calculated_checksum());
    if said.is_some() && said != is {
        return Err(io::Error::other("bad zstd: its checksum does not fit"));
    }
    Ok(())
}

fn is_zstd(start: &[u8]) -> bool {
    start.starts_with(&ZSTD)
        || (start.len() > 3 && start[0] & 0xf0 == 0x50 && start[1..4] == [0x2a, 0x4d, 0x18])
}
