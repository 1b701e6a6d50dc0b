//! Why a cluster did not do what it was asked for.

use std::fmt;
use std::time::Duration;

use hyper_util::client::legacy;
use kapell_core::kubernetes::{Course, Refusal};

/// Says what was tried, and what became of it.
#[derive(Debug, Clone)]
pub struct Error {
    what: String,
    cause: Cause,
    /// What was asked for may have been done by an earlier try, whatever this one says.
    doubted: bool,
}

#[derive(Debug, Clone)]
enum Cause {
    /// The server said so.
    Refused(Box<Refusal>),
    /// Nothing was sent: nobody is there.
    Unreachable(String),
    /// Nothing was sent: who is there, or who we are, is not as it should be.
    Untrusted(String),
    /// It was sent, and no answer came.
    Unknown(String),
    Settings,
}

impl Error {
    const fn new(what: String, cause: Cause) -> Self {
        Self { what, cause, doubted: false }
    }

    /// The same after a try that may have been heard.
    pub(super) fn after_doubt(self) -> Self {
        Self { doubted: true, ..self }
    }

    pub(super) fn settings(what: String) -> Self {
        Self::new(what, Cause::Settings)
    }

    pub(super) fn of(what: &str, error: &kube::Error) -> Self {
        Self::new(what.to_owned(), Cause::of(error))
    }

    pub(super) fn silent(what: &str, limit: Duration) -> Self {
        Self::new(what.to_owned(), Cause::Unknown(format!("no answer within {limit:?}")))
    }

    pub(super) fn broken(what: &str, error: &dyn fmt::Display) -> Self {
        Self::new(what.to_owned(), Cause::Unknown(error.to_string()))
    }

    /// What to do about what the server said; none if it said nothing.
    pub fn course(&self) -> Option<Course> {
        match &self.cause {
            Cause::Refused(refusal) => Some(refusal.course()),
            Cause::Unreachable(_) | Cause::Untrusted(_) | Cause::Unknown(_) | Cause::Settings => {
                None
            }
        }
    }

    pub(super) fn is_worth_another_try(&self) -> bool {
        match &self.cause {
            Cause::Refused(refusal) => match refusal.course() {
                Course::Slower { .. } | Course::Again => true,
                Course::Exists | Course::Missing | Course::Stale | Course::GiveUp => false,
            },
            Cause::Unreachable(_) | Cause::Unknown(_) => true,
            Cause::Untrusted(_) | Cause::Settings => false,
        }
    }

    /// Whether what was asked for may have been done nonetheless.
    pub fn is_in_doubt(&self) -> bool {
        let by_itself = match &self.cause {
            Cause::Refused(refusal) => match refusal.course() {
                Course::Again | Course::Exists => true,
                Course::Slower { .. } | Course::Missing | Course::Stale | Course::GiveUp => false,
            },
            Cause::Unknown(_) => true,
            Cause::Unreachable(_) | Cause::Untrusted(_) | Cause::Settings => false,
        };
        by_itself || self.doubted
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = &self.what;
        match &self.cause {
            Cause::Refused(refusal) => f.write_str(&refusal.tell(what)),
            Cause::Unreachable(why) => write!(f, "{what}: the cluster cannot be reached: {why}"),
            Cause::Untrusted(why) => {
                write!(f, "{what}: no secure connection to the cluster: {why}")
            }
            Cause::Unknown(why) => write!(f, "{what}: {why}"),
            Cause::Settings => f.write_str(what),
        }
    }
}

impl std::error::Error for Error {}

impl Cause {
    fn of(error: &kube::Error) -> Self {
        if let kube::Error::Api(status) = error {
            return Self::Refused(Box::new(refusal(status)));
        }
        let mut causes = Vec::new();
        let mut source: Option<&(dyn std::error::Error + 'static)> = Some(error);
        let mut is_connect = false;
        while let Some(cause) = source {
            let text = cause.to_string();
            is_connect |=
                cause.downcast_ref::<legacy::Error>().is_some_and(legacy::Error::is_connect);
            if causes.last().is_none_or(|before: &String| !before.contains(&text)) {
                causes.push(text);
            }
            source = cause.source();
        }
        let why = causes.pop().unwrap_or_default();
        if why.contains("certificate")
            || why.contains("fatal alert")
            || matches!(error, kube::Error::Auth(_))
        {
            return Self::Untrusted(why);
        }
        if is_connect { Self::Unreachable(why) } else { Self::Unknown(why) }
    }
}

fn refusal(status: &kube::core::Status) -> Refusal {
    let details = status.details.as_ref();
    let causes = details.map(|it| it.causes.as_slice()).unwrap_or_default();
    let after = details.map_or(0, |it| it.retry_after_seconds);
    Refusal {
        code: status.code,
        reason: status.reason.clone(),
        message: status.message.clone(),
        causes: causes.iter().map(|it| (it.field.clone(), it.message.clone())).collect(),
        retry_after: (after > 0).then(|| Duration::from_secs(after.into())),
    }
}
