//! Layers: archives by strangers, turned into directories that an overlay can stack.
//!
//! - Owner, mode (setuid too), time, and the attributes `user.*` and `security.capability` are kept.
//!   Setuid programs are why nobody but root may enter the directory with the layers.
//! - What stands below a symbolic link of the same layer goes to where the link leads inside the
//!   layer. Absolute names and `..` are refused; so is a file in place of a directory.
//! - Devices are left out: a container gets its own. One that an overlay would take for a whiteout
//!   is refused.
//! - `.wh.x` and `.wh..wh..opq` become what an overlay understands; aufs' own notes are left out.

mod archive;
mod name;
mod pax;
mod stream;
mod tree;
mod xattr;

use std::fs::File;
use std::io::{self, Read, Seek as _, SeekFrom, Write as _};
use std::path::Path;

use self::archive::{Archive, Entry, Kind, Trouble};
use self::name::{Name, show};
use self::stream::Stream;
use self::tree::{Obstacle, Tree};
use super::budget::{Budget, Spent};
use super::digest::Digest;
use super::error::Error;

const CHUNK: usize = 256 << 10;
const WHITEOUT: &[u8] = b".wh.";
const OPAQUE: &[u8] = b".wh..wh..opq";
const AUFS: &[u8] = b".wh..wh.";

/// What a layer came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Unpacked {
    /// Of the archive.
    pub(super) bytes: u64,
    pub(super) entries: u64,
}

/// Fills the empty directory `into`. After an error, whatever is in it is of no use.
pub(super) fn unpack(
    blob: impl Read,
    into: &Path,
    diff_id: &Digest,
    budget: &Budget,
) -> Result<Unpacked, Error> {
    let failed = |entry: &[u8], error: io::Error| explain(diff_id, entry, error);
    let stream = Stream::open(blob, budget).map_err(|error| failed(b"", error))?;
    let tree = Tree::open(into, budget).map_err(super::error::io("open", into))?;
    let mut unpacker =
        Unpacker { archive: Archive::new(stream), tree, budget, chunk: vec![0; CHUNK] };
    if let Err(trouble) = unpacker.run() {
        return Err(match trouble {
            Trouble::Io(error) => failed(unpacker.archive.last(), error),
            Trouble::Bad(entry, why) => {
                Error::Layer { layer: diff_id.clone(), entry: show(&entry), why }
            }
        });
    }
    let last = unpacker.archive.last().to_vec();
    let (digest, bytes) =
        unpacker.archive.into_inner().finish().map_err(|error| failed(&last, error))?;
    if digest != *diff_id {
        return Err(Error::damaged(format!("layer {diff_id}"), format!("it unpacks to {digest}")));
    }
    let entries = unpacker.tree.finish().map_err(super::error::io("finish", into))?;
    Ok(Unpacked { bytes, entries })
}

fn explain(layer: &Digest, entry: &[u8], error: io::Error) -> Error {
    let too_big =
        |limit, unit| Error::TooBig { what: "the unpacked image".to_owned(), limit, unit };
    match error.get_ref().and_then(|inner| inner.downcast_ref::<Spent>()) {
        Some(Spent::Bytes(limit)) => return too_big(*limit, "bytes"),
        Some(Spent::Entries(limit)) => return too_big(*limit, "entries"),
        Some(Spent::GivenUp) | None => {}
    }
    if error.raw_os_error().is_some() {
        let what = format!("cannot unpack `{}` of layer {layer}", show(entry));
        return Error::Io { what, source: error };
    }
    let is_short = error.kind() == io::ErrorKind::UnexpectedEof;
    let why = if is_short { "the archive ends too early".to_owned() } else { error.to_string() };
    let place = match entry {
        b"" => "at its beginning".to_owned(),
        entry => format!("at or after its entry `{}`", show(entry)),
    };
    Error::damaged(format!("layer {layer}, {place},"), why)
}

#[derive(Debug)]
struct Unpacker<'a> {
    archive: Archive<Stream<'a>>,
    tree: Tree<'a>,
    budget: &'a Budget,
    chunk: Vec<u8>,
}

impl Unpacker<'_> {
    fn run(&mut self) -> Result<(), Trouble> {
        while let Some(entry) = self.archive.next()? {
            match self.take(&entry) {
                Ok(()) => {}
                Err(Obstacle::Bad(why)) => return Err(Trouble::Bad(entry.path, why)),
                Err(Obstacle::Spent(spent)) => return Err(Trouble::Io(spent.into())),
                Err(Obstacle::Io(error)) => return Err(Trouble::Io(error)),
            }
        }
        Ok(())
    }

    fn take(&mut self, entry: &Entry) -> Result<(), Obstacle> {
        let name = Name::parse(&entry.path).map_err(Obstacle::Bad)?;
        if let Some((dir, last)) = name.split()
            && last.starts_with(WHITEOUT)
        {
            let dir =
                Name::parse(if dir.is_empty() { b"." } else { dir }).map_err(Obstacle::Bad)?;
            return match last {
                OPAQUE => self.tree.opaque(&dir),
                last if last.starts_with(AUFS) => Ok(()),
                last => self.tree.whiteout(&dir, &last[WHITEOUT.len()..]),
            };
        }
        match entry.kind {
            Kind::File => self.file(&name, entry),
            Kind::Dir => {
                let dir = self.tree.dir(&name)?;
                self.tree.dress(&dir, &name, entry)
            }
            Kind::Symlink => self.tree.symlink(&name, entry),
            Kind::HardLink => {
                let bad =
                    |why: String| Obstacle::Bad(format!("is a hard link to a name that {why}"));
                let target = Name::parse(&entry.link).map_err(bad)?;
                self.tree.hard_link(&name, &target)
            }
            Kind::Fifo => self.tree.fifo(&name, entry),
            Kind::Char if entry.device == (0, 0) => {
                Err(Obstacle::Bad("is a device that would hide files of lower layers".to_owned()))
            }
            Kind::Char | Kind::Block => Ok(()),
        }
    }

    fn file(&mut self, name: &Name, entry: &Entry) -> Result<(), Obstacle> {
        let mut file = self.tree.file(name)?;
        match &entry.pieces {
            None => self.copy(&mut file, entry.size)?,
            Some(pieces) => {
                // A hole costs nothing until somebody copies the file.
                self.budget.take_bytes(entry.size).map_err(Obstacle::Spent)?;
                for piece in pieces {
                    file.seek(SeekFrom::Start(piece.offset))?;
                    self.copy(&mut file, piece.length)?;
                }
                file.set_len(entry.size)?;
            }
        }
        self.tree.dress(&file, name, entry)
    }

    fn copy(&mut self, file: &mut File, length: u64) -> io::Result<()> {
        let mut left = length;
        while left > 0 {
            let most = usize::try_from(left).unwrap_or(usize::MAX).min(CHUNK);
            let length = self.archive.data(&mut self.chunk[..most])?;
            if length == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            file.write_all(&self.chunk[..length])?;
            left -= length as u64;
        }
        Ok(())
    }
}
