//! One Job, from its creation to its end or its deletion.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use kapell_backend::executor::{Ended, Error, Exit, Output};
use kapell_backend::kubernetes::Created;
use kapell_core::kubernetes::{JobPlace, Reason, Standing, is_work_of};
use serde_json::Value as Json;
use tokio::sync::watch;
use tokio::time::timeout;

use super::Jobs;
use super::log::Logs;
use super::scene::{Scene, Watcher};
use super::sight::Held;
use crate::flow::wish::{Told, at_least, stopped};

/// How long the rest of a log is tried to be had.
const REST: Duration = Duration::from_secs(30);
/// What comes of a log after its pod is gone.
const ECHO: Duration = Duration::from_millis(200);
/// How long a Job that is in the way may take to be gone.
const GONE: Duration = Duration::from_secs(120);
/// For a last request when nobody waits any more.
const HASTE: Duration = Duration::from_secs(5);
/// The time that a pod has which is ended at once. With none at all the cluster would not wait for its node.
const AT_ONCE: Duration = Duration::from_secs(1);

/// What is to be sent.
#[derive(Debug)]
pub(super) struct Sent {
    pub(super) job: Json,
    pub(super) place: JobPlace,
    pub(super) start_timeout: Duration,
}

pub(super) struct Attempt {
    jobs: Arc<Jobs>,
    sent: Sent,
    output: Arc<dyn Output>,
    told: watch::Receiver<Told>,
    patience: Duration,
    logs: Logs,
    /// It was sent, and its end was not seen.
    may_run: bool,
}

impl Attempt {
    pub(super) fn new(
        jobs: Arc<Jobs>,
        sent: Sent,
        output: Arc<dyn Output>,
        told: watch::Receiver<Told>,
        patience: Duration,
    ) -> Self {
        let logs = Logs::of(&sent.job);
        Self { jobs, sent, output, told, patience, logs, may_run: false }
    }

    pub(super) async fn run(mut self) -> Result<Ended, Error> {
        let jobs = Arc::clone(&self.jobs);
        let scene = tokio::select! {
            biased;
            () = at_least(self.told.clone(), Told::End) => return Ok(stopped()),
            scene = jobs.scene(&self.sent.place, Arc::clone(&self.output)) => scene,
        };
        let scene = scene.map_err(|reason| Error::Elsewhere { reason })?;
        let ended = self.live(&scene).await;
        if ended.is_err() && self.may_run {
            // Whatever became of it, nobody waits for it any more.
            let_go(&scene).await;
        }
        ended
    }

    async fn live(&mut self, scene: &Scene) -> Result<Ended, Error> {
        let mut watcher = Watcher::new(scene.clone(), self.patience);
        tokio::select! {
            biased;
            () = at_least(self.told.clone(), Told::End) => return Ok(stopped()),
            listed = watcher.listed() => listed?,
        }
        if !self.create(scene).await? {
            let_go(scene).await;
            return Ok(stopped());
        }
        let told = self.told.clone();
        let attended = tokio::select! {
            biased;
            () = at_least(told, Told::End) => None,
            standing = self.attend(scene, &mut watcher) => Some(standing),
        };
        match attended {
            Some(standing) => {
                let standing = standing?;
                self.may_run = false;
                outcome(standing)
            }
            None => Ok(self.cancel(scene).await),
        }
    }

    /// Has the Job in the cluster, once: the same Job that is there already is this one. False if it was told to end
    /// before that is known.
    async fn create(&mut self, scene: &Scene) -> Result<bool, Error> {
        let Sent { job, place, .. } = &self.sent;
        let mut replaced = false;
        loop {
            let created = scene.client.create(&place.namespace, &place.name, job, &scene.calls);
            self.may_run = true;
            let created = tokio::select! {
                biased;
                () = at_least(self.told.clone(), Told::Now) => return Ok(false),
                created = created => created,
            };
            let found = match created {
                Ok(Created::Made(_)) => return Ok(true),
                Ok(Created::Exists(found)) => found,
                Err(error) => {
                    self.may_run = error.is_in_doubt();
                    return Err(Error::Elsewhere { reason: error.to_string() });
                }
            };
            let deleting = found.metadata.deletion_timestamp.is_some();
            let is_ours = is_work_of(&found.metadata, job);
            if is_ours && !deleting {
                return Ok(true);
            }
            let name = &place.name;
            if replaced {
                let reason = format!("the Job `{name}` is there and does something else");
                return Err(Error::Elsewhere { reason });
            }
            // The file has changed since it was begun, or it was told to end and then nobody was left.
            replaced = true;
            if !is_ours {
                let text = format!("Job {name} of the run before did something else: deleted");
                self.output.remark(&text);
            }
            clear_away(scene).await?;
        }
    }

