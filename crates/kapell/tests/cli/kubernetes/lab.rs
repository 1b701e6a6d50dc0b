//! The cluster for tests, and a bench whose workflow can be told from all others there.

use std::fs;
use std::future::Future;
use std::path::{Path, PathBuf};

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::api::ListParams;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};
use serde_json::Value;

use crate::bench::{Bench, eventually, skip};

/// A bench beside a cluster, and what the administrator sees there.
pub(super) struct Lab {
    pub(super) bench: Bench,
    pub(super) kubeconfig: PathBuf,
    /// The name of the workflow, which nobody else has.
    pub(super) name: String,
    pub(super) runtime: tokio::runtime::Runtime,
    pub(super) admin: Client,
}

impl Lab {
    /// Without a cluster the test counts as skipped, not as passed. In `flow`, NAME is the name of the workflow, TRACES a
    /// directory, POD a pod that has it as `/traces`, and IMAGE an image that is there.
    pub(super) fn new(test: &str, flow: &str) -> Option<Self> {
        let Some(kubeconfig) = std::env::var_os("KAPELL_TEST_KUBERNETES").map(PathBuf::from) else {
            skip(&format!("kubernetes::{test}"), "KAPELL_TEST_KUBERNETES names no kubeconfig");
            return None;
        };
        let bench = Bench::new();
        let mut runtime = tokio::runtime::Builder::new_multi_thread();
        let runtime = runtime.enable_all().worker_threads(1).build().expect("a runtime");
        let admin = runtime.block_on(client(&kubeconfig));
        let unique = bench.dir().file_name().expect("a name").to_string_lossy().to_lowercase();
        let name = format!("t{}", unique.replace('.', ""));
        fs::create_dir(bench.path("traces")).expect("a directory");
        let clusters = format!(
            "main: {{kubeconfig: '{}', namespaces: [default, no-such-namespace], allow: host_path}}\n",
            kubeconfig.display()
        );
        bench.write("clusters.yaml", clusters);
        let file = bench.path("clusters.yaml");
        let bench = bench.set("KAPELL_KUBERNETES_CLUSTERS", file);
        let lab = Self { bench, kubeconfig, name, runtime, admin };
        lab.write(flow);
        Some(lab)
    }

    /// Writes `flow.yaml`.
    pub(super) fn write(&self, flow: &str) {
        let traces = self.bench.path("traces");
        let pod = format!(
            "{{terminationGracePeriodSeconds: 5, containers: [{{name: main, image: IMAGE, volumeMounts: [{{name: t, \
             mountPath: /traces}}]}}], volumes: [{{name: t, hostPath: {{path: '{}'}}}}]}}",
            traces.display()
        );
        let flow = flow
            .replace("POD", &format!("{{type: kubernetes, config: {{podSpec: {pod}}}}}"))
            .replace("IMAGE", "\"localhost/busybox:1.35\"")
            .replace("TRACES", &traces.display().to_string())
            .replace("NAME", &self.name);
        self.bench.write("flow.yaml", flow);
    }

    pub(super) fn ask<T>(&self, question: impl Future<Output = Result<T, kube::Error>>) -> T {
        self.runtime.block_on(question).expect("the administrator is answered")
    }

    fn ours(&self) -> ListParams {
        ListParams::default().labels(&format!("kapell/workflow={}", self.name))
    }

    /// The Jobs of this workflow in the cluster.
    pub(super) fn jobs(&self) -> Vec<Job> {
        self.ask(Api::<Job>::all(self.admin.clone()).list(&self.ours())).items
    }

    fn pods(&self) -> Vec<Pod> {
        self.ask(Api::<Pod>::all(self.admin.clone()).list(&self.ours())).items
    }

    /// Waits until nothing of it is in the cluster. What was deleted may take a moment.
    #[track_caller]
    pub(super) fn nothing_is_left(&self) {
        for job in self.jobs() {
            assert!(job.metadata.deletion_timestamp.is_some(), "{job:#?}");
        }
        eventually("nothing of it in the cluster", || {
            (self.jobs().is_empty() && self.pods().is_empty()).then_some(())
        });
    }

    /// How many pods the cluster has ever made for a step.
    pub(super) fn pods_made(&self, step: &str) -> usize {
        let log = self.kubeconfig.parent().expect("a directory").join("audit.log");
        let log = fs::read_to_string(log).expect("the cluster counts");
        let is_one = |line: &str| {
            let Ok(entry) = serde_json::from_str::<Value>(line) else { return false };
            let labels = &entry["requestObject"]["metadata"]["labels"];
            entry["verb"] == "create"
                && entry["objectRef"]["resource"] == "pods"
                && entry["responseStatus"]["code"] == 201
                && labels["kapell/workflow"] == *self.name
                && labels["kapell/step"] == *step
        };
        log.lines().filter(|line| line.contains(&self.name) && is_one(line)).count()
    }

    pub(super) fn trace(&self, name: &str) -> String {
        fs::read_to_string(self.bench.path("traces").join(name)).unwrap_or_default()
    }

    /// Waits until a step has left this trace, whole.
    #[track_caller]
    pub(super) fn until_traced(&self, name: &str) -> String {
        eventually(name, || Some(self.trace(name)).filter(|text| text.ends_with('\n')))
    }

    pub(super) fn leave(&self, name: &str) {
        fs::write(self.bench.path("traces").join(name), "").expect("a trace");
    }
}

pub(super) async fn client(kubeconfig: &Path) -> Client {
    // There are two in this program, and nobody may have chosen yet.
    let _chosen = tokio_rustls::rustls::crypto::ring::default_provider().install_default();
    let read = Kubeconfig::read_from(kubeconfig).expect("a kubeconfig");
    let config = Config::from_custom_kubeconfig(read, &KubeConfigOptions::default()).await;
    Client::try_from(config.expect("it is whole")).expect("a client")
}
