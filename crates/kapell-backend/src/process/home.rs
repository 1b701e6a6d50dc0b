//! The directory of a container.
//!
//! `about` is what an agent must know of it, `run` has a directory for each of its processes, `work` is
//! where these run. Only the owner of the agent reads these; others may pass through to `work`.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _, chown};
use std::path::{Path, PathBuf};

use super::about_file::About;
use super::run_home::RunHome;
use super::trouble;
use crate::containers::Error;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Home(PathBuf);

impl Home {
    pub(crate) fn new(dir: PathBuf) -> Self {
        Self(dir)
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.0
    }

    pub(crate) fn work(&self) -> PathBuf {
        self.0.join("work")
    }

    /// Makes it. Whatever fails leaves nothing behind.
    pub(crate) fn make(&self, about: &About) -> Result<(), Error> {
        DirBuilder::new().mode(0o700).create(&self.0).map_err(trouble::io("make", &self.0))?;
        self.fill(about).inspect_err(|_| drop(self.remove()))
    }

    fn fill(&self, about: &About) -> Result<(), Error> {
        for dir in ["run", "work"].map(|name| self.0.join(name)) {
            DirBuilder::new().mode(0o700).create(&dir).map_err(trouble::io("make", &dir))?;
        }
        if let Some((uid, gid)) = about.user {
            let work = self.work();
            chown(&work, Some(uid), Some(gid)).map_err(trouble::io("give away", &work))?;
        }
        open_to_pass(&self.0)?;
        // Last: it says that all of it is there.
        let path = self.0.join("about");
        create(&path)?.write_all(&about.encode()?).map_err(trouble::io("write", &path))
    }

    /// None if it was never done.
    pub(crate) fn about(&self) -> Result<Option<About>, Error> {
        Ok(About::parse(&read(&self.0.join("about"))?))
    }

    /// Of the process with this name.
    pub(crate) fn run(&self, process: &str) -> RunHome {
        RunHome::new(self.0.join("run").join(process))
    }

    /// The names of all processes that it ever had.
    pub(crate) fn processes(&self) -> Result<Vec<String>, Error> {
        let path = self.0.join("run");
        let entries = match fs::read_dir(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(trouble::io("read", &path))?,
        };
        let mut names = Vec::new();
        for entry in entries {
            let entry = entry.map_err(trouble::io("read", &path))?;
            names.extend(entry.file_name().into_string());
        }
        Ok(names)
    }

    /// Removes all of it. If that is cut short, what is left looks like a home that was never done.
    pub(crate) fn remove(&self) -> Result<(), Error> {
        let about = self.0.join("about");
        gone(fs::remove_file(&about)).map_err(trouble::io("remove", &about))?;
        if fs::remove_dir_all(&self.0).is_ok() {
            return Ok(());
        }
        // The program may have left directories that even their owner may not change.
        allow_removal(&self.0);
        gone(fs::remove_dir_all(&self.0)).map_err(trouble::io("remove", &self.0))
    }
}

/// What is not there is empty. What cannot be read is an error: nothing is concluded from it.
pub(super) fn read(path: &Path) -> Result<Vec<u8>, Error> {
    match fs::read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        read => read.map_err(trouble::io("read", path)),
    }
}

/// Lets others walk through a directory, but not look into it.
pub(crate) fn open_to_pass(dir: &Path) -> Result<(), Error> {
    fs::set_permissions(dir, Permissions::from_mode(0o711)).map_err(trouble::io("open", dir))
}

pub(super) fn create(path: &Path) -> Result<File, Error> {
    let mut options = OpenOptions::new();
    let file = options.read(true).write(true).create_new(true).mode(0o600).open(path);
    file.map_err(trouble::io("make", path))
}

pub(crate) fn gone(removed: io::Result<()>) -> io::Result<()> {
    match removed {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

pub(crate) fn allow_removal(dir: &Path) {
    let _best_effort = fs::set_permissions(dir, Permissions::from_mode(0o700));
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            allow_removal(&entry.path());
        }
    }
}
