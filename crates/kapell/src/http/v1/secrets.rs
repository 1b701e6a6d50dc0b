//! `/v1/secrets`, and what cells get of them.

use hyper::StatusCode;
use kapell_api::v1::{SecretGiven, SecretValue, SecretView};
use kapell_core::access::{About, Kind, allows};
use kapell_core::board::secrets::{Holder, due};
use kapell_core::board::{CellId, Domain, Refusal, SecretName};
use kapell_core::causes::chain;
use kapell_node::access::{Ledger, ListedSecret, Secrets, SecretsError};
use kapell_node::link::{NOT_PLACED, SECRET_NOT_SET, SECRET_SEALED};

use super::super::access::may;
use super::super::answer::{self, Answer, Problem};
use super::super::desk::look;
use super::super::site::Tools;
use super::call::Call;
use super::refusal::{missing, refused};
use super::tokens::none;

type Answered = Result<Answer, Box<Problem>>;

pub(super) async fn set(call: Call, tools: &Tools) -> Answered {
    let (SecretValue { value }, asked) = call.json::<SecretValue>().await?;
    let secrets = secrets(asked.ledger.as_deref(), tools)?;
    asked.note.intend().await?;
    let (domain, name): (Domain, SecretName) = (asked.id("domain"), asked.id("secret"));
    let set = secrets.set(&domain, &name, &value).await.map_err(failed)?;
    Ok(answer::value(StatusCode::OK, &view(set)))
}

pub(super) async fn list(call: &Call, tools: &Tools) -> Answered {
    let domain: Option<Domain> = call.filter("domain");
    if let Some(domain) = &domain {
        may(&call.who, Kind::ReadSecrets, About::Domain(domain))?;
    }
    let sees = |it: &Domain| allows(&call.who, Kind::ReadSecrets, About::Domain(it)).is_ok();
    let is_wanted = |it: &Domain| domain.as_ref().is_none_or(|domain| domain == it) && sees(it);
    let all = secrets(call.ledger.as_deref(), tools)?.list().await;
    let all = all.map_err(SecretsError::from).map_err(failed)?.into_iter();
    let all: Vec<SecretView> = all.filter(|it| is_wanted(&it.domain)).map(view).collect();
    Ok(answer::value(StatusCode::OK, &all))
}

pub(super) async fn remove(call: &Call, tools: &Tools) -> Answered {
    let secrets = secrets(call.ledger.as_deref(), tools)?;
    call.note.intend().await?;
    secrets.remove(&call.id("domain"), &call.id("secret")).await.map_err(failed)?;
    Ok(answer::nothing())
}

pub(super) async fn take(call: Call, tools: &Tools) -> Answered {
    let (holder, asked) = call.json::<Holder>().await?;
    let cell_id: CellId = asked.id("cell_id");
    let found = look(&*asked.desk, holder.partition(), |records| due(records, &cell_id, &holder));
    let due = match found {
        Some(Ok(due)) => due,
        Some(Err(why)) => {
            return Err(Problem::new(StatusCode::CONFLICT, NOT_PLACED, why.to_string()));
        }
        None => return Err(none()),
    };
    let opened = secrets(asked.ledger.as_deref(), tools)?.open(&due).await.map_err(failed)?;
    let given = opened.into_iter().map(|(name, value)| SecretGiven { name, value });
    Ok(answer::value(StatusCode::OK, &given.collect::<Vec<_>>()))
}

fn secrets(ledger: Option<&Ledger>, tools: &Tools) -> Result<Secrets, Box<Problem>> {
    let (ledger, key) = ledger.zip(tools.key.as_ref()).ok_or_else(none)?;
    ledger.secrets(key).map_err(|_| none())
}

fn failed(error: SecretsError) -> Box<Problem> {
    let text = chain(&error);
    match error {
        SecretsError::Faults(problems) => refused(&Refusal::Invalid { problems }),
        SecretsError::NoSuchSecret { name, .. } => missing("secret", name.as_str()),
        SecretsError::NotSet { .. } => Problem::new(StatusCode::CONFLICT, SECRET_NOT_SET, text),
        SecretsError::Sealed { .. } => Problem::new(StatusCode::CONFLICT, SECRET_SEALED, text),
        SecretsError::Contended | SecretsError::Unsealable => {
            Problem::new(StatusCode::SERVICE_UNAVAILABLE, "busy", text).passing()
        }
        SecretsError::Store(_) => {
            Problem::new(StatusCode::SERVICE_UNAVAILABLE, "store_unavailable", text).passing()
        }
    }
}

fn view(listed: ListedSecret) -> SecretView {
    let ListedSecret { domain, name, version, changed_at } = listed;
    SecretView { domain, name, version, changed_at }
}
