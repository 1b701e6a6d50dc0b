//! What the containers of a pod write, on its way to the step.

use futures_util::future::join_all;
use kapell_backend::executor::Stream;
use kapell_backend::kubernetes::{Error, Lines};
use kapell_core::kubernetes::{Life, PodSight, Presence};
use serde_json::Value as Json;
use tokio::sync::watch;

use super::scene::Scene;
use crate::pod_log::{Pod, PodLog};

/// The logs of all containers of a pod.
#[derive(Debug)]
pub(super) struct Logs {
    all: Vec<Log>,
}

#[derive(Debug)]
struct Log {
    of: PodLog,
    /// None is the step itself; others are beside it, and told by their names.
    prefix: Option<String>,
    is_within_line: bool,
}

impl Pod for Scene {
    fn sight(&self) -> Presence<PodSight> {
        self.held().pod
    }

    fn life(&self, container: &str) -> Life {
        self.held().life(container)
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.sight.changes()
    }

    async fn open(&self, pod: &str, container: &str, follow: bool) -> Result<Lines, Error> {
        self.client.log(&self.place.namespace, pod, container, follow, None, &self.calls).await
    }
}

impl Logs {
    /// Of the pod of a Job.
    pub(super) fn of(job: &Json) -> Self {
        let pod = &job["spec"]["template"]["spec"];
        let names = |list: &str| -> Vec<String> {
            let containers = pod[list].as_array().into_iter().flatten();
            containers.filter_map(|it| it["name"].as_str()).map(str::to_owned).collect()
        };
        let (before, containers) = (names("initContainers"), names("containers"));
        let main = containers.first().cloned();
        let log = |container: String| Log {
            prefix: (Some(&container) != main.as_ref()).then(|| format!("[{container}] ")),
            of: PodLog::of(container),
            is_within_line: false,
        };
        Self { all: before.into_iter().chain(containers).map(log).collect() }
    }

    /// Passes on all that is written, until nothing more can come.
    pub(super) async fn pass_on(&mut self, scene: &Scene) {
        join_all(self.all.iter_mut().map(|log| log.pass_on(scene))).await;
    }
}

impl Log {
    async fn pass_on(&mut self, scene: &Scene) {
        loop {
            match self.of.next(scene).await {
                Ok(Some(frame)) => self.give(&frame.bytes, scene),
                Ok(None) => return,
                Err(error) => {
                    scene.output.remark(&format!("the rest of its output is lost: {error}"));
                    return;
                }
            }
        }
    }

    fn give(&mut self, bytes: &[u8], scene: &Scene) {
        let begins = !std::mem::replace(&mut self.is_within_line, !bytes.ends_with(b"\n"));
        match &self.prefix {
            None => scene.output.take(Stream::Stdout, bytes),
            Some(prefix) => {
                let prefix = if begins { prefix.as_bytes() } else { &[] };
                scene.output.take(Stream::Stderr, &[prefix, bytes].concat());
            }
        }
    }
}
