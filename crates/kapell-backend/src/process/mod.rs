//! Containers that are plain processes of this machine, each with a shim that outlives the agent.
//!
//! `docs/decisions/0007-shim.md` tells why. What stands where in a container's directory is told
//! in `home`.

mod container;
mod exit_file;
mod home;
mod lock;
mod pidfd;
mod shim;
mod spec_file;
mod sweep;
#[cfg(test)]
mod tests;
mod trouble;
mod words;

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use nix::sys::signal::Signal;
use tokio::net::unix::pipe::Receiver;
use tokio::sync::Semaphore;

use self::container::{Container, Search, find_shim};
use self::home::{Contents, Home};
use self::spec_file::Header;
use self::sweep::{Left, Sweeper};
use self::trouble::{Failure, Stage};
use crate::containers::{Containers, Error, Exit, Found, Spec};
use crate::own_file;
use crate::spawn::allowed_descriptors;

/// So many containers are made at once; more would only wait for each other.
const MAKERS: usize = 4;
const LONGEST_GUID: usize = 200;

/// See the module.
#[derive(Debug)]
pub struct ProcessContainers {
    place: Arc<Place>,
    makers: Semaphore,
    /// Held as long as we are.
    _lock: File,
}

/// A directory with containers.
#[derive(Debug)]
struct Place {
    containers: PathBuf,
    shim: PathBuf,
    boot: String,
    /// How many descriptors a program may have, if we allow ourselves more.
    descriptors: Option<u64>,
    known: Mutex<BTreeMap<String, Arc<Container>>>,
    sweeper: Arc<Sweeper>,
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
        let boot = Path::new("/proc/sys/kernel/random/boot_id");
        let place = Place {
            containers,
            shim: shim::install(&programs)?,
            boot: fs::read_to_string(boot).map_err(trouble::io("read", boot))?.trim().to_owned(),
            descriptors: allowed_descriptors().map(|limit| limit.rlim_cur),
            known: Mutex::default(),
            sweeper: Arc::default(),
        };
        Ok(Self { place: Arc::new(place), makers: Semaphore::new(MAKERS), _lock: lock })
    }
}

#[async_trait]
impl Containers for ProcessContainers {
    fn dir(&self, guid: &str) -> PathBuf {
        self.place.containers.join(guid).join("work")
    }

    async fn recover(&self) -> Result<Vec<Found>, Error> {
        let place = Arc::clone(&self.place);
        blocking(move || place.recover()).await
    }

    async fn run(&self, spec: Spec) -> Result<(), Error> {
        check_guid(&spec.guid)?;
        let made = {
            let _turn = self.makers.acquire().await.map_err(|_| cut_short())?;
            let place = Arc::clone(&self.place);
            blocking(move || place.make(&spec)).await?
        };
        let home = made.container.home.clone();
        let error = match listen(made.status).await {
            Answer::Runs => return Ok(()),
            Answer::Failed(failure) => failure.to_error(home.dir(), &made.header),
            Answer::Nothing => {
                made.container.ended().await?;
                // It may have run for a moment: then it is a container that has ended.
                if blocking(move || home.program()).await?.is_some() {
                    return Ok(());
                }
                no_answer(&made.container.guid)
            }
        };
        made.container.ended().await?;
        // What cannot be removed now is cleared away by the next agent.
        let _left = self.forget(&made.container, made.new_logs).await;
        Err(error)
    }

    async fn ended(&self, guid: &str) -> Result<Exit, Error> {
        self.place.find(guid)?.ended().await
    }

    async fn stop(&self, guid: &str) -> Result<(), Error> {
        self.place.find(guid)?.signal(Signal::SIGTERM).await
    }

    async fn delete(&self, guid: &str) -> Result<(), Error> {
        let Ok(container) = self.place.find(guid) else { return Ok(()) };
        container.kill().await?;
        self.forget(&container, None).await
    }

