//! How bytes lie in a file: a header for the file, then frames, each with checksums of its own.
//!
//! The first and the last four bytes of a frame are never zero, its head lies within one sector, and
//! the file is full of zeros before anything is written. So a frame that was cut off while it was
//! written shows where its bytes are missing, and one that was changed afterwards does not.

/// Frames begin at multiples of this and so never have a head across two sectors.
pub(super) const ALIGN: usize = 32;
/// The smallest unit that a disk writes wholly or not at all.
const SECTOR: usize = 512;
/// The head of a frame.
pub(super) const HEAD: usize = 32;
/// The header of a file.
pub(super) const HEADER: usize = 64;
const TAIL: &[u8; 4] = b"\nend";
/// The layout of all files of a store.
pub(super) const FORMAT: u32 = 1;

/// What a file or a frame is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Log,
    Snapshot,
}

impl Kind {
    const fn of_file(self) -> &'static [u8; 8] {
        match self {
            Self::Log => b"kapell\0L",
            Self::Snapshot => b"kapell\0S",
        }
    }

    const fn of_frame(self) -> &'static [u8; 4] {
        match self {
            Self::Log => b"grp\n",
            Self::Snapshot => b"pag\n",
        }
    }
}

/// What the first bytes of a file say. The place of the version and of the checksum is the same in all versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header {
    /// Drawn when the store was created; the same in all its files.
    pub(super) store: u64,
    /// Which segment this is, or the first one behind this snapshot.
    pub(super) number: u64,
    /// The number of the first group in this segment, or of the first one behind this snapshot.
    pub(super) group: u64,
    /// How long the file is.
    pub(super) size: u64,
}

/// Why a header cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BadHeader {
    Damaged,
    Format(u32),
}

impl Header {
    pub(super) fn encode(self, kind: Kind) -> [u8; HEADER] {
        let mut bytes = [0; HEADER];
        bytes[..8].copy_from_slice(kind.of_file());
        bytes[8..12].copy_from_slice(&FORMAT.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.store.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.number.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.group.to_le_bytes());
        bytes[40..48].copy_from_slice(&self.size.to_le_bytes());
        let crc = crc32fast::hash(&bytes[..HEADER - 4]);
        bytes[HEADER - 4..].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    pub(super) fn decode(bytes: &[u8; HEADER], kind: Kind) -> Result<Self, BadHeader> {
        let crc = u32_at(bytes, HEADER - 4);
        if &bytes[..8] != kind.of_file() || crc != crc32fast::hash(&bytes[..HEADER - 4]) {
            return Err(BadHeader::Damaged);
        }
        let format = u32_at(bytes, 8);
        if format != FORMAT {
            return Err(BadHeader::Format(format));
        }
        Ok(Self {
            store: u64_at(bytes, 16),
            number: u64_at(bytes, 24),
            group: u64_at(bytes, 32),
            size: u64_at(bytes, 40),
        })
    }
}

/// The head of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) store: u64,
    pub(super) number: u64,
    length: u32,
    crc: u32,
}

impl Head {
    /// Reads a head, if this is one.
    pub(super) fn decode(bytes: &[u8], kind: Kind) -> Option<Self> {
        let bytes: &[u8; HEAD] = bytes.first_chunk()?;
        let crc = u32_at(bytes, HEAD - 4);
        let is_head =
            bytes.starts_with(kind.of_frame()) && crc == crc32fast::hash(&bytes[..HEAD - 4]);
        is_head.then(|| Self {
            length: u32_at(bytes, 4),
            number: u64_at(bytes, 8),
            store: u64_at(bytes, 16),
            crc: u32_at(bytes, 24),
        })
    }

    /// The length of the whole frame.
    pub(super) const fn framed(&self) -> usize {
        framed(self.length as usize)
    }

    /// The body of a frame whose head this is, if it is as it was written.
    pub(super) fn body<'a>(&self, frame: &'a [u8]) -> Option<&'a [u8]> {
        let rest = frame.get(HEAD..self.framed())?;
        let is_whole = crc32fast::hash(rest) == self.crc && rest.ends_with(TAIL);
        is_whole.then(|| &rest[..self.length as usize])
    }
}

/// How long a frame with a body of this length is.
pub(super) const fn framed(body: usize) -> usize {
    (HEAD + body + TAIL.len()).next_multiple_of(ALIGN)
}

/// Makes an empty frame, ready for its body to be appended.
pub(super) fn begin(frame: &mut Vec<u8>) {
    frame.clear();
    frame.resize(HEAD, 0);
}

