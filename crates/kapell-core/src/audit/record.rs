use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::access::{Kind, Role, Who};
use crate::seams::Timestamp;

/// What somebody did who was not let in.
pub const ENTER: &str = "enter";

/// Longer names are cut: whoever is refused for one does not fill the files with it.
const LONGEST: usize = 256;

/// One line of an audit file, and an item of `GET /v1/audit`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditRecord {
    /// The same in the line that says what is about to be done and in the one that says what came of it.
    pub id: String,
    pub at: Timestamp,
    /// The name of a [`Kind`], or `enter`.
    pub kind: String,
    /// The operation, by its name in the API's description.
    pub op: String,
    /// Empty if nobody was let in.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub role: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// The id of the signed token that was borne.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// Of the certificate that was shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// The names of what it is about, such as `process_guid`, `domain` and `cell_id`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub about: BTreeMap<String, String>,
    /// The address of the client.
    pub from: String,
    /// The host that passed the request on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub via: Option<String>,
    /// What the client calls the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// How often, of what is only counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// None: it is not known whether it was done, because the host ended before it answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
}

/// What was answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    pub status: u16,
    /// Why it was refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
}

impl AuditRecord {
    /// Somebody wants to do something. What it is about comes by [`Self::about`].
    pub fn wish(id: String, at: Timestamp, kind: Kind, op: &str, who: &Who) -> Self {
        Self {
            id,
            at,
            kind: kind.name().to_owned(),
            op: op.to_owned(),
            role: who.role.kind().name().to_owned(),
            name: cut(&who.name),
            token: who.token.as_ref().map(ToString::to_string),
            subject: None,
            about: BTreeMap::new(),
            from: String::new(),
            via: None,
            request_id: None,
            count: None,
            outcome: None,
        }
    }

    /// Somebody was not let in, so often.
    pub fn knock(id: String, at: Timestamp, from: String, count: u64, outcome: Outcome) -> Self {
        let (kind, op) = (ENTER.to_owned(), ENTER.to_owned());
        Self {
            id,
            at,
            kind,
            op,
            role: String::new(),
            name: String::new(),
            token: None,
            subject: None,
            about: BTreeMap::new(),
            from,
            via: None,
            request_id: None,
            count: Some(count),
            outcome: Some(outcome),
        }
    }

    /// Adds the name of something that it is about.
    pub fn about(&mut self, what: &str, name: &str) {
        if !name.is_empty() {
            self.about.insert(what.to_owned(), cut(name));
        }
    }

    /// The subject of the certificate that a role is proved by.
    pub fn shown_by(&mut self, role: &Role) {
        self.subject = match role {
            Role::Cell(id) => Some(format!("kapell://cell/{}", cut(id.as_str()))),
            Role::Host => Some("kapell://host".to_owned()),
            Role::Operator | Role::Reader | Role::Joiner(_) => None,
        };
    }

    /// What the client calls the request, if that is text.
    pub fn called(&mut self, request_id: Option<&str>) {
        self.request_id = request_id.filter(|id| !id.is_empty()).map(cut);
    }
}

fn cut(text: &str) -> String {
    text.chars().take(LONGEST).collect()
}
