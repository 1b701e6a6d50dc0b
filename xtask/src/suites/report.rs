use std::fmt::Write as _;
use std::time::Duration;

use super::counts::Counts;
use super::skip::Skip;

/// A step of the run that is no test suite: it passes or it does not.
#[derive(Debug, Clone)]
pub(crate) struct Check {
    pub(crate) name: String,
    pub(crate) ok: bool,
    pub(crate) time: Duration,
}

/// A finished suite.
#[derive(Debug, Clone)]
pub(crate) struct Done {
    pub(crate) name: &'static str,
    pub(crate) counts: Counts,
    pub(crate) time: Duration,
    pub(crate) budget: Duration,
}

impl Done {
    fn is_over_budget(&self) -> bool {
        self.time > self.budget
    }
}

/// What a whole run found.
#[derive(Debug, Default, Clone)]
pub(crate) struct Report {
    pub(crate) checks: Vec<Check>,
    pub(crate) suites: Vec<Done>,
    pub(crate) skips: Vec<Skip>,
    /// Parts of a check that could not run: skipped, but never counted as passed.
    pub(crate) left_out: Vec<Skip>,
}

impl Report {
    /// The last line must not look clean when the run is not: a failed check and a
    /// suite over its budget each count as one failure.
    pub(crate) fn total(&self) -> Counts {
        let mut total = Counts { skipped: self.left_out.len(), ..Counts::default() };
        total.failed = self.checks.iter().filter(|check| !check.ok).count();
        total.failed += self.suites.iter().filter(|suite| suite.is_over_budget()).count();
        for suite in &self.suites {
            total += suite.counts;
        }
        total
    }

    pub(crate) fn render(&self) -> String {
        let mut text = String::from("\n");
        for check in &self.checks {
            let verdict = if check.ok { "ok" } else { "FAILED" };
            let _ = writeln!(text, "{:<24} {:<7} {:>9}", check.name, verdict, seconds(check.time));
        }
        let _ = writeln!(
            text,
            "\n{:<12} {:>24} {:>10} {:>10}",
            "suite", "passed/failed/skipped", "time", "budget"
        );
        for suite in &self.suites {
            let Counts { passed, failed, skipped } = suite.counts;
            let counts = format!("{passed}/{failed}/{skipped}");
            let (time, budget) = (seconds(suite.time), seconds(suite.budget));
            let _ = writeln!(text, "{:<12} {counts:>24} {time:>10} {budget:>10}", suite.name);
        }
        text.push('\n');
        for suite in self.suites.iter().filter(|suite| suite.is_over_budget()) {
            let (time, budget) = (seconds(suite.time), seconds(suite.budget));
            let _ = writeln!(text, "OVER BUDGET {}: took {time}, may take {budget}", suite.name);
        }
        for check in self.checks.iter().filter(|check| !check.ok) {
            let _ = writeln!(text, "FAILED {}", check.name);
        }
        for skip in self.skips.iter().chain(&self.left_out) {
            let _ = writeln!(text, "SKIPPED {}: {}", skip.name, skip.reason);
        }
        let Counts { passed, failed, skipped } = self.total();
        let _ = writeln!(text, "{passed} passed, {failed} failed, {skipped} skipped");
        text
    }
}

fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(ok: bool, took: u64) -> Report {
        let skip = |name: &str| Skip { name: name.to_owned(), reason: "why".to_owned() };
        Report {
            checks: vec![Check { name: "fmt".to_owned(), ok, time: Duration::from_millis(100) }],
            suites: vec![Done {
                name: "unit",
                counts: Counts { passed: 7, failed: 0, skipped: 1 },
                time: Duration::from_secs(took),
                budget: Duration::from_mins(1),
            }],
            skips: vec![skip("a::b")],
            left_out: vec![skip("bench make")],
        }
    }

    #[test]
    fn the_last_line_is_the_totals() {
        let text = report(true, 59).render();
        assert!(text.ends_with("\nSKIPPED bench make: why\n7 passed, 0 failed, 2 skipped\n"));
        assert!(text.contains("SKIPPED a::b: why\n"));
        assert!(!text.contains("OVER BUDGET"));
    }

    #[test]
    fn a_failed_check_and_a_late_suite_are_failures() {
        let text = report(false, 61).render();
        assert!(text.contains("OVER BUDGET unit: took 61.0 s, may take 60.0 s\n"));
        assert!(text.contains("FAILED fmt\n"));
        assert!(text.ends_with("7 passed, 2 failed, 2 skipped\n"));
    }
}