/// Makes a frame of what was begun.
pub(super) fn seal(frame: &mut Vec<u8>, kind: Kind, store: u64, number: u64) {
    let body = frame.len() - HEAD;
    let length = u32::try_from(body).expect("a group is far smaller than 4 GiB");
    frame.resize(framed(body) - TAIL.len(), 0);
    frame.extend_from_slice(TAIL);
    let crc = crc32fast::hash(&frame[HEAD..]);
    frame[..4].copy_from_slice(kind.of_frame());
    frame[4..8].copy_from_slice(&length.to_le_bytes());
    frame[8..16].copy_from_slice(&number.to_le_bytes());
    frame[16..24].copy_from_slice(&store.to_le_bytes());
    frame[24..28].copy_from_slice(&crc.to_le_bytes());
    let crc = crc32fast::hash(&frame[..HEAD - 4]);
    frame[28..HEAD].copy_from_slice(&crc.to_le_bytes());
}

/// Whether bytes are missing from the bad frame at `at`: it was cut off while it was written.
pub(super) fn is_cut(file: &[u8], at: usize, kind: Kind) -> bool {
    if is_zero(&file[at..at + HEAD]) || is_zero(&file[at + HEAD..]) {
        return true;
    }
    let Some(head) = Head::decode(&file[at..], kind) else { return false };
    let Some(end) = at.checked_add(head.framed()).filter(|end| *end <= file.len()) else {
        return false;
    };
    let mut from = at;
    while from < end {
        let to = ((from / SECTOR + 1) * SECTOR).min(end);
        if is_zero(&file[from..to]) {
            return true;
        }
        from = to;
    }
    is_zero(&file[end - TAIL.len()..end])
}

pub(super) fn is_zero(bytes: &[u8]) -> bool {
    let (chunks, rest) = bytes.as_chunks::<64>();
    chunks.iter().all(|chunk| *chunk == [0; 64]) && rest.iter().all(|byte| *byte == 0)
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from(u32_at(bytes, at)) | u64::from(u32_at(bytes, at + 4)) << 32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(body: &[u8]) -> Vec<u8> {
        let mut frame = Vec::new();
        begin(&mut frame);
        frame.extend_from_slice(body);
        seal(&mut frame, Kind::Log, 5, 77);
        frame
    }

    #[test]
    fn a_frame_comes_back_and_any_flipped_bit_is_seen() {
        let body = [7; 100];
        let good = frame(&body);
        assert_eq!(good.len(), framed(body.len()));
        assert_eq!(good.len() % ALIGN, 0);
        let head = Head::decode(&good, Kind::Log).unwrap();
        assert_eq!((head.store, head.number), (5, 77));
        assert_eq!(head.body(&good), Some(&body[..]));
        assert_eq!(Head::decode(&good, Kind::Snapshot), None);
        for bit in 0..good.len() * 8 {
            let mut bad = good.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            let read = Head::decode(&bad, Kind::Log).and_then(|head| head.body(&bad));
            assert_eq!(read, None, "bit {bit}");
            assert!(!is_cut(&bad, 0, Kind::Log), "a flipped bit is no missing byte: {bit}");
        }
    }

    #[test]
    fn a_frame_without_some_of_its_sectors_is_cut() {
        let good = frame(&[7; 3_000]);
        for sector in 0..good.len().div_ceil(SECTOR) {
            let mut bad = good.clone();
            let end = ((sector + 1) * SECTOR).min(bad.len());
            bad[sector * SECTOR..end].fill(0);
            assert!(is_cut(&bad, 0, Kind::Log), "sector {sector}");
        }
        for cut in 0..=good.len() - TAIL.len() {
            let mut bad = good.clone();
            bad[cut..].fill(0);
            assert!(is_cut(&bad, 0, Kind::Log), "cut at {cut}");
        }
    }

    #[test]
    fn a_header_tells_damage_from_another_format() {
        let header = Header { store: 1, number: 2, group: 3, size: 4 };
        let mut bytes = header.encode(Kind::Log);
        assert_eq!(Header::decode(&bytes, Kind::Log), Ok(header));
        assert_eq!(Header::decode(&bytes, Kind::Snapshot), Err(BadHeader::Damaged));
        bytes[8] = 9;
        assert_eq!(Header::decode(&bytes, Kind::Log), Err(BadHeader::Damaged));
        let crc = crc32fast::hash(&bytes[..HEADER - 4]);
        bytes[HEADER - 4..].copy_from_slice(&crc.to_le_bytes());
        assert_eq!(Header::decode(&bytes, Kind::Log), Err(BadHeader::Format(9)));
    }
}
