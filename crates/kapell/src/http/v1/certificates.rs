//! How cells get their certificates.

use hyper::StatusCode;
use kapell_api::v1::{CellCertificate, CertificateWanted};
use kapell_core::access::{How, Invalid, Role};
use kapell_core::board::CellId;
use kapell_core::causes::chain;
use kapell_core::seams::Clock as _;
use kapell_node::access::AuthorityError;
use kapell_node::system::SystemClock;

use super::super::Vouching;
use super::super::answer::{self, Answer, Problem};
use super::super::door;
use super::super::site::Tools;
use super::call::{Asked, Call};
use super::refusal::invalid;
use super::tokens::{failed, none};

type Answered = Result<Answer, Box<Problem>>;

pub(super) async fn join(call: Call, tools: &Tools) -> Answered {
    let (wanted, asked) = call.json::<CertificateWanted>().await?;
    let cell_id = cell(&asked)?;
    is_free(&asked, &cell_id)?;
    let vouching = vouching(tools)?;
    // Before the token is used up: a request that cannot be met leaves it as it was.
    let made = certificate(vouching, &cell_id, &wanted)?;
    let ledger = asked.ledger.as_ref().ok_or_else(none)?;
    let token = asked.who.token.as_ref().ok_or_else(|| door::invalid(&Invalid::Forged))?;
    asked.note.intend().await?;
    if !ledger.end(token, How::Used(cell_id.clone())).await.map_err(failed)? {
        return Err(door::invalid(&Invalid::Used));
    }
    tracing::info!(cell = %cell_id, %token, "a cell joined");
    Ok(answer::value(StatusCode::OK, &made))
}

pub(super) async fn renew(call: Call, tools: &Tools) -> Answered {
    let (wanted, asked) = call.json::<CertificateWanted>().await?;
    let cell_id = cell(&asked)?;
    let vouching = vouching(tools)?;
    asked.note.intend().await?;
    let made = certificate(vouching, &cell_id, &wanted)?;
    tracing::info!(cell = %cell_id, "a cell has its next certificate");
    Ok(answer::value(StatusCode::OK, &made))
}

fn cell(asked: &Asked) -> Result<CellId, Box<Problem>> {
    let cell_id: CellId = asked.id("cell_id");
    if cell_id.is_valid() {
        return Ok(cell_id);
    }
    Err(invalid(format!("`{cell_id}` is no id: letters, digits, `-` and `_`")))
}

/// A token that names no cell makes a new one: it is not for becoming one that is there.
fn is_free(asked: &Asked, cell_id: &CellId) -> Result<(), Box<Problem>> {
    match &asked.who.role {
        Role::Joiner(None) => {}
        Role::Joiner(Some(_)) | Role::Operator | Role::Reader | Role::Cell(_) | Role::Host => {
            return Ok(());
        }
    }
    let used = |how: &How| matches!(how, How::Used(id) if id == cell_id);
    let joined = asked.ledger.as_ref().is_some_and(|ledger| {
        ledger.list().iter().any(|it| it.ended.as_ref().is_some_and(|it| used(&it.how)))
    });
    if !joined && asked.desk.cell(cell_id).is_none() {
        return Ok(());
    }
    let text = format!(
        "there is a cell `{cell_id}` already: give another --id, or make a token for it by `kapell token create \
         --role cell-join --cell {cell_id}`"
    );
    Err(Problem::new(StatusCode::CONFLICT, "exists", text))
}

/// Who vouches for cells here.
pub(super) fn vouching(tools: &Tools) -> Result<&Vouching, Box<Problem>> {
    tools.vouching.as_ref().ok_or_else(|| {
        let text = "this host gives no certificates: it listens on this machine only, or has some of its own by \
                    --tls-cert; start it with --advertise https://HOST:PORT and without --tls-cert";
        Problem::new(StatusCode::CONFLICT, "no_authority", text)
    })
}

fn certificate(
    vouching: &Vouching,
    cell_id: &CellId,
    wanted: &CertificateWanted,
) -> Result<CellCertificate, Box<Problem>> {
    let Vouching { authority, life } = vouching;
    match authority.cell(cell_id, &wanted.csr, SystemClock.wall(), *life) {
        Ok(certificate) => {
            let renew_in_ms = u64::try_from((*life * 2 / 3).as_millis()).unwrap_or(u64::MAX);
            Ok(CellCertificate { certificate, ca: authority.pem(), renew_in_ms })
        }
        Err(error @ AuthorityError::Request(_)) => Err(invalid(format!("csr: {}", chain(&error)))),
        Err(error @ (AuthorityError::Key | AuthorityError::Certificate(_))) => {
            let text = chain(&error);
            Err(Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "no_certificate", text))
        }
    }
}