    async fn read_own(&self, guid: &str, file: &str, limit: u64) -> Result<Vec<u8>, Error> {
        let container = self.place.find(guid)?;
        let (work, file) = (self.dir(guid), file.to_owned());
        blocking(move || {
            let failed = |source| Error::Io { what: format!("cannot read `{file}`"), source };
            let header = container.home.header()?;
            let header = header.ok_or_else(|| failed(io::ErrorKind::NotFound.into()))?;
            let dir = if header.dir.is_empty() { work } else { header.dir.clone().into() };
            own_file::read(&dir, &file, header.uid(), limit).map_err(failed)
        })
        .await
    }
}

impl ProcessContainers {
    async fn forget(
        &self,
        container: &Arc<Container>,
        new_logs: Option<PathBuf>,
    ) -> Result<(), Error> {
        let place = Arc::clone(&self.place);
        let container = Arc::clone(container);
        blocking(move || {
            container.home.remove()?;
            if let Some(logs) = new_logs {
                // Only if nothing stands in it.
                let _kept = fs::remove_dir(logs);
            }
            place.known().remove(&container.guid);
            Ok(())
        })
        .await
    }
}

/// A container whose shim was started.
#[derive(Debug)]
struct Made {
    container: Arc<Container>,
    header: Header,
    status: OwnedFd,
    /// The directory of its logs, if it was not there before.
    new_logs: Option<PathBuf>,
}

impl Place {
    fn known(&self) -> MutexGuard<'_, BTreeMap<String, Arc<Container>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn find(&self, guid: &str) -> Result<Arc<Container>, Error> {
        self.known().get(guid).cloned().ok_or_else(|| Error::Unknown(guid.to_owned()))
    }

    fn container(&self, guid: String, home: Home) -> Container {
        Container::new(guid, home, Arc::clone(&self.sweeper))
    }

    /// Blocks. Whoever asked for it may be gone meanwhile: the container is known nonetheless.
    fn make(&self, spec: &Spec) -> Result<Made, Error> {
        let logs = std::path::absolute(&spec.logs).map_err(trouble::io("find", &spec.logs))?;
        let text = spec_file::encode(spec, &logs, &self.boot, self.descriptors)?;
        let user = spec_file::other_user(spec)?;
        let home = Home::new(self.containers.join(&spec.guid));
        let lock = home.make(&Contents { spec: &text, tag: &spec.tag, user })?;
        let mut new_logs = None;
        let started = make_logs(&logs).and_then(|is_new| {
            new_logs = is_new.then(|| logs.clone());
            shim::spawn(&self.shim, home.dir(), lock)
        });
        let started = started.inspect_err(|_| {
            let _kept = new_logs.as_ref().map(fs::remove_dir);
            let _cleared_next_time = home.remove();
        })?;
        let container = self.container(spec.guid.clone(), home).with_shim(started.shim);
        let container = Arc::new(container);
        self.known().insert(spec.guid.clone(), Arc::clone(&container));
        let header = Header::of(spec, &self.boot);
        Ok(Made { container, header, status: started.status, new_logs })
    }

    fn recover(&self) -> Result<Vec<Found>, Error> {
        let failed = || trouble::io("read", &self.containers);
        let mut killed = Vec::new();
        let mut found = Vec::new();
        for entry in fs::read_dir(&self.containers).map_err(failed())? {
            let entry = entry.map_err(failed())?;
            let Ok(guid) = entry.file_name().into_string() else { continue };
            let container = self.container(guid, Home::new(entry.path()));
            match self.look(container)? {
                Look::Known(one) => found.push(one),
                Look::Killed(container) => killed.push(container),
                Look::Cleared => {}
            }
        }
        let left = |container: &Container| Left::of(&container.guid, &container.home);
        self.sweeper.sweep(killed.iter().map(left).collect::<Result<Vec<_>, Error>>()?);
        for container in killed {
            let exit = exit_file::write_killed(container.home.dir());
            found.push(self.know(container, Some(exit))?);
        }
        Ok(found)
    }

    /// What has become of a container of an earlier agent.
    fn look(&self, container: Container) -> Result<Look, Error> {
        let home = &container.home;
        let search = find_shim(home)?;
        let header = home.header()?;
        match (search, header) {
            (Search::Found(shim), _) => {
                Ok(Look::Known(self.know(container.with_shim(Some(shim)), None)?))
            }
            (Search::NotYet, _) => Ok(Look::Known(self.know(container, None)?)),
            // A shim that wrote nothing has started nothing, and never will.
            (Search::Gone, Some(header)) if home.shim()?.is_some() => match home.exit(&header)? {
                Some(exit) => Ok(Look::Known(self.know(container, Some(exit))?)),
                None if header.boot == self.boot => Ok(Look::Killed(container)),
                // It ended with the machine, and its numbers are others' now.
                None => Ok(Look::clear(home)),
            },
            (Search::Gone, _) => Ok(Look::clear(home)),
        }
    }

    fn know(&self, container: Container, exit: Option<Exit>) -> Result<Found, Error> {
        let (guid, tag) = (container.guid.clone(), container.home.tag()?);
        let container = match &exit {
            Some(exit) => container.with_exit(exit.clone()),
            None => container,
        };
        self.known().insert(guid.clone(), Arc::new(container));
        Ok(Found { guid, tag, exit })
    }
}

