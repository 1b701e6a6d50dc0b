//! Work as Jobs of Kubernetes clusters: the cluster has the record, and its name is that of the attempt.
//!
//! A Job stays until its outcome is stored, also one that was stopped: so a Job that is not there was never created, unless
//! somebody else deleted it. Two watches for each namespace tell of everything; nothing is asked for by itself.

mod held;
mod keep;
mod order;
mod sights;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use arcstr::ArcStr;
use async_trait::async_trait;
use kapell_backend::kubernetes::{Client, Event, Watched, watch};
use kapell_core::job::JobDefinition;
use kapell_core::kubernetes::{Cluster, Clusters, Job, Leftovers, Pod, Standing, selector};
use kapell_core::run::{Evidence, StopKind, WorkEnd};
use kapell_core::seams::{Clock, Timestamp};
use tokio::sync::{
    Mutex as Door, OwnedMutexGuard, OwnedSemaphorePermit, Semaphore, oneshot, watch as signal,
};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use self::held::{Book, Held, Part, Spot};
use self::sights::{Sight, Sights, place as place_in};
use super::backend::{Attempt, Backend, Leftover, Newsroom, Work};
use super::logs::RunLogs;
use super::teller::{End, Teller};
use crate::cell::outcome;
use crate::failpoint;

/// How long the log of a pod may take to be fetched.
const LOG: Duration = Duration::from_secs(30);
/// How long clusters may take to say what they have, for who asks for all of it.
const SIGHT: Duration = Duration::from_secs(20);
/// Between two questions for a pod that was not seen.
const ASK_AGAIN: Duration = Duration::from_secs(1);
/// What was longer ago by the clock of the cluster was not seen as it happened. A node that has much to do tells of it seconds
/// later, and then start and end are to be late alike: how long work took is the difference.
const FRESH: Duration = Duration::from_secs(10);

/// What a host gives to its backend.
#[derive(Debug)]
pub struct Parts {
    pub clusters: Clusters,
    /// Whose Jobs they are: others may share the cluster.
    pub owner: String,
    /// Between a launch and the work that runs, where the job does not say.
    pub start_timeout: Duration,
    pub newsroom: Newsroom,
    pub clock: Arc<dyn Clock>,
    /// Without it nobody keeps what pods write.
    pub logs: Option<RunLogs>,
}

/// See the module.
#[derive(Debug)]
pub struct KubernetesBackend {
    inner: Arc<Inner>,
    /// The watches, and what is being launched or fetched.
    tasks: Arc<Mutex<JoinSet<()>>>,
}

struct Inner {
    owner: String,
    start_timeout: Duration,
    first: Arc<str>,
    sites: BTreeMap<Arc<str>, Site>,
    /// Clusters that cannot be used, and why.
    unusable: BTreeMap<Arc<str>, String>,
    teller: Teller,
    book: Mutex<Book>,
    logs: Option<RunLogs>,
    clock: Arc<dyn Clock>,
    /// Leave to fetch logs of pods that are over.
    fetchers: Semaphore,
    /// Changes whenever something was seen.
    seen: signal::Sender<u64>,
    sights: Sights,
    /// One who starts, stops or releases an attempt at a time.
    doors: Mutex<BTreeMap<Attempt, Arc<Door<()>>>>,
}

#[derive(Debug)]
struct Site {
    client: Client,
    namespaces: Vec<Arc<str>>,
    settings: Cluster,
    /// Leave to follow logs.
    followers: Arc<Semaphore>,
}

