//! Kubernetes clusters: those of the settings, and the way to those that steps of a workflow run on.

use anyhow::anyhow;
use kapell_core::kubernetes;
use kapell_core::workflow::OnKubernetes;
use kapell_node::flow::{Clusters, Orchestrator};

use crate::config::{self, Config};
use crate::remote::steps_of;
use crate::store::block_on;

/// The clusters of the settings.
pub(crate) fn settings(config: &Config) -> anyhow::Result<kubernetes::Clusters> {
    let Some(file) = &config.kubernetes_clusters else {
        return Ok(kubernetes::Clusters::default());
    };
    config::clusters::read(file).map_err(|error| match error {
        config::Error::File(bad) => anyhow!("{}", bad.render(false)),
        other @ (config::Error::Unreadable(..) | config::Error::Variable { .. }) => {
            anyhow!("{other}")
        }
    })
}

/// The clusters of the settings or, if there are none, that which other tools would ask, if a step runs there. They answer.
pub(crate) fn for_steps(
    orchestrator: &Orchestrator,
    config: &Config,
) -> anyhow::Result<Option<Clusters>> {
    let steps: Vec<(&str, &OnKubernetes)> = steps_of(orchestrator)
        .filter_map(|step| Some((&*step.name, step.options.on_kubernetes()?)))
        .collect();
    if steps.is_empty() {
        return Ok(None);
    }
    let settings = settings(config)?;
    let asked = async { Ok(Clusters::reach(settings, &steps, config.host_patience).await) };
    block_on(asked)?.map(Some).map_err(|why| anyhow!("{why}; nothing was run"))
}
