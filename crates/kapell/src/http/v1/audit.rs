//! `/v1/audit`

use hyper::StatusCode;
use kapell_api::v1::AuditPage;
use kapell_core::seams::Timestamp;

use super::super::answer::{self, Answer, Problem};
use super::super::query::{Query, bad};
use super::super::site::Tools;

const USUAL: usize = 1_000;
const MOST: usize = 10_000;

pub(super) async fn answer(query: &Query, tools: &Tools) -> Result<Answer, Box<Problem>> {
    let Some(journal) = &tools.audit else {
        let text = "this host does not note who changes what: its settings say `audit: off`";
        return Err(Problem::new(StatusCode::CONFLICT, "audit_off", text));
    };
    let since = Timestamp(query.number("since")?.unwrap_or(0));
    let limit = query.number("limit")?.unwrap_or(USUAL);
    if !(1..=MOST).contains(&limit) {
        return Err(bad(&format!("`limit` is a number from 1 to {MOST}"), "limit"));
    }
    let page = journal.read(query.get("after"), since, limit).await.map_err(|why| {
        Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "audit_unreadable", why.to_string())
    })?;
    let page = AuditPage { records: page.records, next: page.next, is_last: page.is_last };
    Ok(answer::value(StatusCode::OK, &page))
}
