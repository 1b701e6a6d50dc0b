//! A store in one file: what a backup is.

use std::io::{self, Read, Write};
use std::path::PathBuf;

use kapell_core::seat::Seat;
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::model::{Generation, Item, KEY_BYTES, Key, RECORD_BYTES, Shard};

/// The first bytes of a backup: what it is, and its format version.
const MAGIC: &[u8; 16] = b"kapell-backup\0\0\x01";
/// A longer frame than anyone writes: a length beyond it is damage.
const MAX_FRAME: usize = 16 << 20;
/// How much of a shard goes into one frame, about.
const FRAME_BYTES: usize = 1 << 20;

/// What stands before the records.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Head {
    /// Every key that was ever inserted, and how often.
    pub generations: Vec<(Key, Generation)>,
}

/// Some records of one shard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Batch {
    pub shard: Shard,
    pub items: Vec<Item>,
}

#[derive(Serialize, Deserialize)]
struct HeadText {
    generations: Vec<(String, u64)>,
}

/// Writes a backup. It is one only after [`finish`](Self::finish).
#[derive(Debug)]
pub struct ArchiveWriter<W> {
    to: W,
    records: u64,
}

impl<W: Write> ArchiveWriter<W> {
    pub fn begin(mut to: W, head: &Head) -> io::Result<Self> {
        to.write_all(MAGIC)?;
        let generations =
            head.generations.iter().map(|(key, it)| (hex(key.as_bytes()), it.0)).collect();
        let mut writer = Self { to, records: 0 };
        writer.frame(b'H', &serde_json::to_vec(&HeadText { generations })?)?;
        Ok(writer)
    }

    pub fn put(&mut self, batch: &Batch) -> io::Result<()> {
        let mut payload = Vec::new();
        for item in &batch.items {
            if payload.is_empty() {
                payload.extend_from_slice(&batch.shard.seat.0.to_be_bytes());
                payload.extend_from_slice(&batch.shard.number.to_be_bytes());
            }
            for bytes in [item.key.as_bytes(), &item.value] {
                let length = u32::try_from(bytes.len()).map_err(io::Error::other)?;
                payload.extend_from_slice(&length.to_be_bytes());
                payload.extend_from_slice(bytes);
            }
            if payload.len() >= FRAME_BYTES {
                self.frame(b'R', &payload)?;
                payload.clear();
            }
        }
        self.records += batch.items.len() as u64;
        if payload.is_empty() { Ok(()) } else { self.frame(b'R', &payload) }
    }

    /// Seals the backup and gives back where it was written to, with the number of records.
    pub fn finish(mut self) -> io::Result<(W, u64)> {
        let records = self.records;
        self.frame(b'E', &records.to_be_bytes())?;
        self.to.flush()?;
        Ok((self.to, records))
    }

    fn frame(&mut self, kind: u8, payload: &[u8]) -> io::Result<()> {
        let length = u32::try_from(payload.len()).map_err(io::Error::other)?;
        let mut head = [0; 9];
        head[0] = kind;
        head[1..5].copy_from_slice(&length.to_be_bytes());
        head[5..].copy_from_slice(&checksum(kind, payload).to_be_bytes());
        self.to.write_all(&head)?;
        self.to.write_all(payload)
    }
}

fn checksum(kind: u8, payload: &[u8]) -> u32 {
    let mut sum = crc32fast::Hasher::new();
    sum.update(&[kind]);
    sum.update(payload);
    sum.finalize()
}

/// Reads a backup, and trusts nothing in it.
#[derive(Debug)]
pub struct ArchiveReader<R> {
    from: R,
    path: PathBuf,
    offset: u64,
    records: u64,
    head: Head,
}

impl<R: Read> ArchiveReader<R> {
    /// Begins to read; `path` is for messages.
    pub fn begin(mut from: R, path: PathBuf) -> Result<Self, Error> {
        let mut magic = [0; MAGIC.len()];
        let whole = from.read_exact(&mut magic);
        let mut reader = Self { from, path, offset: 0, records: 0, head: Head::default() };
        if whole.is_err() || &magic != MAGIC {
            return Err(reader.damaged("it is no backup that this kapell can read"));
        }
        reader.offset = magic.len() as u64;
        let (kind, payload) = reader.frame()?;
        let text: Option<HeadText> =
            (kind == b'H').then(|| serde_json::from_slice(&payload).ok()).flatten();
        let generations = text.and_then(|text| {
            let key = |(key, it): &(String, u64)| Some((Key::new(unhex(key)?), Generation(*it)));
            text.generations.iter().map(key).collect::<Option<Vec<_>>>()
        });
        match generations {
            Some(generations) => reader.head = Head { generations },
            None => return Err(reader.damaged("the head is not readable")),
        }
        Ok(reader)
    }

    pub fn head(&self) -> &Head {
        &self.head
    }

    /// The next records; none at the end of a whole backup.
    pub fn next_batch(&mut self) -> Result<Option<Batch>, Error> {
        let begin = self.offset;
        let (kind, payload) = self.frame()?;
        let batch = match kind {
            b'R' => parse(&payload).map(Some),
            b'E' => (payload == self.records.to_be_bytes() && self.is_at_end()).then_some(None),
            _ => None,
        };
        match batch {
            Some(batch) => {
                self.records += batch.as_ref().map_or(0, |batch| batch.items.len() as u64);
                Ok(batch)
            }
            None => {
                self.offset = begin;
                Err(self.damaged("what stands here is not what was written"))
            }
        }
    }

