//! What other parts say about a definition: the one place where they are asked.

use std::fmt;
use std::ops::Range;

use super::definition::JobDefinition;
use crate::constraint;
use crate::schedule::{self, Schedule};

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
pub fn schedule_faults(definition: &JobDefinition) -> Vec<Fault> {
    let faults = Schedule::of(definition).err().unwrap_or_default();
    faults.into_iter().map(Fault::from).collect()
}

impl From<schedule::Fault> for Fault {
    fn from(fault: schedule::Fault) -> Self {
        let schedule::Fault { place, text, span, problem, help } = fault;
        Self {
            field: place.to_string(),
            within: Some((text, span)),
            wrong: problem,
            right: Some(help),
        }
    }
}

/// What is wrong with `constraints` and `actions` beyond their sizes.
pub fn constraint_faults(definition: &JobDefinition) -> Vec<Fault> {
    constraint::faults(definition).into_iter().map(Fault::from).collect()
}

impl From<constraint::Fault> for Fault {
    fn from(fault: constraint::Fault) -> Self {
        Self { field: fault.path, within: None, wrong: fault.message, right: None }
    }
}
