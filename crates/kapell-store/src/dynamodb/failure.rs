//! What the service's complaints mean.

use std::error::Error as StdError;
use std::fmt;
use std::time::Duration;

use aws_sdk_dynamodb::config::http::HttpResponse;
use aws_sdk_dynamodb::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_dynamodb::operation::transact_get_items::TransactGetItemsError;
use aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsError;
use aws_sdk_dynamodb::operation::update_item::UpdateItemError;
use aws_sdk_dynamodb::types::CancellationReason;

use super::item::Attributes;
use crate::error::Error;

/// Why one request was not done, or nobody knows.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    /// Turned away with nothing done: too many requests, or somebody's transaction is on it. That passes.
    #[error("{0}")]
    Busy(Said),
    /// The service itself failed: whether it has done it nobody knows.
    #[error("{0}")]
    Broken(Said),
    /// Turned away because of its signature, perhaps only because of the time in it.
    #[error("{0}")]
    Signature(Said),
    #[error("{0}")]
    Denied(Said),
    /// Signed with what was good once: whoever gives out credentials is late with the next ones.
    #[error("{0}")]
    Expired(Said),
    /// There are none anywhere.
    #[error("{0}")]
    NoCredentials(Said),
    #[error("{0}")]
    Missing(Said),
    #[error("{0}")]
    Refused(Said),
    /// No answer came; what was asked may have been done.
    #[error("{0}")]
    Silence(String),
    /// What the write asked for does not hold. This stands there instead.
    #[error("the condition does not hold")]
    Condition {
        found: Option<Attributes>,
        /// An earlier attempt of the same call may have been done.
        repeated: bool,
    },
    /// The service was broken, and after that somebody else has written.
    #[error(
        "the service failed, and what stands there now does not tell whether it had written before"
    )]
    Untold,
    #[error("{0}")]
    Odd(String),
}

/// A complaint in the service's words, of which only the first line is kept: what follows may quote the request.
#[derive(Debug)]
pub(super) struct Said {
    code: String,
    message: String,
}

impl fmt::Display for Said {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.message)
    }
}

const BUSY: [&str; 9] = [
    "ProvisionedThroughputExceededException",
    "ThrottlingException",
    "ThrottlingError",
    "RequestLimitExceeded",
    "TransactionConflictException",
    "TransactionInProgressException",
    "ReplicatedWriteConflictException",
    "LimitExceededException",
    "ResourceInUseException",
];
const SIGNATURE: [&str; 3] =
    ["InvalidSignatureException", "RequestTimeTooSkewed", "SignatureDoesNotMatch"];
const EXPIRED: [&str; 2] = ["ExpiredTokenException", "ExpiredToken"];
const DENIED: [&str; 6] = [
    "AccessDeniedException",
    "UnrecognizedClientException",
    "MissingAuthenticationTokenException",
    "MissingAuthenticationToken",
    "IncompleteSignatureException",
    "InvalidClientTokenId",
];
/// How the SDK says that all places where credentials may be are empty.
const NO_CREDENTIALS: &str = "no credentials found in chain";
/// Reasons of a transaction that was not carried out.
const LOST: &str = "ConditionalCheckFailed";
const PASSING: [&str; 4] = [
    "TransactionConflict",
    "ProvisionedThroughputExceeded",
    "ThrottlingError",
    "RequestLimitExceeded",
];

/// What stands where a condition does not hold, if anything does.
pub(super) struct Found(Option<Attributes>);

/// An error of some operation, and what it says besides its code.
pub(super) trait Complaint: ProvideErrorMetadata + StdError + Send + Sync + 'static {
    /// If it is about a condition that does not hold.
    fn condition(&self) -> Option<Found> {
        None
    }

    /// The reasons of a transaction that was not carried out, item by item.
    fn reasons(&self) -> &[CancellationReason] {
        &[]
    }
}

macro_rules! complaints {
    ($($operation:ident: $error:ident;)+) => {
        $(impl Complaint for aws_sdk_dynamodb::operation::$operation::$error {})+
    };
}

