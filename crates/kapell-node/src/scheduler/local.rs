//! Work as processes of the host that leads: each in a container of the process driver, with a shim that outlives us.
//!
//! A container is made before its program is started and bears the name of its attempt, so there is at most one of
//! either. What a driver finds after a restart is certain as long as the machine was not started anew: the place of a
//! launch tells that.

mod host;
mod mark;
mod order;
#[cfg(test)]
pub(crate) mod tests;
mod watch;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use kapell_backend::containers::{Containers as _, Error, Found};
use kapell_backend::process::ProcessContainers;
use kapell_core::causes::chain;
use kapell_core::run::{Evidence, StopKind};
use kapell_core::seams::{Clock, Ids, Timestamp};
use tokio::sync::{Mutex as Door, OwnedMutexGuard, mpsc, oneshot};
use tokio::task::JoinSet;

use self::host::{Host, Where};
use self::mark::Mark;
use self::order::{MAIN, Order, guid};
use super::backend::{Attempt, Backend, Newsroom, Secrets, Work};
use super::logs::RunLogs;
use super::teller::{End, Teller};

/// Of the output of an attempt, the last so many bytes are kept.
const LOG_BYTES: u64 = 16 << 20;

/// So many processes on one machine may share a data directory.
const MOST_DIRS: usize = 8;

/// What a host gives to its backend.
#[derive(Debug)]
pub struct Parts {
    /// Processes are kept in `work` below it, logs in `runs`. Another host that uses it has a `work` of its own.
    pub data_dir: PathBuf,
    pub newsroom: Newsroom,
    pub clock: Arc<dyn Clock>,
    pub ids: Arc<dyn Ids>,
    pub secrets: Arc<dyn Secrets>,
    /// Runs workflows: `kapell` itself.
    pub program: PathBuf,
}

/// See the module.
#[derive(Debug)]
pub struct LocalBackend {
    inner: Arc<Inner>,
    /// The watch, and what is being launched.
    tasks: Mutex<JoinSet<()>>,
}

#[derive(Debug)]
struct Inner {
    driver: ProcessContainers,
    host: Host,
    teller: Teller,
    logs: RunLogs,
    clock: Arc<dyn Clock>,
    secrets: Arc<dyn Secrets>,
    program: String,
    started: mpsc::UnboundedSender<Mark>,
    /// One who starts, stops or releases an attempt at a time.
    doors: Mutex<BTreeMap<Attempt, Arc<Door<()>>>>,
}

impl LocalBackend {
    /// Finds what earlier hosts have left in the directory.
    pub async fn open(parts: Parts) -> Result<Self, String> {
        let Parts { data_dir, newsroom, clock, ids, secrets, program } = parts;
        let below = data_dir.clone();
        let opened = tokio::task::spawn_blocking(move || open_free(&below)).await;
        let (dir, driver) = opened.map_err(|error| error.to_string())??;
        let (started, begun) = mpsc::unbounded_channel();
        let inner = Arc::new(Inner {
            host: Host::of(&dir, &*ids)?,
            driver,
            teller: Teller::new(newsroom),
            logs: RunLogs::below(&data_dir),
            clock,
            secrets,
            program: program.to_string_lossy().into_owned(),
            started,
            doors: Mutex::default(),
        });
        for found in inner.driver.recover().await.map_err(|error| chain(&error))? {
            inner.adopt(&found).await;
        }
        let mut tasks = JoinSet::new();
        tasks.spawn(watch::watch(Arc::clone(&inner), begun));
        Ok(Self { inner, tasks: Mutex::new(tasks) })
    }

    /// Lets go of the directory. What runs goes on.
    pub async fn close(self) {
        let mut tasks = self.tasks.into_inner().unwrap_or_else(PoisonError::into_inner);
        tasks.shutdown().await;
    }

    /// Where the logs of attempts are.
    pub fn logs(&self) -> &RunLogs {
        &self.inner.logs
    }
}

/// The first directory that no other process works in: a leader that was deposed while it was stopped still has its own.
fn open_free(data_dir: &Path) -> Result<(PathBuf, ProcessContainers), String> {
    let mut taken = String::new();
    for number in 1..=MOST_DIRS {
        let name = if number == 1 { "work".to_owned() } else { format!("work-{number}") };
        let dir = data_dir.join(name);
        match ProcessContainers::open(&dir) {
            Ok(driver) => return Ok((dir, driver)),
            Err(Error::Io { what, source }) if source.kind() == io::ErrorKind::WouldBlock => {
                taken = what;
            }
            Err(error) => return Err(chain(&error)),
        }
    }
    Err(taken)
}

impl Inner {
    fn doors(&self) -> MutexGuard<'_, BTreeMap<Attempt, Arc<Door<()>>>> {
        self.doors.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn enter(&self, attempt: &Attempt) -> OwnedMutexGuard<()> {
        let door = Arc::clone(self.doors().entry(attempt.clone()).or_default());
        door.lock_owned().await
    }

