//! What cells report of instances.

use super::instances::{stepped, unclaimed};
use super::{Origin, Reached, Step};
use crate::board::actual::{ActualLrp, ActualState, InstanceKey, LrpKey};
use crate::board::crash;
use crate::board::desired::DesiredLrp;
use crate::board::record::Record;
use crate::board::request::{Effect, Refusal, Request, Retirement};
use crate::board::text;
use crate::rep::lrp::is_foreign;

impl Step<'_, '_> {
    pub(super) fn claim(
        &mut self,
        key: &LrpKey,
        us: &InstanceKey,
        incarnation: Option<u64>,
    ) -> Result<(), Refusal> {
        let lrp = self.draft.instance(key).ok_or_else(|| no_instance(key))?;
        let ours = lrp.is_of(us);
        match lrp.state {
            ActualState::Claimed if ours => return Ok(()),
            ActualState::Unclaimed if is_foreign(&lrp, incarnation) => {
                return Err(of_another(&lrp));
            }
            ActualState::Unclaimed => {}
            ActualState::Running if ours => {}
            ActualState::Claimed | ActualState::Running | ActualState::Crashed => {
                return Err(refused("be claimed", &lrp));
            }
        }
        self.put(stepped(lrp, ActualState::Claimed, Some(us), self.now));
        Ok(())
    }

    pub(super) fn running(
        &mut self,
        key: &LrpKey,
        us: &InstanceKey,
        origin: &Origin<'_>,
        reached: &Reached<'_>,
    ) -> Result<(), Refusal> {
        let (net, ready) = (Some(reached.net.clone()), Some(reached.ready));
        let lrp = match self.draft.instance(key) {
            None => ActualLrp {
                state: ActualState::Running,
                instance_guid: Some(us.instance_guid.clone()),
                cell_id: Some(us.cell_id.clone()),
                net,
                ready,
                ..self.another(key, origin)
            },
            Some(lrp) => match lrp.state {
                ActualState::Running if !lrp.is_of(us) => return Err(refused("run here", &lrp)),
                ActualState::Running => {
                    if lrp.net != net || lrp.ready != ready {
                        self.put(ActualLrp { net, ready, version: lrp.version + 1, ..lrp });
                    }
                    return Ok(());
                }
                ActualState::Unclaimed | ActualState::Claimed | ActualState::Crashed
                    if !lrp.is_of(us) && is_foreign(&lrp, origin.incarnation) =>
                {
                    return Err(of_another(&lrp));
                }
                ActualState::Unclaimed | ActualState::Claimed | ActualState::Crashed => {
                    let lrp = stepped(lrp, ActualState::Running, Some(us), self.now);
                    ActualLrp { net, ready, ..lrp }
                }
            },
        };
        self.put(lrp);
        if let Some(twin) = self.draft.evacuating(key) {
            self.drop_twin(key);
            // Its cell would find out by itself, but not at once.
            if let Some(instance) = twin.instance().filter(|instance| instance != us) {
                self.effects.push(Effect::Stop { key: key.clone(), instance });
            }
        }
        self.give_up_earlier(key);
        Ok(())
    }

    /// Notes whether an instance is ready, or its evacuating twin if that is what its cell still runs.
    pub(super) fn ready(
        &mut self,
        key: &LrpKey,
        us: &InstanceKey,
        ready: bool,
    ) -> Result<(), Refusal> {
        let (lrp, twin) = (self.draft.instance(key), self.draft.evacuating(key));
        let runs = |lrp: &ActualLrp| lrp.state == ActualState::Running && lrp.is_of(us);
        let Some(ours) = [&lrp, &twin].into_iter().flatten().find(|lrp| runs(lrp)) else {
            let stands = lrp.or(twin).ok_or_else(|| no_instance(key))?;
            let wish = if ready { "become ready here" } else { "stop being ready here" };
            return Err(refused(wish, &stands));
        };
        let ready = Some(ready);
        if ours.ready != ready {
            self.put(ActualLrp { ready, version: ours.version + 1, ..ours.clone() });
        }
        Ok(())
    }

