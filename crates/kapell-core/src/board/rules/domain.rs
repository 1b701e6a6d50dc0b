//! How long a domain is fresh.

use std::time::Duration;

use super::Step;
use crate::board::domain::Freshness;
use crate::board::ids::Domain;
use crate::board::record::Record;
use crate::board::request::{Refusal, Reply};
use crate::board::validate;

impl Step<'_, '_> {
    pub(super) fn set_domain(
        &mut self,
        domain: &Domain,
        ttl: Option<Duration>,
    ) -> Result<Reply, Refusal> {
        let problems = validate::domain(domain);
        if !problems.is_empty() {
            return Err(Refusal::Invalid { problems });
        }
        let fresh = Freshness::new(domain.clone(), ttl, self.now);
        if self.draft.domain(domain).as_ref() != Some(&fresh) {
            self.draft.put(Record::Domain(fresh.clone()));
        }
        Ok(Reply::Domain(fresh))
    }
}
