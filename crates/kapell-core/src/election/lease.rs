use std::time::Duration;

use crate::seams::Moment;

/// How long a seat is held without word from its holder, and what follows from that.
///
/// All times count from when the last good renewal was *sent*: the store cannot have begun to
/// count earlier, so whoever waits for it to expire waits longer than the holder acts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Lease(Duration);

impl Lease {
    pub const fn new(duration: Duration) -> Self {
        Self(duration)
    }

    pub const fn duration(self) -> Duration {
        self.0
    }

    /// When the next renewal is sent.
    pub fn renew_at(self, sent: Moment) -> Moment {
        sent.after(self.0 / 4)
    }

    /// From here on the holder does nothing new: the seat is lost.
    pub fn act_until(self, sent: Moment) -> Moment {
        sent.after(self.0 / 2)
    }

    /// When the process ends, whatever it is doing.
    pub fn kill_at(self, sent: Moment, lost: Option<Moment>) -> Moment {
        let silent = sent.after(self.0 * 3 / 4);
        lost.map_or(silent, |lost| silent.min(lost.after(self.0 / 4)))
    }

    /// The earliest moment at which the store may let someone else in.
    pub fn expires_at(self, sent: Moment) -> Moment {
        sent.after(self.0)
    }

    /// How soon a call that failed is sent again.
    pub fn retry(self) -> Duration {
        (self.0 / 40).max(Duration::from_millis(1))
    }

    /// When a renewal must have been sent, at the latest, for the store to answer `remaining`
    /// to a read that was sent at `read`.
    pub fn sent_by(self, read: Moment, remaining: Duration) -> Moment {
        let spent = self.0.saturating_sub(remaining);
        Moment::from_origin(read.since_origin().saturating_sub(spent))
    }
}
