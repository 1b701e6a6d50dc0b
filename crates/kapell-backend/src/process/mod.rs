//! Containers that are plain processes of this machine, each with a shim that outlives the agent.
//!
//! `docs/decisions/0007-shim.md` tells why. What stands where in a container's directory is told
//! in `home` and `run_home`.

mod about_file;
mod answer;
mod console;
pub(crate) mod container;
pub(crate) mod exec;
mod exit_file;
pub(crate) mod groups;
pub(crate) mod hidden;
pub(crate) mod home;
mod lock;
mod pidfd;
pub(crate) mod place;
pub(crate) mod program;
mod run_home;
pub mod runner;
mod shim;
pub(crate) mod spec_file;
mod sweep;
#[cfg(test)]
mod tests;
pub(crate) mod texts;
pub(crate) mod trouble;
mod words;

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use async_trait::async_trait;
use nix::sys::signal::Signal;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use self::answer::Answer;
use self::exec::Launcher;
use self::place::{Launch, Place, Started};
use self::runner::Listener;
use crate::containers::{Containers, Enforced, Error, Exec, Exit, Found, Process, Session, Spec};
use crate::own_file;

/// So many processes are started at once; more would only wait for each other.
const MAKERS: usize = 4;
const LONGEST_NAME: usize = 200;

/// See the module.
#[derive(Debug)]
pub struct ProcessContainers {
    place: Arc<Place>,
    makers: Semaphore,
    /// Wait for the shims of what runs beside the processes of containers.
    burials: Arc<Mutex<JoinSet<()>>>,
    /// Held as long as we are.
    _lock: File,
}

impl ProcessContainers {
    /// Keeps containers in `dir`, which is made if it is not there. No other agent may use it.
    pub fn open(dir: &Path) -> Result<Self, Error> {
        let dir = std::path::absolute(dir).map_err(trouble::io("find", dir))?;
        let (containers, programs) = (dir.join("containers"), dir.join("bin"));
        for dir in [&containers, &programs] {
            fs::create_dir_all(dir).map_err(trouble::io("make", dir))?;
            home::open_to_pass(dir)?;
        }
        let lock = lock::take(&dir)?;
        let place = Arc::new(Place::open(&dir, containers, &programs)?);
        Ok(Self { place, makers: Semaphore::new(MAKERS), burials: Arc::default(), _lock: lock })
    }

    /// Ends all of a process now, and waits for that. How it ended stays known.
    pub async fn kill(&self, guid: &str, process: &str) -> Result<(), Error> {
        self.place.find(guid)?.find(process)?.kill().await
    }

    /// When a process was started and when it ended, as far as its files tell.
    pub fn times(&self, guid: &str, process: &str) -> [Option<SystemTime>; 2] {
        self.place.home(guid).run(process).times()
    }

    /// The runner for programs that need no container of their own.
    pub async fn runner(&self, listener: Arc<dyn Listener>) -> Result<runner::Opened, Error> {
        runner::open(self.place.seat(), listener).await
    }

    pub(crate) fn place(&self) -> &Arc<Place> {
        &self.place
    }

    /// As [`Containers::run`]; if there is a `launch`, that starts the program.
    pub(crate) async fn run_by(
        &self,
        guid: &str,
        process: Process,
        launch: Option<Launch>,
    ) -> Result<(), Error> {
        let container = self.place.find(guid)?;
        let Started { program, header, status, new_logs } = {
            let _turn = self.makers.acquire().await.map_err(|_| cut_short())?;
            let (place, container) = (Arc::clone(&self.place), Arc::clone(&container));
            blocking(move || place.start(&container, &process, launch.as_ref())).await?
        };
        let home = program.home.clone();
        let error = match answer::listen(status).await {
            Answer::Runs => return Ok(()),
            Answer::Failed(failure) => failure.to_error(home.dir(), &header),
            Answer::Nothing => {
                program.ended().await?;
                // It may have run for a moment: then it is a process that has ended.
                if blocking(move || home.program()).await?.is_some() {
                    return Ok(());
                }
                no_answer(guid, &program.name)
            }
        };
        program.ended().await?;
        // What cannot be removed now is cleared away by the next agent.
        let _left = blocking(move || {
            let mut inside = container.inside();
            program.home.remove()?;
            place::remove_empty(&new_logs);
            inside.programs.remove(&program.name);
            Ok(())
        })
        .await;
        Err(error)
    }