    fn is_at_end(&mut self) -> bool {
        matches!(self.from.read(&mut [0]), Ok(0))
    }

    fn frame(&mut self) -> Result<(u8, Vec<u8>), Error> {
        let mut head = [0; 9];
        self.from.read_exact(&mut head).map_err(|error| self.cut(&error))?;
        let number =
            |at: usize| u32::from_be_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let length = number(1) as usize;
        if length > MAX_FRAME {
            return Err(self.damaged("a length is beyond any that is written"));
        }
        let mut payload = vec![0; length];
        self.from.read_exact(&mut payload).map_err(|error| self.cut(&error))?;
        if checksum(head[0], &payload) != number(5) {
            return Err(self.damaged("the checksum is wrong"));
        }
        self.offset += (head.len() + length) as u64;
        Ok((head[0], payload))
    }

    fn cut(&self, error: &io::Error) -> Error {
        if error.kind() == io::ErrorKind::UnexpectedEof {
            self.damaged("the backup ends here, without its end mark")
        } else {
            self.damaged(&error.to_string())
        }
    }

    fn damaged(&self, why: &str) -> Error {
        Error::Damaged { path: self.path.clone(), offset: self.offset, why: why.to_owned() }
    }
}

fn parse(payload: &[u8]) -> Option<Batch> {
    let (seat, rest) = payload.split_first_chunk()?;
    let (number, mut rest) = rest.split_first_chunk()?;
    let shard =
        Shard { seat: Seat(u32::from_be_bytes(*seat)), number: u16::from_be_bytes(*number) };
    let mut items = Vec::new();
    let take = |limit: usize, rest: &mut &[u8]| {
        let (length, behind) = rest.split_first_chunk()?;
        let length = u32::from_be_bytes(*length) as usize;
        let (bytes, behind) = behind.split_at_checked(length).filter(|_| length <= limit)?;
        *rest = behind;
        Some(bytes.to_vec())
    };
    while !rest.is_empty() {
        let key = Key::new(take(KEY_BYTES, &mut rest)?);
        items.push(Item { key, value: take(RECORD_BYTES, &mut rest)? });
    }
    Some(Batch { shard, items })
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes().chunks(2);
    digits
        .map(|pair| {
            u8::from_str_radix(std::str::from_utf8(pair).ok().filter(|pair| pair.len() == 2)?, 16)
                .ok()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> (Head, Vec<Batch>) {
        let head = Head { generations: vec![(Key::new([0, 255, 1]), Generation(7))] };
        let shard = |number| Shard { seat: Seat(1), number };
        let item = |key: &[u8], size| Item { key: Key::new(key), value: vec![9; size] };
        let batches = vec![
            Batch { shard: shard(0), items: vec![item(b"a", 3), item(&[0, 1, 255], 0)] },
            Batch { shard: shard(15), items: vec![item(b"b", 40)] },
        ];
        (head, batches)
    }

    fn written() -> Vec<u8> {
        let (head, batches) = sample();
        let mut writer = ArchiveWriter::begin(Vec::new(), &head).unwrap();
        for batch in &batches {
            writer.put(batch).unwrap();
        }
        let (bytes, records) = writer.finish().unwrap();
        assert_eq!(records, 3);
        bytes
    }

    fn read(bytes: &[u8]) -> Result<(Head, Vec<Batch>), Error> {
        let mut reader = ArchiveReader::begin(bytes, PathBuf::from("b"))?;
        let mut batches = Vec::new();
        while let Some(batch) = reader.next_batch()? {
            batches.push(batch);
        }
        Ok((reader.head().clone(), batches))
    }

    #[test]
    fn a_backup_comes_back_as_it_was() {
        assert_eq!(read(&written()).unwrap(), sample());
    }

    #[test]
    fn a_large_shard_is_cut_into_frames() {
        let item = |at: u32| Item { key: Key::new(at.to_be_bytes()), value: vec![1; 200 << 10] };
        let shard = Shard { seat: Seat(1), number: 3 };
        let batch = Batch { shard, items: (0..50).map(item).collect() };
        let mut writer = ArchiveWriter::begin(Vec::new(), &Head::default()).unwrap();
        writer.put(&batch).unwrap();
        let (_, batches) = read(&writer.finish().unwrap().0).unwrap();
        assert!(batches.len() > 1);
        let items: Vec<_> = batches.into_iter().flat_map(|batch| batch.items).collect();
        assert_eq!(items, batch.items);
    }

    #[test]
    fn a_backup_that_was_cut_or_changed_is_refused_with_its_place() {
        let whole = written();
        for length in 0..whole.len() {
            let error = read(&whole[..length]).unwrap_err();
            assert!(matches!(error, Error::Damaged { .. }), "cut at {length}: {error}");
        }
        for at in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] ^= 0x10;
            let Error::Damaged { offset, .. } = read(&bytes).unwrap_err() else { panic!("{at}") };
            assert!(offset <= at as u64, "changed at {at}, named {offset}");
        }
        let mut longer = whole;
        longer.push(0);
        assert!(read(&longer).is_err());
    }
}
