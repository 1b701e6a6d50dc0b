//! Where in a file something stands, and what is wrong with it there.

use std::fmt;

/// A stretch of one line of a file. Line and column count from 1, columns in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Span {
    pub line: u32,
    pub column: u32,
    /// Length in characters; 0 points between two.
    pub length: u32,
}

impl Span {
    pub const fn new(line: u32, column: u32, length: u32) -> Self {
        Self { line, column, length }
    }

    pub const START: Self = Self::new(1, 1, 0);
}

/// Whether a problem forbids to go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    Error,
    Warning,
}

/// One thing wrong in a file: what, where, and what would be right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    pub severity: Severity,
    pub span: Span,
    /// What is wrong, one line, lower case.
    pub message: String,
    /// What would be right.
    pub help: Option<String>,
    /// How many problems like it this one stands for, which are not told; 0 if it is one itself.
    pub left_out: usize,
}

impl Problem {
    pub fn error(span: Span, message: impl Into<String>) -> Self {
        Self { severity: Severity::Error, span, message: message.into(), help: None, left_out: 0 }
    }

    pub fn warning(span: Span, message: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::error(span, message) }
    }

    /// What stands for problems that are not told one by one, if there are any.
    pub fn more(errors: usize, warnings: usize) -> Option<Self> {
        let message = match errors + warnings {
            0 => return None,
            1 => "and 1 more problem".to_owned(),
            more => format!("and {more} more problems"),
        };
        let more = if errors > 0 {
            Self { left_out: errors, ..Self::error(Span::START, message) }
        } else {
            Self { left_out: warnings, ..Self::warning(Span::START, message) }
        };
        Some(more)
    }

    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.left_out > 0 {
            return f.write_str(&self.message);
        }
        write!(f, "{}:{}: {}", self.span.line, self.span.column, self.message)?;
        match &self.help {
            Some(help) => write!(f, " ({help})"),
            None => Ok(()),
        }
    }
}

/// Names the candidate that a mistyped word most likely meant, if one is near enough.
pub fn closest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let plain = |text: &str| {
        text.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
    };
    let wanted: String = plain(word);
    candidates
        .into_iter()
        .map(|candidate| {
            let folded: String = plain(candidate);
            (strsim::osa_distance(&wanted, &folded), candidate)
        })
        .filter(|(distance, candidate)| {
            // Something of the word must remain: nobody who wrote `b` meant `a`.
            *distance < wanted.len() && *distance <= 1.max(candidate.len() / 3)
        })
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suggests_what_was_meant() {
        let keys = ["command", "depends", "continue_on_error"];
        assert_eq!(closest("comand", keys), Some("command"));
        assert_eq!(closest("continueOnError", keys), Some("continue_on_error"));
        assert_eq!(closest("zzz", keys), None);
    }
}
