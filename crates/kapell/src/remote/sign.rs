//! The file `url` in the state directory: where the `kapell up` of this user listens, for as long as it runs.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

const NAME: &str = "url";
/// Longer than any address of ours.
const LONGEST: u64 = 1024;

/// A sign that stands while this is held. Its lock tells that somebody does: it goes with the process, however that ends.
#[derive(Debug)]
pub(crate) struct Sign {
    path: PathBuf,
    _locked: File,
}

impl Sign {
    /// Puts it up, unless another one stands there.
    pub(crate) fn put_up(state_dir: &Path, url: &str) -> io::Result<Option<Self>> {
        std::fs::create_dir_all(state_dir)?;
        let path = state_dir.join(NAME);
        let mut open = OpenOptions::new();
        open.read(true).write(true).create(true).truncate(false).mode(0o600);
        let mut file = open.open(&path)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(error)) => return Err(error),
        }
        file.set_len(0)?;
        file.write_all(format!("{url}\n").as_bytes())?;
        Ok(Some(Self { path, _locked: file }))
    }

    /// What it says, if it stands.
    pub(crate) fn read(state_dir: &Path) -> Option<String> {
        let file = File::open(state_dir.join(NAME)).ok()?;
        // Nobody holds what can be locked: it was left behind.
        if !matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)) {
            return None;
        }
        let mut text = String::new();
        file.take(LONGEST).read_to_string(&mut text).ok()?;
        text.strip_suffix('\n').filter(|url| !url.is_empty()).map(str::to_owned)
    }
}

impl Drop for Sign {
    fn drop(&mut self) {
        // One that is left is not believed.
        let _gone = std::fs::remove_file(&self.path);
    }
}
