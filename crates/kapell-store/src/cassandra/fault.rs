//! What the cluster's complaints, and those of the client for it, mean.

use std::time::Duration;

use scylla::deserialize::{DeserializationError, TypeCheckError};
use scylla::errors::{
    ConnectionError, ConnectionPoolError, ConnectionSetupRequestErrorKind, DbError, ExecutionError,
    FirstRowError, IntoRowsResultError, MaybeFirstRowError, MetadataError, NewSessionError,
    PrepareError, RequestAttemptError, RowsError,
};

use crate::error::Error;

/// Why a call gave no answer that could be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    #[error(transparent)]
    Connect(Box<NewSessionError>),
    #[error(transparent)]
    Prepare(Box<PrepareError>),
    #[error(transparent)]
    Execute(Box<ExecutionError>),
    /// An answer is not what the statement promises.
    #[error("{0}")]
    Odd(String),
    /// What was asked for cannot be done here, and why.
    #[error("{0}")]
    Refused(String),
    /// An attempt was given up, to leave time for something smaller.
    #[error("no answer within {0:?}")]
    Late(Duration),
    #[error("there is no store")]
    Absent,
    #[error("it is of format {0}")]
    Format(String),
}

impl From<NewSessionError> for Failure {
    fn from(error: NewSessionError) -> Self {
        Self::Connect(Box::new(error))
    }
}

impl From<PrepareError> for Failure {
    fn from(error: PrepareError) -> Self {
        Self::Prepare(Box::new(error))
    }
}

impl From<ExecutionError> for Failure {
    fn from(error: ExecutionError) -> Self {
        Self::Execute(Box::new(error))
    }
}

macro_rules! odd {
    ($($error:ty),+) => {
        $(impl From<$error> for Failure {
            fn from(error: $error) -> Self {
                Self::Odd(error.to_string())
            }
        })+
    };
}

odd!(
    IntoRowsResultError,
    RowsError,
    FirstRowError,
    MaybeFirstRowError,
    DeserializationError,
    TypeCheckError
);

/// What is said of reads that pass too many deleted rows.
const TOMBSTONES: &str = "READ_TOO_MANY_TOMBSTONES";

impl Failure {
    /// What the node that was asked has said, or the connection to it in its place.
    fn attempt(&self) -> Option<&RequestAttemptError> {
        if let Self::Execute(error) = self
            && let ExecutionError::LastAttemptError(attempt) = &**error
        {
            return Some(attempt);
        }
        if let Some(PrepareError::AllAttemptsFailed { first_attempt }) = self.prepare() {
            return Some(first_attempt);
        }
        None
    }

    fn prepare(&self) -> Option<&PrepareError> {
        if let Self::Execute(error) = self
            && let ExecutionError::PrepareError(prepare) = &**error
        {
            return Some(prepare);
        }
        if let Self::Prepare(prepare) = self { Some(prepare) } else { None }
    }

    /// Why there is no connection.
    fn pool(&self) -> Option<&ConnectionPoolError> {
        if let Self::Connect(error) = self
            && let NewSessionError::MetadataError(MetadataError::ConnectionPoolError(pool)) =
                &**error
        {
            return Some(pool);
        }
        if let Self::Execute(error) = self
            && let ExecutionError::ConnectionPoolError(pool) = &**error
        {
            return Some(pool);
        }
        if let Some(PrepareError::ConnectionPoolError(pool)) = self.prepare() {
            return Some(pool);
        }
        None
    }

    /// Whether a read has failed since there was too much deleted on its way.
    pub(super) fn is_about_tombstones(&self) -> bool {
        matches!(
            self.attempt(),
            Some(RequestAttemptError::DbError(DbError::ReadFailure { .. }, text))
                if text.contains(TOMBSTONES)
        )
    }

    /// Whether a read has failed in a way in which a smaller one might not.
    pub(super) fn is_about_amount(&self) -> bool {
        let by_node = matches!(
            self.attempt(),
            Some(RequestAttemptError::DbError(
                DbError::ReadFailure { .. } | DbError::ReadTimeout { .. },
                _
            ))
        );
        by_node || self.limit().is_some()
    }

    /// Whether a table that is said to be there is not.
    pub(super) fn is_about_tables(&self) -> bool {
        let Some(RequestAttemptError::DbError(error, text)) = self.attempt() else { return false };
        let is_unknown = text.contains("does not exist") || text.contains("unconfigured table");
        // A node that is about to know it says so in words of its own.
        (matches!(error, DbError::Invalid | DbError::ConfigError) && is_unknown)
            || (matches!(error, DbError::ServerError) && text.contains("Unknown CF"))
    }

    fn is_denial(&self) -> bool {
        self.pool().is_some_and(is_refusal) || self.attempt().is_some_and(is_forbidden)
    }

