//! Containers that were told to stop and did not.

use std::time::Duration;

use kapell_backend::containers::Error;
use kapell_core::board::InstanceGuid;
use kapell_core::rep::container::{RunResult, State};
use kapell_core::seams::Moment;

use super::rep::{Effect, Rep};

/// After its grace time, a container may take so long to be gone.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);

impl Rep {
    /// Notes by when a container that is told to stop must have ended.
    pub(super) fn expect_end(&mut self, guid: &InstanceGuid) {
        let Some(entry) = self.executor.get(guid) else { return };
        if entry.life.state() == State::Initializing {
            // What is being made cannot be ended: it is once it is there.
            return;
        }
        let grace = Duration::from_millis(entry.tag.stop_grace_ms).saturating_add(PATIENCE);
        let by = self.clock.now().after(if entry.at_once { Duration::ZERO } else { grace });
        self.stops.insert((by, guid.clone()));
    }

    /// When to look for such containers.
    pub(super) fn next_overdue(&self) -> Option<Moment> {
        self.stops.first().map(|(by, _)| *by)
    }

    /// Ends by force what had its time.
    pub(super) fn end_overdue(&mut self) {
        let now = self.clock.now();
        while let Some((by, guid)) = self.stops.pop_first() {
            if by > now {
                self.stops.insert((by, guid));
                return;
            }
            let entry = self.executor.get_mut(&guid);
            let Some(entry) = entry.filter(|it| it.stop_sent && it.life.state().is_live()) else {
                continue;
            };
            if !entry.at_once {
                tracing::warn!(container = %guid, key = ?entry.tag.key, "a container did not stop in time and is ended by force");
            }
            entry.killed = true;
            self.effects.push(Effect::Kill(guid));
        }
    }

    /// A container was ended by force, or its driver could not do it.
    pub(super) fn was_killed(&mut self, guid: &InstanceGuid, outcome: &Result<(), Error>) {
        match outcome {
            Ok(()) | Err(Error::Unknown(_)) => self.ended(guid, RunResult::stopped()),
            Err(error) => {
                tracing::warn!(container = %guid, %error, "cannot end a container by force, will try again");
                self.stops.insert((self.clock.now().after(PATIENCE), guid.clone()));
            }
        }
    }
}
