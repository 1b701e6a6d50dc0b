//! Why something is as it is.

use std::collections::BTreeSet;
use std::time::Duration;

use hyper::StatusCode;
use kapell_api::v1::Explanation;
use kapell_core::board::explain::{self as rules, CellFacts, Explained, InstanceFacts};
use kapell_core::board::{CellId, Domain, Freshness, LrpKey, TaskGuid};
use kapell_core::seams::Timestamp;

use super::super::answer::{self, Answer, Problem};
use super::super::desk::{Desk, look};
use super::call::Call;
use super::refusal::missing;

/// What is to be explained.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Subject {
    Lrp(LrpKey),
    Task(TaskGuid),
    Cell(CellId),
}

/// Explains it; nothing if nobody knows of it.
pub(crate) fn explain(desk: &dyn Desk, subject: &Subject, now: Timestamp) -> Option<Explanation> {
    let (name, explained) = match subject {
        Subject::Lrp(key) => (format!("lrp/{key}"), instance(desk, key, now)?),
        Subject::Task(guid) => {
            let (present, settings) = (present(desk), desk.settings());
            let explained = look(desk, guid.as_str(), |records| {
                let task = records.tasks.get(guid)?;
                Some(rules::task(task, &present, now, &settings))
            });
            (format!("task/{guid}"), explained??)
        }
        Subject::Cell(id) => (format!("cell/{id}"), of_cell(desk, id)?),
    };
    let Explained { summary, facts, next_try_at } = explained;
    Some(Explanation { subject: name, summary, facts, next_try_at })
}

fn present(desk: &dyn Desk) -> BTreeSet<CellId> {
    desk.cells().into_iter().map(|cell| cell.presence.cell_id).collect()
}

fn instance(desk: &dyn Desk, key: &LrpKey, now: Timestamp) -> Option<Explained> {
    let (desired, lrp, twin) = look(desk, key.process_guid.as_str(), |records| {
        (
            records.desired.get(&key.process_guid).cloned(),
            records.instances.get(key).cloned(),
            records.evacuating.get(key).cloned(),
        )
    })?;
    if desired.is_none() && lrp.is_none() && twin.is_none() {
        return None;
    }
    let domain: Option<Domain> = lrp
        .as_ref()
        .or(twin.as_ref())
        .map(|lrp| lrp.domain.clone())
        .or_else(|| desired.as_ref().map(|lrp| lrp.domain.clone()));
    let freshness: Option<Freshness> = domain.and_then(|domain| {
        look(desk, domain.as_str(), |records| records.domains.get(&domain).cloned()).flatten()
    });
    let about = InstanceFacts {
        key,
        desired: desired.as_ref(),
        instance: lrp.as_ref(),
        evacuating: twin.as_ref(),
        domain: freshness.as_ref(),
        present: &present(desk),
    };
    Some(rules::instance(&about, now, &desk.settings()))
}

fn of_cell(desk: &dyn Desk, id: &CellId) -> Option<Explained> {
    let view = desk.cells().into_iter().find(|cell| cell.presence.cell_id == *id)?;
    let awaited = view.state == "awaited";
    Some(rules::cell(&CellFacts {
        cell_id: id,
        presence: Some(&view.presence).filter(|_| !awaited),
        awaited,
        heard_ago: view.heard_ms_ago.map(Duration::from_millis),
        lrps: view.lrps,
        tasks: view.tasks,
    }))
}

type Answered = Result<Answer, Box<Problem>>;

fn answer(call: &Call, subject: &Subject, what: &str, name: &str) -> Answered {
    let explained = explain(&*call.desk, subject, call.now).ok_or_else(|| missing(what, name))?;
    Ok(answer::value(StatusCode::OK, &explained))
}

pub(super) fn lrp(call: &Call) -> Answered {
    let key = call.lrp()?;
    let name = key.to_string();
    answer(call, &Subject::Lrp(key), "instance", &name)
}

pub(super) fn task(call: &Call) -> Answered {
    answer(call, &Subject::Task(call.id("task_guid")), "task", call.params.get("task_guid"))
}

pub(super) fn cell(call: &Call) -> Answered {
    answer(call, &Subject::Cell(call.id("cell_id")), "cell", call.params.get("cell_id"))
}