    /// As [`Containers::exec`]; if there is a launcher, that starts the program.
    pub(crate) async fn exec_by(
        &self,
        guid: &str,
        exec: Exec,
        by: Option<Arc<dyn Launcher>>,
    ) -> Result<Session, Error> {
        let container = self.place.find(guid)?;
        let mut started = {
            let _turn = self.makers.acquire().await.map_err(|_| cut_short())?;
            let (place, burials) = (Arc::clone(&self.place), Arc::clone(&self.burials));
            let by = by.clone();
            blocking(move || {
                let (started, burial) = place.exec(&container, &exec, by.as_deref())?;
                // Here: whoever asked for it may be gone.
                let mut burials = burials.lock().unwrap_or_else(PoisonError::into_inner);
                while burials.try_join_next().is_some() {}
                burials.spawn(burial.wait());
                Ok(started)
            })
            .await?
        };
        let (name, _until_told) = (started.name.clone(), started.settled.take());
        match (started.session().await, by) {
            (Err(error), Some(by)) => blocking(move || Err(by.why_not(&name, error))).await,
            (told, _) => told,
        }
    }
}

#[async_trait]
impl Containers for ProcessContainers {
    fn rootfs_schemes(&self) -> Vec<String> {
        Vec::new()
    }

    fn enforced(&self) -> Enforced {
        self.place.enforced()
    }

    async fn recover(&self) -> Result<Vec<Found>, Error> {
        let place = Arc::clone(&self.place);
        blocking(move || place.recover()).await
    }

    async fn create(&self, spec: Spec) -> Result<(), Error> {
        check_name("a container", &spec.guid)?;
        if let Some(rootfs) = &spec.rootfs {
            return Err(Error::Unstartable(format!(
                "containers here have the machine's own files: leave out the rootfs `{rootfs}`"
            )));
        }
        let _turn = self.makers.acquire().await.map_err(|_| cut_short())?;
        let place = Arc::clone(&self.place);
        blocking(move || place.create(&spec)).await
    }

    async fn run(&self, guid: &str, process: Process) -> Result<(), Error> {
        check_name("a process", &process.name)?;
        self.run_by(guid, process, None).await
    }

    async fn exec(&self, guid: &str, exec: Exec) -> Result<Session, Error> {
        self.exec_by(guid, exec, None).await
    }

    async fn ended(&self, guid: &str, process: &str) -> Result<Exit, Error> {
        self.place.find(guid)?.find(process)?.ended().await
    }

    async fn stop(&self, guid: &str, process: &str) -> Result<(), Error> {
        self.place.find(guid)?.find(process)?.signal(Signal::SIGTERM).await
    }

    async fn delete(&self, guid: &str) -> Result<(), Error> {
        let Ok(container) = self.place.find(guid) else { return Ok(()) };
        let closed = Arc::clone(&container);
        let programs = blocking(move || Ok(closed.close())).await?;
        // All at once: they need not wait for each other.
        for program in &programs {
            program.signal(Signal::SIGUSR1).await?;
        }
        let execs = container.end_execs();
        for program in &programs {
            program.kill().await?;
        }
        for exec in execs {
            exec.gone().await;
        }
        let place = Arc::clone(&self.place);
        blocking(move || place.forget(&container)).await
    }

    async fn read_own(&self, guid: &str, file: &str, limit: u64) -> Result<Vec<u8>, Error> {
        let container = self.place.find(guid)?;
        let file = file.to_owned();
        blocking(move || {
            let owner = container.about.user.map(|(uid, _)| uid);
            let (dir, below) = match file.strip_prefix('/') {
                Some(below) => (PathBuf::from("/"), below),
                None => (container.home.work(), file.as_str()),
            };
            own_file::read(&dir, below, owner, limit)
                .map_err(|source| Error::Io { what: format!("cannot read `{file}`"), source })
        })
        .await
    }

    async fn put(&self, guid: &str, from: &Path, to: &str) -> Result<(), Error> {
        let container = self.place.find(guid)?;
        let (from, to) = (from.to_owned(), to.to_owned());
        blocking(move || {
            own_file::put(&from, &container.home.work(), &to, container.about.user).map_err(
                |source| Error::Io {
                    what: format!("cannot put `{}` into the container as `{to}`", from.display()),
                    source,
                },
            )
        })
        .await
    }

    fn dir(&self, guid: &str) -> PathBuf {
        self.place.home(guid).work()
    }
}

pub(crate) fn check_name(what: &str, name: &str) -> Result<(), Error> {
    let is_fine = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    if !name.is_empty() && name.len() <= LONGEST_NAME && name.bytes().all(is_fine) {
        return Ok(());
    }
    Err(Error::Unstartable(format!(
        "`{name}` is no name for {what}: 1 to {LONGEST_NAME} letters, digits, `-` and `_`"
    )))
}

fn no_answer(guid: &str, process: &str) -> Error {
    Error::Io {
        what: format!(
            "the shim of process `{process}` of container `{guid}` was killed before its program ran"
        ),
        source: io::ErrorKind::UnexpectedEof.into(),
    }
}

/// Work that waits for the disk.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    tokio::task::spawn_blocking(work).await.map_err(|_| cut_short())?
}

pub(crate) fn cut_short() -> Error {
    Error::Io { what: "the agent is ending".to_owned(), source: io::ErrorKind::Interrupted.into() }
}
