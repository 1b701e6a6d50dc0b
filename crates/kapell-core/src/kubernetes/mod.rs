//! Work of runs as Jobs of a Kubernetes cluster: what is sent there, and what is seen there means.

mod check;
mod order;
mod payload;
mod policy;
mod reason;
mod refusal;
mod seen;
mod settings;
mod sight;
mod standing;
mod step;

#[cfg(test)]
mod tests;

pub use check::faults;
pub use order::{
    ATTEMPT, Found, JOB_ID, OWNER, Order, RUN_ID, SCHEDULED_AT, STOPPED, attempt_of, job_name,
    label, selector,
};
pub use payload::KubernetesPayload;
pub use policy::Policy;
pub use reason::{Failure, Reason};
pub use refusal::{Course, Refusal};
pub use seen::{Job, List, Metadata, Pod};
pub use settings::{Access, Cluster, Clusters, Leftovers, Pace};
pub use sight::{ContainerSight, JobSight, Life, PodEnd, PodSight, Stopped, moment};
pub use standing::{Presence, Standing, is_overlooked, is_silent, judge, life};
pub(crate) use step::TWO_COMMANDS;
pub use step::{JobPlace, StepOrder, is_work_of, step_job_name, step_selector};
