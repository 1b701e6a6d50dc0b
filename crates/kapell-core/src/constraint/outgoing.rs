//! Messages that outlive the host which is to send them.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use super::fields::Header;
use super::rule::{Place, Target};
use crate::board::{Domain, JobId, SecretName};
use crate::job::ActionId;
use crate::run::RunId;
use crate::seams::Timestamp;

/// So many messages of a job may wait at once.
pub const MOST_OF_A_JOB: usize = 512;
/// So large a message may be as it is kept, in bytes.
pub const LARGEST: usize = 128 << 10;

/// A message that somebody counts on: kept with its job until it was taken or given up, whoever leads.
///
/// Secrets are in it by name only.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outgoing {
    pub job_id: JobId,
    /// The same for the same message, however often it is asked for.
    pub id: ActionId,
    pub run_id: RunId,
    /// Whose secrets it may use.
    pub domain: Domain,
    /// For people.
    pub what: String,
    pub place: Place,
    pub method: Method,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub headers: Vec<(String, Header)>,
    /// The secret that it is signed with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<SecretName>,
    pub timeout_ms: u64,
    pub max_attempts: u32,
    /// Filled in.
    pub body: Json,
    /// Keys of the body whose value is a secret.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub secret_fields: Vec<(String, SecretName)>,
    pub asked_at: Timestamp,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Method {
    Get,
    Head,
    Post,
    Put,
}

impl Method {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Head => "HEAD",
            Self::Post => "POST",
            Self::Put => "PUT",
        }
    }
}

impl Outgoing {
    /// Whom to call, and how.
    pub fn target(&self) -> Target {
        Target {
            place: self.place.clone(),
            method: self.method,
            headers: self.headers.clone(),
            body: None,
            secret: self.secret.clone(),
            timeout: Duration::from_millis(self.timeout_ms),
            max_attempts: self.max_attempts,
        }
    }

    /// What is wrong with it.
    pub(crate) fn fault(&self) -> Option<String> {
        let size = serde_json::to_vec(self).map_or(usize::MAX, |bytes| bytes.len());
        (size > LARGEST)
            .then(|| format!("the message has {size} bytes, and {LARGEST} are the most: say less"))
    }
}
