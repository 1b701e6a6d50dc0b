use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::error::{Result, failed};

static NEXT: AtomicU32 = AtomicU32::new(0);

/// A temporary directory that goes away with its owner.
#[derive(Debug)]
pub(crate) struct Scratch {
    path: PathBuf,
}

impl Scratch {
    pub(crate) fn new(purpose: &str) -> Result<Self> {
        let serial = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("xtask-{purpose}-{}-{serial}", std::process::id());
        let path = std::env::temp_dir().join(name);
        // `create_dir` refuses a directory that is already there: nobody else can have planted it.
        fs::create_dir(&path).map_err(|error| failed(format!("{}: {error}", path.display())))?;
        Ok(Self { path })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Left-over files in the temporary directory are no reason to fail.
        let _ = fs::remove_dir_all(&self.path);
    }
}
