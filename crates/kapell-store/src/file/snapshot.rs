//! The whole content of a store at one moment, in order, in one file.

use std::fs::File;
use std::io::{self, BufReader, Read as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use super::code::{self, Changes};
use super::dir::{Dir, failed};
use super::frame::{self, HEAD, HEADER, Head, Header, Kind};
use super::segment::{self, Expected, damaged};
use crate::book::Change;
use crate::error::Error;

/// When a page is full.
const PAGE: usize = 256 << 10;
/// How much may be written before it is flushed: a large backlog would hold up the log.
const FLUSH: u64 = 4 << 20;
const READ: usize = 1 << 20;
/// The first byte of the last page; no change begins so.
const END: u8 = 0xfe;

/// A snapshot being written.
#[derive(Debug)]
pub(super) struct Writer<'a> {
    dir: &'a Dir,
    path: PathBuf,
    file: File,
    header: Header,
    page: Vec<u8>,
    pages: u64,
    changes: u64,
    end: u64,
    flushed: u64,
}

impl<'a> Writer<'a> {
    pub(super) fn begin(dir: &'a Dir, header: Header) -> io::Result<Self> {
        let path = dir.snapshot(header.number);
        let file = dir.begin(&path)?;
        let mut page = Vec::with_capacity(2 * PAGE);
        frame::begin(&mut page);
        let end = HEADER as u64;
        Ok(Self { dir, path, file, header, page, pages: 0, changes: 0, end, flushed: 0 })
    }

    pub(super) fn push(&mut self, change: &Change) -> io::Result<()> {
        code::encode(change, &mut self.page);
        self.changes += 1;
        if self.page.len() >= PAGE { self.write() } else { Ok(()) }
    }

    fn write(&mut self) -> io::Result<()> {
        self.pages += 1;
        frame::seal(&mut self.page, Kind::Snapshot, self.header.store, self.pages);
        self.file.write_all_at(&self.page, self.end)?;
        self.end += self.page.len() as u64;
        frame::begin(&mut self.page);
        if self.end - self.flushed > FLUSH {
            self.file.sync_data()?;
            self.flushed = self.end;
        }
        Ok(())
    }

    /// Lets the snapshot appear. Says how long it is.
    pub(super) fn finish(mut self) -> io::Result<u64> {
        if self.page.len() > HEAD {
            self.write()?;
        }
        self.page.push(END);
        self.page.extend_from_slice(&self.changes.to_le_bytes());
        self.write()?;
        self.header.size = self.end;
        self.file.write_all_at(&self.header.encode(Kind::Snapshot), 0)?;
        self.file.sync_all()?;
        self.dir.publish(&self.path)?;
        Ok(self.end)
    }
}

/// A snapshot being read.
#[derive(Debug)]
pub(super) struct Reader {
    path: PathBuf,
    file: BufReader<File>,
    header: Header,
    page: Vec<u8>,
    pages: u64,
    changes: u64,
    at: usize,
    ended: bool,
}

impl Reader {
    pub(super) fn open(path: &Path, number: u64) -> Result<Self, Error> {
        let failed = |error| failed(path, "open", error);
        let mut file = BufReader::with_capacity(READ, File::open(path).map_err(failed)?);
        let size = file.get_ref().metadata().map_err(failed)?.len();
        let mut first = Vec::with_capacity(HEADER);
        file.by_ref().take(HEADER as u64).read_to_end(&mut first).map_err(failed)?;
        let want = Expected { store: None, number, group: None };
        let header = segment::header(path, &first, Kind::Snapshot, want)?;
        if header.size != size {
            let why = format!("it is {size} bytes long and should be {}", header.size);
            return Err(Error::Damaged {
                path: path.to_owned(),
                offset: size.min(header.size),
                why,
            });
        }
        let (page, path) = (Vec::new(), path.to_owned());
        Ok(Self { path, file, header, page, pages: 0, changes: 0, at: HEADER, ended: false })
    }

    pub(super) const fn header(&self) -> Header {
        self.header
    }

    /// Hands the changes of the next page to `each`. False when there is none.
    pub(super) fn page(&mut self, mut each: impl FnMut(Change)) -> Result<bool, Error> {
        if self.ended {
            return Ok(false);
        }
        let (at, path) = (self.at, &self.path);
        let bad = || damaged(path, at, "this page is not as it was written");
        self.page.clear();
        read(&mut self.file, &mut self.page, HEAD).map_err(|e| failed(path, "open", e))?;
        let head = Head::decode(&self.page, Kind::Snapshot).ok_or_else(bad)?;
        let is_next = head.store == self.header.store && head.number == self.pages + 1;
        let left = self.header.size - at as u64;
        if !is_next || head.framed() as u64 > left {
            return Err(bad());
        }
        let rest = head.framed() - HEAD;
        read(&mut self.file, &mut self.page, rest).map_err(|e| failed(path, "open", e))?;
        let body = head.body(&self.page).ok_or_else(bad)?;
        self.at += head.framed();
        self.pages += 1;
        if let Some((&END, count)) = body.split_first() {
            if count != self.changes.to_le_bytes() || self.at as u64 != self.header.size {
                return Err(damaged(path, at, "it ends too early"));
            }
            self.ended = true;
            return Ok(false);
        }
        for change in Changes::of(body) {
            each(change.map_err(|_| bad())?);
            self.changes += 1;
        }
        Ok(true)
    }
}

/// Reads up to `length` bytes more; fewer are no head and no body.
fn read(file: &mut BufReader<File>, to: &mut Vec<u8>, length: usize) -> io::Result<()> {
    file.take(length as u64).read_to_end(to).map(drop)
}
