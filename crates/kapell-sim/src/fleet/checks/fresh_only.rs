use std::collections::BTreeMap;

use kapell_core::board::{Domain, Freshness, Record};
use kapell_core::seams::Timestamp;

use super::grounds::Grounds;
use super::{Check, clocks_are_true};
use crate::fleet::fact::Fact;
use crate::fleet::view::View;

/// Convergence stops what nobody desires only in fresh domains.
///
/// It is broken by a stop of a container that nobody has given up and that does not run elsewhere, the
/// first or one that is said again, if its domain is not fresh by the clock of the host that sends it: a host
/// looks at that clock when it sends. What somebody has scaled down or deleted is stopped whatever the domain.
/// Where clocks jump, only domains that were never fresh count as stale.
#[derive(Debug, Default)]
pub(super) struct FreshOnly {
    grounds: Grounds,
    /// The last two that were committed: a stop may rest on the one before.
    domains: BTreeMap<Domain, Vec<Freshness>>,
}

impl FreshOnly {
    fn is_fresh(&self, domain: &Domain, wall: Timestamp, view: &View<'_>) -> bool {
        let known = self.domains.get(domain).map_or(&[][..], Vec::as_slice);
        let was_fresh = |it: &Freshness| it.is_fresh(wall) || !clocks_are_true(view.plan);
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
            && !self.is_fresh(&domain, *wall, view)
        {
            let what = format!("{key} ({container}) on {cell}");
            return Err(format!("host {host} stops {what} while {domain} is stale"));
        }
        Ok(())
    }

    fn at_end(&mut self, _view: &View<'_>) -> Result<(), String> {
        Ok(())
    }
}
