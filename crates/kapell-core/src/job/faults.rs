//! What other parts say about a definition: the one place where they are asked.

use std::fmt;
use std::ops::Range;

use super::definition::JobDefinition;

/// One thing that is wrong with a field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// As `schedule[0]` or `constraints[1].time_window.config.from`.
    pub field: String,
    /// The text of the field and the bytes of it that are meant; without it, all of them.
    pub within: Option<(String, Range<usize>)>,
    pub wrong: String,
    pub right: Option<String>,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.wrong)?;
        match &self.right {
            Some(right) => write!(f, " ({right})"),
            None => Ok(()),
        }
    }
}

/// What is wrong with `schedule`, `timezone` and `exclude` beyond their sizes.
pub fn schedule_faults(_definition: &JobDefinition) -> Vec<Fault> {
    Vec::new()
}

/// What is wrong with `constraints` and `actions` beyond their sizes.
pub fn constraint_faults(_definition: &JobDefinition) -> Vec<Fault> {
    Vec::new()
}
