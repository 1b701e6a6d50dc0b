use std::time::Duration;

use kapell_core::seams::Moment;
use kapell_core::seat::Epoch;

use super::settings::CellSettings;

/// How long to sleep when nothing is due.
pub(super) const LONG: Duration = Duration::from_secs(3600);

/// When the board is asked for records next: in turn, or sooner while something is not in line.
#[derive(Debug)]
pub(super) struct PollTimer {
    in_turn: Moment,
    sooner: Option<Moment>,
    wait: Duration,
    first_wait: Duration,
}

impl PollTimer {
    pub(super) const fn new(now: Moment, settings: &CellSettings) -> Self {
        Self {
            in_turn: now,
            sooner: None,
            wait: settings.first_retry,
            first_wait: settings.first_retry,
        }
    }

    pub(super) fn due(&self) -> Moment {
        self.sooner.map_or(self.in_turn, |sooner| sooner.min(self.in_turn))
    }

    pub(super) const fn begun(&mut self, now: Moment, every: Duration) {
        self.in_turn = now.after(every);
        self.sooner = None;
    }

    /// Something went wrong: each time in a row the wait is twice as long, up to `longest`.
    pub(super) fn retry(&mut self, now: Moment, longest: Duration) {
        if self.sooner.is_none() {
            self.sooner = Some(now.after(self.wait.min(longest)));
            self.wait = self.wait.saturating_mul(2).min(longest);
        }
    }

    pub(super) const fn went_well(&mut self) {
        self.wait = self.first_wait;
    }
}

/// When presence is sent next.
#[derive(Debug)]
pub(super) struct PresenceTimer {
    pub(super) due: Moment,
    pub(super) under_way: bool,
    /// What was said last of taking no more work, which is news that does not wait.
    pub(super) evacuating: bool,
    every: Duration,
    wait: Duration,
    first_wait: Duration,
    /// Whose board has welcomed us, and until when it takes us to be there.
    welcome: Option<(Epoch, Moment)>,
}

/// What a welcome tells a cell of where it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    /// It was there all the time.
    Known,
    /// The board has not seen it before, or took it to be gone: its records may be others now.
    New,
}

impl PresenceTimer {
    pub(super) const fn new(now: Moment, settings: &CellSettings) -> Self {
        Self {
            due: now,
            under_way: false,
            evacuating: false,
            every: settings.present_every,
            wait: settings.first_retry,
            first_wait: settings.first_retry,
            welcome: None,
        }
    }

    pub(super) fn welcomed(&mut self, sent: Moment, epoch: Epoch, ttl_ms: u64) -> Standing {
        let ttl = Duration::from_millis(ttl_ms);
        if ttl_ms > 0 {
            self.every = (ttl / 3).max(Duration::from_millis(1));
        }
        self.wait = self.first_wait;
        self.due = sent.after(self.every);
        let before = self.welcome.replace((epoch, sent.after(ttl)));
        let known = before.is_some_and(|(same, until)| same == epoch && sent < until);
        if known { Standing::Known } else { Standing::New }
    }

    /// How often a host hears of us anyway.
    pub(super) const fn pace(&self) -> Duration {
        self.every
    }

    /// Whether a board has ever taken it.
    pub(super) const fn is_welcome(&self) -> bool {
        self.welcome.is_some()
    }

    pub(super) fn failed(&mut self, now: Moment) {
        self.due = now.after(self.wait.min(self.every));
        self.wait = self.wait.saturating_mul(2).min(self.every);
    }
}
