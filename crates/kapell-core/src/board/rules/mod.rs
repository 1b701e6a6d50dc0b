//! What each request changes. One file a kind of record.

mod cells;
mod desired;
mod domain;
mod evacuation;
mod instances;
mod run_tasks;
mod tasks;

use super::actual::{ActualLrp, LrpKey, NetInfo};
use super::draft::Draft;
use super::record::RecordKey;
use super::request::{Effect, Refusal, Reply, Report, Request, Retirement, Verdict};
use super::settings::Settings;
use crate::board::ids::{CellId, Domain};
use crate::job::{self, JobRequest};
use crate::seams::Timestamp;

pub(super) use tasks::{Kick, kick};

/// Decides one request. Its changes are in the draft; a refusal leaves the draft as it was.
pub fn decide(
    draft: &mut Draft<'_>,
    request: &Request,
    now: Timestamp,
    settings: &Settings,
) -> Result<Verdict, Refusal> {
    let mut step = Step { draft, now, settings, effects: Vec::new() };
    let reply = step.take(request)?;
    Ok(Verdict { reply, effects: step.effects })
}

/// Where a container comes from, as its cell tells it.
#[derive(Debug, Clone, Copy)]
struct Origin<'a> {
    domain: &'a Domain,
    /// Older agents do not say.
    incarnation: Option<u64>,
}

/// Where a container that runs is reached, and whether it is to be sent work.
#[derive(Debug, Clone, Copy)]
struct Reached<'a> {
    net: &'a NetInfo,
    ready: bool,
}

/// One request in the making.
struct Step<'d, 'a> {
    draft: &'d mut Draft<'a>,
    now: Timestamp,
    settings: &'d Settings,
    effects: Vec<Effect>,
}

impl Step<'_, '_> {
    fn take(&mut self, request: &Request) -> Result<Reply, Refusal> {
        match request {
            Request::SetDomain { domain, ttl } => return self.set_domain(domain, *ttl),
            Request::Desire(lrp) => return self.desire(lrp),
            Request::UpdateDesired { process_guid, update } => {
                return self.update_desired(process_guid, update);
            }
            Request::RemoveDesired { process_guid } => return self.remove_desired(process_guid),
            Request::CreateTask { definition, instance_guid } => {
                return self.create_task(definition, instance_guid);
            }
            Request::CancelTask { task_guid } => return self.cancel_task(task_guid),
            Request::ResolveTask { task_guid } => return self.resolve_task(task_guid),
            Request::DeleteTask { task_guid } => return self.delete_task(task_guid),
            Request::Report { cell_id, report } => return self.report(cell_id, report),
            Request::Job(request) => return self.job(request),
            Request::RunTask(request) => return self.run_task(request),
            Request::Unfold { process_guid, from } => self.unfold(process_guid, *from),
            Request::Settle { process_guid } => self.settle(process_guid),
            Request::Retire { key, why } => self.retire(key, *why),
            Request::RestartCrashed { key } => self.restart_crashed(key),
            Request::Reemit { key } => self.reemit(key),
            Request::Rescue { key, cell_id } => self.rescue(key, cell_id),
            Request::FailPlacement { key, reason } => self.fail_placement(key, reason),
            Request::ExpireEvacuating { key } => self.expire_evacuating(key),
            Request::FailTaskPlacement { task_guid, reason, last } => {
                self.fail_task_placement(task_guid, reason, *last);
            }
            Request::KickPendingTask { task_guid } | Request::KickCompletedTask { task_guid } => {
                self.kick_task(task_guid);
            }
            Request::FailLostTask { task_guid, cell_id } => self.fail_lost_task(task_guid, cell_id),
        }
        Ok(Reply::Done)
    }

    fn job(&mut self, request: &JobRequest) -> Result<Reply, Refusal> {
        let planted = self.settings.planted;
        let (reply, effects) = job::rules::decide(self.draft, request, self.now, planted)?;
        self.effects.extend(effects);
        Ok(reply)
    }

