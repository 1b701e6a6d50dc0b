//! What clients desire.

use serde::Serialize;
use serde_json::Value;

use super::Step;
use crate::board::actual::{ActualLrp, LrpKey};
use crate::board::desired::{DesiredLrp, DesiredUpdate};
use crate::board::ids::ProcessGuid;
use crate::board::record::{Record, RecordKey};
use crate::board::request::{Effect, MOST_RECORDS, Refusal, Reply, Request, Retirement};
use crate::board::validate;

/// How many indices one request looks at: a large process is unfolded in many small steps.
const MOST_LOOKS: u32 = 1024;

/// What the board itself keeps in a DesiredLRP.
const OURS: [&str; 7] =
    ["version", "created_at", "updated_at", "incarnation", "removing", "retiring", "forgotten"];

impl Step<'_, '_> {
    pub(super) fn desire(&mut self, wanted: &DesiredLrp) -> Result<Reply, Refusal> {
        let problems = validate::desired(wanted);
        if !problems.is_empty() {
            return Err(Refusal::Invalid { problems });
        }
        let guid = &wanted.process_guid;
        // Of one that cannot be read, the instances belong to whoever is desired again under its name.
        let stands = self.draft.desired(guid).filter(|stands| !stands.forgotten);
        if let Some(stands) = stands.clone().filter(|stands| !stands.removing) {
            let fields = differing(&stands, wanted, &OURS);
            if fields.is_empty() {
                return Ok(Reply::Desired { lrp: Box::new(stands), created: false });
            }
            return Err(exists(wanted, fields));
        }
        let lrp = DesiredLrp {
            version: stands.as_ref().map_or(0, |removing| removing.version) + 1,
            created_at: Some(self.now),
            updated_at: None,
            incarnation: self.next_incarnation(guid, stands.as_ref()),
            removing: false,
            retiring: stands.is_some(),
            forgotten: false,
            ..wanted.clone()
        };
        self.draft.put(Record::Desired(Box::new(lrp.clone())));
        if lrp.retiring {
            self.retire_next(guid);
        }
        if lrp.instances > 0 {
            self.unfold_next(guid, 0);
        }
        Ok(Reply::Desired { lrp: Box::new(lrp), created: true })
    }

    pub(super) fn update_desired(
        &mut self,
        guid: &ProcessGuid,
        update: &DesiredUpdate,
    ) -> Result<Reply, Refusal> {
        let stands = self.visible(guid).ok_or_else(|| no_desired(guid))?;
        if let Some(asked) = update.version.filter(|asked| *asked != stands.version) {
            return Err(Refusal::Version { stands: stands.version, asked });
        }
        let mut lrp = stands.clone();
        lrp.instances = update.instances.unwrap_or(lrp.instances);
        if let Some(annotation) = &update.annotation {
            lrp.annotation.clone_from(annotation);
        }
        if let Some(routes) = &update.routes {
            lrp.routes.clone_from(routes);
        }
        if lrp == stands {
            return Ok(Reply::Desired { lrp: Box::new(lrp), created: false });
        }
        let problems = validate::desired(&lrp);
        if !problems.is_empty() {
            return Err(Refusal::Invalid { problems });
        }
        lrp.version += 1;
        lrp.updated_at = Some(self.now);
        lrp.retiring |= lrp.instances < stands.instances;
        self.draft.put(Record::Desired(Box::new(lrp.clone())));
        if lrp.instances > stands.instances {
            self.unfold_next(guid, stands.instances);
        }
        if lrp.instances < stands.instances {
            self.retire_next(guid);
        }
        Ok(Reply::Desired { lrp: Box::new(lrp), created: false })
    }

    pub(super) fn remove_desired(&mut self, guid: &ProcessGuid) -> Result<Reply, Refusal> {
        let stands = self.visible(guid).ok_or_else(|| no_desired(guid))?;
        if self.draft.has_some(guid) {
            // It stands until they are gone, so that nobody forgets to stop them.
            let version = stands.version + 1;
            let removing = DesiredLrp { removing: true, retiring: true, version, ..stands };
            self.draft.put(Record::Desired(Box::new(removing)));
            self.retire_next(guid);
        } else {
            self.draft.delete(RecordKey::Desired(guid.clone()));
        }
        Ok(Reply::Done)
    }

