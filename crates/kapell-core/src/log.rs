//! How the output of a container is kept: frames of what was read at once, with time and stream.
//!
//! A frame is one byte for the stream, eight for the time in milliseconds, four for the length
//! (both big-endian), then the bytes as they came. The shim writes them; it has its own copy of this layout.

use crate::seams::Timestamp;

/// Bytes before those of the frame.
pub const HEAD: usize = 13;
/// The longest frame. What claims to be longer is damaged.
pub const LONGEST: usize = 1 << 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stream {
    Out,
    Err,
    /// Kapell's own remark, such as that something was dropped.
    Note,
}

impl Stream {
    pub const fn to_byte(self) -> u8 {
        match self {
            Self::Out => 1,
            Self::Err => 2,
            Self::Note => 3,
        }
    }

    pub const fn from_byte(byte: u8) -> Option<Self> {
        match byte {
            1 => Some(Self::Out),
            2 => Some(Self::Err),
            3 => Some(Self::Note),
            _ => None,
        }
    }

    pub const fn name(self) -> &'static str {
        match self {
            Self::Out => "stdout",
            Self::Err => "stderr",
            Self::Note => "kapell",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    pub stream: Stream,
    pub at: Timestamp,
    pub bytes: Vec<u8>,
}

impl Frame {
    pub fn encode(&self) -> Vec<u8> {
        let length = u32::try_from(self.bytes.len()).unwrap_or(u32::MAX);
        [&[self.stream.to_byte()][..], &self.at.0.to_be_bytes(), &length.to_be_bytes(), &self.bytes]
            .concat()
    }
}

/// Takes bytes as they come and gives frames.
#[derive(Debug, Default)]
pub struct Decoder {
    held: Vec<u8>,
    start: usize,
}

/// The bytes are no frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the log is damaged")]
pub struct Damaged;

impl Decoder {
    pub fn push(&mut self, bytes: &[u8]) {
        self.held.drain(..self.start);
        self.start = 0;
        self.held.extend_from_slice(bytes);
    }

    /// The next whole frame, if it is there already.
    pub fn next_frame(&mut self) -> Result<Option<Frame>, Damaged> {
        let rest = &self.held[self.start..];
        let Some((head, body)) = rest.split_at_checked(HEAD) else { return Ok(None) };
        let stream = Stream::from_byte(head[0]).ok_or(Damaged)?;
        let at = i64::from_be_bytes(head[1..9].try_into().map_err(|_| Damaged)?);
        let length = u32::from_be_bytes(head[9..].try_into().map_err(|_| Damaged)?) as usize;
        if length > LONGEST {
            return Err(Damaged);
        }
        let Some(bytes) = body.get(..length) else { return Ok(None) };
        let frame = Frame { stream, at: Timestamp(at), bytes: bytes.to_vec() };
        self.start += HEAD + length;
        Ok(Some(frame))
    }
}

/// How far a log was read: the time of the last frame, and how many had that time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Mark {
    last: Option<(Timestamp, usize)>,
    /// What of the beginning was read before.
    again: Option<(Timestamp, usize)>,
}

impl Mark {
    /// It is read from its beginning once more.
    pub fn restart(&mut self) {
        self.again = self.last;
    }

    /// Whether a frame comes for the first time.
    pub fn is_news(&mut self, at: Timestamp) -> bool {
        match &mut self.again {
            Some((until, _)) if at < *until => return false,
            Some((until, count)) if at == *until && *count > 0 => {
                *count -= 1;
                return false;
            }
            Some(_) | None => self.again = None,
        }
        self.last = match self.last {
            Some((time, count)) if time == at => Some((time, count + 1)),
            Some(_) | None => Some((at, 1)),
        };
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_come_back_however_they_are_cut() {
        let frames = [
            Frame { stream: Stream::Out, at: Timestamp(5), bytes: b"one\n".to_vec() },
            Frame { stream: Stream::Err, at: Timestamp(-1), bytes: vec![0xff, 0, 0xfe] },
            Frame { stream: Stream::Note, at: Timestamp(i64::MAX), bytes: Vec::new() },
        ];
        let bytes: Vec<u8> = frames.iter().flat_map(Frame::encode).collect();
        for cut in 0..=bytes.len() {
            let mut decoder = Decoder::default();
            let mut seen = Vec::new();
            for part in [&bytes[..cut], &bytes[cut..]] {
                decoder.push(part);
                while let Some(frame) = decoder.next_frame().unwrap() {
                    seen.push(frame);
                }
            }
            assert_eq!(seen, frames);
        }
    }

    /// Reads times as they come, and gives those that are news.
    fn news(mark: &mut Mark, times: &[i64]) -> Vec<i64> {
        times.iter().copied().filter(|&at| mark.is_news(Timestamp(at))).collect()
    }

    #[test]
    fn a_log_that_is_read_again_goes_on_where_it_was() {
        let mut mark = Mark::default();
        mark.restart();
        assert_eq!(news(&mut mark, &[1, 2, 2, 2]), [1, 2, 2, 2]);
        mark.restart();
        assert_eq!(news(&mut mark, &[1, 2, 2, 2, 2, 3]), [2, 3]);
        mark.restart();
        assert_eq!(news(&mut mark, &[1, 2, 2, 2, 2, 3]), [0; 0]);
        // What was dropped at its beginning meanwhile does no harm.
        mark.restart();
        assert_eq!(news(&mut mark, &[2, 3, 4]), [4]);
        mark.restart();
        assert_eq!(news(&mut mark, &[9]), [9]);
    }

    #[test]
    fn what_is_no_frame_is_damaged() {
        for bytes in [[9; HEAD], [1, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0, 0, 0]] {
            let mut decoder = Decoder::default();
            decoder.push(&bytes);
            assert_eq!(decoder.next_frame(), Err(Damaged));
        }
    }
}
