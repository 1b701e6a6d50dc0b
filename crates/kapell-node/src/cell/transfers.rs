//! Files that come into containers, and files that leave them.

use std::error::Error as _;
use std::fmt;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use kapell_api::client::{Egress, EgressError};

/// Moves files over the network. Whoever asks gives up by dropping the future.
#[async_trait]
pub trait Transfers: fmt::Debug + Send + Sync {
    /// Writes what a URL has into a file, unless it is more than `most` bytes.
    async fn fetch(&self, url: &str, into: &Path, most: u64) -> Result<(), String>;

    /// Puts bytes where a URL says.
    async fn send(&self, url: &str, bytes: Vec<u8>) -> Result<(), String>;
}

/// Moves files by HTTP, but never from or to where only this machine should get.
#[derive(Debug, Clone)]
pub struct HttpTransfers {
    egress: Egress,
}

impl HttpTransfers {
    /// With certificates to trust, or else those that the system trusts. `limit` is how long an answer may take to begin.
    pub const fn new(ca: Option<PathBuf>, limit: Duration) -> Self {
        Self { egress: Egress { ca, limit } }
    }
}

/// An error with what caused it.
pub(super) fn told(error: &EgressError) -> String {
    match error.source() {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}

#[async_trait]
impl Transfers for HttpTransfers {
    async fn fetch(&self, url: &str, into: &Path, most: u64) -> Result<(), String> {
        let mut received = self.egress.get(url).await.map_err(|error| told(&error))?;
        let status = received.status();
        if !status.is_success() {
            return Err(format!("the answer is {status}"));
        }
        let failed = |error: io::Error| format!("cannot write `{}`: {error}", into.display());
        let mut file = create(into).map_err(failed)?;
        let mut length = 0;
        while let Some(part) = received.chunk().await.map_err(|error| error.to_string())? {
            length += part.len() as u64;
            if length > most {
                return Err(too_long(most));
            }
            file = write(file, part).await.map_err(failed)?;
        }
        Ok(())
    }

    async fn send(&self, url: &str, bytes: Vec<u8>) -> Result<(), String> {
        let status = self.egress.put(url, bytes.into()).await.map_err(|error| told(&error))?;
        if status.is_success() { Ok(()) } else { Err(format!("the answer is {status}")) }
    }
}

/// Off the runtime: a disk may take its time.
async fn write(mut file: File, part: Bytes) -> io::Result<File> {
    let written = tokio::task::spawn_blocking(move || file.write_all(&part).map(|()| file));
    written.await.map_err(io::Error::other)?
}

pub(super) fn too_long(most: u64) -> String {
    format!("it is longer than {most} bytes, which is the most that this cell takes")
}

/// A new file that only the agent may read, with the directory that it is in.
pub(super) fn create(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
    if let Some(dir) = path.parent() {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    }
    File::options().write(true).create(true).truncate(true).mode(0o600).open(path)
}
