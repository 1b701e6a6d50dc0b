use std::error::Error as _;
use std::io;
use std::time::Duration;

use crate::error::Error;

/// Why one exchange with etcd gave no answer that could be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    #[error(transparent)]
    Client(#[from] etcd_client::Error),
    /// The server's reason for ending a watch.
    #[error("{0}")]
    Cancelled(String),
    /// What etcd holds, or says, is not what this driver writes or expects.
    #[error("{0}")]
    Odd(String),
}

/// The codes of gRPC that matter here.
mod code {
    pub(super) const CANCELLED: i32 = 1;
    pub(super) const UNKNOWN: i32 = 2;
    pub(super) const INVALID_ARGUMENT: i32 = 3;
    pub(super) const NOT_FOUND: i32 = 5;
    pub(super) const PERMISSION_DENIED: i32 = 7;
    pub(super) const FAILED_PRECONDITION: i32 = 9;
    pub(super) const OUT_OF_RANGE: i32 = 11;
    pub(super) const INTERNAL: i32 = 13;
    pub(super) const UNAVAILABLE: i32 = 14;
    pub(super) const UNAUTHENTICATED: i32 = 16;
}

const INVALID_TOKEN: &str = "etcdserver: invalid auth token";
const PERMISSION_DENIED: &str = "etcdserver: permission denied";
/// The same in the words of later and of earlier servers.
const OLD_AUTH_REVISION: [&str; 2] =
    ["etcdserver: revision of auth store is old", "auth: revision in header is old"];
const LEASE_NOT_FOUND: &str = "etcdserver: requested lease not found";
const REFUSALS: [&str; 3] = [
    "etcdserver: authentication failed, invalid user ID or password",
    "etcdserver: user name is empty",
    "etcdserver: authentication is not enabled",
];

/// What the server, or the transport in its place, had to say.
struct Said<'a> {
    code: i32,
    message: &'a str,
    /// Only the transport has one.
    cause: Option<&'a (dyn std::error::Error + 'static)>,
}

fn said(error: &etcd_client::Error) -> Option<Said<'_>> {
    if let etcd_client::Error::GRpcStatus(status) = error {
        let code = i32::from(status.code());
        return Some(Said { code, message: status.message(), cause: status.source() });
    }
    None
}

/// Whether users or rights changed while a request was on its way. etcd finds out before it
/// writes anything, so nothing was written.
pub(super) fn is_stale_login(error: &etcd_client::Error) -> bool {
    said(error).is_some_and(|said| OLD_AUTH_REVISION.contains(&said.message))
}

/// Whether another member may do better.
pub(super) fn is_member_down(error: &etcd_client::Error) -> bool {
    said(error).is_some_and(|said| {
        [code::UNAVAILABLE, code::UNKNOWN, code::CANCELLED, code::INTERNAL].contains(&said.code)
    })
}

impl Failure {
    pub(super) fn odd(what: impl Into<String>) -> Self {
        Self::Odd(what.into())
    }

    fn said(&self) -> Option<Said<'_>> {
        match self {
            Self::Client(error) => said(error),
            Self::Cancelled(_) | Self::Odd(_) => None,
        }
    }

    /// Whether the lease that a write named is gone. etcd looks for it before it writes
    /// anything, so nothing was written.
    pub(super) fn is_lease_gone(&self) -> bool {
        self.said().is_some_and(|it| it.code == code::NOT_FOUND && it.message == LEASE_NOT_FOUND)
    }

    /// Whether the answer was longer than we take; only the transport says it this way.
    pub(super) fn is_answer_too_long(&self) -> bool {
        self.said().is_some_and(|it| {
            it.code == code::OUT_OF_RANGE && it.message.contains("decoded message length too large")
        })
    }

    pub(super) fn is_refusal(&self) -> bool {
        if let Self::Cancelled(reason) = self {
            return [INVALID_TOKEN, PERMISSION_DENIED].iter().any(|it| reason.contains(it));
        }
        self.said().is_some_and(|said| match said.code {
            code::UNAUTHENTICATED | code::PERMISSION_DENIED => true,
            code::INVALID_ARGUMENT | code::FAILED_PRECONDITION => REFUSALS.contains(&said.message),
            _ => false,
        })
    }

    /// Whether it never came to an answer of the server's own.
    pub(super) fn is_transport(&self) -> bool {
        match self {
            Self::Client(etcd_client::Error::TransportError(_)) => true,
            Self::Client(_) => self.said().is_some_and(|said| said.cause.is_some()),
            Self::Cancelled(_) | Self::Odd(_) => false,
        }
    }

    /// In the words that every driver uses.
    pub(super) fn told(self, store: &str, call: &'static str, tried: Duration) -> Error {
        let store = store.to_owned();
        if self.is_refusal() {
            Error::Denied { store, source: self.source_of() }
        } else if self.is_transport() {
            Error::Unreachable { store, tried, source: self.source_of() }
        } else {
            Error::Failed { store, call, source: self.source_of() }
        }
    }

    /// The system's own error where there is one; otherwise the words without the wrapping.
    fn source_of(self) -> Box<dyn std::error::Error + Send + Sync> {
        let Some(said) = self.said() else { return self.into() };
        let mut deepest = None;
        let mut cause = said.cause;
        while let Some(error) = cause {
            if let Some(os) = error.downcast_ref().and_then(io::Error::raw_os_error) {
                return io::Error::from_raw_os_error(os).into();
            }
            deepest = Some(error.to_string());
            cause = error.source();
        }
        deepest.unwrap_or_else(|| said.message.to_owned()).into()
    }
}
