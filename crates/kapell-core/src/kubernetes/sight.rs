//! What we look at of a Job and of a pod, and what it says by itself.

use super::order::STOPPED;
use super::reason::{Failure, Reason};
use super::seen::{
    Condition, ContainerSpec, ContainerState, ContainerStatus, Job, Pod, Terminated,
};
use crate::seams::Timestamp;

/// Which container of a pod people mean, as other tools ask for it.
const DEFAULT_CONTAINER: &str = "kubectl.kubernetes.io/default-container";

/// What we look at of a Job.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct JobSight {
    /// We have stopped it.
    pub stopped: Option<Stopped>,
    /// Nothing of it runs, and nothing will: the cluster says that it has stopped.
    pub suspended: bool,
    pub deleting: bool,
    pub verdict: Option<Verdict>,
}

/// When we stopped it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stopped {
    BeforeItRan,
    WhileItRan,
}

impl Stopped {
    pub const fn name(self) -> &'static str {
        match self {
            Self::BeforeItRan => "before-it-ran",
            Self::WhileItRan => "while-it-ran",
        }
    }

    /// What it is by that name; who cannot tell takes it for one that ran.
    fn of(name: &str) -> Self {
        if name == Self::BeforeItRan.name() { Self::BeforeItRan } else { Self::WhileItRan }
    }
}

/// What the cluster says of a Job, or is about to say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    Complete { at: Option<Timestamp> },
    Failed { reason: String, message: String, at: Option<Timestamp> },
}

impl From<&Job> for JobSight {
    fn from(job: &Job) -> Self {
        let holds = |kind: &str| {
            job.status.conditions.iter().find(|it| it.kind == kind && it.status == "True")
        };
        let failed = holds("Failed").or_else(|| holds("FailureTarget")).map(|it| Verdict::Failed {
            reason: it.reason.clone(),
            message: it.message.clone(),
            at: it.last_transition_time.as_deref().and_then(moment),
        });
        let complete = holds("Complete").map(|_| Verdict::Complete {
            at: job.status.completion_time.as_deref().and_then(moment),
        });
        Self {
            stopped: job.metadata.annotations.get(STOPPED).map(|name| Stopped::of(name)),
            suspended: holds("Suspended").is_some()
                && job.status.active + job.status.terminating == 0,
            deleting: job.metadata.deletion_timestamp.is_some(),
            verdict: complete.or(failed),
        }
    }
}

/// What we look at of a pod.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PodSight {
    pub name: String,
    /// Those that come before the others first.
    pub containers: Vec<ContainerSight>,
    pub deleting: bool,
    /// When its containers were started, after those that come before them.
    pub started: Option<Timestamp>,
    /// What keeps it from starting, and whether that can change.
    pub hindrance: Option<(Failure, Lasts)>,
    pub end: Option<PodEnd>,
}

/// What we look at of a container. There is one for each of every watched run: it is kept small.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContainerSight {
    pub name: Box<str>,
    pub life: Life,
}

