//! What cells say, and what they are told through the leader.

use std::collections::BTreeMap;

use futures_util::future::join_all;
use hyper::StatusCode;
use kapell_api::v1::{RecordsWanted, ReportAnswer, Reports};
use kapell_core::board::request::Report;
use kapell_core::board::{CellId, CellPresence, InstanceGuid, Reply, Request};
use kapell_node::board::Declined;
use kapell_node::link::LinkError;

use super::super::answer::{self, Answer, Problem};
use super::super::desk::Desk;
use super::super::place::Place;
use super::call::Call;
use super::refusal::{declined, invalid, missing, unlinked};

type Answered = Result<Answer, Box<Problem>>;

pub(super) async fn evacuate(call: Call) -> Answered {
    let cell_id: CellId = call.id("cell_id");
    if call.desk.cell(&cell_id).is_none() {
        return Err(missing("cell", cell_id.as_str()));
    }
    call.desk.evacuate(&cell_id).await.map_err(unlinked)?;
    Ok(answer::nothing())
}

pub(super) async fn present(call: Call) -> Answered {
    let (presence, asked) = call.json::<CellPresence>().await?;
    let cell_id: CellId = asked.id("cell_id");
    if presence.cell_id != cell_id {
        return Err(invalid(format!("cell_id is `{}`, not `{cell_id}`", presence.cell_id)));
    }
    if !cell_id.is_valid() {
        return Err(invalid(format!("`{cell_id}` is no id: letters, digits, `-` and `_`")));
    }
    if Place::parse(&presence.url).is_none_or(|place| place.scheme.is_none()) {
        return Err(invalid(format!("url `{}` is not as http://HOST:PORT", presence.url)));
    }
    let welcome = asked.desk.present(presence);
    let welcome = welcome.map_err(|problem| unlinked(LinkError::Refused(problem)))?;
    Ok(answer::value(StatusCode::OK, &welcome))
}

#[expect(clippy::unnecessary_wraps, reason = "it is a route like the others")]
pub(super) fn leave(call: &Call) -> Answered {
    call.desk.leave(&call.id("cell_id"));
    Ok(answer::nothing())
}

pub(super) async fn records(call: Call) -> Answered {
    let (wanted, asked) = call.json::<RecordsWanted>().await?;
    Ok(answer::value(StatusCode::OK, &asked.desk.records(&asked.id("cell_id"), &wanted)))
}

/// Reports about one container are decided one after the other, those about different ones side by side, so that they
/// are committed together.
pub(super) async fn reports(call: Call) -> Answered {
    let (reports, asked) = call.json::<Reports>().await?;
    let cell_id: CellId = asked.id("cell_id");
    let mut answers = vec![ReportAnswer::Busy; reports.len()];
    let mut chains: BTreeMap<InstanceGuid, Vec<(usize, Report)>> = BTreeMap::new();
    for (at, report) in reports.into_iter().enumerate() {
        let container = report.instance(&cell_id).instance_guid;
        chains.entry(container).or_default().push((at, report));
    }
    let chains = chains.into_values().map(|chain| decide(&*asked.desk, &cell_id, chain));
    for decided in join_all(chains).await {
        for (at, answer) in decided? {
            answers[at] = answer;
        }
    }
    Ok(answer::value(StatusCode::OK, &answers))
}

async fn decide(
    desk: &dyn Desk,
    cell_id: &CellId,
    chain: Vec<(usize, Report)>,
) -> Result<Vec<(usize, ReportAnswer)>, Box<Problem>> {
    let mut answers = Vec::with_capacity(chain.len());
    for (at, report) in chain {
        let request = Request::Report { cell_id: cell_id.clone(), report };
        let answer = match desk.ask(request).await {
            Ok(Reply::Instance(lrp)) => ReportAnswer::Done(lrp),
            Ok(Reply::Done | Reply::Domain(_) | Reply::Desired { .. } | Reply::Task { .. }) => {
                ReportAnswer::Done(None)
            }
            Err(Declined::Refused(refusal)) => ReportAnswer::Refused(refusal),
            // What comes after it may not be decided before it.
            Err(Declined::Busy | Declined::Store(_)) => break,
            Err(why @ Declined::NotLeading) => return Err(declined(why)),
        };
        answers.push((at, answer));
    }
    Ok(answers)
}
