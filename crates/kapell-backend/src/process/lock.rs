//! Two agents never share a directory.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;
use std::time::{Duration, Instant};

use super::trouble;
use crate::containers::Error;

/// The lock of a killed agent lives on for a moment: until the last of its threads is gone, and in a
/// child that it was about to start.
const PATIENCE: Duration = Duration::from_secs(1);

/// Held as long as the file is open.
pub(crate) fn take(dir: &Path) -> Result<File, Error> {
    let path = dir.join("agent.lock");
    let failed = trouble::io("open", &path);
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(&path)
        .map_err(failed)?;
    let deadline = Instant::now() + PATIENCE;
    while file.try_lock().is_err() {
        if Instant::now() >= deadline || holder(&path).is_some_and(is_stopped) {
            let who =
                holder(&path).map_or("another agent".to_owned(), |pid| format!("process {pid}"));
            let what = format!(
                "`{}` is in use by {who}: stop that one, or use another directory",
                dir.display()
            );
            return Err(Error::Io { what, source: io::ErrorKind::WouldBlock.into() });
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    // A full disk must not keep us from finding what runs.
    let _best_effort = file.set_len(0).and_then(|()| writeln!(file, "{}", std::process::id()));
    Ok(file)
}

/// Whether somebody has stopped the process: it will not let go for as long as it stays so.
fn is_stopped(pid: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
    matches!(state, Some('T' | 't'))
}

fn holder(path: &Path) -> Option<i32> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}
