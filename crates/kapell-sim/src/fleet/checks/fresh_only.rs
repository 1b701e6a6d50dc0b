use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use kapell_core::board::{Domain, Freshness, InstanceGuid, Record};
use kapell_core::seams::Timestamp;

use super::grounds::Grounds;
use super::{Check, clocks_are_true};
use crate::fleet::fact::Fact;
use crate::fleet::view::View;

/// Between the look at a domain and the stop that follows from it.
const LAG: Duration = Duration::from_secs(10);

/// Convergence stops what nobody desires only in fresh domains.
///
/// It is broken by the first stop of a container that nobody has given up and that does not run
/// elsewhere, if its domain has not been fresh for [`LAG`] by the clock of the host that sends it. What
/// somebody has scaled down or deleted is stopped whatever the domain; what was stopped once may be told so again.
/// Where clocks jump, only domains that were never fresh count as stale.
#[derive(Debug, Default)]
pub(super) struct FreshOnly {
    grounds: Grounds,
    /// The last two that were committed: a stop may rest on the one before.
    domains: BTreeMap<Domain, Vec<Freshness>>,
    stopped: BTreeSet<InstanceGuid>,
}

impl FreshOnly {
    fn is_fresh(&self, domain: &Domain, wall: Timestamp, view: &View<'_>) -> bool {
        let known = self.domains.get(domain).map_or(&[][..], Vec::as_slice);
        let was_fresh = |it: &Freshness| {
            it.expires_at.is_none_or(|until| wall < until.after(LAG)) || !clocks_are_true(view.plan)
        };
        known.iter().rev().take(2).any(was_fresh)
    }
}

impl Check for FreshOnly {
    fn name(&self) -> &'static str {
        "fresh only"
    }

    fn saw(&mut self, fact: &Fact, view: &View<'_>) -> Result<(), String> {
        self.grounds.saw(fact, view.records);
        if let Fact::Committed { changes, .. } = fact {
            for change in changes {
                if let Some(Record::Domain(fresh)) = &change.after {
                    self.domains.entry(fresh.domain.clone()).or_default().push(fresh.clone());
                }
            }
        }
        let Fact::StopSent { host, cell, key, container, wall } = fact else { return Ok(()) };
        let ground = self.grounds.of(container);
        if let Some(domain) = ground.undesired.filter(|_| !ground.given_up && !ground.elsewhere)
            && !self.stopped.contains(container)
            && !self.is_fresh(&domain, *wall, view)
        {
            let what = format!("{key} ({container}) on {cell}");
            return Err(format!("host {host} stops {what} while {domain} is stale"));
        }
        self.stopped.insert(container.clone());
        Ok(())
    }

    fn at_end(&mut self, _view: &View<'_>) -> Result<(), String> {
        Ok(())
    }
}