complaints! {
    create_table: CreateTableError;
    describe_table: DescribeTableError;
    get_item: GetItemError;
    query: QueryError;
    update_continuous_backups: UpdateContinuousBackupsError;
}

impl Complaint for UpdateItemError {
    fn condition(&self) -> Option<Found> {
        if let Self::ConditionalCheckFailedException(failed) = self {
            return Some(Found(failed.item().cloned()));
        }
        None
    }
}

impl Complaint for TransactWriteItemsError {
    fn reasons(&self) -> &[CancellationReason] {
        if let Self::TransactionCanceledException(cancelled) = self {
            return cancelled.cancellation_reasons();
        }
        &[]
    }
}

impl Complaint for TransactGetItemsError {
    fn reasons(&self) -> &[CancellationReason] {
        if let Self::TransactionCanceledException(cancelled) = self {
            return cancelled.cancellation_reasons();
        }
        &[]
    }
}

impl Failure {
    pub(super) fn of<E: Complaint>(error: SdkError<E, HttpResponse>) -> Self {
        let SdkError::ServiceError(context) = error else {
            return Self::unsent(&chain(&error));
        };
        let status = context.raw().status().as_u16();
        let error = context.err();
        if let Some(Found(found)) = error.condition() {
            return Self::Condition { found, repeated: false };
        }
        let code = error.code().unwrap_or("unknown").to_owned();
        let first = error.message().unwrap_or_default().lines().next().unwrap_or_default();
        let said = Said { code, message: first.to_owned() };
        if error.reasons().is_empty() {
            Self::by_code(said, status)
        } else {
            Self::by_reasons(said, error.reasons())
        }
    }

    /// Nobody has any credentials, or somebody who should have them did not answer, or the service did not.
    fn unsent(chain: &str) -> Self {
        let lines: Vec<&str> = chain.lines().map(str::trim).collect();
        let message = lines.join("; ");
        if chain.contains(NO_CREDENTIALS) {
            return Self::NoCredentials(Said { code: "no credentials".to_owned(), message });
        }
        Self::Silence(message)
    }

    fn by_code(said: Said, status: u16) -> Self {
        let is_in = |codes: &[&str]| codes.contains(&said.code.as_str());
        match () {
            () if is_in(&BUSY) || status == 429 => Self::Busy(said),
            () if is_in(&SIGNATURE) => Self::Signature(said),
            () if is_in(&EXPIRED) => Self::Expired(said),
            () if is_in(&DENIED) => Self::Denied(said),
            () if said.code == "ResourceNotFoundException" => Self::Missing(said),
            () if status >= 500 => Self::Broken(said),
            () => Self::Refused(said),
        }
    }

    /// A condition that does not hold is the answer, whatever else was in the way: it was looked at.
    fn by_reasons(said: Said, reasons: &[CancellationReason]) -> Self {
        let has = |reason: &CancellationReason, codes: &[&str]| {
            reason.code().is_some_and(|code| codes.contains(&code))
        };
        if let Some(lost) = reasons.iter().find(|reason| has(reason, &[LOST])) {
            return Self::Condition { found: lost.item().cloned(), repeated: false };
        }
        if reasons.iter().any(|reason| has(reason, &PASSING)) {
            return Self::Busy(said);
        }
        Self::Refused(said)
    }

    /// Whether it is what the service calls this.
    pub(super) fn is(&self, code: &str) -> bool {
        match self {
            Self::Busy(said)
            | Self::Broken(said)
            | Self::Signature(said)
            | Self::Denied(said)
            | Self::Expired(said)
            | Self::NoCredentials(said)
            | Self::Missing(said)
            | Self::Refused(said) => said.code == code,
            Self::Silence(_) | Self::Condition { .. } | Self::Untold | Self::Odd(_) => false,
        }
    }