impl fmt::Debug for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inner").field("sites", &self.sites).finish_non_exhaustive()
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl KubernetesBackend {
    /// Begins to look at the clusters. One that cannot be reached now is looked at when it can; one whose access cannot be
    /// read takes no work.
    pub async fn open(parts: Parts) -> Self {
        let Parts { clusters, owner, start_timeout, newsroom, clock, logs } = parts;
        let (mut sites, mut unusable) = (BTreeMap::new(), BTreeMap::new());
        let sights = Sights::default();
        for (name, settings) in clusters.all {
            let client = match Client::open(&name, &settings).await {
                Ok(client) => client,
                Err(error) => {
                    tracing::error!(cluster = name, %error, "a cluster takes no work until its access is mended and the host starts again");
                    let name = Arc::from(name);
                    sights.never(&name, &error.to_string());
                    unusable.insert(name, error.to_string());
                    continue;
                }
            };
            let mut namespaces: Vec<Arc<str>> =
                settings.namespaces.iter().map(|it| it.as_str().into()).collect();
            if namespaces.is_empty() {
                namespaces.push(client.default_namespace().into());
            }
            let followers = Arc::new(Semaphore::new(settings.followed_logs));
            sites.insert(Arc::from(name), Site { client, namespaces, settings, followers });
        }
        let inner = Arc::new(Inner {
            owner,
            start_timeout,
            first: clusters.first.into(),
            sites,
            unusable,
            teller: Teller::new(newsroom),
            book: Mutex::default(),
            logs,
            clock,
            fetchers: Semaphore::new(keep::FETCHERS),
            seen: signal::Sender::new(0),
            sights,
            doors: Mutex::default(),
        });
        let this = Self { inner, tasks: Arc::default() };
        let selector = selector(&this.inner.owner);
        for (cluster, site) in &this.inner.sites {
            for namespace in &site.namespaces {
                let spot = Spot { cluster: Arc::clone(cluster), namespace: Arc::clone(namespace) };
                this.look::<Job>(&site.client, &spot, &selector);
                this.look::<Pod>(&site.client, &spot, &selector);
            }
        }
        this
    }

    /// Lets go of the clusters. What runs goes on.
    pub async fn close(self) {
        let mut tasks = std::mem::take(&mut *locked(&self.tasks));
        tasks.shutdown().await;
    }

    fn look<T: Part + Watched>(&self, client: &Client, spot: &Spot, selector: &str) {
        let key = self.inner.sights.begin(spot, T::WHAT);
        let (inner, spot) = (Arc::clone(&self.inner), spot.clone());
        let watched = spot.clone();
        let tasks = Arc::downgrade(&self.tasks);
        let tell = move |event: Event<T>| {
            pass(&event);
            let (sight, live) = (Sight::of(&event), !matches!(event, Event::All(_)));
            let changed = inner.book().take(&spot, event);
            inner.told(&changed, live, &tasks);
            // Only now: who finds nothing of an attempt where all was seen takes it for one that is not there.
            if let Some(sight) = sight {
                inner.sights.note(&key, sight);
                inner.seen.send_modify(|count| *count += 1);
            }
        };
        failpoint::pass("cluster-list");
        let namespace = watched.namespace.to_string();
        locked(&self.tasks).spawn(watch::<T>(client.clone(), namespace, selector.to_owned(), tell));
    }
}

