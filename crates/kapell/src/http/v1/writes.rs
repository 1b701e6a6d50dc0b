//! What clients change.

use std::time::Duration;

use hyper::StatusCode;
use kapell_api::v1::{DomainUpdate, Ttl};
use kapell_core::access::Kind;
use kapell_core::board::{
    DesiredLrp, DesiredUpdate, Domain, InstanceGuid, ProcessGuid, Refusal, Request, TaskDefinition,
    TaskGuid,
};
use kapell_core::manifest;
use kapell_core::seams::Ids;
use kapell_core::workflow::parse_duration;
use kapell_node::board::Declined;

use super::super::answer::{self, Answer, Problem};
use super::super::desk::look;
use super::super::query::bad;
use super::call::{Call, intend_process, intend_task};
use super::refusal::{declined, missing, reply};

type Answered = Result<Answer, Box<Problem>>;

pub(super) async fn set_domain(call: Call) -> Answered {
    let now = call.now;
    let (update, asked) = call.json_if_any::<DomainUpdate>().await?;
    let domain: Domain = asked.id("domain");
    let ttl = time_to_live(asked.query.get("ttl"), update.unwrap_or_default())?;
    asked.note.intend().await?;
    let done = asked.desk.ask(Request::SetDomain { domain, ttl }).await.map_err(declined)?;
    Ok(reply(done, "", now))
}

/// None: for ever.
fn time_to_live(
    query: Option<&str>,
    update: DomainUpdate,
) -> Result<Option<Duration>, Box<Problem>> {
    let wrong =
        |text: &str| bad(&format!("`{text}` is no duration: write as `90s` or `2m`"), "ttl");
    let read = |text: &str| parse_duration(text).ok_or_else(|| wrong(text));
    let ttl = match (query, update.ttl, update.ttl_ms) {
        (None, None, None) => None,
        (Some(text), None, None) => Some(read(text)?),
        (None, Some(Ttl::Text(text)), None) => Some(read(&text)?),
        (None, Some(Ttl::Seconds(seconds)), None) => Some(Duration::from_secs(seconds)),
        (None, None, Some(millis)) => Some(Duration::from_millis(millis)),
        _ => return Err(bad("give the time to live once, in the query or in the body", "ttl")),
    };
    Ok(ttl.filter(|ttl| !ttl.is_zero()))
}

pub(super) async fn desire(call: Call) -> Answered {
    let now = call.now;
    let (lrp, asked) = call.json_judged::<DesiredLrp>(manifest::faults_of_lrp).await?;
    asked.note.about("process_guid", lrp.process_guid.as_str());
    asked.note.about("domain", lrp.domain.as_str());
    asked.may(Kind::Change, &lrp.domain)?;
    asked.note.intend().await?;
    let place = format!("/v1/desired-lrps/{}", lrp.process_guid);
    let done = asked.desk.ask(Request::Desire(Box::new(lrp))).await.map_err(declined)?;
    Ok(reply(done, &place, now))
}

pub(super) async fn update(call: Call) -> Answered {
    let now = call.now;
    let (update, asked) = call.json::<DesiredUpdate>().await?;
    let process_guid: ProcessGuid = asked.id("process_guid");
    if !asked.sees_process(&process_guid) {
        return Err(missing("desired LRP", process_guid.as_str()));
    }
    intend_process(&asked.note, &*asked.desk, &process_guid).await?;
    let request = Request::UpdateDesired { process_guid, update };
    Ok(reply(asked.desk.ask(request).await.map_err(declined)?, "", now))
}

pub(super) async fn remove(call: Call) -> Answered {
    let process_guid: ProcessGuid = call.id("process_guid");
    if !call.sees_process(&process_guid) {
        return Err(missing("desired LRP", process_guid.as_str()));
    }
    intend_process(&call.note, &*call.desk, &process_guid).await?;
    call.desk.ask(Request::RemoveDesired { process_guid }).await.map_err(declined)?;
    Ok(answer::nothing())
}

pub(super) async fn create_task(call: Call, ids: &dyn Ids) -> Answered {
    let now = call.now;
    let (mut definition, asked) =
        call.json_judged::<TaskDefinition>(manifest::faults_of_task).await?;
    asked.note.about("task_guid", definition.task_guid.as_str());
    asked.note.about("domain", definition.domain.as_str());
    asked.may(Kind::Change, &definition.domain)?;
    if definition.task_guid.as_str().is_empty() {
        definition.task_guid = TaskGuid::new(format!("{:016x}{:016x}", ids.draw(), ids.draw()));
    }
    asked.note.about("task_guid", definition.task_guid.as_str());
    asked.note.intend().await?;
    let place = format!("/v1/tasks/{}", definition.task_guid);
    let instance_guid = InstanceGuid::drawn(ids.draw(), ids.draw());
    let request = Request::CreateTask { definition: Box::new(definition), instance_guid };
    Ok(reply(asked.desk.ask(request).await.map_err(declined)?, &place, now))
}

pub(super) async fn cancel_task(call: Call) -> Answered {
    let task_guid = task_seen(&call)?;
    intend_task(&call.note, &*call.desk, &task_guid).await?;
    let request = Request::CancelTask { task_guid: task_guid.clone() };
    call.desk.ask(request).await.map_err(declined)?;
    let found = look(&*call.desk, task_guid.as_str(), |records| {
        records.tasks.get(&task_guid).map(|task| answer::value(StatusCode::OK, task))
    });
    // It may be gone again already.
    Ok(found.flatten().unwrap_or_else(answer::nothing))
}

pub(super) async fn delete_task(call: Call) -> Answered {
    let task_guid = task_seen(&call)?;
    intend_task(&call.note, &*call.desk, &task_guid).await?;
    let resolve = Request::ResolveTask { task_guid: task_guid.clone() };
    call.desk.ask(resolve).await.map_err(declined)?;
    match call.desk.ask(Request::DeleteTask { task_guid }).await {
        // Somebody else was as quick.
        Ok(_) | Err(Declined::Refused(Refusal::NotFound { .. })) => Ok(answer::nothing()),
        Err(why) => Err(declined(why)),
    }
}

/// The task that is asked for, if it is there for whoever asks.
fn task_seen(call: &Call) -> Result<TaskGuid, Box<Problem>> {
    let task_guid: TaskGuid = call.id("task_guid");
    if call.sees_task(&task_guid) {
        Ok(task_guid)
    } else {
        Err(missing("task", task_guid.as_str()))
    }
}