/// How far a container is, for whoever reads what it writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Life {
    /// It has written nothing yet.
    Waits,
    Writes,
    /// It writes no more, and is not started again.
    Over,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lasts {
    ForNow,
    ForEver,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodEnd {
    pub at: Option<Timestamp>,
    pub exit_code: Option<i32>,
    pub failure: Option<Failure>,
    /// Something of it ran, be it what comes before.
    pub ran: bool,
}

impl From<&Pod> for PodSight {
    fn from(pod: &Pod) -> Self {
        let (spec, status) = (&pod.spec, &pod.status);
        let before =
            spec.init_containers.iter().zip(std::iter::repeat(&status.init_container_statuses));
        let main = spec.containers.iter().zip(std::iter::repeat(&status.container_statuses));
        let containers = before.chain(main).map(|(it, statuses)| ContainerSight {
            name: it.name.as_str().into(),
            life: life(it, statuses.iter().find(|status| status.name == it.name)),
        });
        let started = status.container_statuses.iter().filter_map(started).min();
        Self {
            name: pod.metadata.name.clone(),
            containers: containers.collect(),
            deleting: pod.metadata.deletion_timestamp.is_some(),
            started,
            hindrance: hindrance(pod).filter(|_| started.is_none()),
            end: end(pod),
        }
    }
}

fn life(container: &ContainerSpec, status: Option<&ContainerStatus>) -> Life {
    let Some(ContainerState { running, terminated, .. }) = status.map(|it| &it.state) else {
        return Life::Waits;
    };
    let stays_ended = matches!(container.restart_policy.as_str(), "" | "Never");
    match (running, terminated) {
        (None, Some(_)) if stays_ended => Life::Over,
        (Some(_), _) | (None, Some(_)) => Life::Writes,
        (None, None) => Life::Waits,
    }
}

fn started(status: &ContainerStatus) -> Option<Timestamp> {
    let running = status.state.running.as_ref().and_then(|it| it.started_at.as_deref());
    let ended = status.state.terminated.as_ref().filter(|it| began(it));
    running.or_else(|| ended.and_then(|it| it.started_at.as_deref())).and_then(moment)
}

/// One that was never started ends too, with a word for it.
fn began(ended: &Terminated) -> bool {
    !matches!(ended.reason.as_str(), "ContainerCannotRun" | "StartError" | "ContainerStatusUnknown")
        && ended.started_at.as_deref().and_then(moment).is_some_and(|at| at.0 > 0)
}

fn hindrance(pod: &Pod) -> Option<(Failure, Lasts)> {
    let status = &pod.status;
    let all = status.init_container_statuses.iter().chain(&status.container_statuses);
    for container in all {
        let Some(waiting) = &container.state.waiting else { continue };
        let (reason, lasts) = match waiting.reason.as_str() {
            "ErrImageNeverPull" | "InvalidImageName" => (Reason::Image, Lasts::ForEver),
            "ErrImagePull"
            | "ImagePullBackOff"
            | "ImageInspectError"
            | "RegistryUnavailable"
            | "SignatureValidationFailed" => (Reason::Image, Lasts::ForNow),
            "CreateContainerConfigError"
            | "CreateContainerError"
            | "RunContainerError"
            | "CreatePodSandboxError" => (Reason::Needs, Lasts::ForNow),
            _ => continue,
        };
        let text = match (reason, waiting.message.trim()) {
            (Reason::Image, message) => {
                format!("`{}` ({}): {message}", container.image, waiting.reason)
            }
            (_, message) => {
                format!("container `{}` ({}): {message}", container.name, waiting.reason)
            }
        };
        let text = text.trim_end_matches([':', ' ']).to_owned();
        return Some((Failure::new(reason, text), lasts));
    }
    let placed =
        status.conditions.iter().find(|it| it.kind == "PodScheduled" && it.status == "False")?;
    let text = placed.message.trim();
    let text = if text.is_empty() { placed.reason.as_str() } else { text };
    Some((Failure::new(Reason::Unschedulable, text), Lasts::ForNow))
}

fn end(pod: &Pod) -> Option<PodEnd> {
    let status = &pod.status;
    let all = || status.init_container_statuses.iter().chain(&status.container_statuses);
    let ended = || all().filter_map(|it| it.state.terminated.as_ref());
    let at = ended().filter_map(|it| it.finished_at.as_deref().and_then(moment)).max();
    let ran = ended().any(began) || all().any(|it| it.state.running.is_some());
    match status.phase.as_str() {
        "Succeeded" => Some(PodEnd { at, exit_code: Some(0), failure: None, ran: true }),
        "Failed" => {
            let (culprit, exit_code) = culprit(pod);
            let failure = disrupted(pod).unwrap_or(culprit);
            Some(PodEnd { at, exit_code, failure: Some(failure), ran })
        }
        _ => None,
    }
}

/// What was done to the pod as a whole.
fn disrupted(pod: &Pod) -> Option<Failure> {
    let status = &pod.status;
    let message = status.message.trim();
    let by_reason = match status.reason.as_str() {
        "Evicted" => Some(Reason::Evicted),
        "Preempting" => Some(Reason::Preempted),
        "DeadlineExceeded" => Some(Reason::Deadline),
        "NodeLost"
        | "NodeAffinity"
        | "NodeShutdown"
        | "Shutdown"
        | "Terminated"
        | "UnexpectedAdmissionError"
        | "OutOfcpu"
        | "OutOfmemory"
        | "OutOfpods"
        | "OutOfephemeral-storage" => Some(Reason::Node),
        _ => None,
    };
    if let Some(reason) = by_reason {
        let text = if reason == Reason::Node {
            format!("{}: {message}", status.reason)
        } else {
            message.to_owned()
        };
        return Some(Failure::new(reason, text.trim_end_matches([':', ' '])));
    }
    let target: &Condition =
        status.conditions.iter().find(|it| it.kind == "DisruptionTarget" && it.status == "True")?;
    let reason = match target.reason.as_str() {
        "PreemptionByScheduler" => Reason::Preempted,
        "DeletionByTaintManager" | "DeletionByPodGC" => Reason::Node,
        _ => Reason::Evicted,
    };
    Some(Failure::new(reason, target.message.trim()))
}

/// The container because of which a pod failed: one that comes before, the one that is meant, or one beside it.
fn culprit(pod: &Pod) -> (Failure, Option<i32>) {
    let (spec, status) = (&pod.spec, &pod.status);
    let helps = |name: &str| {
        spec.init_containers.iter().any(|it| it.name == name && it.restart_policy == "Always")
    };
    let failed =
        |it: &&ContainerStatus| it.state.terminated.as_ref().is_some_and(|end| end.exit_code != 0);
    let named = pod.metadata.annotations.get(DEFAULT_CONTAINER).cloned();
    let first = || spec.containers.first().map(|it| it.name.clone());
    let main = named.or_else(first).unwrap_or_default();
    let before = status.init_container_statuses.iter().filter(failed).find(|it| !helps(&it.name));
    let meant = status.container_statuses.iter().filter(failed).find(|it| it.name == main);
    let beside = || status.container_statuses.iter().find(failed);
    let (container, usual) = match (before, meant) {
        (Some(it), _) => (it, Reason::Init),
        (None, Some(it)) => (it, Reason::Exit),
        (None, None) => match beside() {
            Some(it) => (it, Reason::Beside),
            None => return (Failure::new(Reason::Unknown, status.message.trim()), None),
        },
    };
    let Some(end) = &container.state.terminated else {
        return (Failure::new(Reason::Unknown, ""), None);
    };
    (told(container, end, usual), Some(end.exit_code))
}

fn told(container: &ContainerStatus, end: &Terminated, usual: Reason) -> Failure {
    let (name, code) = (&container.name, end.exit_code);
    let exited = format!("Exited with status {code}");
    match (end.reason.as_str(), usual) {
        ("OOMKilled", _) => Failure::new(
            Reason::OutOfMemory,
            format!("container `{name}` took more than its limit ({code})"),
        ),
        ("ContainerCannotRun" | "StartError", _) => {
            Failure::new(Reason::CannotRun, format!("container `{name}`: {}", end.message.trim()))
        }
        (_, Reason::Exit) => Failure::new(Reason::Exit, exited),
        (_, reason) => Failure::new(reason, format!("`{name}`: {exited}")),
    }
}

/// A time as clusters write it.
pub fn moment(text: &str) -> Option<Timestamp> {
    text.parse::<jiff::Timestamp>().ok().map(|at| Timestamp(at.as_millisecond()))
}