impl Inner {
    fn book(&self) -> MutexGuard<'_, Book> {
        locked(&self.book)
    }

    fn client(&self, cluster: &str) -> Option<&Client> {
        self.sites.get(cluster).map(|site| &site.client)
    }

    fn held(&self, attempt: &Attempt) -> Option<Held> {
        self.book().all.get(attempt).filter(|held| !held.released).cloned()
    }

    async fn enter(&self, attempt: &Attempt) -> OwnedMutexGuard<()> {
        let door = Arc::clone(locked(&self.doors).entry(attempt.clone()).or_default());
        door.lock_owned().await
    }

    /// Tells what is new of attempts, and does what follows from it.
    fn told(self: &Arc<Self>, changed: &[Attempt], live: bool, tasks: &Weak<Mutex<JoinSet<()>>>) {
        let to_read = self.tell(changed, live);
        if let Some(running) = tasks.upgrade() {
            let mut running = locked(&running);
            while running.try_join_next().is_some() {}
            for (attempt, leave) in to_read {
                let log = Arc::clone(self).keep_log(attempt);
                running.spawn(async move {
                    log.await;
                    drop(leave);
                });
            }
            for attempt in self.overlooked(changed) {
                running.spawn(Arc::clone(self).ask_for_pod(attempt, Weak::clone(tasks)));
            }
        }
        self.seen.send_modify(|count| *count += 1);
    }

    /// Those whose pods are to be asked for, and are not yet.
    fn overlooked(&self, changed: &[Attempt]) -> Vec<Attempt> {
        let mut book = self.book();
        let mut is_new = |attempt: &&Attempt| {
            let held = book.all.get_mut(*attempt).filter(|held| held.is_overlooked());
            held.is_some_and(|held| !std::mem::replace(&mut held.is_asked_for, true))
        };
        changed.iter().filter(&mut is_new).cloned().collect()
    }

    /// Asks the cluster for the pod of an attempt until it answers, or the pod is seen.
    async fn ask_for_pod(self: Arc<Self>, attempt: Attempt, tasks: Weak<Mutex<JoinSet<()>>>) {
        loop {
            let Some(held) = self.held(&attempt).filter(Held::is_overlooked) else { return };
            let Some(client) = self.client(&held.spot.cluster) else { return };
            match client.pods(&held.spot.namespace, &held.name, &held.calls).await {
                Ok(pods) => {
                    if self.book().found(&attempt, &pods) {
                        self.told(&[attempt], true, &tasks);
                    }
                    return;
                }
                Err(error) => {
                    tracing::warn!(%error, run = %attempt.run_id, "its pod is not seen: asked for again");
                    sleep(ASK_AGAIN).await;
                }
            }
        }
    }

    /// Tells what is new of attempts; names those whose logs are to be read from now on, with leave to follow them.
    fn tell(
        &self,
        changed: &[Attempt],
        live: bool,
    ) -> Vec<(Attempt, Option<OwnedSemaphorePermit>)> {
        let mut to_read = Vec::new();
        let mut book = self.book();
        for attempt in changed {
            let Some(held) = book.all.get_mut(attempt).filter(|held| !held.released) else {
                continue;
            };
            self.teller.add(attempt);
            self.tell_one(attempt, held, live);
            if held.is_read || self.logs.is_none() {
                continue;
            }
            let ends = matches!(held.pod.last(), Some(pod) if pod.end.is_some() || pod.deleting);
            let runs = matches!(held.standing(), Standing::Runs { .. });
            let followers =
                self.sites.get(&held.spot.cluster).map(|site| Arc::clone(&site.followers));
            let leave = followers.and_then(|it| it.try_acquire_owned().ok()).filter(|_| runs);
            if ends || leave.is_some() {
                held.is_read = true;
                to_read.push((attempt.clone(), leave));
            }
        }
        book.clear(changed);
        to_read
    }

    fn tell_one(&self, attempt: &Attempt, held: &mut Held, live: bool) {
        let wall = self.clock.wall();
        let exact = |told: Option<Timestamp>| exact(told, wall, live);
        match held.standing() {
            Standing::Waits { hindrance } => {
                let why = hindrance.map(|it| it.tell());
                if why.is_some() && why != held.hindrance {
                    self.teller.hindered(attempt, why.as_deref().unwrap_or_default());
                    held.hindrance = why;
                }
            }
            Standing::Runs { since } => self.teller.started(attempt, exact(Some(since))),
            Standing::Hopeless { why } => {
                self.teller.ended(attempt, End::Unstartable { why: outcome::cut(why.tell()) });
            }
            Standing::Ended { began, at, exit_code, failure } => {
                if let Some(began) = began {
                    self.teller.started(attempt, exact(Some(began)));
                }
                let failure = failure.map(|it| outcome::cut(it.tell()));
                let end = WorkEnd { began: None, at: exact(at), exit_code, failure };
                self.teller.ended(attempt, End::Ended(end));
            }
        }
    }

    /// Waits until every watch of a place has seen everything once, or that is not needed any more. An error says why it was not to
    /// be seen.
    async fn sighted(&self, place: &str, is_known: impl Fn() -> bool) -> Result<(), String> {
        let mut seen = self.seen.subscribe();
        let sighted = async {
            while self.sights.blindness(place).is_some()
                && !is_known()
                && seen.changed().await.is_ok()
            {}
        };
        let silent = |_| self.sights.blindness(place).unwrap_or_default();
        timeout(SIGHT, sighted).await.map_err(silent)
    }
}

fn pass<T>(event: &Event<T>) {
    match event {
        Event::All(_) => failpoint::pass("cluster-list-done"),
        Event::Seen(_) | Event::Gone(_) => failpoint::pass("cluster-seen"),
        Event::Blind(_) => {}
    }
}

/// When something was. Clusters count in seconds: what is seen as it happens is known better here. But a watch that was away tells of
/// what went on meanwhile as if it were new.
fn exact(told: Option<Timestamp>, wall: Timestamp, live: bool) -> Timestamp {
    match told {
        Some(told) if !live || wall.since(told) > FRESH => told,
        Some(_) | None => wall,
    }
}

