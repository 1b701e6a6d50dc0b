//! Whether an instance is well, from one check to the next.

use std::time::Duration;

use super::limit;

/// When a container is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wait {
    /// Until it is healthy for the first time.
    pub first: Duration,
    pub then: Duration,
    /// How long it may take until it first is; none: as long as it likes.
    pub start_timeout: Option<Duration>,
}

impl Wait {
    /// What holds where nothing is said.
    pub const USUAL: Self = Self {
        first: Duration::from_secs(2),
        then: Duration::from_secs(30),
        start_timeout: Some(Duration::from_secs(60)),
    };

    /// As a desired LRP asks for it where this is usual: `every_ms` 0 is the usual, `start_timeout_ms` 0 is no limit.
    /// What is to be checked more often than is usual for one that starts, is so from the start.
    #[must_use]
    pub fn asked(self, every_ms: u64, start_timeout_ms: u64) -> Self {
        let asked = |ms: u64| (ms > 0).then(|| Duration::from_millis(ms));
        let then = asked(every_ms).unwrap_or(self.then);
        Self { first: self.first.min(then), then, start_timeout: asked(start_timeout_ms) }
    }
}

/// What a check means for a container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing new; checked again at that time.
    Again(Duration),
    /// It is healthy for the first time.
    Healthy(Duration),
    /// It is to be ended, for this reason.
    Failed(String),
}

/// See the module. Time is what has passed since the action began.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Health {
    wait: Wait,
    was_healthy: bool,
}

impl Health {
    pub const fn begin(wait: Wait) -> Self {
        Self { wait, was_healthy: false }
    }

    /// One that was healthy before its agent was started anew: it is not waited for once more.
    pub const fn resume(wait: Wait, was_healthy: bool) -> Self {
        Self { wait, was_healthy }
    }

    /// When it is checked first.
    pub fn first_due(&self) -> Duration {
        self.next_try(Duration::ZERO)
    }

    /// A check went well, or this was wrong.
    pub fn checked(&mut self, outcome: Result<(), &str>, at: Duration) -> Verdict {
        let later = at.saturating_add(self.wait.then);
        match outcome {
            Ok(()) if self.was_healthy => Verdict::Again(later),
            Ok(()) => {
                self.was_healthy = true;
                Verdict::Healthy(later)
            }
            Err(why) if self.was_healthy => {
                Verdict::Failed(format!("Instance became unhealthy: {why}"))
            }
            Err(why) => match self.wait.start_timeout.filter(|timeout| *timeout <= at) {
                Some(timeout) => Verdict::Failed(format!(
                    "Instance never healthy after {}: {why}",
                    limit(timeout)
                )),
                None => Verdict::Again(self.next_try(at)),
            },
        }
    }

    /// The last try of one that never was healthy is when its time is over, not some time later.
    fn next_try(&self, at: Duration) -> Duration {
        let next = at.saturating_add(self.wait.first);
        self.wait.start_timeout.map_or(next, |timeout| next.min(timeout))
    }
}
