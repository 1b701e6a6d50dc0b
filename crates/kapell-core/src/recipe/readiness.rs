//! Whether an instance is to be sent work, from one check to the next.

use std::time::Duration;

use super::Wait;

/// What a check means for those who send work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct News {
    /// Whether it is ready, if it was not so before.
    pub changed: Option<bool>,
    /// When it is asked again.
    pub next: Duration,
}

/// See the module. Time is what has passed since the action began.
///
/// One that is not ready runs on: being ready has no limit, [`Wait::start_timeout`] counts for nothing here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Readiness {
    wait: Wait,
    ready: bool,
}

impl Readiness {
    pub const fn begin(wait: Wait) -> Self {
        Self { wait, ready: false }
    }

    /// One of an earlier agent, as the board has it.
    pub const fn resume(wait: Wait, ready: bool) -> Self {
        Self { wait, ready }
    }

    pub const fn is_ready(&self) -> bool {
        self.ready
    }

    /// When it is asked first.
    pub const fn first_due(&self) -> Duration {
        self.wait.first
    }

    pub fn checked(&mut self, ready: bool, at: Duration) -> News {
        let changed = (ready != self.ready).then_some(ready);
        self.ready = ready;
        let pause = if ready { self.wait.then } else { self.wait.first };
        News { changed, next: at.saturating_add(pause) }
    }
}