    /// Takes up what an earlier host has left.
    async fn adopt(&self, found: &Found) {
        let Some(mark) = Mark::read(found) else {
            tracing::warn!(container = %found.guid, "this container is not the work of a run: it is left alone");
            return;
        };
        let attempt = mark.attempt();
        let Some(process) = found.processes.first() else {
            // Nothing was started in it, and nobody is left who would.
            self.discard(&attempt).await;
            return;
        };
        let [began, ended] = self.driver.times(&found.guid, MAIN).map(|at| at.map(stamp));
        let now = self.clock.wall();
        self.teller.add(&attempt);
        self.teller.started(&attempt, began.unwrap_or(now));
        match &process.exit {
            None => drop(self.started.send(mark)),
            Some(exit) => {
                let end = watch::of_exit(self, &mark, exit, ended.unwrap_or(now));
                self.teller.ended(&attempt, End::Ended(end));
            }
        }
    }

    /// Removes all but the log.
    async fn discard(&self, attempt: &Attempt) {
        if let Err(error) = self.driver.delete(&guid(attempt)).await {
            let (run, error) = (&attempt.run_id, chain(&error));
            tracing::warn!(%run, %error, "cannot remove what is left of the work of a run");
        }
    }

    /// Starts the work of an attempt that was noted just now.
    async fn start(&self, work: &Work) -> Result<(), String> {
        let attempt = &work.attempt;
        let dir = self.driver.dir(&guid(attempt));
        let logs = (&self.logs, LOG_BYTES);
        let order = order::of(work, dir, logs, &self.program, &*self.secrets).await?;
        let Order { spec, process, kind } = order;
        let _alone = self.enter(attempt).await;
        if !self.teller.knows(attempt) {
            return Err("it was stopped before it was started".to_owned());
        }
        let guid = spec.guid.clone();
        self.driver.create(spec).await.map_err(|error| chain(&error))?;
        if let Err(error) = self.driver.run(&guid, process).await {
            self.discard(attempt).await;
            return Err(chain(&error));
        }
        self.teller.started(attempt, self.clock.wall());
        drop(self.started.send(Mark::of(attempt, kind)));
        Ok(())
    }

    async fn stop(&self, attempt: &Attempt, kind: StopKind) -> Result<(), Error> {
        let _alone = self.enter(attempt).await;
        let guid = guid(attempt);
        let ended = match kind {
            StopKind::Graceful => match self.driver.stop(&guid, MAIN).await {
                Ok(()) => self.driver.ended(&guid, MAIN).await.map(drop),
                Err(error) => Err(error),
            },
            StopKind::AtOnce => self.driver.kill(&guid, MAIN).await,
        };
        match ended {
            // Whoever is about to start it will not.
            Err(Error::Unknown(_)) => self.teller.forget(attempt),
            other => other?,
        }
        Ok(())
    }
}

#[async_trait]
impl Backend for LocalBackend {
    fn name(&self) -> &'static str {
        "local"
    }

    fn place(&self) -> String {
        self.inner.host.place()
    }

    async fn launch(&self, work: &Work) -> Result<(), String> {
        let attempt = work.attempt.clone();
        let is_new = self.inner.teller.add(&attempt);
        self.inner.teller.want(&attempt);
        if !is_new {
            return Ok(());
        }
        let (answer, answered) = oneshot::channel();
        let (inner, work) = (Arc::clone(&self.inner), work.clone());
        // Whoever asks may be gone before it is started: then it is started nonetheless.
        let launch = async move {
            let started = inner.start(&work).await;
            if let Err(why) = &started {
                inner.teller.fail(&attempt, why);
            }
            drop(answer.send(started));
        };
        {
            let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
            while tasks.try_join_next().is_some() {}
            tasks.spawn(launch);
        }
        answered.await.unwrap_or_else(|_| Err("the host is ending".to_owned()))
    }

    async fn find(&self, attempt: &Attempt, place: &str) -> Evidence {
        if let Some(evidence) = self.inner.teller.evidence(attempt) {
            return evidence;
        }
        match self.inner.host.locate(place) {
            Where::Here => Evidence::Absent,
            Where::BeforeBoot => Evidence::Unknown {
                why: "the machine was started anew since it was to be launched".to_owned(),
            },
            Where::Elsewhere(why) => Evidence::Unknown { why },
        }
    }

    async fn stop(&self, attempt: &Attempt, place: &str, kind: StopKind) -> Result<(), String> {
        if let Where::Elsewhere(why) = self.inner.host.locate(place) {
            return Err(format!("it may still run: {why}"));
        }
        self.inner.stop(attempt, kind).await.map_err(|error| chain(&error))
    }

    async fn release(&self, attempt: &Attempt) {
        let alone = self.inner.enter(attempt).await;
        self.inner.teller.forget(attempt);
        self.inner.discard(attempt).await;
        drop(alone);
        self.inner.doors().remove(attempt);
    }

    async fn known(&self) -> Result<Vec<Attempt>, String> {
        Ok(self.inner.teller.all())
    }
}

fn stamp(at: SystemTime) -> Timestamp {
    let since = at.duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}
