//! What clients read. Large lists are written in slices, so that they take no more memory than small ones.

use std::ops::Range;
use std::sync::Arc;

use hyper::StatusCode;
use hyper::header::HeaderValue;
use kapell_api::v1::Endpoint;
use kapell_core::access::Who;
use kapell_core::board::{
    ActualLrp, ActualState, CellId, DesiredLrp, Domain, LrpKey, ProcessGuid, Records, Task,
    TaskGuid, TaskState, shown,
};
use serde::Serialize;

use super::super::answer::{self, Answer, Problem};
use super::super::body::Body;
use super::super::desk::{Desk, look};
use super::super::query::bad;
use super::call::{Call, sees};
use super::refusal::{EVENT_ID, domain, missing};

type Answered = Result<Answer, Box<Problem>>;

/// How many items are written at once.
const SLICE: usize = 512;

/// A JSON array that is being written.
#[derive(Debug, Default)]
struct Items {
    bytes: Vec<u8>,
    begun: bool,
}

impl Items {
    fn push(&mut self, item: &impl Serialize) {
        let before = self.bytes.len();
        self.separate();
        if serde_json::to_writer(&mut self.bytes, item).is_ok() {
            self.begun = true;
        } else {
            self.bytes.truncate(before);
        }
    }

    fn push_written(&mut self, item: &[u8]) {
        self.separate();
        self.bytes.extend_from_slice(item);
        self.begun = true;
    }

    fn separate(&mut self) {
        self.bytes.extend_from_slice(if self.begun { b",\n" } else { b"[\n" });
    }

    fn end(&mut self) {
        self.bytes.extend_from_slice(if self.begun { b"\n]\n" } else { b"[]\n" });
    }
}

/// Lists what `write` knows of each key, as of event `seen` or later.
fn list<K: Send + Sync + 'static>(
    call: &Call,
    seen: &str,
    keys: Vec<K>,
    write: impl Fn(&dyn Desk, &K, &mut Items) + Send + 'static,
) -> Answer {
    let desk = Arc::clone(&call.desk);
    let mut items = Items::default();
    if keys.len() <= SLICE {
        for key in &keys {
            write(&*desk, key, &mut items);
        }
        return whole(seen, items);
    }
    let body = Body::fed(move |pipe| async move {
        for slice in keys.chunks(SLICE) {
            for key in slice {
                write(&*desk, key, &mut items);
            }
            if pipe.send(std::mem::take(&mut items.bytes)).await.is_err() {
                return;
            }
        }
        items.end();
        let _read = pipe.send(items.bytes).await;
    });
    answer(seen, body)
}

fn whole(seen: &str, mut items: Items) -> Answer {
    items.end();
    answer(seen, Body::whole(items.bytes.into()))
}

fn answer(seen: &str, body: Body) -> Answer {
    let mut answer = answer::json_stream(body);
    if let Ok(seen) = HeaderValue::try_from(seen) {
        answer.headers_mut().insert(EVENT_ID, seen);
    }
    answer
}

/// Lists what is there already, as of event `seen` or later.
pub(super) fn items<T: Serialize + Send + Sync + 'static>(
    call: &Call,
    seen: &str,
    found: Vec<T>,
) -> Answer {
    list(call, seen, found, |_, item, items| items.push(item))
}

/// Taken before anything is read, so that no event is missed after it.
pub(super) fn seen(call: &Call) -> String {
    call.desk.last_event().to_string()
}

#[expect(clippy::unnecessary_wraps, reason = "it is a route like the others")]
pub(super) fn domains(call: &Call) -> Answered {
    let seen = seen(call);
    let mut keys: Vec<Domain> = Vec::new();
    call.desk.look_at_all(&mut |records| keys.extend(records.domains.keys().cloned()));
    keys.retain(|domain| call.sees(domain));
    keys.sort();
    let now = call.now;
    Ok(list(call, &seen, keys, move |desk, key, items| {
        desk.look(key.as_str(), &mut |records| {
            if let Some(freshness) = records.domains.get(key) {
                items.push(&domain(freshness, now));
            }
        });
    }))
}

#[expect(clippy::unnecessary_wraps, reason = "it is a route like the others")]
pub(super) fn cells(call: &Call) -> Answered {
    let seen = seen(call);
    Ok(list(call, &seen, call.desk.cells(), |_, cell, items| items.push(cell)))
}

