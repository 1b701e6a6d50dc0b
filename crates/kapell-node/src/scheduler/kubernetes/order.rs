//! What is asked of a cluster for one attempt: its Job is created, stopped, deleted.

use std::sync::Arc;
use std::time::Duration;

use arcstr::ArcStr;
use kapell_backend::kubernetes::{Created, Error};
use kapell_core::job::{JobDefinition, Payload};
use kapell_core::kubernetes::{KubernetesPayload, Order, Presence, Stopped, attempt_of, job_name};
use kapell_core::run::StopKind;
use tokio::time::timeout;

use super::held::{Held, Spot};
use super::sights::place;
use super::{Inner, Site};
use crate::cell::outcome;
use crate::failpoint::around;
use crate::scheduler::backend::{Attempt, Work};

/// How long a pod may take to be gone besides its own grace time.
const GONE: Duration = Duration::from_secs(120);
/// The time that a pod has which is ended at once. With none at all the cluster would not wait for its node.
const AT_ONCE: Duration = Duration::from_secs(1);

/// Why the Job of an attempt was not created.
struct Failed {
    why: String,
    /// It may have been nonetheless.
    in_doubt: bool,
}

impl From<String> for Failed {
    fn from(why: String) -> Self {
        Self { why, in_doubt: false }
    }
}

impl Inner {
    /// Where the work of a job is launched, as it is stored: also of one that will be refused.
    pub(super) fn place_of(&self, definition: &JobDefinition) -> ArcStr {
        let Some(Payload::Kubernetes(payload)) = definition.payload() else {
            return ArcStr::new();
        };
        let cluster = if payload.cluster.is_empty() { &*self.first } else { &payload.cluster };
        let usual = self.sites.get(cluster).and_then(|site| site.namespaces.first());
        let usual = usual.map_or("", AsRef::as_ref);
        place(cluster, if payload.namespace.is_empty() { usual } else { &payload.namespace })
    }

    /// The cluster and the namespace that a job means.
    fn site(&self, payload: &KubernetesPayload) -> Result<(&Site, Spot), String> {
        let named = if payload.cluster.is_empty() { &*self.first } else { &payload.cluster };
        let Some((cluster, site)) = self.sites.get_key_value(named) else {
            if let Some(why) = self.unusable.get(named) {
                return Err(why.clone());
            }
            let known = self.sites.keys().chain(self.unusable.keys());
            let known: Vec<&str> = known.map(AsRef::as_ref).collect();
            let known = known.join(", ");
            return Err(format!(
                "kubernetes.cluster: `{named}` is not among the clusters of the settings ({known})"
            ));
        };
        let namespace = if payload.namespace.is_empty() {
            site.namespaces.first()
        } else {
            site.namespaces.iter().find(|it| ***it == *payload.namespace)
        };
        let Some(namespace) = namespace else {
            return Err(format!(
                "kubernetes.namespace: `{}` is not among those of cluster `{cluster}` ({}); add it to its `namespaces`",
                payload.namespace,
                site.namespaces.join(", ")
            ));
        };
        Ok((site, Spot { cluster: Arc::clone(cluster), namespace: Arc::clone(namespace) }))
    }

    /// Creates the Job of an attempt that was noted just now.
    pub(super) async fn start(&self, work: &Work) -> Result<(), String> {
        self.create(work).await.map_err(|Failed { why, in_doubt }| {
            // What may have been made is looked for when it is stopped.
            if !in_doubt {
                self.book().refuse(&work.attempt);
            }
            why
        })
    }

