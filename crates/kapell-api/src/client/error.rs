//! Why a call has no good answer.

use std::io;

use super::connection::Broken;
use super::tls;
use crate::v1::Problem;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("`{text}` is no URL of a host: write http://HOST:PORT or https://HOST:PORT")]
    BadUrl { text: String },
    #[error("the token has characters that no request can bear")]
    BadToken,
    #[error("the token is not sent to another machine without TLS: use https instead of `{url}`")]
    Insecure { url: String },
    #[error(transparent)]
    Tls(#[from] tls::Error),
    /// Nothing was sent.
    #[error(
        "no host answers at {url}: is `kapell up` running? Give another by --url or KAPELL_URL"
    )]
    Unreachable {
        url: String,
        #[source]
        source: io::Error,
    },
    /// It was sent, and nobody knows whether something happened.
    #[error("{url} gave no answer to `{call}`")]
    NoAnswer {
        url: String,
        call: String,
        #[source]
        source: Broken,
    },
    /// The other side said no.
    #[error("{problem}")]
    Problem { status: u16, problem: Box<Problem> },
    #[error("{url} does not answer as a Kapell host does: {what}")]
    Protocol { url: String, what: String },
}

impl Error {
    /// The other side's reason, if it gave one.
    pub fn problem(&self) -> Option<&Problem> {
        match self {
            Self::Problem { problem, .. } => Some(problem),
            Self::BadUrl { .. }
            | Self::BadToken
            | Self::Insecure { .. }
            | Self::Tls(_)
            | Self::Unreachable { .. }
            | Self::NoAnswer { .. }
            | Self::Protocol { .. } => None,
        }
    }

    /// Whether the other side says that there is no such thing.
    pub const fn is_not_found(&self) -> bool {
        matches!(self, Self::Problem { status: 404, .. })
    }

    /// Whether it may be different soon: nobody was reached, or nobody leads.
    pub const fn passes(&self) -> bool {
        matches!(
            self,
            Self::Unreachable { .. }
                | Self::NoAnswer { .. }
                | Self::Problem { status: 429 | 502..=504, .. }
        )
    }
}
