//! The control groups that `runc` makes besides those that carry limits: it uses every hierarchy there is.

use std::fs;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::containers::Error;
use crate::process::groups::mounted;
use crate::process::trouble;

/// How long the kernel may take to notice that a group is empty.
const PATIENCE: Duration = Duration::from_secs(5);
const TRIES: usize = 10;
const PAUSE: Duration = Duration::from_millis(1);

/// Where each hierarchy is mounted.
#[derive(Debug)]
pub(super) struct Hierarchies(Vec<PathBuf>);

impl Hierarchies {
    pub(super) fn find() -> Self {
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        let roots = mounts.lines().filter_map(mounted).map(|mounted| mounted.root);
        Self(roots.filter(|root| root.is_dir()).collect())
    }

    /// Makes a group everywhere, so that nobody removes the one that it is in while `runc` makes others in it.
    pub(super) fn make(&self, group: &str) -> Result<(), Error> {
        for dir in self.dirs(group) {
            // Another agent may be removing the common one at the same time.
            let mut made = fs::create_dir_all(&dir);
            for _ in 0..TRIES {
                if made.as_ref().is_err_and(|error| error.kind() == ErrorKind::NotFound) {
                    made = fs::create_dir_all(&dir);
                }
            }
            made.map_err(trouble::io("make the control group", &dir))?;
        }
        Ok(())
    }

    /// Removes a group that nobody is in any more. Blocks.
    pub(super) fn remove(&self, group: &str) -> Result<(), Error> {
        let deadline = Instant::now() + PATIENCE;
        for dir in self.dirs(group) {
            loop {
                match fs::remove_dir(&dir) {
                    Err(error)
                        if error.kind() == ErrorKind::ResourceBusy && Instant::now() < deadline =>
                    {
                        std::thread::sleep(PAUSE);
                    }
                    Err(error) if error.kind() == ErrorKind::NotFound => break,
                    removed => {
                        removed.map_err(trouble::io("remove the control group", &dir))?;
                        break;
                    }
                }
            }
        }
        Ok(())
    }

    /// Removes groups in this one that nobody is in, unless they are known.
    pub(super) fn remove_strays(&self, within: &str, is_known: impl Fn(&str) -> bool) {
        for dir in self.dirs(within) {
            for group in fs::read_dir(dir).into_iter().flatten().flatten() {
                if group.file_name().to_str().is_some_and(|name| !is_known(name)) {
                    // Whatever is in use or no directory stays.
                    let _in_use = fs::remove_dir(group.path());
                }
            }
        }
    }

    /// Removes a group and the one that it is in, where both are empty.
    pub(super) fn remove_if_empty(&self, group: &str) {
        for dir in self.dirs(group) {
            let outer = dir.parent().map_or(Ok(()), |_| fs::remove_dir(&dir));
            let _in_use = outer.and_then(|()| dir.parent().map_or(Ok(()), fs::remove_dir));
        }
    }

    fn dirs(&self, group: &str) -> Vec<PathBuf> {
        self.0.iter().map(|root| root.join(group.trim_start_matches('/'))).collect()
    }
}
