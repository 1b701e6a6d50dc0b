use std::error::Error as _;
use std::fmt;

use crate::error::Error;

/// What a case found.
pub type Verdict = Result<(), Wrong>;

/// What a store did and should not have done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wrong(String);

/// Every case of a group that failed, by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failures(pub Vec<(&'static str, Wrong)>);

impl Wrong {
    pub fn new(what: impl Into<String>) -> Self {
        Self(what.into())
    }
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<Error> for Wrong {
    fn from(error: Error) -> Self {
        let mut text = error.to_string();
        let mut cause = error.source();
        while let Some(error) = cause {
            text.push_str(": ");
            text.push_str(&error.to_string());
            cause = error.source();
        }
        Self(text)
    }
}

impl fmt::Display for Failures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of the cases failed:", self.0.len())?;
        self.0.iter().try_for_each(|(case, wrong)| write!(f, "\n  {case}: {wrong}"))
    }
}

impl std::error::Error for Wrong {}
impl std::error::Error for Failures {}

/// Ends a case unless the condition holds.
macro_rules! ensure {
    ($holds:expr, $($what:tt)+) => {
        if !$holds {
            return Err($crate::testing::verdict::Wrong::new(format!($($what)+)));
        }
    };
}

/// Ends a case unless both are equal; says what stands for both of them.
macro_rules! same {
    ($is:expr, $want:expr, $($what:tt)+) => {{
        let (is, want) = (&$is, &$want);
        if *is != *want {
            let what = format!($($what)+);
            return Err($crate::testing::verdict::Wrong::new(format!(
                "{what}: {is:?}, not {want:?}"
            )));
        }
    }};
}

pub(super) use {ensure, same};