#[derive(Debug)]
enum Look {
    Known(Found),
    /// Its shim was killed.
    Killed(Container),
    Cleared,
}

impl Look {
    fn clear(home: &Home) -> Self {
        // What cannot be removed now is tried again by the next agent.
        let _left = home.remove();
        Self::Cleared
    }
}

/// What a shim says of its program.
#[derive(Debug)]
enum Answer {
    Runs,
    Failed(Failure),
    /// It was killed before it could say anything.
    Nothing,
}

async fn listen(status: OwnedFd) -> Answer {
    let mut told = Vec::new();
    let Ok(pipe) = Receiver::from_owned_fd(status) else { return Answer::Nothing };
    loop {
        let mut part = [0; 16];
        match pipe.try_read(&mut part) {
            Ok(0) => break,
            Ok(length) => told.extend_from_slice(&part[..length]),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                if pipe.readable().await.is_err() {
                    break;
                }
            }
            Err(_) => break,
        }
    }
    match told[..] {
        [b'R', ..] => Answer::Runs,
        [b'F', stage, a, b, c, d] => Stage::from_byte(stage).map_or(Answer::Nothing, |stage| {
            Answer::Failed(Failure { stage, errno: i32::from_be_bytes([a, b, c, d]) })
        }),
        _ => Answer::Nothing,
    }
}

/// True if it was not there.
fn make_logs(logs: &Path) -> Result<bool, Error> {
    let is_new = !logs.is_dir();
    // Which work there is concerns its owners only.
    let mut maker = DirBuilder::new();
    maker.recursive(true).mode(0o700).create(logs).map_err(trouble::io("make", logs))?;
    Ok(is_new)
}

fn check_guid(guid: &str) -> Result<(), Error> {
    let is_fine = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    if !guid.is_empty() && guid.len() <= LONGEST_GUID && guid.bytes().all(is_fine) {
        return Ok(());
    }
    Err(Error::Unstartable(format!(
        "`{guid}` is no name for a container: 1 to {LONGEST_GUID} letters, digits, `-` and `_`"
    )))
}

fn no_answer(guid: &str) -> Error {
    Error::Io {
        what: format!("the shim of container `{guid}` was killed before its program ran"),
        source: io::ErrorKind::UnexpectedEof.into(),
    }
}

/// Work that waits for the disk.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    tokio::task::spawn_blocking(work).await.map_err(|_| cut_short())?
}

fn cut_short() -> Error {
    Error::Io { what: "the agent is ending".to_owned(), source: io::ErrorKind::Interrupted.into() }
}
