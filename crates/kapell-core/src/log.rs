//! How the output of a container is kept: frames of what was read at once, with time and stream.
//!
//! A frame is one byte for the stream, eight for the time in milliseconds, four for the length
//! (both big-endian), then the bytes as they came. The shim writes them; it has its own copy of this layout.

use std::collections::{BTreeMap, VecDeque};

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

/// So many frames are known again when a log is read anew.
const REMEMBERED: usize = 16 * 1024;
/// By so much less than before, in milliseconds, a clock was set back.
const SET_BACK: i64 = 60_000;

/// How far a log was read, so that it can be read on after it was read from its beginning once more.
///
/// Programs that write at the same time come in another order when they are read again, so frames are
/// told by what they are, not by their place. Those before the ones that are remembered are told by time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Mark {
    seen: VecDeque<Print>,
    /// What is not later than this and not remembered was read, or was left out.
    floor: Option<Timestamp>,
    /// Of those that were seen, how many are to come again.
    again: BTreeMap<Print, usize>,
    /// Only its end was asked for.
    is_tail: bool,
}

/// Tells a frame from others: its time, and a hash of the rest.
type Print = (Timestamp, u64);

impl Mark {
    /// Of a log of which only the end is read.
    pub fn of_tail() -> Self {
        Self { is_tail: true, ..Self::default() }
    }

    /// Whether nothing was read yet.
    pub fn is_new(&self) -> bool {
        self.seen.is_empty()
    }

    /// It is read from its beginning once more.
    pub fn restart(&mut self) {
        self.again.clear();
        for print in &self.seen {
            *self.again.entry(*print).or_default() += 1;
        }
    }

    /// Whether a frame comes for the first time.
    pub fn is_news(&mut self, frame: &Frame) -> bool {
        let print = print(frame);
        if let Some(count) = self.again.get_mut(&print) {
            *count -= 1;
            if *count == 0 {
                self.again.remove(&print);
            }
            return false;
        }
        // Once all have come again, what follows was never read, whatever its time.
        if !self.again.is_empty() && self.floor.is_some_and(|floor| frame.at <= floor) {
            return false;
        }
        if self.is_tail && self.seen.is_empty() {
            self.floor = Some(frame.at);
        }
        self.seen.push_back(print);
        if self.seen.len() > REMEMBERED
            && let Some((at, _)) = self.seen.pop_front()
        {
            let floor = self.floor.filter(|floor| floor.0.saturating_sub(at.0) < SET_BACK);
            self.floor = floor.max(Some(at));
        }
        true
    }
}

/// The hash is FNV-1a.
fn print(frame: &Frame) -> Print {
    let bytes = [frame.stream.to_byte()].into_iter().chain(frame.bytes.iter().copied());
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    (frame.at, hash)
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

    fn frame(at: i64, text: &str) -> Frame {
        Frame { stream: Stream::Out, at: Timestamp(at), bytes: text.as_bytes().to_vec() }
    }

    /// Reads frames with these times and texts, and gives the texts of those that are news.
    fn news<'a>(mark: &mut Mark, frames: &[(i64, &'a str)]) -> Vec<&'a str> {
        let news = frames.iter().filter(|(at, text)| mark.is_news(&frame(*at, text)));
        news.map(|(_, text)| *text).collect()
    }

    const NOTHING: [&str; 0] = [];

    #[test]
    fn a_log_that_is_read_again_goes_on_where_it_was() {
        let mut mark = Mark::default();
        mark.restart();
        assert_eq!(news(&mut mark, &[(1, "a"), (2, "b"), (2, "b")]), ["a", "b", "b"]);
        mark.restart();
        let more = [(1, "a"), (2, "b"), (2, "b"), (2, "b"), (3, "c")];
        assert_eq!(news(&mut mark, &more), ["b", "c"]);
        mark.restart();
        assert_eq!(news(&mut mark, &more), NOTHING);
        // What was dropped at its beginning meanwhile does no harm.
        mark.restart();
        assert_eq!(news(&mut mark, &[(2, "b"), (3, "c"), (4, "d")]), ["d"]);
        mark.restart();
        assert_eq!(news(&mut mark, &[(9, "e")]), ["e"]);
    }

    #[test]
    fn what_comes_in_another_order_when_it_is_read_again_is_neither_lost_nor_told_twice() {
        let mut mark = Mark::default();
        assert_eq!(news(&mut mark, &[(10, "a1"), (9, "b1"), (10, "a2")]), ["a1", "b1", "a2"]);
        mark.restart();
        let all = [(8, "late"), (9, "b1"), (10, "b2"), (10, "a1"), (10, "a2"), (11, "b3")];
        assert_eq!(news(&mut mark, &all), ["late", "b2", "b3"]);
        // A clock that was set back hides nothing.
        assert_eq!(news(&mut mark, &[(3, "x")]), ["x"]);
    }

    #[test]
    fn what_a_tail_has_left_out_is_not_told_later() {
        let mut mark = Mark::of_tail();
        mark.restart();
        assert!(mark.is_new());
        assert_eq!(news(&mut mark, &[(5, "end"), (6, "f")]), ["end", "f"]);
        assert!(!mark.is_new());
        mark.restart();
        let all = [(1, "a"), (5, "b"), (5, "its end"), (6, "f"), (6, "g")];
        assert_eq!(news(&mut mark, &all), ["g"]);
    }

    #[test]
    fn of_a_long_log_the_beginning_is_told_by_time() {
        let mut mark = Mark::default();
        let long: Vec<Frame> = (0..40_000).map(|at| frame(at / 3, "x")).collect();
        assert!(long.iter().all(|each| mark.is_news(each)));
        mark.restart();
        assert!(!long.iter().any(|each| mark.is_news(each)));
        assert!(mark.is_news(&frame(13_333, "y")));
        assert!(mark.seen.len() <= REMEMBERED);
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
