//! What is wrong with a schedule, and where.

use std::fmt;
use std::ops::Range;

/// One thing that is wrong with a schedule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    pub place: Place,
    /// What stands there.
    pub text: String,
    /// The bytes of `text` that are meant.
    pub span: Range<usize>,
    /// What is wrong.
    pub problem: String,
    /// What would be right.
    pub help: String,
}

/// What a fault is in: a field of the job, counted from 0, or a line of a crontab, from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    Line(usize),
    Timezone,
    Calendar(usize),
    Date(usize, usize),
    Weekday(usize, usize),
    Hours(usize),
    Crontab(usize),
}

impl Fault {
    /// Says something of the whole text.
    pub(super) fn whole(
        place: Place,
        text: &str,
        problem: String,
        help: impl Into<String>,
    ) -> Self {
        Self { place, text: text.to_owned(), span: 0..text.len(), problem, help: help.into() }
    }

    /// The text, and under it a caret for each character that is meant.
    pub fn carets(&self) -> String {
        let before = self.text[..self.span.start].chars().count();
        let under = self.text[self.span.clone()].chars().count().max(1);
        format!("{}\n{}{}", self.text, " ".repeat(before), "^".repeat(under))
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} ({})", self.place, self.problem, self.help)
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line(line) => write!(f, "schedule[{line}]"),
            Self::Timezone => f.write_str("timezone"),
            Self::Calendar(calendar) => write!(f, "exclude[{calendar}]"),
            Self::Date(calendar, at) => write!(f, "exclude[{calendar}].dates[{at}]"),
            Self::Weekday(calendar, at) => write!(f, "exclude[{calendar}].weekdays[{at}]"),
            Self::Hours(calendar) => write!(f, "exclude[{calendar}].hours"),
            Self::Crontab(line) => write!(f, "line {line}"),
        }
    }
}
