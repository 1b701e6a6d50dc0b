//! What the board does with instances by itself.

use super::Step;
use crate::board::actual::{ActualLrp, ActualState, InstanceKey, LrpKey};
use crate::board::crash;
use crate::board::ids::CellId;
use crate::board::request::{Effect, Retirement};
use crate::board::text;
use crate::seams::Timestamp;

impl Step<'_, '_> {
    /// Stops an instance unless it is desired after all, or there is no reason to any more. Whether
    /// its domain, which may lie in another shard, is fresh and until when, was checked by who asks.
    pub(super) fn retire(&mut self, key: &LrpKey, why: Retirement) {
        let instance = self.draft.instance(key);
        let twin = self.draft.evacuating(key);
        let Some(named) = instance.as_ref().or(twin.as_ref()) else { return };
        let has_reason = match why {
            Retirement::Explicit => self.has_given_up(named),
            Retirement::Converged { fresh_until } => {
                !self.wants_this(named) && fresh_until.is_none_or(|until| self.now < until)
            }
        };
        if !has_reason {
            return;
        }
        let twin = twin.and_then(|twin| twin.instance());
        if let Some(lrp) = instance {
            match lrp.state {
                ActualState::Unclaimed | ActualState::Crashed => self.drop_instance(key),
                // The record stays until the cell has removed the container.
                ActualState::Claimed | ActualState::Running => {
                    if let Some(instance) = lrp.instance() {
                        self.stop(key, instance);
                    }
                }
            }
        }
        match why {
            Retirement::Explicit => {
                if let Some(instance) = twin {
                    self.stop(key, instance);
                }
            }
            // Its cell lets go of it by its own table, once the instance is gone.
            Retirement::Converged { .. } => {}
        }
    }

    fn stop(&mut self, key: &LrpKey, instance: InstanceKey) {
        self.effects.push(Effect::Stop { key: key.clone(), instance });
    }

    pub(super) fn restart_crashed(&mut self, key: &LrpKey) {
        let Some(lrp) = self.draft.instance(key) else { return };
        let due = crash::restart_at(&lrp, self.settings).is_some_and(|at| at <= self.now);
        if due && self.wants_this(&lrp) {
            self.put(unclaimed(lrp, self.now));
            self.effects.push(Effect::Start { key: key.clone() });
        }
    }

    pub(super) fn reemit(&mut self, key: &LrpKey) {
        if self.draft.instance(key).is_some_and(|lrp| lrp.state == ActualState::Unclaimed) {
            self.start_if_wanted(key);
        }
    }

    /// A cell is gone, and with it all that it ran.
    pub(super) fn rescue(&mut self, key: &LrpKey, cell_id: &CellId) {
        let on_it = |lrp: &ActualLrp| lrp.cell_id.as_ref() == Some(cell_id);
        if self.draft.evacuating(key).as_ref().is_some_and(on_it) {
            self.drop_twin(key);
        }
        let Some(lrp) = self.draft.instance(key).filter(on_it) else { return };
        if self.has_given_up(&lrp) {
            self.drop_instance(key);
        } else {
            self.put(unclaimed(lrp, self.now));
            self.start_if_wanted(key);
        }
    }

    pub(super) fn fail_placement(&mut self, key: &LrpKey, reason: &str) {
        let unclaimed = |lrp: &ActualLrp| lrp.state == ActualState::Unclaimed;
        let Some(mut lrp) = self.draft.instance(key).filter(unclaimed) else { return };
        let reason = Some(text::reason(reason));
        if lrp.placement_error != reason {
            lrp.placement_error = reason;
            lrp.version += 1;
            self.put(lrp);
        }
    }

    pub(super) fn expire_evacuating(&mut self, key: &LrpKey) {
        let over = |twin: ActualLrp| twin.expires_at.is_some_and(|at| at <= self.now);
        if self.draft.evacuating(key).is_some_and(over) {
            self.drop_twin(key);
        }
    }
}

/// The same instance, on no cell any more and waiting for one.
pub(super) fn unclaimed(lrp: ActualLrp, now: Timestamp) -> ActualLrp {
    stepped(lrp, ActualState::Unclaimed, None, now)
}

/// The same instance in another state, with the fields that fit it; net info and readiness are the caller's.
pub(super) fn stepped(
    mut lrp: ActualLrp,
    to: ActualState,
    instance: Option<&InstanceKey>,
    now: Timestamp,
) -> ActualLrp {
    debug_assert!(lrp.state.next().contains(&to), "{:?} to {to:?}", lrp.state);
    lrp.since = now;
    lrp.state = to;
    lrp.instance_guid = instance.map(|instance| instance.instance_guid.clone());
    lrp.cell_id = instance.map(|instance| instance.cell_id.clone());
    lrp.net = None;
    lrp.ready = None;
    lrp.placement_error = None;
    lrp.version += 1;
    lrp
}
