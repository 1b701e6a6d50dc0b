//! Work as processes of the host that leads, with somebody beside them who outlives us: the runner for ordinary commands,
//! a container of the process driver with its shim for those that are another user or know secrets, and for workflows.
//!
//! Runner and driver write down what they are about to start, by the name of its attempt, so it is started once at most. What
//! they find after a restart is certain as long as the machine was not started anew: the place of a launch tells that.

mod ears;
mod farewell;
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
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use arcstr::ArcStr;
use async_trait::async_trait;
use futures_util::future::join_all;
use kapell_backend::containers::{Containers as _, Error, Found, Spec};
use kapell_backend::process::ProcessContainers;
use kapell_backend::process::runner::{self, Opened, Runner};
use kapell_core::causes::chain;
use kapell_core::run::{Evidence, StopKind};
use kapell_core::seams::{Clock, Ids, Timestamp};
use tokio::sync::{Mutex as Door, OwnedMutexGuard, mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::timeout;

use self::ears::Ears;
pub use self::farewell::end_all;
use self::host::{Host, Where};
use self::mark::Mark;
use self::order::{MAIN, Order, guid};
use super::backend::{Attempt, Backend, Newsroom, Secrets, Work};
use super::logs::RunLogs;
use super::teller::{End, Teller};
use crate::elections::Tenure;

/// Of the output of an attempt, the last so many bytes are kept.
const LOG_BYTES: u64 = 16 << 20;

/// How often the runner is told that we lead, at most and at least.
const LEASE_PAUSE: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(1));
/// How long work may take that is asked to end because we leave.
const LEAVE: Duration = Duration::from_secs(8);

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
    /// Nothing of the work outlives it, where others can lead.
    pub tenure: Option<Tenure>,
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
    runner: Runner,
    host: Host,
    teller: Arc<Teller>,
    logs: RunLogs,
    clock: Arc<dyn Clock>,
    secrets: Arc<dyn Secrets>,
    program: String,
    started: mpsc::UnboundedSender<Mark>,
    /// Whoever leads by now may launch the same: without it nothing is started any more.
    tenure: Option<Tenure>,
    /// One who starts, stops or releases an attempt at a time.
    doors: Mutex<BTreeMap<Attempt, Arc<Door<()>>>>,
}

impl LocalBackend {
    /// Finds what earlier hosts have left in the directory.
    pub async fn open(parts: Parts) -> Result<Self, String> {
        let below = parts.data_dir.clone();
        let opened = tokio::task::spawn_blocking(move || open_free(&below)).await;
        let (dir, driver) = opened.map_err(|error| error.to_string())??;
        Self::open_in(&dir, driver, parts).await
    }

    /// Finds what is left in one of the directories, which nobody else has open.
    async fn open_number(number: usize, parts: Parts) -> Result<Self, String> {
        let dir = work_dir(&parts.data_dir, number);
        let to_open = dir.clone();
        let opened = tokio::task::spawn_blocking(move || ProcessContainers::open(&to_open)).await;
        let driver = opened.map_err(|error| error.to_string())?.map_err(|error| chain(&error))?;
        Self::open_in(&dir, driver, parts).await
    }

