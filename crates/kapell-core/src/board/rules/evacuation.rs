//! How an instance leaves a cell: a twin of it stays until another cell runs it.

use super::instances::unclaimed;
use super::{Origin, Step};
use crate::board::actual::{ActualLrp, ActualState, InstanceKey, LrpKey, NetInfo};
use crate::board::request::Refusal;
use crate::rep::{Action, evacuation as table};

impl Step<'_, '_> {
    /// Does what the cell's own table says, with the records as they stand now.
    pub(super) fn evacuate(
        &mut self,
        key: &LrpKey,
        us: &InstanceKey,
        origin: &Origin<'_>,
        net: &NetInfo,
    ) -> Result<(), Refusal> {
        let (lrp, twin) = (self.draft.instance(key), self.draft.evacuating(key));
        let instance = table::Instance::of(lrp.as_ref(), us, origin.incarnation);
        let rule = table::running(instance, table::Twin::of(twin.as_ref(), us));
        if rule.actions.contains(&Action::DeleteContainer) {
            let text = format!("{key} cannot be evacuated, its container is to go: {}", rule.why);
            return Err(Refusal::State { text });
        }
        if rule.actions.contains(&Action::MakeTwin) {
            let ours = [&lrp, &twin].into_iter().flatten().find(|lrp| lrp.is_of(us));
            let ready = ours.and_then(|lrp| lrp.ready).unwrap_or(true);
            self.put(ActualLrp {
                state: ActualState::Running,
                instance_guid: Some(us.instance_guid.clone()),
                cell_id: Some(us.cell_id.clone()),
                net: Some(net.clone()),
                ready: Some(ready),
                crash_count: lrp.as_ref().map_or(0, |lrp| lrp.crash_count),
                evacuating: true,
                expires_at: Some(self.now.after(self.settings.evacuation)),
                version: twin.map_or(1, |twin| twin.version + 1),
                incarnation: lrp.as_ref().map_or(0, |lrp| lrp.incarnation),
                ..ActualLrp::unclaimed(key, origin.domain.clone(), self.now)
            });
        }
        if let Some(lrp) = lrp.filter(|_| rule.actions.contains(&Action::Unclaim)) {
            self.put(unclaimed(lrp, self.now));
            self.start_if_wanted(key);
        }
        Ok(())
    }

    pub(super) fn remove_evacuating(&mut self, key: &LrpKey, us: &InstanceKey) {
        if self.draft.evacuating(key).is_some_and(|twin| twin.is_of(us)) {
            self.drop_twin(key);
        }
    }
}