    fn is_about_reaching(&self) -> bool {
        if let Some(RequestAttemptError::DbError(error, text)) = self.attempt()
            && is_undecided(error, text)
        {
            return true;
        }
        match self {
            Self::Connect(_) => true,
            Self::Execute(error) => was_not_sent(error),
            Self::Prepare(_) => self.pool().is_some(),
            Self::Odd(_) | Self::Refused(_) | Self::Late(_) | Self::Absent | Self::Format(_) => {
                false
            }
        }
    }

    /// The limit that an attempt had, if that is what is behind it.
    fn limit(&self) -> Option<Duration> {
        if let Self::Late(limit) = self {
            return Some(*limit);
        }
        if let Self::Execute(error) = self
            && let ExecutionError::RequestTimeout(limit) = **error
        {
            return Some(limit);
        }
        None
    }

    /// In the words that every driver uses.
    pub(super) fn told(self, store: &str, call: &'static str, tried: Duration) -> Error {
        let store = store.to_owned();
        if let Some(limit) = self.limit() {
            return Error::Timeout { store, call, limit };
        }
        if self.is_denial() {
            return Error::Denied { store, source: self.into() };
        }
        if self.is_about_reaching() {
            return Error::Unreachable { store, tried, source: self.into() };
        }
        match self {
            Self::Refused(why) => Error::BadUrl { url: store, why },
            Self::Absent => Error::Absent { store },
            Self::Format(found) => Error::Format { store, found, known: super::layout::FORMAT },
            failure @ (Self::Connect(_)
            | Self::Prepare(_)
            | Self::Execute(_)
            | Self::Odd(_)
            | Self::Late(_)) => Error::Failed { store, call, source: failure.into() },
        }
    }
}

/// Whether there was no connection to send it over: then nothing has happened.
pub(super) const fn was_not_sent(error: &ExecutionError) -> bool {
    matches!(error, ExecutionError::ConnectionPoolError(_) | ExecutionError::EmptyPlan)
}

/// How a node says that it could not look up who may do what, since those that know are away.
const UNDECIDED: &str = "Unable to perform auth";

const fn is_about_rights(error: &DbError) -> bool {
    matches!(error, DbError::Unauthorized | DbError::AuthenticationError)
}

/// Whether a node knows neither that somebody may nor that they may not: nobody's rights are at fault.
fn is_undecided(error: &DbError, text: &str) -> bool {
    is_about_rights(error) && text.contains(UNDECIDED)
}

fn is_denied(error: &DbError, text: &str) -> bool {
    is_about_rights(error) && !is_undecided(error, text)
}

fn is_forbidden(error: &RequestAttemptError) -> bool {
    matches!(error, RequestAttemptError::DbError(error, text) if is_denied(error, text))
}

fn is_refusal(error: &ConnectionPoolError) -> bool {
    let ConnectionPoolError::Broken { last_connection_error, .. } = error else { return false };
    let ConnectionError::ConnectionSetupRequestError(setup) = last_connection_error else {
        return false;
    };
    matches!(setup.error, ConnectionSetupRequestErrorKind::MissingAuthentication)
        || matches!(
            &setup.error,
            ConnectionSetupRequestErrorKind::DbError(error, text) if is_denied(error, text)
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(error: DbError, text: &str) -> Error {
        let attempt = RequestAttemptError::DbError(error, text.to_owned());
        Failure::from(ExecutionError::LastAttemptError(attempt)).told("s", "read", Duration::ZERO)
    }

    /// A host that is denied ends; one whose cluster cannot say waits until it can.
    #[test]
    fn rights_that_cannot_be_looked_up_are_no_denial() {
        for text in [
            "Unable to perform authentication: Cannot achieve consistency level QUORUM",
            "Unable to perform authorization of permissions: Cannot achieve consistency level LOCAL_ONE",
            "Unable to perform authorization of super-user permission: Operation timed out",
        ] {
            for error in [DbError::AuthenticationError, DbError::Unauthorized] {
                assert!(is_undecided(&error, text) && !is_denied(&error, text), "{text}");
                let told = told(error, text);
                assert!(matches!(told, Error::Unreachable { .. }), "{told:?}");
                assert!(told.may_pass(), "{text}");
            }
        }
        for error in [DbError::AuthenticationError, DbError::Unauthorized] {
            let text =
                "User kapell has no MODIFY permission on <table k.entry> or any of its parents";
            let told = told(error, text);
            assert!(matches!(told, Error::Denied { .. }) && !told.may_pass(), "{told:?}");
        }
        let text = "Unable to perform authentication: ";
        assert!(!is_undecided(&DbError::Invalid, text) && !is_denied(&DbError::Invalid, text));
    }
}
