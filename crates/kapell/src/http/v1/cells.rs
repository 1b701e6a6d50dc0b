//! What cells say, and what they are told through the leader.

use hyper::StatusCode;
use kapell_api::v1::{RecordsWanted, Reports};
use kapell_core::board::{CellId, CellPresence};
use kapell_node::board::decide_reports;
use kapell_node::link::LinkError;

use super::super::answer::{self, Answer, Problem};
use super::super::place::Place;
use super::call::Call;
use super::refusal::{declined, invalid, missing, unlinked};

type Answered = Result<Answer, Box<Problem>>;

pub(super) async fn evacuate(call: Call) -> Answered {
    let cell_id: CellId = call.id("cell_id");
    if call.desk.cell(&cell_id).is_none() {
        return Err(missing("cell", cell_id.as_str()));
    }
    call.note.intend().await?;
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

pub(super) async fn reports(call: Call) -> Answered {
    let (reports, asked) = call.json::<Reports>().await?;
    let ask = |request| asked.desk.ask(request);
    let answers = decide_reports(ask, &asked.id("cell_id"), reports).await.map_err(declined)?;
    Ok(answer::value(StatusCode::OK, &answers))
}