    /// As somebody sees it who had credentials before: a machine that gives them out and does not answer looks like one
    /// that gives out none.
    pub(super) fn seen_later(self) -> Self {
        if let Self::NoCredentials(said) = self { Self::Silence(said.to_string()) } else { self }
    }

    pub(super) fn told(self, store: &str, call: &'static str, tried: Duration) -> Error {
        let store = store.to_owned();
        match self {
            Self::Denied(_) | Self::NoCredentials(_) | Self::Signature(_) => {
                Error::Denied { store, source: self.into() }
            }
            Self::Missing(_) => Error::Absent { store },
            Self::Silence(_) | Self::Expired(_) => {
                Error::Unreachable { store, tried, source: self.into() }
            }
            Self::Busy(_)
            | Self::Broken(_)
            | Self::Refused(_)
            | Self::Condition { .. }
            | Self::Untold
            | Self::Odd(_) => Error::Failed { store, call, source: self.into() },
        }
    }
}

fn chain(error: &dyn StdError) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(code: &str) -> Said {
        Said { code: code.to_owned(), message: "words".to_owned() }
    }

    fn reason(code: &str) -> CancellationReason {
        CancellationReason::builder().code(code).build()
    }

    #[test]
    fn a_conflict_is_no_loss_and_a_loss_is_no_conflict() {
        let judge = |codes: &[&str]| {
            let reasons: Vec<_> = codes.iter().map(|code| reason(code)).collect();
            Failure::by_reasons(said("TransactionCanceledException"), &reasons)
        };
        assert!(matches!(judge(&["TransactionConflict", "None"]), Failure::Busy(_)));
        assert!(matches!(judge(&["None", "TransactionConflict"]), Failure::Busy(_)));
        assert!(matches!(judge(&["None", "ThrottlingError"]), Failure::Busy(_)));
        assert!(matches!(judge(&["ConditionalCheckFailed", "None"]), Failure::Condition { .. }));
        let both = judge(&["ConditionalCheckFailed", "TransactionConflict"]);
        assert!(matches!(both, Failure::Condition { .. }), "{both:?}");
        assert!(matches!(judge(&["None", "ValidationError"]), Failure::Refused(_)));
    }

    #[test]
    fn what_passes_what_nobody_knows_and_what_a_person_must_mend() {
        let told = |code: &str, status| {
            Failure::by_code(said(code), status).told("s", "read", Duration::ZERO)
        };
        for code in BUSY {
            assert!(matches!(Failure::by_code(said(code), 400), Failure::Busy(_)), "{code}");
            assert!(told(code, 400).may_pass(), "{code}");
        }
        let unknown = Failure::by_code(said("InternalServerError"), 500);
        assert!(matches!(unknown, Failure::Broken(_)), "{unknown:?}");
        assert!(matches!(Failure::by_code(said("ServiceUnavailable"), 503), Failure::Broken(_)));
        for code in DENIED.into_iter().chain(SIGNATURE) {
            assert!(matches!(told(code, 400), Error::Denied { .. }), "{code}");
        }
        for code in EXPIRED {
            assert!(told(code, 400).may_pass(), "{code}: the next ones may be good");
        }
        // Without credentials waiting does not help; without an answer about them it does.
        let none = Failure::unsent(
            "dispatch failure: no credentials found in chain. Attempted:\n  Profile: none",
        );
        assert_eq!(
            none.to_string(),
            "no credentials: dispatch failure: no credentials found in chain. Attempted:; Profile: none"
        );
        assert!(!none.told("s", "read", Duration::ZERO).may_pass());
        let gone = Failure::unsent("dispatch failure: no credentials found in chain").seen_later();
        assert!(gone.told("s", "read", Duration::ZERO).may_pass(), "they were there before");
        let late = Failure::unsent("an error occurred while loading credentials: timed out");
        assert!(late.told("s", "read", Duration::ZERO).may_pass());
        assert!(matches!(told("ResourceNotFoundException", 400), Error::Absent { .. }));
        assert!(matches!(told("ValidationException", 400), Error::Failed { .. }));
    }
}
