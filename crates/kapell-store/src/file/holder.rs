//! Who has a store open.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::dir::{Dir, Listing, failed};
use crate::error::Error;

/// A reader that looks who holds a store has the lock for an instant: how often and how long
/// to wait for it to go.
const TRIES: u32 = 25;
const PAUSE: Duration = Duration::from_millis(2);

/// Who opens a store, for those who find it held.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    pub pid: u32,
    /// Where it can be reached, if it can.
    #[serde(default)]
    pub address: Option<String>,
    /// What it runs, as its user knows it: `kapell host`.
    #[serde(default)]
    pub command: String,
    /// When it opened the store, for people only.
    #[serde(default)]
    pub since_ms: i64,
}

/// What can be seen of a store from beside its holder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Peek {
    /// Whether some process has it open.
    pub held: bool,
    /// What the present or the last holder announced.
    pub announced: Option<Vec<u8>>,
}

/// Looks who holds a store. Changes nothing.
pub fn peek(dir: &Path) -> Result<Peek, Error> {
    let failed = |source| failed(dir, "peek", source);
    if !Listing::of(dir)?.is_some_and(|listing| listing.is_store()) {
        return Err(Error::Absent { store: format!("`{}`", dir.display()) });
    }
    let held = match File::open(Dir::lock(dir)) {
        Ok(file) => match file.try_lock_shared() {
            Ok(()) => false,
            Err(TryLockError::WouldBlock) => true,
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => false,
        Err(error) => return Err(failed(error)),
    };
    let announced = match fs::read(Dir::holder(dir)) {
        Ok(bytes) => Some(bytes),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(failed(error)),
    };
    Ok(Peek { held, announced })
}

/// Takes the lock that lasts as long as the file is open.
pub(super) fn take(dir: &Path) -> Result<File, Error> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(0o600);
    let file = options.open(Dir::lock(dir)).map_err(|error| failed(dir, "open", error))?;
    for _ in 0..TRIES {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) => std::thread::sleep(PAUSE),
            Err(TryLockError::Error(error)) => return Err(failed(dir, "open", error)),
        }
    }
    let by = fs::read(Dir::holder(dir)).ok().and_then(|bytes| describe(&bytes));
    Err(Error::InUse { path: dir.to_owned(), by: by.unwrap_or("another process".to_owned()) })
}

fn describe(announced: &[u8]) -> Option<String> {
    let holder: Holder = serde_json::from_slice(announced).ok()?;
    let mut about = Vec::from_iter((!holder.command.is_empty()).then_some(holder.command));
    about.extend(holder.address);
    let pid = holder.pid;
    Some(if about.is_empty() {
        format!("pid {pid}")
    } else {
        format!("pid {pid} ({})", about.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_holder_is_described_by_what_it_said() {
        let say = |text: &str| describe(text.as_bytes());
        let whole = r#"{"pid":4711,"command":"kapell host","address":"127.0.0.1:7070","epoch":3}"#;
        assert_eq!(say(whole).unwrap(), "pid 4711 (kapell host, 127.0.0.1:7070)");
        assert_eq!(say(r#"{"pid":1,"command":"kapell up"}"#).unwrap(), "pid 1 (kapell up)");
        assert_eq!(say(r#"{"pid":1,"address":null}"#).unwrap(), "pid 1");
        assert_eq!(say("{}"), None);
    }
}
