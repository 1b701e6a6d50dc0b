//! The entries of a tar archive, one after the other.
//!
//! Headers are read by the `tar` crate. What stands between them is read here: the crate's own
//! iterator takes any amount of memory for a long name, and splits extended headers at newlines.

use std::io::{self, Read};

use tar::{GnuExtSparseHeader, GnuSparseHeader, Header};

use super::pax::{self, Pax, PaxSparse};

const BLOCK: usize = 512;
/// The longest name of a file that Linux takes, with its end.
const LONGEST_PATH: u64 = 4096;
const LONGEST_EXTENSION: u64 = 1 << 20;
/// Pieces of a sparse file.
const MOST_PIECES: usize = 100_000;

/// An extended attribute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Xattr {
    pub(super) name: Vec<u8>,
    pub(super) value: Vec<u8>,
}

/// What an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    File,
    HardLink,
    Symlink,
    Char,
    Block,
    Dir,
    Fifo,
}

/// One entry without its data.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) kind: Kind,
    pub(super) path: Vec<u8>,
    pub(super) link: Vec<u8>,
    pub(super) mode: u32,
    pub(super) uid: u32,
    pub(super) gid: u32,
    /// Seconds and nanoseconds.
    pub(super) mtime: (i64, i64),
    pub(super) xattrs: Vec<Xattr>,
    pub(super) device: (u32, u32),
    /// How long the file is.
    pub(super) size: u64,
    /// Where its data goes, if it has holes.
    pub(super) pieces: Option<Vec<Piece>>,
}

/// Bytes of a sparse file that are in the archive.
#[derive(Debug, Clone, Copy)]
pub(super) struct Piece {
    pub(super) offset: u64,
    pub(super) length: u64,
}

/// Why an archive cannot be read on.
#[derive(Debug)]
pub(super) enum Trouble {
    Io(io::Error),
    /// The entry, as far as it is known, and what is wrong with it.
    Bad(Vec<u8>, String),
}

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// See the module.
#[derive(Debug)]
pub(super) struct Archive<R> {
    reader: R,
    /// Of the current entry.
    data: u64,
    padding: u64,
    last: Vec<u8>,
}

/// What earlier headers say of the next entry.
#[derive(Debug, Default)]
struct Ahead {
    path: Option<Vec<u8>>,
    link: Option<Vec<u8>>,
    pax: Pax,
}

impl<R: Read> Archive<R> {
    pub(super) const fn new(reader: R) -> Self {
        Self { reader, data: 0, padding: 0, last: Vec::new() }
    }

    pub(super) fn into_inner(self) -> R {
        self.reader
    }

    /// The entry read last, for whoever has to say where it went wrong.
    pub(super) fn last(&self) -> &[u8] {
        &self.last
    }

    /// The next entry; none at the end. Data of the one before that was not read is passed over.
    pub(super) fn next(&mut self) -> Result<Option<Entry>, Trouble> {
        let mut ahead = Ahead::default();
        loop {
            self.pass()?;
            let Some(header) = self.header()? else { return Ok(None) };
            let kind = header.as_bytes()[156];
            let size = header.entry_size().map_err(|error| self.bad(error))?;
            self.expect(size);
            match kind {
                b'L' => ahead.path = Some(self.text()?),
                b'K' => ahead.link = Some(self.text()?),
                b'x' => {
                    let bytes = self.whole(LONGEST_EXTENSION)?;
                    ahead.pax = Pax::parse(&bytes).map_err(|why| self.bad(why))?;
                }
                // What a builder says of the whole archive; nobody means it for files.
                b'g' => {}
                _entry => return self.entry(&header, ahead).map(Some),
            }
        }
    }