#[async_trait]
impl Backend for KubernetesBackend {
    fn name(&self) -> &'static str {
        "kubernetes"
    }

    fn place(&self) -> ArcStr {
        ArcStr::new()
    }

    fn place_of(&self, definition: &JobDefinition) -> ArcStr {
        self.inner.place_of(definition)
    }

    fn launch_limit(&self) -> Option<Duration> {
        // It waits for its turn for as long as the pace of its cluster asks for; then the cluster has as long as its settings say.
        None
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
        // Whoever asks may be gone before it is created: then it is created nonetheless.
        let launch = async move {
            let started = inner.start(&work).await;
            if let Err(why) = &started {
                inner.teller.fail(&attempt, why);
            }
            drop(answer.send(started));
        };
        {
            let mut tasks = locked(&self.tasks);
            while tasks.try_join_next().is_some() {}
            tasks.spawn(launch);
        }
        answered.await.unwrap_or_else(|_| Err("the host is ending".to_owned()))
    }

    async fn find(&self, attempt: &Attempt, place: &str) -> Evidence {
        let inner = &self.inner;
        // Jobs and pods are listed apart: one whose Job was seen first may well run. What other clusters have does not matter.
        let is_all = |held: Held| {
            let Spot { cluster, namespace } = &held.spot;
            inner.sights.blindness(&place_in(cluster, namespace)).is_none()
        };
        let is_sure = || {
            let evidence = inner.teller.evidence(attempt);
            evidence.is_some_and(|evidence| {
                evidence != Evidence::Launched || inner.held(attempt).is_some_and(is_all)
            })
        };
        loop {
            let sighted = inner.sighted(place, is_sure).await;
            match (inner.teller.evidence(attempt), sighted) {
                (Some(evidence), _) => return evidence,
                (None, Ok(())) => return Evidence::Absent,
                (None, Err(_)) => {}
            }
        }
    }

    async fn stop(&self, attempt: &Attempt, place: &str, kind: StopKind) -> Result<(), String> {
        let inner = &self.inner;
        if inner.held(attempt).is_none() {
            if inner.book().refused.contains_key(attempt) {
                return Ok(());
            }
            inner.sighted(place, || inner.held(attempt).is_some()).await?;
        }
        inner.stop(attempt, kind).await
    }

    /// A cluster is waited for twice: to be seen, and to end the pod. Each call has its own limit.
    fn stop_limit(&self) -> Duration {
        Duration::from_secs(300)
    }

    async fn release(&self, attempt: &Attempt) {
        let alone = self.inner.enter(attempt).await;
        self.inner.teller.forget(attempt);
        self.inner.book().refused.remove(attempt);
        if let Some(held) = self.inner.held(attempt) {
            let run = &attempt.run_id;
            let log = timeout(LOG, Arc::clone(&self.inner).keep_log(attempt.clone()));
            // What runs writes on until it is deleted.
            let deleted = if held.may_run() {
                let (deleted, _kept) = tokio::join!(self.inner.delete(&held), log);
                deleted
            } else {
                if log.await.is_err() {
                    tracing::warn!(%run, "the log of a run on Kubernetes took too long: it is not whole");
                }
                self.inner.delete(&held).await
            };
            let mut book = self.inner.book();
            match deleted {
                Ok(()) => {
                    if let Some(held) = book.all.get_mut(attempt) {
                        held.released = true;
                    }
                    // What a watch saw of it meanwhile has made it known again.
                    self.inner.teller.forget(attempt);
                    book.clear(std::slice::from_ref(attempt));
                }
                Err(error) => {
                    tracing::warn!(%run, %error, "the Job of a run stays in its cluster for now");
                }
            }
        }
        drop(alone);
        locked(&self.inner.doors).remove(attempt);
    }

    async fn known(&self) -> Result<Vec<Attempt>, String> {
        if let Err(why) = self.inner.sighted("", || false).await {
            if !self.inner.sights.sees_anything() {
                return Err(why);
            }
            // Nobody else waits for it: what it has is found once it can be looked at.
            tracing::warn!(why, "a cluster cannot say what it has: asked again");
        }
        let book = self.inner.book();
        Ok(book.all.iter().filter(|(_, held)| !held.released).map(|(it, _)| it.clone()).collect())
    }

    fn leftover(&self, attempt: &Attempt) -> Leftover {
        let held = self.inner.held(attempt);
        let spot = held.as_ref().map(|held| &held.spot);
        let site = spot.and_then(|spot| self.inner.sites.get(&spot.cluster));
        let stays = site.is_some_and(|site| site.settings.leftovers == Leftovers::Keep);
        let place = held.map_or_else(String::new, |held| {
            let Spot { cluster, namespace } = &held.spot;
            format!("Job `{}` in namespace `{namespace}` of cluster `{cluster}`", held.name)
        });
        Leftover { place, stays }
    }

    fn calls(&self, attempt: &Attempt) -> u32 {
        self.inner.book().calls(attempt)
    }
}