#[expect(clippy::unnecessary_wraps, reason = "it is a route like the others")]
pub(super) fn desired(call: &Call) -> Answered {
    let seen = seen(call);
    let wanted: Option<Domain> = call.filter("domain");
    let mut keys: Vec<ProcessGuid> = Vec::new();
    call.desk.look_at_all(&mut |records| {
        let key = |lrp: &DesiredLrp| lrp.process_guid.clone();
        match &wanted {
            Some(domain) if !call.sees(domain) => {}
            Some(domain) => keys.extend(records.desired_in(domain).map(key)),
            None => {
                let seen = records.desired_lrps().filter(|lrp| call.sees(&lrp.domain));
                keys.extend(seen.map(key));
            }
        }
    });
    keys.sort();
    Ok(list(call, &seen, keys, |desk, key, items| {
        desk.look(key.as_str(), &mut |records| {
            if let Some(lrp) = records.desired_lrp(key) {
                items.push(lrp);
            }
        });
    }))
}

pub(super) fn one_desired(call: &Call) -> Answered {
    let guid: ProcessGuid = call.id("process_guid");
    let found = look(&*call.desk, guid.as_str(), |records| {
        let lrp = records.desired_lrp(&guid).filter(|lrp| call.sees(&lrp.domain));
        lrp.map(|lrp| answer::value(StatusCode::OK, lrp))
    });
    found.flatten().ok_or_else(|| missing("desired LRP", guid.as_str()))
}

/// What is asked of instances.
#[derive(Debug)]
struct Wanted {
    who: Arc<Who>,
    process_guid: Option<ProcessGuid>,
    cell_id: Option<CellId>,
    domain: Option<Domain>,
    index: Option<u32>,
    all: bool,
}

impl Wanted {
    /// The fewest that an index knows to hold all that is asked for.
    fn among<'a>(&'a self, records: &'a Records) -> Box<dyn Iterator<Item = &'a ActualLrp> + 'a> {
        if let Some(guid) = &self.process_guid {
            Box::new(records.instances_of(guid).chain(records.evacuating_of(guid)))
        } else if let Some(cell) = &self.cell_id {
            Box::new(records.instances_on(cell).chain(records.evacuating_on(cell)))
        } else if let Some(domain) = &self.domain {
            Box::new(records.instances_in(domain).chain(records.evacuating_in(domain)))
        } else {
            Box::new(records.instances.values().chain(records.evacuating.values()))
        }
    }

    fn fits(&self, lrp: &ActualLrp) -> bool {
        self.index.is_none_or(|index| lrp.index == index) && self.lrp(lrp)
    }

    fn lrp(&self, lrp: &ActualLrp) -> bool {
        self.cell_id.as_ref().is_none_or(|cell| lrp.cell_id.as_ref() == Some(cell))
            && self.domain.as_ref().is_none_or(|domain| lrp.domain == *domain)
            && sees(&self.who, &lrp.domain)
    }
}

/// Instances as they were found. To find one costs more than to write it: as long as they are few, each is written at once,
/// in the order of its shard, and not looked for again.
#[derive(Debug, Default)]
struct Found {
    /// With where each is written.
    lrps: Vec<(LrpKey, bool, Range<usize>)>,
    written: Vec<u8>,
}

impl Found {
    fn add(&mut self, lrp: &ActualLrp) {
        let begin = self.written.len();
        if self.lrps.len() < SLICE && serde_json::to_writer(&mut self.written, lrp).is_err() {
            self.written.truncate(begin);
            return;
        }
        self.lrps.push((lrp.key(), lrp.evacuating, begin..self.written.len()));
    }

    /// All of them in order; the keys alone if they are too many to be written at once.
    fn end(mut self) -> Result<Items, Vec<LrpKey>> {
        self.lrps.sort_by(|(one, twin, _), (other, other_twin, _)| {
            one.cmp(other).then_with(|| twin.cmp(other_twin))
        });
        if self.lrps.len() > SLICE {
            let mut keys: Vec<LrpKey> = self.lrps.into_iter().map(|(key, ..)| key).collect();
            keys.dedup();
            return Err(keys);
        }
        let mut items = Items::default();
        items.bytes.reserve(self.written.len() + 2 * self.lrps.len() + 4);
        for (_, _, at) in self.lrps {
            items.push_written(&self.written[at]);
        }
        Ok(items)
    }
}