    /// Forgets what was given up, once all of it is gone.
    pub(super) fn settle(&mut self, guid: &ProcessGuid) {
        let Some(desired) = self.draft.desired(guid).filter(|desired| desired.retiring) else {
            return;
        };
        if self.draft.has_unwanted(&desired) {
            return;
        }
        if desired.removing {
            self.draft.delete(RecordKey::Desired(guid.clone()));
        } else {
            self.draft.put(Record::Desired(Box::new(DesiredLrp { retiring: false, ..desired })));
        }
    }

    fn visible(&self, guid: &ProcessGuid) -> Option<DesiredLrp> {
        self.draft.desired(guid).filter(|lrp| !lrp.removing)
    }

    /// One that no other of this name has had: of those that are gone nothing is left but, on a cell
    /// that is away, a container.
    fn next_incarnation(&self, guid: &ProcessGuid, removing: Option<&DesiredLrp>) -> u64 {
        let now = u64::try_from(self.now.0).unwrap_or(0);
        match removing {
            Some(removing) => now.max(removing.incarnation + 1),
            // Instances that nobody has given up, of a record that is lost, are as good as new ones.
            None => {
                let instances = self.draft.instances_of(guid);
                instances.iter().map(|lrp| lrp.incarnation).max().unwrap_or(now)
            }
        }
    }

    /// Creates what is missing from an index on, a few records at a time.
    pub(super) fn unfold(&mut self, guid: &ProcessGuid, from: u32) {
        let Some(desired) = self.visible(guid) else { return };
        let mut made = 0;
        for index in from..desired.instances {
            if made == MOST_RECORDS || index - from == MOST_LOOKS {
                self.unfold_next(guid, index);
                return;
            }
            let key = LrpKey { process_guid: guid.clone(), index };
            if self.draft.instance(&key).is_none() {
                let lrp = ActualLrp::unclaimed(&key, desired.domain.clone(), self.now);
                self.put(ActualLrp { incarnation: desired.incarnation, ..lrp });
                self.effects.push(Effect::Start { key });
                made += 1;
            }
        }
    }

    pub(super) fn unfold_next(&mut self, guid: &ProcessGuid, from: u32) {
        let unfold = Request::Unfold { process_guid: guid.clone(), from };
        self.effects.push(Effect::Next(unfold));
    }

    fn retire_next(&mut self, guid: &ProcessGuid) {
        let all = self.draft.instances_of(guid);
        let given_up: Vec<LrpKey> =
            all.iter().filter(|lrp| !self.wants_this(lrp)).map(ActualLrp::key).collect();
        self.effects.extend(
            given_up
                .into_iter()
                .map(|key| Effect::Next(Request::Retire { key, why: Retirement::Explicit })),
        );
    }
}

fn no_desired(guid: &ProcessGuid) -> Refusal {
    Refusal::NotFound { what: "desired LRP".to_owned(), name: guid.to_string() }
}

fn exists(wanted: &DesiredLrp, fields: Vec<String>) -> Refusal {
    let text = format!(
        "desired LRP `{}` is there already and differs in {}: only instances, routes and annotation \
         can be updated in place; for any other change delete it first or take another process_guid",
        wanted.process_guid,
        fields.join(", "),
    );
    Refusal::Exists { text, fields }
}

/// The names of the fields in which two records differ, as they are written.
pub(super) fn differing<T: Serialize>(one: &T, other: &T, ignored: &[&str]) -> Vec<String> {
    let fields = |record: &T| match serde_json::to_value(record) {
        Ok(Value::Object(fields)) => fields,
        // Our records are objects with text for keys: they can always be written.
        Ok(_) | Err(_) => serde_json::Map::new(),
    };
    let (one, other) = (fields(one), fields(other));
    let mut names: Vec<_> = one.keys().chain(other.keys()).collect();
    names.sort_unstable();
    names.dedup();
    names
        .into_iter()
        .filter(|name| !ignored.contains(&name.as_str()))
        .filter(|name| one.get(*name) != other.get(*name))
        .cloned()
        .collect()
}
