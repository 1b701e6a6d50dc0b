//! What an answer of the API server means that is no success.

use std::time::Duration;

/// An answer that is no success: what a `Status` of Kubernetes says.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Refusal {
    pub code: u16,
    /// A word such as `AlreadyExists`.
    pub reason: String,
    pub message: String,
    /// Fields and what is wrong with each.
    pub causes: Vec<(String, String)>,
    pub retry_after: Option<Duration>,
}

/// What to do about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Course {
    /// The server has too much to do: fewer calls, and this one again.
    Slower { after: Option<Duration> },
    /// It may come to something another time.
    Again,
    /// Something by that name is there.
    Exists,
    /// It is not there, or what it would be in.
    Missing,
    /// What is asked for was too long ago.
    Stale,
    /// It stays like this.
    GiveUp,
}

impl Refusal {
    pub fn course(&self) -> Course {
        match self.code {
            429 => Course::Slower { after: self.retry_after },
            404 => Course::Missing,
            409 if self.reason == "AlreadyExists" => Course::Exists,
            410 => Course::Stale,
            // Somebody changed it meanwhile, or there is some trouble.
            408 | 409 | 500..=599 => Course::Again,
            _ => Course::GiveUp,
        }
    }

    /// What people read: `what` was tried.
    pub fn tell(&self, what: &str) -> String {
        let message = self.message.trim();
        match self.code {
            401 => format!(
                "{what}: the cluster does not accept who we are (401 {message}): the certificate or token of its access \
                 may have expired"
            ),
            403 => format!("{what}: forbidden by the cluster: {message}"),
            422 if !self.causes.is_empty() => {
                let told =
                    self.causes.iter().map(|(field, wrong)| format!("{}: {wrong}", ours(field)));
                format!("{what}: refused by the cluster: {}", told.collect::<Vec<_>>().join("; "))
            }
            400 | 422 => format!("{what}: refused by the cluster: {}", ours(message)),
            _ => format!("{what}: the cluster says {}: {message}", self.code),
        }
    }
}

/// Fields of a Job as a job of ours calls them.
fn ours(field: &str) -> String {
    field.replace("spec.template.spec", "kubernetes.pod_spec")
}