    /// Passes on what the containers write until they are over and all of it has come.
    async fn attend(&mut self, scene: &Scene, watcher: &mut Watcher) -> Result<Standing, Error> {
        let limit = self.sent.start_timeout;
        let mut logs = pin!(self.logs.pass_on(scene));
        let stands = async {
            match watcher.started(limit).await? {
                Standing::Waits { .. } | Standing::Runs { .. } => watcher.ended().await,
                over @ (Standing::Hopeless { .. } | Standing::Ended { .. }) => Ok(over),
            }
        };
        let mut stands = pin!(stands);
        let standing = tokio::select! {
            standing = &mut stands => standing?,
            () = &mut logs => return stands.await,
        };
        let writes = matches!(standing, Standing::Ended { .. });
        if writes && timeout(REST, logs).await.is_err() {
            self.output.remark("the rest of its output is lost: the cluster did not give it");
        }
        Ok(standing)
    }

    /// Deletes the Job and waits until its pod is gone, or until nobody wants to wait any more.
    async fn cancel(&mut self, scene: &Scene) -> Ended {
        let told = self.told.clone();
        let gone = tokio::select! {
            biased;
            () = at_least(told, Told::Now) => false,
            gone = see_off(scene, &mut self.logs) => gone,
        };
        if !gone {
            let_go(scene).await;
        }
        stopped()
    }
}

/// Ends it at once if that can be done, and tells people to if it cannot.
async fn let_go(scene: &Scene) {
    let Scene { client, place, calls, output, .. } = scene;
    let (namespace, name) = (&place.namespace, &place.name);
    let ended = async {
        let was_there = client.delete_job(namespace, name, calls).await?;
        for pod in client.pods(namespace, name, calls).await? {
            let pod = &pod.metadata.name;
            client.delete_pod(namespace, pod, Some(AT_ONCE), calls).await?;
        }
        if was_there {
            scene.until(Held::is_gone).await;
        }
        Ok::<_, kapell_backend::kubernetes::Error>(())
    };
    let why = match timeout(HASTE, ended).await {
        Ok(Ok(())) => return,
        Ok(Err(error)) => error.to_string(),
        Err(_) => format!("the cluster did not end it within {HASTE:?}"),
    };
    output.remark(&format!(
        "Job {name} may still run ({why}): `kubectl delete job --namespace {namespace} {name}` ends it"
    ));
}

/// Removes a Job of this name that is in the way.
async fn clear_away(scene: &Scene) -> Result<(), Error> {
    let Scene { client, place, calls, .. } = scene;
    let deleted = client.delete_job(&place.namespace, &place.name, calls).await;
    let was_there = deleted.map_err(|error| Error::Elsewhere { reason: error.to_string() })?;
    let gone = scene.until(Held::is_gone);
    if was_there && timeout(GONE, gone).await.is_err() {
        let reason = format!("the Job `{}` is there and does not go away", place.name);
        return Err(Error::Elsewhere { reason });
    }
    scene.sight.forget(&place.name);
    Ok(())
}

/// Deletes a Job and waits until it is gone; passes on what it has to say meanwhile. False if that cannot be known.
async fn see_off(scene: &Scene, logs: &mut Logs) -> bool {
    let Scene { client, place, calls, output, .. } = scene;
    match client.delete_job(&place.namespace, &place.name, calls).await {
        Ok(true) => {}
        Ok(false) => return true,
        Err(error) => {
            output.remark(&error.to_string());
            return false;
        }
    }
    let mut logs = pin!(logs.pass_on(scene));
    let mut gone = pin!(scene.until(Held::is_gone));
    tokio::select! {
        () = &mut gone => {
            let _late = timeout(ECHO, logs).await;
        }
        () = &mut logs => gone.await,
    }
    true
}

/// How the container of a step ended. One that did not end by itself has a reason.
fn outcome(standing: Standing) -> Result<Ended, Error> {
    let (exit_code, failure) = match standing {
        Standing::Ended { exit_code, failure, .. } => (exit_code, failure),
        Standing::Hopeless { why } => (None, Some(why)),
        Standing::Waits { .. } | Standing::Runs { .. } => {
            return Err(Error::Lost { reason: "its Job is not over".to_owned() });
        }
    };
    let code = match (failure, exit_code) {
        (None, _) => 0,
        (Some(failure), Some(code)) if failure.reason == Reason::Exit => code,
        (Some(failure), _) => return Err(Error::Elsewhere { reason: failure.tell() }),
    };
    Ok(Ended { exit: Exit::Code(code), lingering: None })
}
