//! Why a call gave no answer that could be used.

use std::time::Duration;

use crate::error::Error;

#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    #[error(transparent)]
    Client(#[from] kube::Error),
    /// A Lease holds what this driver never writes.
    #[error("{0}")]
    Odd(String),
}

impl Failure {
    pub(super) fn of(self, store: &str, call: &'static str, tried: Duration) -> Error {
        let store = store.to_owned();
        match &self {
            Self::Client(kube::Error::Api(status)) if matches!(status.code, 401 | 403) => {
                Error::Denied { store, source: self.into() }
            }
            Self::Client(kube::Error::Api(status)) if status.code == 404 => Error::Absent { store },
            Self::Client(kube::Error::HyperError(_) | kube::Error::Service(_)) => {
                Error::Unreachable { store, tried, source: self.into() }
            }
            Self::Client(_) | Self::Odd(_) => Error::Failed { store, call, source: self.into() },
        }
    }
}

/// What came of a change that names the version it is about.
pub(super) enum Changed<T> {
    Done(T),
    /// Somebody was faster. Nothing changed.
    Meanwhile,
}

/// Tells a change that was too late, which these codes say, from one of which nothing is known.
pub(super) fn changed<T>(
    answer: Result<T, kube::Error>,
    too_late: &[u16],
) -> Result<Changed<T>, Failure> {
    match answer {
        Ok(done) => Ok(Changed::Done(done)),
        Err(kube::Error::Api(status)) if too_late.contains(&status.code) => Ok(Changed::Meanwhile),
        Err(error) => Err(error.into()),
    }
}
