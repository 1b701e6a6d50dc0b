//! What a step may set besides its name, its work and what it waits for.

use std::time::Duration;

use crate::board::Domain;
use crate::kubernetes::KubernetesPayload;

/// Everything about a step that has a default.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Options {
    pub description: Option<String>,
    /// The words of the shell, without `-c`. None: `sh`.
    pub shell: Option<Vec<String>>,
    pub dir: Option<String>,
    pub env: Vec<(String, String)>,
    pub requires: Requires,
    pub when: Option<Condition>,
    pub preconditions: Vec<Condition>,
    pub retry: Retry,
    /// Limit of one attempt, its preconditions included.
    pub timeout: Option<Duration>,
    pub continue_on_error: bool,
    pub output: Output,
    pub console: Console,
    /// Among steps that could start, higher goes first.
    pub priority: i32,
    /// None: where the run has its steps.
    pub executor: Option<Executor>,
}

impl Options {
    /// What a step asks of its cell, if that is where it runs. `all` tells that the run has its
    /// steps on cells.
    pub fn on_cell(&self, all: bool) -> Option<OnCell> {
        match &self.executor {
            Some(Executor::Cell(wanted)) => Some(wanted.clone()),
            Some(Executor::Local | Executor::Kubernetes(_)) => None,
            None => all.then(OnCell::default),
        }
    }

    /// What a step asks of its cluster, if that is where it runs.
    pub fn on_kubernetes(&self) -> Option<&OnKubernetes> {
        match &self.executor {
            Some(Executor::Kubernetes(wanted)) => Some(wanted),
            Some(Executor::Local | Executor::Cell(_)) | None => None,
        }
    }
}

/// Where a step says that it runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Executor {
    Local,
    Cell(OnCell),
    Kubernetes(Box<OnKubernetes>),
}

/// What a step asks of the Kubernetes cluster that it runs on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OnKubernetes {
    pub payload: KubernetesPayload,
    /// How long it may take until its containers run.
    pub start_timeout: Duration,
}

/// What a step asks of the cell that it runs on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OnCell {
    pub domain: Domain,
    pub memory_mb: u32,
    pub disk_mb: u32,
    pub max_pids: u32,
    pub cpu_millis: u32,
    pub rootfs: Option<String>,
    pub placement_tags: Vec<String>,
}

impl Default for OnCell {
    fn default() -> Self {
        Self {
            domain: Domain::new("workflows"),
            memory_mb: 0,
            disk_mb: 0,
            max_pids: 0,
            cpu_millis: 0,
            rootfs: None,
            placement_tags: Vec::new(),
        }
    }
}

/// How many of its dependencies must be satisfied for a step to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Requires {
    #[default]
    Any,
    All,
}

/// A command whose exit status and output decide.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition {
    pub predicate: String,
    /// What its trimmed output must be. None: exit status 0 is enough.
    pub expected: Option<String>,
}

impl Condition {
    /// Whether a predicate that ended like this is met; if not, why, in the words of the original.
    pub fn judge(&self, succeeded: bool, output: &str) -> Result<(), String> {
        let got = output.trim();
        match &self.expected {
            Some(expected) if !succeeded || got != expected.trim() => {
                let also = if succeeded { "" } else { ", and the predicate failed" };
                Err(format!("expected '{}', got '{got}'{also}", expected.trim()))
            }
            None if !succeeded => Err(format!("`{}` failed", self.predicate.trim())),
            Some(_) | None => Ok(()),
        }
    }
}

/// Names under which later steps see what a step wrote.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Output {
    pub stdout: Option<String>,
    pub stderr: Option<String>,
}

/// Which streams of a step are shown while it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Console {
    pub stdout: bool,
    pub stderr: bool,
}

/// When and how often a failed attempt is repeated.
#[derive(Debug, Clone, PartialEq)]
pub struct Retry {
    /// Further attempts after the first.
    pub limit: u32,
    pub delay: Duration,
    pub backoff: f64,
    pub max_delay: Duration,
    /// How far the delay may stray, as a fraction of it.
    pub jitter: f64,
    /// Exit codes worth another attempt. Empty: every failure is.
    pub exit_codes: Vec<i32>,
}

