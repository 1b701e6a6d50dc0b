use std::collections::VecDeque;
use std::fmt::{self, Write as _};
use std::hash::Hasher as _;
use std::time::Duration;

use crate::parts::sum::Sum;

/// How much of the end of a trace is kept to be shown.
const TAIL: usize = 400;

/// Everything that happened in words, as one number, and the end of it or all of it.
#[derive(Debug)]
pub(super) struct Log {
    kept: VecDeque<String>,
    whole: bool,
    sum: Sum,
    lines: u64,
}

impl Log {
    pub(super) const fn new(whole: bool) -> Self {
        Self { kept: VecDeque::new(), whole, sum: Sum::new(), lines: 0 }
    }

    pub(super) fn note(&mut self, at: Duration, what: fmt::Arguments<'_>) {
        let mut line = if self.whole || self.kept.len() < TAIL {
            String::new()
        } else {
            self.kept.pop_front().unwrap_or_default()
        };
        line.clear();
        // Writing to memory cannot fail.
        let _written = write!(line, "{:>11.6} {what}", at.as_secs_f64());
        self.sum.write(line.as_bytes());
        self.sum.write(b"\n");
        self.lines += 1;
        self.kept.push_back(line);
    }

    pub(super) fn hash(&self) -> u64 {
        self.sum.finish()
    }

    pub(super) const fn lines(&self) -> u64 {
        self.lines
    }
}

impl fmt::Display for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.kept.iter().try_for_each(|line| writeln!(f, "{line}"))
    }
}
