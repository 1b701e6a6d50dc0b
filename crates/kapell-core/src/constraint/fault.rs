//! What is wrong with a configuration.

use std::fmt;

/// One problem and where it is, as `constraints[0].time_window.config.start`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    pub path: String,
    pub message: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.message)
    }
}

/// Gathers all problems.
#[derive(Debug, Default)]
pub(super) struct Faults(pub(super) Vec<Fault>);

impl Faults {
    pub(super) fn add(&mut self, path: &str, message: impl Into<String>) {
        self.0.push(Fault { path: path.to_owned(), message: message.into() });
    }
}
