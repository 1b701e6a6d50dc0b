//! Steps on Kubernetes in a build that knows none: there are no clusters, so nothing here is ever reached.

use std::sync::Arc;
use std::time::Duration;

use kapell_backend::executor::{Error, Executor, Job, Later, Output, Started};
use kapell_core::kubernetes::{self, JobPlace};
use kapell_core::workflow::{OnKubernetes, Step, Workflow};

/// Nobody has one.
#[derive(Debug, Clone)]
pub enum Clusters {}

impl Clusters {
    #[expect(clippy::unused_async, reason = "as with Kubernetes")]
    pub async fn reach(
        _settings: kubernetes::Clusters,
        steps: &[(&str, &OnKubernetes)],
        _patience: Duration,
    ) -> Result<Self, String> {
        let step = steps.first().map_or("", |(step, _)| step);
        Err(format!("step `{step}` cannot run on Kubernetes: this kapell was built without it"))
    }
}

#[derive(Debug)]
pub(super) struct Jobs(Clusters);

#[derive(Debug)]
pub(super) struct Errand(Clusters);

impl Jobs {
    pub(super) fn new(
        clusters: Clusters,
        _run: String,
        _grace: Duration,
        _found: &[JobPlace],
    ) -> Arc<Self> {
        match clusters {}
    }

    pub(super) fn place(
        &self,
        _step: &str,
        _attempt: u32,
        _wanted: &OnKubernetes,
    ) -> Result<JobPlace, String> {
        match self.0 {}
    }

    pub(super) fn errand(
        self: &Arc<Self>,
        _place: JobPlace,
        _wanted: OnKubernetes,
        _of: (&Workflow, &Step, u32),
    ) -> Errand {
        match self.0 {}
    }

    pub(super) fn abandon(self: &Arc<Self>, _place: JobPlace) -> Later<()> {
        match self.0 {}
    }
}

impl Executor for Errand {
    fn start(&self, _job: &Job, _output: Arc<dyn Output>) -> Result<Started, Error> {
        match self.0 {}
    }
}
