use std::time::Duration;

use super::Violation;

/// Once faults have stopped, every seat is led within the lease and what an acquisition takes
/// at most, and from then on nobody loses one.
#[derive(Debug, Clone, Copy)]
pub(in crate::cluster) struct Calm {
    pub(in crate::cluster) since: Duration,
    pub(in crate::cluster) lease: Duration,
}

const RULE: &str = "calm";

impl Calm {
    /// By when every seat must be led. A holder whose services take their quarter to stop and
    /// is killed then leaves its record for a lease; a candidate may have to give up on a call
    /// and wait (7/20), to look again (5/16), and to bear one more call that hangs (1/4).
    pub(in crate::cluster) fn bound(self) -> Duration {
        self.since + self.lease + self.lease * 3 / 2
    }

    /// The end of the time in which nothing may be lost any more.
    pub(in crate::cluster) fn end(self) -> Duration {
        self.bound() + self.lease
    }

    pub(in crate::cluster) fn lost(self, now: Duration, host: usize) -> Result<(), Violation> {
        if now < self.bound() {
            return Ok(());
        }
        Err(Violation::new(RULE, format!("host {host} lost its seat without a fault")))
    }

    pub(in crate::cluster) fn at_bound(self, led: usize, seats: usize) -> Result<(), Violation> {
        if led == seats {
            return Ok(());
        }
        let after = self.bound().saturating_sub(self.since);
        let how = format!("{led} of {seats} seats are led {after:?} after the last fault");
        Err(Violation::new(RULE, how))
    }

    /// Everybody was told to stop, and has had a lease for it.
    pub(in crate::cluster) fn at_end(running: &[usize]) -> Result<(), Violation> {
        if running.is_empty() {
            return Ok(());
        }
        Err(Violation::new(RULE, format!("hosts {running:?} do not shut down")))
    }
}