impl Default for Retry {
    fn default() -> Self {
        Self {
            limit: 0,
            delay: Duration::ZERO,
            backoff: 1.0,
            max_delay: Duration::from_secs(300),
            jitter: 0.0,
            exit_codes: Vec::new(),
        }
    }
}

impl Retry {
    /// Whether a failure with this exit code (none: killed, timed out, never started) is retried.
    pub fn covers(&self, exit_code: Option<i32>) -> bool {
        self.exit_codes.is_empty() || exit_code.is_some_and(|code| self.exit_codes.contains(&code))
    }

    /// How long to wait after failed attempt number `failed` (from 0). `chance` is in 0..1.
    ///
    /// Saturates instead of overflowing: attempt 5,000 of a doubling delay waits `max_delay`.
    pub fn delay_after(&self, failed: u32, chance: f64) -> Duration {
        if self.delay.is_zero() {
            return Duration::ZERO;
        }
        let grown = self.delay.as_secs_f64() * self.backoff.powf(f64::from(failed));
        let longest = self.max_delay.max(self.delay).as_secs_f64();
        let strayed = grown.min(longest) * (1.0 + self.jitter * (2.0 * chance - 1.0));
        Duration::try_from_secs_f64(strayed.clamp(0.0, longest)).unwrap_or(self.max_delay)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn retry(delay: u64, backoff: f64) -> Retry {
        Retry { limit: 9, delay: Duration::from_secs(delay), backoff, ..Retry::default() }
    }

    #[test]
    fn delays_grow_and_are_capped() {
        let retry = retry(10, 2.0);
        let seconds = |failed| retry.delay_after(failed, 0.5).as_secs();
        assert_eq!([seconds(0), seconds(1), seconds(2), seconds(4)], [10, 20, 40, 160]);
        assert_eq!(seconds(5), 300);
        assert_eq!(seconds(u32::MAX), 300);
    }

    #[test]
    fn jitter_stays_within_its_fraction() {
        let retry = Retry { jitter: 0.5, ..retry(10, 1.0) };
        assert_eq!(retry.delay_after(0, 0.0), Duration::from_secs(5));
        assert_eq!(retry.delay_after(0, 0.5), Duration::from_secs(10));
        assert!(retry.delay_after(0, 0.999) < Duration::from_secs(15));
    }

    #[test]
    fn jitter_never_goes_beyond_the_longest_delay() {
        let retry = Retry { jitter: 1.0, max_delay: Duration::from_secs(12), ..retry(10, 2.0) };
        assert_eq!(retry.delay_after(5, 0.999), Duration::from_secs(12));
    }

    #[test]
    fn a_delay_above_the_default_cap_is_kept() {
        assert_eq!(retry(600, 1.0).delay_after(3, 0.5), Duration::from_secs(600));
    }

    #[test]
    fn exit_codes_filter_retries() {
        let retry = Retry { exit_codes: vec![75], ..retry(0, 1.0) };
        assert!(retry.covers(Some(75)) && !retry.covers(Some(1)) && !retry.covers(None));
        assert!(Retry::default().covers(None));
    }

    #[test]
    fn conditions_compare_trimmed_text() {
        let condition = Condition { predicate: "echo 100".into(), expected: Some("100".into()) };
        assert_eq!(condition.judge(true, " 100\n"), Ok(()));
        assert_eq!(condition.judge(true, "99\n"), Err("expected '100', got '99'".into()));
        assert!(condition.judge(false, "100").is_err(), "a failing predicate is never met");
        let bare = Condition { predicate: "test -f x".into(), expected: None };
        assert_eq!(bare.judge(true, "noise"), Ok(()));
        assert_eq!(bare.judge(false, ""), Err("`test -f x` failed".into()));
    }
}
