//! Images in a directory, as the OCI image layout has them.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use super::digest::{Digest, Hash};
use super::document::{Descriptor, Document};
use super::error::{Error, io};

const TAG: &str = "org.opencontainers.image.ref.name";

/// See the module.
#[derive(Debug, Clone)]
pub(super) struct Layout {
    pub(super) path: PathBuf,
    pub(super) tag: Option<String>,
    pub(super) document_bytes: u64,
}

impl Layout {
    /// The manifest, or an index, that the tag stands for.
    pub(super) fn top(&self) -> Result<Descriptor, Error> {
        let path = self.path.join("index.json");
        let bytes = self.read(&path)?;
        let what = format!("`{}`", path.display());
        let Document::Index(all) = Document::parse(&what, &bytes)? else {
            return Err(Error::damaged(what, "it is no index"));
        };
        let tag_of = |each: &Descriptor| each.annotations.get(TAG).cloned();
        let tags: Vec<String> = all.iter().filter_map(tag_of).collect();
        let wanted = match &self.tag {
            Some(tag) => all.iter().find(|each| tag_of(each).as_ref() == Some(tag)),
            None if all.len() == 1 => all.first(),
            None => None,
        };
        wanted.cloned().ok_or_else(|| {
            let image = self.tag.as_deref().unwrap_or("single image");
            let what = format!("`{image}` in {what}; it has {}", tags.join(", "));
            Error::NotFound { what }
        })
    }

    pub(super) fn document(&self, wanted: &Descriptor) -> Result<Vec<u8>, Error> {
        let path = self.blob_path(&wanted.digest);
        let bytes = self.read(&path)?;
        check(&path, &wanted.digest, &Digest::of(&bytes))?;
        Ok(bytes)
    }

    /// A layer, checked and at its beginning.
    pub(super) fn layer(&self, wanted: &Descriptor) -> Result<File, Error> {
        let path = self.blob_path(&wanted.digest);
        let mut file = open(&path)?;
        let length = file.metadata().map_err(io("read", &path))?.len();
        if length != wanted.size {
            let why = format!("it has {length} bytes, not {}", wanted.size);
            return Err(Error::damaged(format!("`{}`", path.display()), why));
        }
        let mut hash = Hash::new();
        let mut chunk = vec![0; 256 << 10];
        loop {
            match file.read(&mut chunk).map_err(io("read", &path))? {
                0 => break,
                length => hash.update(&chunk[..length]),
            }
        }
        check(&path, &wanted.digest, &hash.finish())?;
        file.rewind().map_err(io("read", &path))?;
        Ok(file)
    }

    fn blob_path(&self, digest: &Digest) -> PathBuf {
        self.path.join("blobs/sha256").join(digest.hex())
    }

    fn read(&self, path: &Path) -> Result<Vec<u8>, Error> {
        let limit = self.document_bytes;
        let mut bytes = Vec::new();
        open(path)?.take(limit + 1).read_to_end(&mut bytes).map_err(io("read", path))?;
        if bytes.len() as u64 > limit {
            let what = format!("`{}`", path.display());
            return Err(Error::TooBig { what, limit, unit: "bytes" });
        }
        Ok(bytes)
    }
}

/// A plain file and nothing else: to open a device or a pipe can do harm.
fn open(path: &Path) -> Result<File, Error> {
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path);
    let file = file.map_err(io("open", path))?;
    if !file.metadata().map_err(io("read", path))?.is_file() {
        return Err(io("open", path)(io::Error::other("it is not a plain file")));
    }
    Ok(file)
}

fn check(path: &Path, wanted: &Digest, is: &Digest) -> Result<(), Error> {
    if wanted == is {
        return Ok(());
    }
    Err(Error::damaged(format!("`{}`", path.display()), format!("its digest is {is}")))
}