    async fn open_in(dir: &Path, driver: ProcessContainers, parts: Parts) -> Result<Self, String> {
        let Parts { data_dir, newsroom, clock, ids, secrets, program, tenure } = parts;
        let (started, begun) = mpsc::unbounded_channel();
        let teller = Arc::new(Teller::new(newsroom));
        let found = driver.runner(Arc::new(Ears(Arc::clone(&teller)))).await;
        let Opened { runner, link } = found.map_err(|error| chain(&error))?;
        let inner = Arc::new(Inner {
            host: Host::of(dir, &*ids)?,
            driver,
            runner,
            teller,
            logs: RunLogs::below(&data_dir),
            clock,
            secrets,
            program: program.to_string_lossy().into_owned(),
            started,
            tenure: tenure.clone(),
            doors: Mutex::default(),
        });
        for found in inner.driver.recover().await.map_err(|error| chain(&error))? {
            inner.adopt(&found).await;
        }
        let mut tasks = JoinSet::new();
        tasks.spawn(watch::watch(Arc::clone(&inner), begun));
        tasks.spawn(link.run());
        if let Some(tenure) = tenure {
            tasks.spawn(keep_lease(inner.runner.clone(), tenure));
        }
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

/// Sees to it that nothing goes on when we do not lead any more, be it that we are killed.
async fn keep_lease(runner: Runner, tenure: Tenure) {
    while let Some(left) = tenure.acts_for() {
        runner.lease(left);
        tokio::time::sleep((left / 4).clamp(LEASE_PAUSE.0, LEASE_PAUSE.1)).await;
    }
}

fn work_dir(data_dir: &Path, number: usize) -> PathBuf {
    data_dir.join(if number == 1 { "work".to_owned() } else { format!("work-{number}") })
}

/// The first directory that no other process works in: a leader that was deposed while it was stopped still has its own.
fn open_free(data_dir: &Path) -> Result<(PathBuf, ProcessContainers), String> {
    let mut taken = String::new();
    for number in 1..=MOST_DIRS {
        let dir = work_dir(data_dir, number);
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
        let Some(mark) = Mark::read(&found.tag) else {
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
        match process.exit.clone() {
            None => drop(self.started.send(mark)),
            Some(exit) => {
                let end = watch::of_exit(self, &mark, exit, ended.unwrap_or(now)).await;
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

    fn check_lead(&self) -> Result<(), String> {
        match &self.tenure {
            Some(tenure) if !tenure.may_act() => Err(
                "this host does not lead any more, so nothing is started here: whoever leads decides what becomes of it"
                    .to_owned(),
            ),
            Some(_) | None => Ok(()),
        }
    }

    /// Starts the work of an attempt that was noted just now.
    async fn start(&self, work: &Work) -> Result<(), String> {
        let attempt = &work.attempt;
        let dir = self.driver.dir(&guid(attempt));
        let logs = (&self.logs, LOG_BYTES);
        let order = order::of(work, dir, logs, &self.program, &*self.secrets).await?;
        let Order { spec, process, kind, by_runner } = order;
        let _alone = self.enter(attempt).await;
        if !self.teller.knows(attempt) {
            return Err("it was stopped before it was started".to_owned());
        }
        // What it needs was waited for, and the seat may be gone meanwhile.
        self.check_lead()?;
        let guid = spec.guid.clone();
        if by_runner {
            let Spec { guid, tag, logs, log_bytes, .. } = spec;
            let order = runner::Order { guid, tag, process, logs, log_bytes };
            return self.runner.launch(order).await.map_err(|error| chain(&error));
        }
        self.driver.create(spec).await.map_err(|error| chain(&error))?;
        let run = async {
            self.check_lead()?;
            self.driver.run(&guid, process).await.map_err(|error| chain(&error))
        };
        if let Err(why) = run.await {
            self.discard(attempt).await;
            return Err(why);
        }
        self.teller.started(attempt, self.clock.wall());
        drop(self.started.send(Mark::of(attempt, kind)));
        Ok(())
    }

    /// What is known of it stays known, for whoever comes here next.
    async fn stop_all(&self, kind: StopKind) {
        let attempts = self.teller.all();
        let stop = async |attempt: &Attempt| {
            if let Err(error) = self.stop(attempt, kind).await {
                let (run, error) = (&attempt.run_id, chain(&error));
                tracing::error!(%run, %error, "the work of a run could not be ended: it may still run");
            }
        };
        join_all(attempts.iter().map(stop)).await;
    }

    async fn stop(&self, attempt: &Attempt, kind: StopKind) -> Result<(), Error> {
        let _alone = self.enter(attempt).await;
        let guid = guid(attempt);
        if self.runner.stop(&guid, kind == StopKind::AtOnce).await? {
            return Ok(());
        }
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

    fn place(&self) -> ArcStr {
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
        self.inner.runner.release(&guid(attempt));
        self.inner.discard(attempt).await;
        drop(alone);
        self.inner.doors().remove(attempt);
    }

    async fn known(&self) -> Result<Vec<Attempt>, String> {
        Ok(self.inner.teller.all())
    }

    async fn leave(&self, kind: StopKind) {
        if kind == StopKind::Graceful {
            let _those_who_do_not_heed_it = timeout(LEAVE, self.inner.stop_all(kind)).await;
        }
        self.inner.stop_all(StopKind::AtOnce).await;
    }
}

fn stamp(at: SystemTime) -> Timestamp {
    let since = at.duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}
