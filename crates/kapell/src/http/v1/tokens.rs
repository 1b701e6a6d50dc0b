//! `/v1/tokens`

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use hyper::StatusCode;
use hyper::header::{HeaderValue, LOCATION};
use kapell_api::v1::{TokenMade, TokenView, TokenWanted};
use kapell_core::access::{How, Purpose, TokenId};
use kapell_node::access::{Ledger, LedgerError, Listed, Wanted};

use super::super::answer::{self, Answer, Problem};
use super::super::site::Tools;
use super::call::Call;
use super::certificates::vouching;
use super::refusal::{missing, refused};
use kapell_core::board::{CellId, Domain, Refusal};
use kapell_core::causes::chain;

type Answered = Result<Answer, Box<Problem>>;

pub(super) async fn create(call: Call, tools: &Tools) -> Answered {
    let (wanted, asked) = call.json::<TokenWanted>().await?;
    let (ledger, key) = asked.ledger.as_ref().zip(tools.key.as_ref()).ok_or_else(none)?;
    let TokenWanted { role, domains, name, ttl_ms, cell_id } = wanted;
    let ttl = Duration::from_millis(ttl_ms);
    let pin = match role {
        Purpose::Operator | Purpose::Reader => String::new(),
        // Whoever joins knows the hosts by it.
        Purpose::CellJoin => {
            let sum = vouching(tools)?.authority.sum();
            sum.iter().fold(".".to_owned(), |pin, byte| pin + &format!("{byte:02x}"))
        }
    };
    asked.note.about("token_role", role.name());
    asked.note.about("token_name", &name);
    asked.note.about("cell_id", cell_id.as_ref().map_or("", CellId::as_str));
    asked.note.about("domains", &domains.as_ref().map(listed).unwrap_or_default());
    asked.note.intend().await?;
    let issued = ledger.issue(Wanted { purpose: role, domains, name, ttl, cell_id }).await;
    let issued = issued.map_err(failed)?;
    asked.note.about("token_id", &issued.claims.id.to_string());
    let token = key.sign(&issued.claims) + &pin;
    let place = format!("/v1/tokens/{}", issued.claims.id);
    let made = TokenMade { token, about: view(Listed { issued, ended: None }) };
    let mut answer = answer::value(StatusCode::CREATED, &made);
    if let Ok(place) = HeaderValue::try_from(place) {
        answer.headers_mut().insert(LOCATION, place);
    }
    Ok(answer)
}

pub(super) fn list(call: &Call) -> Answered {
    let all: Vec<TokenView> = ledger(call)?.list().into_iter().map(view).collect();
    Ok(answer::value(StatusCode::OK, &all))
}

pub(super) async fn revoke(call: &Call) -> Answered {
    let text = call.params.get("token_id");
    let id = TokenId::parse(text).ok_or_else(|| missing("token", text))?;
    let ledger = ledger(call)?;
    call.note.intend().await?;
    ledger.end(&id, How::Revoked).await.map_err(failed)?;
    Ok(answer::nothing())
}

fn listed(domains: &BTreeSet<Domain>) -> String {
    domains.iter().map(Domain::as_str).collect::<Vec<_>>().join(",")
}

fn ledger(call: &Call) -> Result<&Arc<Ledger>, Box<Problem>> {
    call.ledger.as_ref().ok_or_else(none)
}

pub(super) fn none() -> Box<Problem> {
    let text = "this host leads but has not read which tokens count yet";
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, "starting", text).passing()
}

pub(super) fn failed(error: LedgerError) -> Box<Problem> {
    match error {
        LedgerError::Faults(problems) => refused(&Refusal::Invalid { problems }),
        LedgerError::NoSuchToken(id) => missing("token", id.as_str()),
        LedgerError::Store(_) => {
            let text = chain(&error);
            Problem::new(StatusCode::SERVICE_UNAVAILABLE, "store_unavailable", text).passing()
        }
    }
}

fn view(listed: Listed) -> TokenView {
    let Listed { issued, ended } = listed;
    let (state, used_by) = match ended.as_ref().map(|it| &it.how) {
        None => ("valid", None),
        Some(How::Revoked) => ("revoked", None),
        Some(How::Used(cell)) => ("used", Some(cell.clone())),
    };
    TokenView {
        id: issued.claims.id,
        role: issued.claims.purpose,
        domains: issued.claims.domains,
        name: issued.claims.name,
        cell_id: issued.claims.cell_id,
        created_at: issued.created_at,
        expires_at: issued.claims.expires_at,
        state: state.to_owned(),
        ended_at: ended.map(|it| it.at),
        used_by,
    }
}
