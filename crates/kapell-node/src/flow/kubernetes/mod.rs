//! Commands as Jobs of Kubernetes clusters, which are spoken with directly: no host is asked.
//!
//! A Job stays until the end of its step is in the journal, so whoever resumes a run finds it by its name. One that is told
//! to end is deleted: a step that was cancelled begins anew anyway.

mod attempt;
mod log;
mod reach;
mod scene;
mod sight;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use kapell_backend::executor::{Error, Executor, Job, Later, Output, Started};
use kapell_backend::kubernetes::{Calls, Client, watch};
use kapell_core::kubernetes::{self, JobPlace, StepOrder, step_job_name, step_selector};
use kapell_core::workflow::{OnKubernetes, Step, Workflow};
use tokio::sync::Mutex as Door;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::plainly::{There, plainly};
use super::wish::Wish;
use attempt::{Attempt, Sent};
pub use reach::Clusters;
use scene::Scene;
use sight::Sight;

/// Of arguments and environment it takes what fits into a Job with all that a cluster adds.
const ON_KUBERNETES: There = There { place: "in a container", largest: 512 << 10 };
/// How long a Job may take to be removed.
const REMOVAL: Duration = Duration::from_secs(10);

/// The Jobs of one run.
pub(super) struct Jobs {
    clusters: Clusters,
    run: String,
    /// How long steps may take to end.
    grace: Duration,
    /// Finds what this run and those that it goes on with have made.
    selector: String,
    sites: Door<BTreeMap<String, Arc<Site>>>,
    watches: Mutex<JoinSet<()>>,
}

/// A cluster that is spoken with.
#[derive(Debug)]
struct Site {
    client: Client,
    sights: Mutex<BTreeMap<String, Arc<Sight>>>,
}

impl fmt::Debug for Jobs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Jobs").field("run", &self.run).finish_non_exhaustive()
    }
}

impl Jobs {
    /// `found` are Jobs that earlier runs have made.
    pub(super) fn new(
        clusters: Clusters,
        run: String,
        grace: Duration,
        found: &[JobPlace],
    ) -> Arc<Self> {
        let runs = found.iter().map(|place| place.run.as_str()).chain([run.as_str()]);
        let selector = step_selector(runs);
        let (sites, watches) = (Door::default(), Mutex::default());
        Arc::new(Self { clusters, run, grace, selector, sites, watches })
    }

    /// Where the Job of an attempt will be.
    pub(super) fn place(
        &self,
        step: &str,
        attempt: u32,
        wanted: &OnKubernetes,
    ) -> Result<JobPlace, String> {
        let namespace = self.clusters.namespace(&wanted.payload)?;
        let (cluster, run) = (wanted.payload.cluster.clone(), self.run.clone());
        Ok(JobPlace { cluster, namespace, name: step_job_name(&run, step, attempt), run })
    }

    /// A place for one command: the Job there, which may be there already.
    pub(super) fn errand(
        self: &Arc<Self>,
        place: JobPlace,
        wanted: OnKubernetes,
        (workflow, step, attempt): (&Workflow, &Step, u32),
    ) -> Errand {
        let limit = step.options.timeout.map(|limit| limit.saturating_add(wanted.start_timeout));
        Errand {
            jobs: Arc::clone(self),
            place,
            wanted,
            workflow: workflow.name.clone(),
            step: step.name.to_string(),
            attempt,
            limit,
        }
    }

    /// Ends and removes a Job that nobody waits for any more.
    pub(super) fn abandon(self: &Arc<Self>, place: JobPlace) -> Later<()> {
        let jobs = Arc::clone(self);
        Box::pin(async move {
            let removed = async {
                let site = jobs.site(&place.cluster).await?;
                let calls = Calls::default();
                let deleted = site.client.delete_job(&place.namespace, &place.name, &calls).await;
                deleted.map_err(|error| error.to_string())
            };
            match timeout(REMOVAL, removed).await {
                Ok(Ok(_)) => {}
                Ok(Err(why)) => tracing::warn!(job = place.name, why, "a Job is left behind"),
                Err(_) => tracing::warn!(job = place.name, "a Job may be left behind"),
            }
        })
    }

    async fn site(&self, cluster: &str) -> Result<Arc<Site>, String> {
        let mut sites = self.sites.lock().await;
        if let Some(site) = sites.get(cluster) {
            return Ok(Arc::clone(site));
        }
        let (name, settings) = self.clusters.settings(cluster)?;
        let client = Client::open(&name, &settings).await.map_err(|error| error.to_string())?;
        let site = Arc::new(Site { client, sights: Mutex::default() });
        sites.insert(cluster.to_owned(), Arc::clone(&site));
        Ok(site)
    }

    /// What there is to see in a namespace; begins to look.
    fn sight(&self, site: &Site, namespace: &str) -> Arc<Sight> {
        let mut sights = site.sights.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sight) = sights.get(namespace) {
            return Arc::clone(sight);
        }
        let sight = Arc::<Sight>::default();
        let mut watches = self.watches.lock().unwrap_or_else(PoisonError::into_inner);
        let look = || (site.client.clone(), namespace.to_owned(), self.selector.clone());
        let ((client, place, selector), seen) = (look(), Arc::clone(&sight));
        let tell = move |event| seen.take::<kubernetes::Job>(event);
        watches.spawn(watch::<kubernetes::Job>(client, place, selector, tell));
        let ((client, place, selector), seen) = (look(), Arc::clone(&sight));
        let tell = move |event| seen.take::<kubernetes::Pod>(event);
        watches.spawn(watch::<kubernetes::Pod>(client, place, selector, tell));
        sights.insert(namespace.to_owned(), Arc::clone(&sight));
        sight
    }

    async fn scene(&self, place: &JobPlace, output: Arc<dyn Output>) -> Result<Scene, String> {
        let site = self.site(&place.cluster).await?;
        let sight = self.sight(&site, &place.namespace);
        let (client, place) = (site.client.clone(), place.clone());
        Ok(Scene { client, sight, place, output, calls: Calls::default() })
    }
}

/// One command that is to run as a Job.
#[derive(Debug)]
pub(super) struct Errand {
    jobs: Arc<Jobs>,
    place: JobPlace,
    wanted: OnKubernetes,
    workflow: String,
    step: String,
    attempt: u32,
    limit: Option<Duration>,
}

impl Executor for Errand {
    fn start(&self, job: &Job, output: Arc<dyn Output>) -> Result<Started, Error> {
        let refused = |reason: String| Error::Elsewhere { reason };
        let (_, settings) = self.jobs.clusters.settings(&self.place.cluster).map_err(refused)?;
        let plain = plainly(job, ON_KUBERNETES)?;
        let order = StepOrder {
            place: &self.place,
            workflow: &self.workflow,
            step: &self.step,
            attempt: self.attempt,
            payload: &self.wanted.payload,
            policy: settings.policy,
            command: &plain.words,
            dir: plain.dir.as_deref(),
            env: &plain.env,
            limit: self.limit,
            grace: self.jobs.grace,
        };
        let sent = Sent {
            job: order.job().map_err(|faults| refused(faults.join("; ")))?,
            place: self.place.clone(),
            start_timeout: self.wanted.start_timeout,
        };
        let (wish, ear) = Wish::new();
        let patience = self.jobs.clusters.patience();
        let attempt = Attempt::new(Arc::clone(&self.jobs), sent, output, ear, patience);
        Ok(Started {
            control: Arc::new(wish),
            ended: Box::pin(attempt.run()),
            settle: Some(self.jobs.abandon(self.place.clone())),
        })
    }
}
