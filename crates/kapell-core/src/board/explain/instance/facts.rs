//! What an explanation of an instance follows from.

use std::collections::BTreeSet;

use super::super::{counted, name_of, span};
use super::InstanceFacts;
use crate::board::actual::ActualLrp;
use crate::board::ids::CellId;
use crate::board::settings::Settings;
use crate::seams::Timestamp;

impl InstanceFacts<'_> {
    pub(super) fn facts(&self, now: Timestamp, settings: &Settings) -> Vec<String> {
        let mut facts = vec![self.desired_fact()];
        facts.extend(self.domain_fact(now));
        facts.extend(self.evacuating.map(|twin| self.twin_fact(twin, now)));
        let Some(lrp) = self.instance else { return facts };
        facts.push(format!("it is {} for {}", lrp.state.name(), span(now.since(lrp.since))));
        if lrp.ready == Some(false) {
            facts.push("it is not ready: no work is to be sent to it".to_owned());
        }
        facts.extend(cell_fact(lrp.cell_id.as_ref(), self.present));
        facts.extend(crash_fact(lrp, settings));
        facts.extend(lrp.placement_error.as_ref().map(|error| format!("last placement: {error}")));
        facts
    }

    fn desired_fact(&self) -> String {
        let key = self.key;
        match self.desired {
            None if self.forgotten => {
                format!("the record of the desired LRP `{}` cannot be read", key.process_guid)
            }
            None => format!("there is no desired LRP `{}`", key.process_guid),
            Some(lrp) if lrp.removing => {
                format!(
                    "`{}` was deleted, and what is left of it is being stopped",
                    key.process_guid
                )
            }
            Some(lrp) if self.instance.is_some_and(|it| it.incarnation != lrp.incarnation) => {
                format!("it belongs to an earlier `{}`, which was deleted", key.process_guid)
            }
            Some(lrp) if key.index < lrp.instances => {
                let instances = counted(lrp.instances, "instance");
                format!("desired: {instances}, index {} is one of them", key.index)
            }
            Some(lrp) => {
                let instances = counted(lrp.instances, "instance");
                format!("desired: only {instances}, index {} is beyond", key.index)
            }
        }
    }

    fn domain_fact(&self, now: Timestamp) -> Option<String> {
        let domain = self
            .instance
            .or(self.evacuating)
            .map(|lrp| &lrp.domain)
            .or_else(|| self.desired.map(|desired| &desired.domain))?;
        let state = match self.domain {
            None => "was never set: it is not fresh".to_owned(),
            Some(fresh) => match fresh.expires_at {
                None => "is fresh for ever".to_owned(),
                Some(at) if now < at => format!("is fresh for another {}", span(at.since(now))),
                Some(at) => format!("has not been fresh for {}", span(now.since(at))),
            },
        };
        Some(format!("domain `{domain}` {state}"))
    }

    fn twin_fact(&self, twin: &ActualLrp, now: Timestamp) -> String {
        let cell = name_of(twin.cell_id.as_ref());
        if self.is_lost(twin) {
            return format!("cell `{cell}`, which was being evacuated and ran it, is gone");
        }
        let end = twin
            .expires_at
            .map_or_else(String::new, |at| format!(", for {} at most", span(at.since(now))));
        format!("cell `{cell}` is being evacuated and still runs it{end}")
    }
}

pub(in super::super) fn cell_fact(
    cell: Option<&CellId>,
    present: &BTreeSet<CellId>,
) -> Option<String> {
    cell.map(|cell| {
        let state = if present.contains(cell) { "present" } else { "gone" };
        format!("cell `{cell}` is {state}")
    })
}

fn crash_fact(lrp: &ActualLrp, settings: &Settings) -> Option<String> {
    (lrp.crash_count > 0).then(|| {
        let reason = lrp.crash_reason.as_deref().unwrap_or("unknown");
        let end = if lrp.crash_count > settings.most_crashes { ", too often to go on" } else { "" };
        format!("it crashed {}{end}, last: {reason}", counted(lrp.crash_count, "time"))
    })
}
