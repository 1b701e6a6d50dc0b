//! Which clusters there are, and whether they can be used.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use kapell_backend::kubernetes::{Calls, Client};
use kapell_core::kubernetes::{self, Access, Cluster, KubernetesPayload};
use kapell_core::workflow::OnKubernetes;

/// Whoever waits for a run to begin does not wait for long.
const LOOK: Duration = Duration::from_secs(3);
/// What the cluster of those who name none is called, without settings.
const USUAL: &str = "default";
/// No Job has this name.
const NOBODY: &str = "kapell-nobody";

/// Clusters that steps run on: those of the settings or, without any, those that other tools would ask. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Clusters(Arc<Known>);

#[derive(Debug)]
struct Known {
    /// Without any, they are found as by other tools.
    settings: kubernetes::Clusters,
    patience: Duration,
    /// Where the access to each is at home.
    homes: BTreeMap<String, String>,
}

impl Clusters {
    /// Looks whether these steps can run there, each with its name. Nothing is changed there.
    ///
    /// `patience` is how long a step waits for a cluster that does not answer.
    pub async fn reach(
        settings: kubernetes::Clusters,
        steps: &[(&str, &OnKubernetes)],
        patience: Duration,
    ) -> Result<Self, String> {
        let mut known = Known { settings, patience, homes: BTreeMap::new() };
        let mut asked = Asked::default();
        for (step, wanted) in steps {
            let told = |why: String| format!("step `{step}` cannot run on Kubernetes: {why}");
            known.look(&wanted.payload, &mut asked).await.map_err(told)?;
        }
        Ok(Self(Arc::new(known)))
    }

    pub(super) fn patience(&self) -> Duration {
        self.0.patience
    }

    pub(super) fn settings(&self, cluster: &str) -> Result<(String, Cluster), String> {
        self.0.settings(cluster)
    }

    pub(super) fn namespace(&self, payload: &KubernetesPayload) -> Result<String, String> {
        self.0.namespace(payload)
    }
}

/// Who was asked before the first step.
#[derive(Debug, Default)]
struct Asked {
    /// Of their own: a connection lives only as long as its runtime.
    clients: BTreeMap<String, Client>,
    namespaces: BTreeSet<(String, String)>,
}

impl Known {
    /// Looks whether there is a cluster, and whether this may run there.
    async fn look(&mut self, payload: &KubernetesPayload, asked: &mut Asked) -> Result<(), String> {
        let (name, mut settings) = self.settings(&payload.cluster)?;
        let refused = payload.refused_by(settings.policy);
        if !refused.is_empty() {
            return Err(refused.join("; "));
        }
        if !asked.clients.contains_key(&payload.cluster) {
            settings.pace.patience = LOOK;
            let client = Client::open(&name, &settings).await.map_err(|error| error.to_string())?;
            self.homes.insert(payload.cluster.clone(), client.default_namespace().to_owned());
            asked.clients.insert(payload.cluster.clone(), client);
        }
        let namespace = self.namespace(payload)?;
        let Some(client) = asked.clients.get(&payload.cluster) else { return Ok(()) };
        if !asked.namespaces.insert((payload.cluster.clone(), namespace.clone())) {
            return Ok(());
        }
        let calls = Calls::default();
        let told = |error: kapell_backend::kubernetes::Error| error.to_string();
        client.job(&namespace, NOBODY, &calls).await.map_err(told)?;
        client.pods(&namespace, NOBODY, &calls).await.map_err(told)?;
        Ok(())
    }

    /// A cluster as a step names it, and how it is shown.
    fn settings(&self, cluster: &str) -> Result<(String, Cluster), String> {
        let settings = &self.settings;
        if settings.all.is_empty() {
            let context = Some(cluster.to_owned()).filter(|name| !name.is_empty());
            let name = context.clone().unwrap_or_else(|| USUAL.to_owned());
            return Ok((name, Cluster::new(Access::Usual { context })));
        }
        let name = if cluster.is_empty() { &settings.first } else { cluster };
        let found = settings.all.get(name).map(|found| (name.to_owned(), found.clone()));
        found.ok_or_else(|| {
            let known: Vec<&str> = settings.all.keys().map(String::as_str).collect();
            let known = known.join(", ");
            format!(
                "kubernetes.cluster: `{name}` is not among the clusters of the settings ({known})"
            )
        })
    }

    fn namespace(&self, payload: &KubernetesPayload) -> Result<String, String> {
        let (name, settings) = self.settings(&payload.cluster)?;
        let wanted = &payload.namespace;
        let home = || self.homes.get(&payload.cluster).cloned().unwrap_or_default();
        // Without settings nobody has said where work may be.
        let anywhere = matches!(settings.access, Access::Usual { .. });
        let allowed =
            if settings.namespaces.is_empty() { vec![home()] } else { settings.namespaces };
        if wanted.is_empty() {
            return Ok(allowed.into_iter().next().unwrap_or_default());
        }
        if anywhere || allowed.contains(wanted) {
            return Ok(wanted.clone());
        }
        Err(format!(
            "kubernetes.namespace: `{wanted}` is not among those of cluster `{name}` ({}); add it to its `namespaces`",
            allowed.join(", ")
        ))
    }
}
