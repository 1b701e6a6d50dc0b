//! How a program that runs beside those of a container talks with whoever wants it: frames both ways.
//!
//! A frame is one byte for what it is and four for its length (big-endian), then its bytes.

use serde::{Deserialize, Serialize};

const HEAD: usize = 5;
/// The longest frame. What claims to be longer is no frame.
pub const LONGEST: usize = 1 << 20;

/// How large a terminal is, in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Size {
    pub rows: u16,
    pub cols: u16,
}

impl Size {
    /// As a frame has it.
    pub const fn to_bytes(self) -> [u8; 4] {
        let ([a, b], [c, d]) = (self.rows.to_be_bytes(), self.cols.to_be_bytes());
        [a, b, c, d]
    }

    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let [a, b, c, d] = *<&[u8; 4]>::try_from(bytes).ok()?;
        Some(Self { rows: u16::from_be_bytes([a, b]), cols: u16::from_be_bytes([c, d]) })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// What to run, in JSON. The first frame, and only that one.
    Start,
    /// For its standard input; nothing is its end.
    Input,
    /// What it writes. Nothing says that the way is still open.
    Out,
    Err,
    /// How it ended, in JSON. The last frame.
    End,
    /// How large its terminal is now: a [`Size`].
    Resize,
}

impl Kind {
    pub const ALL: [Self; 6] =
        [Self::Start, Self::Input, Self::Out, Self::Err, Self::End, Self::Resize];

    pub const fn to_byte(self) -> u8 {
        match self {
            Self::Start => 1,
            Self::Input => 2,
            Self::Out => 3,
            Self::Err => 4,
            Self::End => 5,
            Self::Resize => 6,
        }
    }
}

pub fn encode(kind: Kind, bytes: &[u8]) -> Vec<u8> {
    let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    [&[kind.to_byte()][..], &length.to_be_bytes(), bytes].concat()
}

/// Takes bytes as they come and gives frames.
#[derive(Debug, Default)]
pub struct Decoder {
    held: Vec<u8>,
}

/// The bytes are no frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("what came is no frame")]
pub struct Garbled;

impl Decoder {
    pub fn push(&mut self, bytes: &[u8]) {
        self.held.extend_from_slice(bytes);
    }

    /// The next whole frame, if it is there already.
    pub fn next_frame(&mut self) -> Result<Option<(Kind, Vec<u8>)>, Garbled> {
        let Some((head, body)) = self.held.split_first_chunk::<HEAD>() else { return Ok(None) };
        let [kind, length @ ..] = *head;
        let kind = Kind::ALL.into_iter().find(|each| each.to_byte() == kind).ok_or(Garbled)?;
        let length = u32::from_be_bytes(length) as usize;
        if length > LONGEST {
            return Err(Garbled);
        }
        let Some(bytes) = body.get(..length).map(Vec::from) else { return Ok(None) };
        self.held.drain(..HEAD + length);
        Ok(Some((kind, bytes)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_come_back_however_they_are_cut() {
        let frames =
            Kind::ALL.map(|kind| (kind, vec![kind.to_byte(); 3 * usize::from(kind.to_byte() - 1)]));
        let bytes: Vec<u8> = frames.iter().flat_map(|(kind, bytes)| encode(*kind, bytes)).collect();
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

    #[test]
    fn sizes_come_back_and_nothing_else_is_one() {
        let size = Size { rows: 258, cols: 3 };
        assert_eq!(size.to_bytes(), [1, 2, 0, 3]);
        assert_eq!(Size::from_bytes(&size.to_bytes()), Some(size));
        for bytes in [&b""[..], &[1, 2, 3], &[1, 2, 3, 4, 5]] {
            assert_eq!(Size::from_bytes(bytes), None);
        }
    }

    #[test]
    fn what_is_no_frame_is_refused() {
        for bytes in [[9, 0, 0, 0, 0], [0, 0, 0, 0, 0], [1, 0xff, 0, 0, 0]] {
            let mut decoder = Decoder::default();
            decoder.push(&bytes);
            assert_eq!(decoder.next_frame(), Err(Garbled));
        }
    }
}
