//! What applying something would come to.

use std::collections::BTreeSet;

use hyper::StatusCode;
use kapell_api::v1::Wishes;
use kapell_core::access::Kind;
use kapell_core::board::TaskGuid;
use kapell_core::seams::Ids;

use super::super::answer::{self, Answer, Problem};
use super::call::Call;
use super::refusal::invalid;

/// How many instances and tasks one plan may be about: no platform holds more.
const MOST_UNITS: u64 = 250_000;

pub(super) async fn plan(call: Call, ids: &dyn Ids) -> Result<Answer, Box<Problem>> {
    let (mut wishes, asked) = call.json::<Wishes>().await?;
    for task in wishes.tasks.iter_mut().filter(|it| it.task_guid.as_str().is_empty()) {
        task.task_guid = TaskGuid::new(format!("{:016x}{:016x}", ids.draw(), ids.draw()));
    }
    check(&wishes)?;
    let domains = wishes.lrps.iter().map(|it| &it.domain);
    for domain in domains.chain(wishes.tasks.iter().map(|it| &it.domain)) {
        asked.may(Kind::Plan, domain)?;
    }
    Ok(answer::value(StatusCode::OK, &asked.desk.plan(&wishes).await))
}

fn check(wishes: &Wishes) -> Result<(), Box<Problem>> {
    let mut seen = BTreeSet::new();
    let lrps = wishes.lrps.iter().map(|it| format!("lrp/{}", it.process_guid));
    let tasks = wishes.tasks.iter().map(|it| format!("task/{}", it.task_guid));
    for name in lrps.chain(tasks) {
        if seen.contains(&name) {
            return Err(invalid(format!("{name} is there twice: which one would hold?")));
        }
        seen.insert(name);
    }
    let instances: u64 = wishes.lrps.iter().map(|it| u64::from(it.instances)).sum();
    let units = instances.saturating_add(u64::try_from(wishes.tasks.len()).unwrap_or(u64::MAX));
    if units > MOST_UNITS {
        return Err(invalid(format!(
            "instances: a plan is about at most {MOST_UNITS} instances and tasks, not {units}"
        )));
    }
    Ok(())
}