    async fn create(&self, work: &Work) -> Result<(), Failed> {
        let Work { attempt, definition, parameters, scheduled_at } = work;
        let Some(Payload::Kubernetes(payload)) = definition.payload() else {
            return Err("only what is below `kubernetes` runs on a cluster".to_owned().into());
        };
        let (site, spot) = self.site(payload)?;
        let order = Order {
            owner: &self.owner,
            run_id: &attempt.run_id,
            attempt: attempt.number,
            scheduled_at: *scheduled_at,
            definition,
            parameters,
            namespace: &spot.namespace,
            policy: site.settings.policy,
            start_timeout: self.start_timeout,
        };
        let job = order.job().map_err(|faults| faults.join("; "))?;
        let name = job_name(&self.owner, &attempt.run_id, attempt.number);
        let _alone = self.enter(attempt).await;
        if !self.teller.knows(attempt) {
            return Err("it was stopped before it was started".to_owned().into());
        }
        let calls = {
            let mut book = self.book();
            let new = || Held::new(spot.clone(), name.clone());
            book.all.entry(attempt.clone()).or_insert_with(new).calls.clone()
        };
        let created = site.client.create(&spot.namespace, &name, &job, &calls);
        match around("cluster-create", created).await {
            Ok(Created::Made(_)) => Ok(()),
            Ok(Created::Exists(found)) => {
                let theirs = attempt_of(&found.metadata);
                let is_ours = theirs
                    .is_some_and(|it| it.run_id == attempt.run_id && it.attempt == attempt.number);
                if is_ours {
                    return Ok(());
                }
                Err(Failed::from(format!(
                    "the Job `{name}` of cluster `{}` is there and is the work of somebody else",
                    spot.cluster
                )))
            }
            Err(error) => {
                let in_doubt = error.is_in_doubt();
                Err(Failed { why: outcome::cut(error.to_string()), in_doubt })
            }
        }
    }

    /// Ends what there is of an attempt, and waits until it is gone.
    pub(super) async fn stop(&self, attempt: &Attempt, kind: StopKind) -> Result<(), String> {
        let _alone = self.enter(attempt).await;
        let Some(held) = self.held(attempt) else {
            // Whoever is about to start it will not.
            self.teller.forget(attempt);
            return Ok(());
        };
        if !held.may_run() && held.job != Presence::Unseen {
            return Ok(());
        }
        let Some(client) = self.client(&held.spot.cluster) else { return Ok(()) };
        let (namespace, name, calls) = (&*held.spot.namespace, &held.name, &held.calls);
        let ran = held.pod.last().is_some_and(|pod| pod.started.is_some());
        let when = if ran { Stopped::WhileItRan } else { Stopped::BeforeItRan };
        let told = |error: Error| format!("it may still run: {error}");
        let stopped = client.stop(namespace, name, when, calls);
        let stopped = around("cluster-stop", stopped).await.map_err(told)?;
        if stopped.is_none() && held.job == Presence::Unseen {
            let mut book = self.book();
            // Its creation was in doubt, and came to nothing.
            if book.refuse(attempt) {
                self.teller.forget(attempt);
                return Ok(());
            }
        }
        if kind == StopKind::AtOnce || stopped.is_none() {
            let grace = (kind == StopKind::AtOnce).then_some(AT_ONCE);
            for pod in client.pods(namespace, name, calls).await.map_err(told)? {
                let deleted = client.delete_pod(namespace, &pod.metadata.name, grace, calls);
                around("cluster-delete-pod", deleted).await.map_err(told)?;
            }
        }
        self.gone(attempt).await?;
        // What the watch has not seen yet may have been made meanwhile.
        let left = around("cluster-pods", client.pods(namespace, name, calls)).await;
        let left = left.map_err(told)?;
        match left.iter().find(|pod| !matches!(pod.status.phase.as_str(), "Succeeded" | "Failed")) {
            Some(pod) => Err(format!("it may still run: pod `{}` is there", pod.metadata.name)),
            None => Ok(()),
        }
    }

    /// Waits until nothing of an attempt runs.
    async fn gone(&self, attempt: &Attempt) -> Result<(), String> {
        let mut seen = self.seen.subscribe();
        let gone = async {
            while self.held(attempt).is_some_and(|held| held.may_run()) {
                if seen.changed().await.is_err() {
                    return;
                }
            }
        };
        let silent = |_| format!("it may still run: the cluster did not end it within {GONE:?}");
        timeout(GONE, gone).await.map_err(silent)
    }

    /// Deletes the Job, and a pod that has lost it.
    pub(super) async fn delete(&self, held: &Held) -> Result<(), Error> {
        let Some(client) = self.client(&held.spot.cluster) else { return Ok(()) };
        let (namespace, calls) = (&*held.spot.namespace, &held.calls);
        let deleted = client.delete_job(namespace, &held.name, calls);
        let was_there = around("cluster-delete", deleted).await?;
        if let (false, Presence::There(pod)) = (was_there, &held.pod) {
            client.delete_pod(namespace, &pod.name, None, calls).await?;
        }
        Ok(())
    }
}
