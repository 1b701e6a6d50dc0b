use std::env;
use std::fs::{self, File, TryLockError};
use std::path::PathBuf;

use crate::error::{Error, Result, failed};

const NAME: &str = "kapell-backends";

/// The directory that outlives builds: programs, certificates, and what runs.
#[derive(Debug)]
pub(crate) struct Cache {
    dir: PathBuf,
}

impl Cache {
    pub(crate) fn locate() -> Result<Self> {
        // An empty or relative value counts as none, so says the XDG specification.
        let named = |name| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let base = named("XDG_CACHE_HOME").or_else(|| Some(named("HOME")?.join(".cache")));
        let base = base.ok_or_else(|| {
            failed("no place for servers: set HOME or XDG_CACHE_HOME to an absolute path")
        })?;
        Ok(Self { dir: base.join(NAME) })
    }

    #[cfg(test)]
    pub(crate) fn at(dir: impl Into<PathBuf>) -> Self {
        Self { dir: dir.into() }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// The certificate of the authority that signed every server's certificate.
    pub(crate) fn authority(&self) -> PathBuf {
        self.path("certificates").join("ca.pem")
    }

    /// Waits until no other invocation changes anything here; others wait until the answer is dropped.
    pub(crate) fn lock(&self) -> Result<File> {
        let file = self.open("lock")?;
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) => {
                eprintln!("backends: waiting for another invocation that is at work");
            }
            Err(TryLockError::Error(error)) => return Err(self.explain("lock", &error)),
        }
        file.lock().map_err(|error| self.explain("lock", &error))?;
        Ok(file)
    }

    /// The file that every test run keeps locked, shared, for as long as it uses servers.
    pub(crate) fn users(&self) -> Result<File> {
        self.open("users")
    }

    /// An empty directory of that name, for work that is renamed when it is complete.
    pub(crate) fn fresh(&self, name: &str) -> Result<PathBuf> {
        let dir = self.path(name);
        if dir.exists() {
            fs::remove_dir_all(&dir).map_err(|error| self.explain(name, &error))?;
        }
        fs::create_dir_all(&dir).map_err(|error| self.explain(name, &error))?;
        Ok(dir)
    }

    fn open(&self, name: &str) -> Result<File> {
        fs::create_dir_all(&self.dir).map_err(|error| self.explain("", &error))?;
        let mut options = File::options();
        options.create(true).truncate(false).read(true).write(true);
        options.open(self.path(name)).map_err(|error| self.explain(name, &error))
    }

    pub(crate) fn explain(&self, name: &str, error: &dyn std::error::Error) -> Error {
        failed(format!("{}: {error}", self.path(name).display()))
    }
}