pub(super) fn actual(call: &Call) -> Answered {
    let seen = seen(call);
    let wanted = Wanted {
        who: Arc::clone(&call.who),
        process_guid: call.filter("process_guid"),
        cell_id: call.filter("cell_id"),
        domain: call.filter("domain"),
        index: call.query.number("index")?,
        all: call.query.switch("all")?,
    };
    let mut found = Found::default();
    let mut gather = |records: &Records| {
        for lrp in wanted.among(records).filter(|lrp| wanted.fits(lrp)) {
            if wanted.all || records.shows(lrp) {
                found.add(lrp);
            }
        }
    };
    match &wanted.process_guid {
        Some(guid) => call.desk.look(guid.as_str(), &mut gather),
        None => call.desk.look_at_all(&mut gather),
    }
    let keys = match found.end() {
        Ok(items) => return Ok(whole(&seen, items)),
        Err(keys) => keys,
    };
    Ok(list(call, &seen, keys, move |desk, key, items| {
        desk.look(key.process_guid.as_str(), &mut |records| {
            let (instance, twin) = (records.instances.get(key), records.evacuating.get(key));
            let chosen = if wanted.all { [instance, twin] } else { [shown(instance, twin), None] };
            for lrp in chosen.into_iter().flatten().filter(|lrp| wanted.lrp(lrp)) {
                items.push(lrp);
            }
        });
    }))
}

pub(super) fn tasks(call: &Call) -> Answered {
    let seen = seen(call);
    let of_domain: Option<Domain> = call.filter("domain");
    let of_cell: Option<CellId> = call.filter("cell_id");
    let state = call.query.get("state").map(state).transpose()?;
    let mut keys: Vec<TaskGuid> = Vec::new();
    call.desk.look_at_all(&mut |records| {
        let among: Box<dyn Iterator<Item = &Task>> = if let Some(cell) = &of_cell {
            Box::new(records.tasks_on(cell))
        } else if let Some(state) = state {
            Box::new(records.tasks_as(state).filter_map(|guid| records.tasks.get(guid)))
        } else if let Some(domain) = &of_domain {
            Box::new(records.tasks_in(domain))
        } else {
            Box::new(records.tasks.values())
        };
        let fits = among.filter(|task| {
            of_domain.as_ref().is_none_or(|domain| task.definition.domain == *domain)
                && state.is_none_or(|state| task.state == state)
                && call.sees(&task.definition.domain)
        });
        keys.extend(fits.map(|task| task.guid().clone()));
    });
    keys.sort();
    Ok(list(call, &seen, keys, move |desk, key, items| {
        desk.look(key.as_str(), &mut |records| {
            if let Some(task) = records.tasks.get(key)
                && state.is_none_or(|state| task.state == state)
            {
                items.push(task);
            }
        });
    }))
}

fn state(text: &str) -> Result<TaskState, Box<Problem>> {
    let fits = |state: &TaskState| state.name().eq_ignore_ascii_case(text);
    TaskState::ALL.into_iter().find(fits).ok_or_else(|| {
        let names = TaskState::ALL.map(TaskState::name).join(", ");
        bad(&format!("`{text}` is no state of a task: {names}"), "state")
    })
}

pub(super) fn one_task(call: &Call) -> Answered {
    let guid: TaskGuid = call.id("task_guid");
    let found = look(&*call.desk, guid.as_str(), |records| {
        let task = records.tasks.get(&guid).filter(|task| call.sees(&task.definition.domain));
        task.map(|task| answer::value(StatusCode::OK, task))
    });
    found.flatten().ok_or_else(|| missing("task", guid.as_str()))
}

pub(super) fn endpoints(call: &Call) -> Answered {
    let seen = seen(call);
    let guid: ProcessGuid = call.id("process_guid");
    let found = look(&*call.desk, guid.as_str(), |records| {
        let both = records.instances_of(&guid).chain(records.evacuating_of(&guid));
        let mut found: Vec<Endpoint> = both.filter_map(endpoint).collect();
        found.sort_by_key(|it| (it.index, it.evacuating));
        let known = records.desired_lrp(&guid).is_some()
            || records.instances_of(&guid).chain(records.evacuating_of(&guid)).next().is_some();
        known.then_some(found)
    });
    let found = found.flatten().filter(|_| call.sees_process(&guid));
    let found = found.ok_or_else(|| missing("desired LRP", guid.as_str()))?;
    Ok(list(call, &seen, found, |_, endpoint, items| items.push(endpoint)))
}

fn endpoint(lrp: &ActualLrp) -> Option<Endpoint> {
    let instance = lrp.instance()?;
    Some(Endpoint {
        index: lrp.index,
        instance_guid: instance.instance_guid,
        cell_id: instance.cell_id.to_string(),
        evacuating: lrp.evacuating,
        ready: lrp.is_ready(),
        net: lrp.net.clone().filter(|_| lrp.state == ActualState::Running)?,
    })
}
