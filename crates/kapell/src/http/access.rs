//! What somebody may do once they are let in, as an answer.

use hyper::StatusCode;
use kapell_core::access::{About, Kind, Refusal, Who, allows};
use kapell_node::access::Ledger;
use serde_json::json;

use super::answer::Problem;
use super::door::{By, Entry, invalid};

/// Refuses what the rules do not allow.
pub(super) fn may(who: &Who, kind: Kind, about: About<'_>) -> Result<(), Box<Problem>> {
    allows(who, kind, about).map_err(|refusal| forbidden(who, &refusal))
}

fn forbidden(who: &Who, refusal: &Refusal) -> Box<Problem> {
    let details = json!({ "role": who.role.kind().name(), "name": who.name });
    Problem::new(StatusCode::FORBIDDEN, "forbidden", refusal.to_string()).details(details)
}

/// Refuses a token that was revoked, used, or never made. Only the leader knows.
pub(super) fn stands(entry: &Entry, ledger: Option<&Ledger>) -> Result<(), Box<Problem>> {
    match &entry.by {
        By::Token | By::Session(_) | By::Certificate => Ok(()),
        By::Signed(claims) => match ledger {
            Some(ledger) => ledger.judge(claims).map_err(|why| invalid(&why)),
            None => {
                let text = "this host leads but has not read which tokens count yet";
                Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, "starting", text).passing())
            }
        },
    }
}
