use std::io;
use std::path::Path;
use std::time::Duration;

use super::digest::Digest;
use super::reference::BadReference;

/// Why there is no root file system.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    #[error(transparent)]
    Reference(#[from] BadReference),
    #[error("{what} is not allowed here: {instead}")]
    Forbidden { what: String, instead: String },
    #[error("there is no {what}")]
    NotFound { what: String },
    #[error("cannot reach {place}")]
    Unreachable {
        place: String,
        #[source]
        source: io::Error,
    },
    #[error("the connection to {place} broke while {doing}")]
    Broken {
        place: String,
        doing: String,
        #[source]
        source: hyper::Error,
    },
    #[error("{place} sent nothing for {limit:?} while {doing}")]
    Stalled { place: String, doing: String, limit: Duration },
    #[error("{url} was not ready within {limit:?}, which is the limit of one image")]
    Late { url: String, limit: Duration },
    #[error("{place} answered {status} to {doing}{hint}")]
    Status { place: String, doing: String, status: u16, hint: &'static str },
    #[error("{what} is damaged: {why}")]
    Damaged { what: String, why: String },
    #[error("{what} has more than {limit} {unit}, which is the limit of this cell")]
    TooBig { what: String, limit: u64, unit: &'static str },
    #[error("the image is for {has}, this machine is {wants}")]
    Platform { has: String, wants: String },
    #[error("layer {layer} is refused: entry `{entry}` {why}")]
    Layer { layer: Digest, entry: String, why: String },
    #[error("{what}")]
    Io {
        what: String,
        #[source]
        source: io::Error,
    },
}

impl Error {
    /// Whether another try may go well.
    pub fn is_passing(&self) -> bool {
        match self {
            Self::Unreachable { .. } | Self::Broken { .. } | Self::Stalled { .. } => true,
            Self::Status { status, .. } => *status >= 500 || matches!(status, 408 | 429),
            Self::Reference(_)
            | Self::Forbidden { .. }
            | Self::NotFound { .. }
            | Self::Late { .. }
            | Self::Damaged { .. }
            | Self::TooBig { .. }
            | Self::Platform { .. }
            | Self::Layer { .. }
            | Self::Io { .. } => false,
        }
    }

    #[expect(clippy::needless_pass_by_value, reason = "a text or an error, made where it is told")]
    pub(super) fn damaged(what: impl Into<String>, why: impl ToString) -> Self {
        Self::Damaged { what: what.into(), why: why.to_string() }
    }
}

/// Names the file that something failed with.
pub(super) fn io(verb: &str, path: &Path) -> impl FnOnce(io::Error) -> Error {
    let what = format!("cannot {verb} `{}`", path.display());
    move |source| Error::Io { what, source }
}
