//! What the server's complaints mean.

use std::error::Error as _;
use std::time::Duration;

use tokio_postgres::error::SqlState;

use crate::error::Error;

use super::target::Target;

/// Why no connection came about. Nothing was asked of the store yet.
pub(super) fn of_connecting(error: tokio_postgres::Error, to: &Target, tried: Duration) -> Error {
    let store = to.name.clone();
    // Only the text of these tells that it is about the password: none, or one that proves nothing.
    let cause_says = |text| error.source().is_some_and(|cause| cause.to_string() == text);
    let is_about_password =
        error.to_string() == "authentication error" || cause_says("password missing");
    match error.code() {
        Some(&SqlState::INVALID_CATALOG_NAME) => {
            let why = format!("the server has no database `{}`", to.database());
            Error::BadUrl { url: store, why }
        }
        Some(code) if is_refusal(code) => Error::Denied { store, source: cause(error) },
        None if is_about_password => Error::Denied { store, source: cause(error) },
        _ => Error::Unreachable { store, tried, source: cause(error) },
    }
}

/// Why a call got no answer.
pub(super) fn of_call(
    error: tokio_postgres::Error,
    to: &Target,
    call: &'static str,
    limit: Duration,
) -> Error {
    let store = to.name.clone();
    match error.code() {
        Some(&(SqlState::QUERY_CANCELED | SqlState::LOCK_NOT_AVAILABLE)) => {
            Error::Timeout { store, call, limit }
        }
        Some(code) if is_missing(code) => Error::Absent { store },
        Some(code) if is_refusal(code) => Error::Denied { store, source: cause(error) },
        _ => Error::Failed { store, call, source: cause(error) },
    }
}

/// Whether the store, or a part of it, was never laid out.
pub(super) fn is_missing(code: &SqlState) -> bool {
    [&SqlState::UNDEFINED_TABLE, &SqlState::INVALID_SCHEMA_NAME].contains(&code)
}

/// Whether the server took this as an ordinary mistake and goes on with the session.
///
/// One that takes no writes was made so when it began, and may stay so when others take them again.
pub(super) fn is_survived(error: &tokio_postgres::Error) -> bool {
    if error.code() == Some(&SqlState::READ_ONLY_SQL_TRANSACTION) {
        return false;
    }
    let severity = error.as_db_error().and_then(tokio_postgres::error::DbError::parsed_severity);
    severity == Some(tokio_postgres::error::Severity::Error)
}

fn is_refusal(code: &SqlState) -> bool {
    code.code().starts_with("28") || *code == SqlState::INSUFFICIENT_PRIVILEGE
}

fn cause(error: tokio_postgres::Error) -> Box<dyn std::error::Error + Send + Sync> {
    if error.source().is_none() {
        return Box::new(error);
    }
    error.into_source().unwrap_or_else(|| "unknown".into())
}
