use std::ops::AddAssign;

/// How many tests ended in which way.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) passed: usize,
    pub(crate) failed: usize,
    pub(crate) skipped: usize,
}

impl Counts {
    /// Reads the line with which every test binary ends; nothing for any other line.
    pub(crate) fn parse(line: &str) -> Option<Self> {
        let rest = line.strip_prefix("test result: ")?;
        let (_, rest) = rest.split_once(". ")?;
        let mut counts = Self::default();
        for part in rest.split(';') {
            let (number, kind) = part.trim().split_once(' ')?;
            let target = match kind {
                "passed" => &mut counts.passed,
                "failed" => &mut counts.failed,
                "ignored" => &mut counts.skipped,
                _ => continue,
            };
            *target = number.parse().ok()?;
        }
        Some(counts)
    }

    /// A test binary that dies leaves no count.
    pub(crate) fn or_dead(mut self, ok: bool) -> Self {
        if !ok && self.failed == 0 {
            self.failed = 1;
        }
        self
    }

    /// A test that skips itself has told the harness that it passed.
    pub(crate) fn move_to_skipped(&mut self, skips: usize) {
        self.passed = self.passed.saturating_sub(skips);
        self.skipped += skips;
    }
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_result_lines_only() {
        let line = "test result: FAILED. 12 passed; 3 failed; 1 ignored; 0 measured; 4 filtered out; finished in 0.02s";
        assert_eq!(Counts::parse(line), Some(Counts { passed: 12, failed: 3, skipped: 1 }));
        assert_eq!(Counts::parse("test a ... ok"), None);
        assert_eq!(Counts::parse("running 3 tests"), None);
    }

    #[test]
    fn a_binary_that_dies_is_a_failure() {
        let counts = Counts { passed: 2, failed: 0, skipped: 0 };
        assert_eq!(counts.or_dead(true), counts);
        assert_eq!(counts.or_dead(false).failed, 1);
        assert_eq!(Counts { failed: 3, ..counts }.or_dead(false).failed, 3);
    }

    #[test]
    fn a_skip_is_not_a_pass() {
        let mut counts = Counts { passed: 5, failed: 0, skipped: 1 };
        counts.move_to_skipped(2);
        assert_eq!(counts, Counts { passed: 3, failed: 0, skipped: 3 });
    }
}
