//! The cluster, and hosts that know it.

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context as _, ensure};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kapell_api::client::{Client, RunFilter};
use kapell_core::run::RunState;
use kapell_sim::bench::site::{PATIENCE, Site};
use kube::api::ListParams;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Config};
use serde_json::{Value, json};

pub(crate) const NAMESPACE: &str = "default";
const IMAGE: &str = "localhost/busybox:1.35";

#[derive(Debug)]
pub(crate) struct Cluster {
    kapell: PathBuf,
    dir: PathBuf,
    kubeconfig: PathBuf,
}

impl Cluster {
    pub(crate) async fn open(kapell: PathBuf, dir: &Path) -> anyhow::Result<Self> {
        let kubeconfig = std::env::var_os("KAPELL_TEST_KUBERNETES").map(PathBuf::from);
        let kubeconfig = kubeconfig.context("KAPELL_TEST_KUBERNETES names no kubeconfig")?;
        let this = Self { kapell, dir: dir.to_owned(), kubeconfig };
        this.jobs().await?.list(&ListParams::default()).await.context("the cluster is silent")?;
        Ok(this)
    }

    pub(crate) async fn jobs(&self) -> anyhow::Result<Api<Job>> {
        Ok(Api::namespaced(self.client().await?, NAMESPACE))
    }

    pub(crate) async fn pods(&self) -> anyhow::Result<Api<Pod>> {
        Ok(Api::namespaced(self.client().await?, NAMESPACE))
    }

    /// One of the benchmark's own.
    async fn client(&self) -> anyhow::Result<kube::Client> {
        let read = Kubeconfig::read_from(&self.kubeconfig)?;
        let config = Config::from_custom_kubeconfig(read, &KubeConfigOptions::default()).await?;
        kapell_backend::kubernetes::choose_cryptography();
        Ok(kube::Client::try_from(config)?)
    }

    /// A host that is ready, with settings of its cluster as they are, or with others.
    pub(crate) async fn host(&self, name: &str, settings: &str) -> anyhow::Result<(Site, Client)> {
        let dir = self.dir.join(name);
        std::fs::create_dir_all(&dir)?;
        let clusters = dir.join("clusters.yaml");
        let kubeconfig = self.kubeconfig.display();
        let about =
            format!("main: {{kubeconfig: '{kubeconfig}', namespaces: [{NAMESPACE}]{settings}}}\n");
        std::fs::write(&clusters, about)?;
        let mut site = Site::new(&self.kapell, dir)?;
        site.set("KAPELL_KUBERNETES_CLUSTERS", &clusters);
        site.start()?;
        site.ready().await?;
        let client = site.client()?;
        Ok((site, client))
    }

    /// Every request that the cluster has written down.
    pub(crate) fn audit(&self) -> anyhow::Result<Vec<Value>> {
        let text = std::fs::read(self.kubeconfig.with_file_name("audit.log"))?;
        let lines = text.split(|byte| *byte == b'\n');
        Ok(lines.filter_map(|line| serde_json::from_slice(line).ok()).collect())
    }
}

/// What the pods of all do, Kapell's and others.
pub(crate) fn pod() -> Value {
    json!({"containers": [{"name": "main", "image": IMAGE, "command": ["true"]}]})
}

/// A job of Kapell's.
pub(crate) async fn apply(client: &Client, id: &str, pod: &Value) -> anyhow::Result<()> {
    let definition = json!({
        "job_id": id,
        "overlap": "allow",
        "start_timeout": "1h",
        "history": {"succeeded": 10_000},
        "kubernetes": {"pod_spec": pod},
    });
    client.apply_job(&serde_json::from_value(definition)?).await?;
    Ok(())
}

/// Waits until all runs of a job are stored as completed, so many of them.
pub(crate) async fn all_completed(client: &Client, job: &str, count: u32) -> anyhow::Result<()> {
    let begun = Instant::now();
    let active =
        RunFilter { job: Some(job), active: Some(true), limit: Some(1), ..RunFilter::default() };
    while !client.runs(active).await?.items.is_empty() {
        ensure!(begun.elapsed() < 3 * PATIENCE, "the runs do not end");
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    let ended = RunFilter { job: Some(job), limit: Some(count), ..RunFilter::default() };
    let ended = client.runs(ended).await?.items;
    let well = ended.iter().filter(|view| view.run.state == RunState::Completed).count();
    ensure!(well == count as usize, "{well} of {count} runs are stored as completed");
    Ok(())
}

/// Waits until the cluster has no Jobs any more: what ends takes from what is measured next.
pub(crate) async fn cleared(jobs: &Api<Job>) -> anyhow::Result<()> {
    let begun = Instant::now();
    while !jobs.list_metadata(&ListParams::default().limit(1)).await?.items.is_empty() {
        ensure!(begun.elapsed() < PATIENCE, "Jobs are left");
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    Ok(())
}
