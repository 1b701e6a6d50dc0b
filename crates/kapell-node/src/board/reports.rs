//! What cells report, as one call brings it.

use std::collections::BTreeMap;

use futures_util::future::join_all;
use kapell_api::v1::ReportAnswer;
use kapell_core::board::request::Report;
use kapell_core::board::{CellId, InstanceGuid, Reply, Request};

use super::handle::Declined;

/// Has a board decide reports. Those about one container are decided one after the other, those
/// about different ones side by side, so that they are committed together.
pub async fn decide_reports<A>(
    ask: impl Fn(Request) -> A,
    cell_id: &CellId,
    reports: Vec<Report>,
) -> Result<Vec<ReportAnswer>, Declined>
where
    A: Future<Output = Result<Reply, Declined>>,
{
    let mut answers = vec![ReportAnswer::Busy; reports.len()];
    let mut chains: BTreeMap<InstanceGuid, Vec<(usize, Report)>> = BTreeMap::new();
    for (at, report) in reports.into_iter().enumerate() {
        let container = report.instance(cell_id).instance_guid;
        chains.entry(container).or_default().push((at, report));
    }
    let chains = chains.into_values().map(|chain| decide(&ask, cell_id, chain));
    for decided in join_all(chains).await {
        for (at, answer) in decided? {
            answers[at] = answer;
        }
    }
    Ok(answers)
}

async fn decide<A>(
    ask: &impl Fn(Request) -> A,
    cell_id: &CellId,
    chain: Vec<(usize, Report)>,
) -> Result<Vec<(usize, ReportAnswer)>, Declined>
where
    A: Future<Output = Result<Reply, Declined>>,
{
    let mut answers = Vec::with_capacity(chain.len());
    for (at, report) in chain {
        let request = Request::Report { cell_id: cell_id.clone(), report };
        let answer = match ask(request).await {
            Ok(Reply::Instance(lrp)) => ReportAnswer::Done(lrp),
            Ok(
                Reply::Done
                | Reply::Domain(_)
                | Reply::Desired { .. }
                | Reply::Task { .. }
                | Reply::Job { .. }
                | Reply::Run { .. },
            ) => ReportAnswer::Done(None),
            Err(Declined::Refused(refusal)) => ReportAnswer::Refused(refusal),
            // What comes after it may not be decided before it.
            Err(Declined::Busy | Declined::ReadOnly(_) | Declined::Unsettled(_)) => break,
            Err(why @ Declined::NotLeading) => return Err(why),
        };
        answers.push((at, answer));
    }
    Ok(answers)
}
