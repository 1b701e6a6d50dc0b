//! How up to date the desired state of a domain is.

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
}

impl Freshness {
    pub fn is_fresh(&self, now: Timestamp) -> bool {
        self.expires_at.is_none_or(|until| now < until)
    }
}
