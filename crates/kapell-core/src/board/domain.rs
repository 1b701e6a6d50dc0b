//! How up to date the desired state of a domain is.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::ids::Domain;
use crate::seams::Timestamp;

/// Until when whoever owns a domain vouches for all that is desired in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Freshness {
    pub domain: Domain,
    /// Without it, for ever.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// When that was said, if it is not for ever; older records do not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
}

impl Freshness {
    /// Fresh from now on, for as long as `ttl` says or for ever.
    pub fn new(domain: Domain, ttl: Option<Duration>, now: Timestamp) -> Self {
        Self { domain, expires_at: ttl.map(|ttl| now.after(ttl)), since: ttl.map(|_| now) }
    }

    pub fn is_fresh(&self, now: Timestamp) -> bool {
        self.expires_at.is_none_or(|until| now < until)
    }
}