    fn report(&mut self, cell_id: &CellId, report: &Report) -> Result<Reply, Refusal> {
        let us = report.instance(cell_id);
        let key = match report {
            Report::StartTask { task_guid, reservation, .. } => {
                return self.start_task(task_guid, &us, reservation.as_ref());
            }
            Report::CompleteTask {
                task_guid, failed, failure_reason, result, exit_code, ..
            } => {
                let outcome = tasks::Outcome {
                    failed: *failed,
                    reason: failure_reason,
                    result,
                    exit_code: *exit_code,
                };
                return self.complete_task(task_guid, &us, &outcome);
            }
            Report::Claim { key, incarnation, .. } => {
                self.claim(key, &us, *incarnation)?;
                key
            }
            Report::Running { key, domain, incarnation, net, ready, .. } => {
                let origin = Origin { domain, incarnation: *incarnation };
                self.running(key, &us, &origin, &Reached { net, ready: *ready })?;
                key
            }
            Report::Ready { key, ready, .. } => {
                self.ready(key, &us, *ready)?;
                key
            }
            Report::Crashed { key, domain, incarnation, reason, .. } => {
                self.crashed(key, &us, &Origin { domain, incarnation: *incarnation }, reason)?;
                key
            }
            Report::Remove { key, .. } => {
                self.remove(key, &us)?;
                key
            }
            Report::RemoveEvacuating { key, .. } => {
                self.remove_evacuating(key, &us);
                key
            }
            Report::Evacuate { key, domain, incarnation, net, .. } => {
                self.evacuate(key, &us, &Origin { domain, incarnation: *incarnation }, net)?;
                key
            }
            Report::Unclaim { key, .. } => {
                self.unclaim(key, &us)?;
                key
            }
        };
        Ok(Reply::Instance(self.draft.instance(key).map(Box::new)))
    }

    /// Whether a DesiredLRP wants this index.
    fn wants(&self, key: &LrpKey) -> bool {
        self.draft.desired(&key.process_guid).is_some_and(|lrp| lrp.wants(key.index))
    }

    /// Whether this very instance is wanted, and not one of another incarnation.
    fn wants_this(&self, lrp: &ActualLrp) -> bool {
        self.draft.desired(&lrp.process_guid).is_some_and(|desired| desired.wants_this(lrp))
    }

    /// Whether somebody has given this very instance up, by scaling down or deleting.
    fn has_given_up(&self, lrp: &ActualLrp) -> bool {
        self.draft.desired(&lrp.process_guid).is_some_and(|desired| desired.has_given_up(lrp))
    }

    /// Removes an evacuating twin, which may be the last of what was given up.
    fn drop_twin(&mut self, key: &LrpKey) {
        self.draft.delete(RecordKey::Evacuating(key.clone()));
        self.settle(&key.process_guid);
    }

    /// Removes an instance, and has another one made if there is to be one.
    fn drop_instance(&mut self, key: &LrpKey) {
        self.draft.delete(RecordKey::Instance(key.clone()));
        if self.wants(key) {
            self.unfold_next(&key.process_guid, key.index);
        } else {
            self.settle(&key.process_guid);
        }
    }

    /// Asks for a start if the instance is wanted.
    fn start_if_wanted(&mut self, key: &LrpKey) {
        if self.draft.instance(key).is_some_and(|lrp| self.wants_this(&lrp)) {
            self.effects.push(Effect::Start { key: key.clone() });
        }
    }

    /// What waits for a start after it was given up is only in the way. Of anything else only
    /// convergence may find that nobody wants it.
    fn retire_if_given_up(&mut self, key: &LrpKey) {
        if self.draft.instance(key).is_some_and(|lrp| self.has_given_up(&lrp)) {
            let why = Retirement::Explicit;
            self.effects.push(Effect::Next(Request::Retire { key: key.clone(), why }));
        }
    }

    fn put(&mut self, lrp: ActualLrp) {
        self.draft.put(super::record::Record::Actual(Box::new(lrp)));
    }
}