    pub(super) fn crashed(
        &mut self,
        key: &LrpKey,
        us: &InstanceKey,
        origin: &Origin<'_>,
        reason: &str,
    ) -> Result<(), Refusal> {
        let before = self.draft.instance(key);
        if let Some(lrp) = before.as_ref().filter(|lrp| !lrp.is_of(us)) {
            return Err(refused("crash here", lrp));
        }
        let dance = crash::dance(before.as_ref(), self.now, self.settings);
        let is_new = before.is_none();
        let after = match before {
            Some(lrp) => stepped(lrp, dance.state, None, self.now),
            None => ActualLrp { state: dance.state, ..self.another(key, origin) },
        };
        self.put(ActualLrp {
            crash_count: dance.crash_count,
            crash_reason: Some(text::reason(reason)),
            ..after
        });
        if is_new {
            self.give_up_earlier(key);
        } else {
            self.retire_if_given_up(key);
        }
        if dance.state == ActualState::Unclaimed {
            self.start_if_wanted(key);
        }
        Ok(())
    }

    /// A record for what has none; of the incarnation that stands, if its cell does not say.
    fn another(&self, key: &LrpKey, origin: &Origin<'_>) -> ActualLrp {
        let stands = || self.draft.desired(&key.process_guid).map(|desired| desired.incarnation);
        let incarnation = origin.incarnation.or_else(stands).unwrap_or(0);
        ActualLrp { incarnation, ..ActualLrp::unclaimed(key, origin.domain.clone(), self.now) }
    }

    /// What comes back of a desired LRP that was deleted, after another was desired under its name,
    /// holds an index of the new one: it is stopped at once, as when it was deleted.
    fn give_up_earlier(&mut self, key: &LrpKey) {
        let Some(lrp) = self.draft.instance(key) else { return };
        let desired = self.draft.desired(&key.process_guid);
        let is_other = |it: &DesiredLrp| it.incarnation != lrp.incarnation && !it.forgotten;
        let Some(desired) = desired.filter(is_other) else { return };
        if !desired.retiring {
            self.draft.put(Record::Desired(Box::new(DesiredLrp { retiring: true, ..desired })));
        }
        let why = Retirement::Explicit;
        self.effects.push(Effect::Next(Request::Retire { key: key.clone(), why }));
    }

    pub(super) fn remove(&mut self, key: &LrpKey, us: &InstanceKey) -> Result<(), Refusal> {
        let Some(lrp) = self.draft.instance(key) else { return Ok(()) };
        if !lrp.is_of(us) {
            return Err(refused("be removed", &lrp));
        }
        self.drop_instance(key);
        Ok(())
    }

    pub(super) fn unclaim(&mut self, key: &LrpKey, us: &InstanceKey) -> Result<(), Refusal> {
        let lrp = self.draft.instance(key).ok_or_else(|| no_instance(key))?;
        match lrp.state {
            ActualState::Unclaimed => return Ok(()),
            ActualState::Claimed | ActualState::Running if lrp.is_of(us) => {}
            ActualState::Claimed | ActualState::Running | ActualState::Crashed => {
                return Err(refused("be given up", &lrp));
            }
        }
        self.put(unclaimed(lrp, self.now));
        self.start_if_wanted(key);
        self.retire_if_given_up(key);
        Ok(())
    }
}

fn no_instance(key: &LrpKey) -> Refusal {
    Refusal::NotFound { what: "instance".to_owned(), name: key.to_string() }
}

fn of_another(lrp: &ActualLrp) -> Refusal {
    let (key, guid) = (lrp.key(), &lrp.process_guid);
    let text = format!("{key} is not what the container is of: that was an earlier `{guid}`");
    Refusal::State { text }
}

/// Says in which state, and whose, the instance is.
pub(super) fn refused(wish: &str, lrp: &ActualLrp) -> Refusal {
    let place = lrp.instance().map_or_else(String::new, |instance| {
        format!(" as {} on cell `{}`", instance.instance_guid, instance.cell_id)
    });
    let text = format!("instance {} cannot {wish}: it is {}{place}", lrp.key(), lrp.state.name());
    Refusal::State { text }
}
