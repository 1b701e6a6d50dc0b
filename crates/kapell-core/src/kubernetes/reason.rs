//! Why work did not end well, or does not start.

/// Why work did not end well, or does not start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reason {
    /// The container ended with a code that is not 0.
    Exit,
    /// A container that comes before it did.
    Init,
    /// A container beside it did.
    Beside,
    OutOfMemory,
    /// The program cannot be started.
    CannotRun,
    Evicted,
    Preempted,
    /// The node is gone or refused it.
    Node,
    Image,
    /// What it needs is not there: a secret, a volume.
    Needs,
    Unschedulable,
    Deadline,
    /// Somebody else deleted the pod.
    PodDeleted,
    /// Somebody else deleted the Job.
    JobDeleted,
    /// We stopped it.
    Stopped,
    /// Only the Job is left, which does not say more.
    Unknown,
}

impl Reason {
    /// A word for it, as it begins the reason of a run.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Exit => "exit",
            Self::Init => "init container failed",
            Self::Beside => "sidecar failed",
            Self::OutOfMemory => "out of memory",
            Self::CannotRun => "cannot run",
            Self::Evicted => "evicted",
            Self::Preempted => "preempted",
            Self::Node => "node lost",
            Self::Image => "image cannot be pulled",
            Self::Needs => "cannot be created",
            Self::Unschedulable => "unschedulable",
            Self::Deadline => "deadline exceeded",
            Self::PodDeleted => "pod deleted",
            Self::JobDeleted => "Job deleted",
            Self::Stopped => "stopped",
            Self::Unknown => "failed",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    pub reason: Reason,
    pub text: String,
}

impl Failure {
    pub(super) fn new(reason: Reason, text: impl Into<String>) -> Self {
        Self { reason, text: text.into() }
    }

    /// What the run says about it.
    pub fn tell(&self) -> String {
        let name = self.reason.name();
        if self.reason == Reason::Exit {
            return self.text.clone();
        }
        if self.text.is_empty() { name.to_owned() } else { format!("{name}: {}", self.text) }
    }
}