    /// Reads data of the current entry; nothing at its end.
    pub(super) fn data(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = usize::try_from(self.data).unwrap_or(usize::MAX).min(buffer.len());
        if most == 0 {
            return Ok(0);
        }
        match self.reader.read(&mut buffer[..most])? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            length => {
                self.data -= length as u64;
                Ok(length)
            }
        }
    }

    fn entry(&mut self, header: &Header, ahead: Ahead) -> Result<Entry, Trouble> {
        let Ahead { path, link, pax } = ahead;
        let sparse_name = pax.sparse.as_ref().and_then(|sparse| sparse.name.clone());
        let path = sparse_name.or(pax.path).or(path);
        let path = path.unwrap_or_else(|| header.path_bytes().into_owned());
        self.last.clone_from(&path);
        if let Some(size) = pax.size {
            self.expect(size);
        }
        let bad = |error: io::Error| Trouble::Bad(path.clone(), error.to_string());
        let kind = kind(header.as_bytes()[156], &path).map_err(|why| self.bad(why))?;
        let header_link = || header.link_name_bytes().unwrap_or_default().into_owned();
        let id = |said: Option<u64>, header: io::Result<u64>| {
            let id = said.map_or(header, Ok).map_err(bad)?;
            let id = u32::try_from(id).ok().filter(|id| *id != u32::MAX);
            id.ok_or_else(|| Trouble::Bad(path.clone(), "has a user that cannot be".to_owned()))
        };
        let mut entry = Entry {
            kind,
            link: pax.link.or(link).unwrap_or_else(header_link),
            mode: header.mode().map_err(bad)? & 0o7777,
            uid: id(pax.uid, header.uid())?,
            gid: id(pax.gid, header.gid())?,
            mtime: match pax.mtime {
                Some(mtime) => mtime,
                None => (i64::try_from(header.mtime().map_err(bad)?).unwrap_or(i64::MAX), 0),
            },
            xattrs: pax.xattrs,
            device: device(header),
            size: self.data,
            pieces: None,
            path: path.clone(),
        };
        if let Some(gnu) = header.as_gnu()
            && header.as_bytes()[156] == b'S'
        {
            entry.size = gnu.real_size().map_err(bad)?;
            entry.pieces = Some(self.old_sparse(&gnu.sparse, gnu.is_extended())?);
        } else if let Some(sparse) = pax.sparse {
            entry.size = sparse.real_size.ok_or_else(|| self.bad("is sparse without a size"))?;
            entry.pieces = Some(self.pax_sparse(&sparse)?);
        }
        self.check_pieces(&entry)?;
        // Only a file has data. Other kinds may give a size all the same; nobody counts it.
        if entry.kind != Kind::File {
            self.expect(0);
        }
        Ok(entry)
    }

    fn header(&mut self) -> Result<Option<Header>, Trouble> {
        let mut block = [0; BLOCK];
        let mut filled = 0;
        while filled < BLOCK {
            match self.reader.read(&mut block[filled..])? {
                0 if filled == 0 => return Ok(None),
                0 => return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
                length => filled += length,
            }
        }
        if block == [0; BLOCK] {
            return Ok(None);
        }
        let header = Header::from_byte_slice(&block).clone();
        let sum = |bytes: &[u8]| bytes.iter().map(|byte| u32::from(*byte)).sum::<u32>();
        let is = sum(&block[..148]) + 8 * u32::from(b' ') + sum(&block[156..]);
        if header.cksum().ok() != Some(is) {
            return Err(self.bad("is followed by something that is no header of an archive"));
        }
        Ok(Some(header))
    }

    fn expect(&mut self, size: u64) {
        self.data = size;
        let block = BLOCK as u64;
        self.padding = (block - size % block) % block;
    }

    fn pass(&mut self) -> io::Result<()> {
        let count = self.data.saturating_add(self.padding);
        if io::copy(&mut self.reader.by_ref().take(count), &mut io::sink())? != count {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        (self.data, self.padding) = (0, 0);
        Ok(())
    }

    fn whole(&mut self, most: u64) -> Result<Vec<u8>, Trouble> {
        if self.data > most {
            return Err(self.bad(format!("is followed by a header of more than {most} bytes")));
        }
        let mut bytes = Vec::new();
        self.reader.by_ref().take(self.data).read_to_end(&mut bytes)?;
        if bytes.len() as u64 != self.data {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
        }
        self.data = 0;
        Ok(bytes)
    }

    fn text(&mut self) -> Result<Vec<u8>, Trouble> {
        let mut bytes = self.whole(LONGEST_PATH)?;
        if bytes.last() == Some(&0) {
            bytes.pop();
        }
        Ok(bytes)
    }

    fn old_sparse(
        &mut self,
        first: &[GnuSparseHeader],
        mut more: bool,
    ) -> Result<Vec<Piece>, Trouble> {
        let mut pieces = Vec::new();
        self.take_pieces(first, &mut pieces)?;
        while more {
            // These stand before the data and are not counted in its size.
            let mut next = GnuExtSparseHeader::new();
            self.reader.read_exact(next.as_mut_bytes())?;
            self.take_pieces(next.sparse(), &mut pieces)?;
            more = next.is_extended();
        }
        Ok(pieces)
    }

    fn take_pieces(&self, from: &[GnuSparseHeader], to: &mut Vec<Piece>) -> Result<(), Trouble> {
        for piece in from.iter().filter(|piece| !piece.is_empty()) {
            let offset = piece.offset().map_err(|error| self.bad(error))?;
            let length = piece.length().map_err(|error| self.bad(error))?;
            to.push(Piece { offset, length });
        }
        if to.len() > MOST_PIECES {
            return Err(self.bad(format!("has more than {MOST_PIECES} holes")));
        }
        Ok(())
    }

    fn pax_sparse(&mut self, sparse: &PaxSparse) -> Result<Vec<Piece>, Trouble> {
        let numbers = if sparse.major == 1 {
            self.sparse_map()?
        } else {
            let map = sparse.map.as_deref().ok_or_else(|| self.bad("is sparse without a map"))?;
            let parts = map.split(|byte| *byte == b',').filter(|part| !part.is_empty());
            parts.map(pax::number).collect::<Result<_, _>>().map_err(|why| self.bad(why))?
        };
        if numbers.len() % 2 != 0 || numbers.len() / 2 > MOST_PIECES {
            return Err(self.bad("has a bad map of its holes"));
        }
        let piece = |pair: &[u64]| Piece { offset: pair[0], length: pair[1] };
        Ok(numbers.chunks_exact(2).map(piece).collect())
    }

    /// Decimal numbers, a line each, first how many pairs follow; filled up to a whole block.
    fn sparse_map(&mut self) -> Result<Vec<u64>, Trouble> {
        let mut text = Vec::new();
        let mut block = [0; BLOCK];
        loop {
            if self.data < BLOCK as u64 || text.len() > 40 * MOST_PIECES {
                return Err(self.bad("has a bad map of its holes"));
            }
            self.reader.read_exact(&mut block)?;
            self.data -= BLOCK as u64;
            text.extend_from_slice(&block);
            let lines: Vec<&[u8]> = text.split(|byte| *byte == b'\n').collect();
            // Behind the last newline there may be half a number.
            let whole = &lines[..lines.len() - 1];
            let Some((count, rest)) = whole.split_first() else { continue };
            let count = pax::number(count).map_err(|why| self.bad(why))?;
            let count = usize::try_from(count).ok().filter(|count| *count <= MOST_PIECES);
            let count = 2 * count.ok_or_else(|| self.bad("has a bad map of its holes"))?;
            if rest.len() >= count {
                let numbers = rest[..count].iter().map(|line| pax::number(line));
                return numbers.collect::<Result<_, _>>().map_err(|why| self.bad(why));
            }
        }
    }

    /// In order, inside the file, and as long together as the data.
    fn check_pieces(&self, entry: &Entry) -> Result<(), Trouble> {
        let Some(pieces) = &entry.pieces else { return Ok(()) };
        let mut at = 0;
        let mut total = 0_u64;
        for piece in pieces {
            let end = piece.offset.checked_add(piece.length);
            match end {
                Some(end) if piece.offset >= at && end <= entry.size => at = end,
                Some(_) | None => return Err(self.bad("has a bad map of its holes")),
            }
            total += piece.length;
        }
        if total != self.data {
            return Err(self.bad("has a map of its holes that does not fit its data"));
        }
        Ok(())
    }

    #[expect(clippy::needless_pass_by_value, reason = "a text or an error, made where it is told")]
    fn bad(&self, why: impl ToString) -> Trouble {
        Trouble::Bad(self.last.clone(), why.to_string())
    }
}

fn kind(flag: u8, path: &[u8]) -> Result<Kind, String> {
    match flag {
        // Before there was a kind for directories, their names ended so.
        b'0' | 0 if path.ends_with(b"/") => Ok(Kind::Dir),
        b'0' | 0 | b'7' | b'S' => Ok(Kind::File),
        b'1' => Ok(Kind::HardLink),
        b'2' => Ok(Kind::Symlink),
        b'3' => Ok(Kind::Char),
        b'4' => Ok(Kind::Block),
        b'5' => Ok(Kind::Dir),
        b'6' => Ok(Kind::Fifo),
        other => {
            Err(format!("is of kind `{}`, which is not known", char::from(other).escape_debug()))
        }
    }
}

/// Numbers that cannot be read are those of a whiteout, and refused as such.
fn device(header: &Header) -> (u32, u32) {
    let number = |part: io::Result<Option<u32>>| part.ok().flatten().unwrap_or(0);
    (number(header.device_major()), number(header.device_minor()))
}
