//! A cluster, and work that counts its launches, holds a pipe open while it runs and ends when a file says how.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kapell_core::job::JobDefinition;
use kapell_core::kubernetes::{Access, Cluster, Clusters, Policy, job_name, selector};
use kapell_core::log::Decoder;
use kapell_core::run::{START_TIMEOUT, StopKind, WorkEnd};
use kapell_core::seams::{Ids as _, Timestamp};
use kapell_store::testing::skip;
use kube::Api;
use kube::api::{DeleteParams, ListParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use nix::fcntl::OFlag;
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use serde_json::{Value as Json, json};
use tempfile::TempDir;
use tokio::sync::mpsc::{self, UnboundedReceiver};

use crate::scheduler::backend::{Attempt, Backend, News, What, Work};
use crate::scheduler::conformance::Rig;
use crate::scheduler::kubernetes::{KubernetesBackend, Parts};
use crate::scheduler::logs::RunLogs;
use crate::system::{SystemClock, SystemIds};
use crate::testing::{eventually, within};

pub(super) const IMAGE: &str = "localhost/busybox:1.35";
pub(super) const NAMESPACE: &str = "default";
pub(super) const PATIENCE: Duration = Duration::from_secs(60);
const CLUSTER: &str = "main";
/// The pipe is open for as long as the shell lives, or anything that it has started.
const SCRIPT: &str = "exec 9<>$OF/alive; echo x >> $OF/launches; \
    trap 'exit 143' TERM; while [ ! -e $OF/go ]; do sleep 0.05; done; exit $(cat $OF/go)";

/// The kubeconfig of a cluster; without one the test counts as skipped, not as passed.
pub(super) fn kubeconfig(test: &str) -> Option<PathBuf> {
    let found = std::env::var_os("KAPELL_TEST_KUBERNETES").map(PathBuf::from);
    if found.is_none() {
        skip(test, "KAPELL_TEST_KUBERNETES names no kubeconfig");
    }
    found
}

pub(super) fn cluster(kubeconfig: &Path) -> Cluster {
    let access = Access::Kubeconfig { path: kubeconfig.to_owned(), context: None };
    Cluster {
        namespaces: vec![NAMESPACE.to_owned()],
        policy: Policy { privileged: false, host_path: true },
        ..Cluster::new(access)
    }
}

pub(super) fn work(attempt: &Attempt, kubernetes: &Json) -> Work {
    work_of(attempt, &json!({"kubernetes": kubernetes}))
}

pub(super) fn work_of(attempt: &Attempt, more: &Json) -> Work {
    let mut definition = json!({"job_id": attempt.run_id.job()});
    definition.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let definition: JobDefinition = serde_json::from_value(definition).unwrap();
    Work {
        attempt: attempt.clone(),
        definition: Arc::new(definition),
        parameters: BTreeMap::new(),
        scheduled_at: Timestamp(1_763_290_800_000),
    }
}

/// A shell that does this.
pub(super) fn shell(text: &str) -> Json {
    json!({"image": IMAGE, "command": ["sh", "-c", text]})
}

pub(super) struct Lab {
    pub(super) dir: TempDir,
    pub(super) owner: String,
    pub(super) settings: Cluster,
    pub(super) backend: KubernetesBackend,
    pub(super) news: UnboundedReceiver<News>,
    pub(super) admin: kube::Client,
}

impl Lab {
    pub(super) async fn new(kubeconfig: &Path) -> Self {
        Self::with(kubeconfig, cluster(kubeconfig)).await
    }

    /// `settings` are those of the cluster that the backend has; `kubeconfig` is that of who looks on.
    pub(super) async fn with(kubeconfig: &Path, settings: Cluster) -> Self {
        let read = Kubeconfig::read_from(kubeconfig).unwrap();
        let config =
            kube::Config::from_custom_kubeconfig(read, &KubeConfigOptions::default()).await;
        kapell_backend::kubernetes::choose_cryptography();
        let admin = kube::Client::try_from(config.unwrap()).unwrap();
        let owner = format!("test-{:016x}", SystemIds.draw());
        Self::on(tempfile::tempdir().unwrap(), owner, settings, admin).await
    }

    async fn on(dir: TempDir, owner: String, settings: Cluster, admin: kube::Client) -> Self {
        let (newsroom, news) = mpsc::unbounded_channel();
        let all = [(CLUSTER.to_owned(), settings.clone())].into_iter().collect();
        let parts = Parts {
            clusters: Clusters { first: CLUSTER.to_owned(), all },
            owner: owner.clone(),
            start_timeout: START_TIMEOUT,
            newsroom,
            clock: Arc::new(SystemClock),
            logs: Some(RunLogs::below(dir.path())),
        };
        let backend = KubernetesBackend::open(parts).await;
        Self { dir, owner, settings, backend, news, admin }
    }

    pub(super) async fn next(&mut self) -> What {
        within("news", PATIENCE, self.news.recv()).await.unwrap().what
    }

    pub(super) async fn ends(&mut self) -> WorkEnd {
        loop {
            match self.next().await {
                What::Ended(end) => return end,
                What::Unstartable { why } => panic!("it did not start: {why}"),
                What::Started { .. } | What::Hindered { .. } => {}
            }
        }
    }

    pub(super) async fn starts(&mut self) {
        let news = self.next().await;
        assert!(matches!(news, What::Started { .. }), "{news:?}");
    }

    pub(super) fn jobs(&self) -> Api<Job> {
        Api::namespaced(self.admin.clone(), NAMESPACE)
    }

    pub(super) fn pods(&self) -> Api<Pod> {
        Api::namespaced(self.admin.clone(), NAMESPACE)
    }

    pub(super) fn job_name(&self, attempt: &Attempt) -> String {
        job_name(&self.owner, &attempt.run_id, attempt.number)
    }

    /// As the cluster itself counts them.
    pub(super) async fn left(&self) -> (usize, usize) {
        let ours = ListParams::default().labels(&selector(&self.owner));
        let jobs = self.jobs().list(&ours).await.unwrap().items.len();
        (jobs, self.pods().list(&ours).await.unwrap().items.len())
    }

    pub(super) async fn pod(&self) -> Option<String> {
        let ours = ListParams::default().labels(&selector(&self.owner));
        let pods = self.pods().list(&ours).await.unwrap().items;
        pods.into_iter().next().and_then(|pod| pod.metadata.name)
    }

    /// Waits until there is a pod of which this is so.
    pub(super) async fn pod_that(&self, what: &str, is_so: impl Fn(&Pod) -> bool) {
        let ours = ListParams::default().labels(&selector(&self.owner));
        let is_there = || async {
            self.pods().list(&ours).await.is_ok_and(|pods| pods.items.iter().any(&is_so))
        };
        eventually(what, PATIENCE, is_there).await;
    }

    pub(super) async fn delete_pod(&self) {
        let pod = self.pod().await.unwrap();
        self.pods().delete(&pod, &DeleteParams::default()).await.unwrap();
    }

    /// Lets go of all of it, and sees that the cluster has nothing left.
    pub(super) async fn clear(self) {
        for attempt in self.backend.known().await.unwrap() {
            self.backend.release(&attempt).await;
        }
        let nothing = || async { self.left().await == (0, 0) };
        eventually("nothing is left in the cluster", PATIENCE, nothing).await;
        self.backend.close().await;
    }

    /// All that an attempt wrote.
    pub(super) fn output(&self, attempt: &Attempt) -> String {
        let mut text = Vec::new();
        let logs = RunLogs::below(self.dir.path()).read(attempt);
        for part in logs.map_or_else(Vec::new, |logs| logs.parts) {
            for entry in fs::read_dir(part).unwrap() {
                let mut decoder = Decoder::default();
                decoder.push(&fs::read(entry.unwrap().path()).unwrap());
                while let Some(frame) = decoder.next_frame().unwrap() {
                    text.extend(frame.bytes);
                }
            }
        }
        String::from_utf8(text).unwrap()
    }

    fn of(&self, attempt: &Attempt) -> PathBuf {
        self.dir.path().join("of").join(self.job_name(attempt))
    }

    /// Work that runs until it is told how to end.
    pub(super) fn patient(&self, attempt: &Attempt) -> Work {
        self.scripted(attempt, SCRIPT)
    }

    /// The same that does this before.
    pub(super) fn patient_after(&self, attempt: &Attempt, text: &str) -> Work {
        self.scripted(attempt, &format!("{text}; {SCRIPT}"))
    }

    /// The same that does not listen to who asks it to end, and is killed.
    pub(super) fn stubborn(&self, attempt: &Attempt) -> Work {
        self.scripted(attempt, &SCRIPT.replace("trap 'exit 143' TERM", "trap '' TERM"))
    }

    fn scripted(&self, attempt: &Attempt, script: &str) -> Work {
        let of = self.of(attempt);
        fs::create_dir_all(&of).unwrap();
        let pipe = of.join("alive");
        if !pipe.exists() {
            mkfifo(&pipe, Mode::S_IRWXU).unwrap();
        }
        work(
            attempt,
            &json!({"pod_spec": {
                "terminationGracePeriodSeconds": 5,
                "containers": [{
                    "name": "main", "image": IMAGE, "command": ["sh", "-c", script],
                    "env": [{"name": "OF", "value": "/of"}],
                    "volumeMounts": [{"name": "of", "mountPath": "/of"}],
                }],
                "volumes": [{"name": "of", "hostPath": {"path": of}}],
            }}),
        )
    }
}

#[async_trait]
impl Rig for Lab {
    fn backend(&self) -> &dyn Backend {
        &self.backend
    }

    fn news(&mut self) -> &mut UnboundedReceiver<News> {
        &mut self.news
    }

    fn work(&self, attempt: &Attempt) -> Work {
        self.patient(attempt)
    }

    fn unstartable(&self, attempt: &Attempt) -> Work {
        let container =
            json!({"name": "main", "image": "localhost/none:1", "imagePullPolicy": "Never"});
        work(attempt, &json!({"pod_spec": {"containers": [container]}}))
    }

    async fn start(&self, attempt: &Attempt) {
        if fs::exists(self.of(attempt)).unwrap() {
            let runs = || async { self.launches(attempt) > 0 };
            eventually("the work runs", PATIENCE, runs).await;
        }
    }

    async fn end(&self, attempt: &Attempt, code: i32) {
        let of = self.of(attempt);
        fs::write(of.join("draft"), code.to_string()).unwrap();
        fs::rename(of.join("draft"), of.join("go")).unwrap();
    }

    fn launches(&self, attempt: &Attempt) -> u32 {
        let launches = fs::read_to_string(self.of(attempt).join("launches")).unwrap_or_default();
        u32::try_from(launches.lines().count()).unwrap()
    }

    fn is_under_way(&self, attempt: &Attempt) -> bool {
        // Nobody who would read, and it cannot be opened.
        let flags = OFlag::O_WRONLY | OFlag::O_NONBLOCK;
        nix::fcntl::open(&self.of(attempt).join("alive"), flags, Mode::empty()).is_ok()
    }

    async fn reopen(self) -> Self {
        let Self { dir, owner, settings, backend, admin, .. } = self;
        backend.close().await;
        Self::on(dir, owner, settings, admin).await
    }

    async fn close(self) {
        for attempt in self.backend.known().await.unwrap() {
            self.backend.stop(&attempt, "", StopKind::AtOnce).await.unwrap();
        }
        self.clear().await;
    }
}
