mod facts;
mod words;

use std::collections::BTreeSet;

use super::{Due, Explained, Input, input, name_of, span};
use crate::board::actual::{ActualLrp, ActualState, LrpKey};
use crate::board::cell::CellPresence;
use crate::board::crash;
use crate::board::desired::DesiredLrp;
use crate::board::domain::Freshness;
use crate::board::ids::CellId;
use crate::board::placement::IN_FLIGHT;
use crate::board::settings::Settings;
use crate::seams::Timestamp;

pub(super) use facts::cell_fact;

/// All that is known of one index of a process.
#[derive(Debug, Clone, Copy)]
pub struct InstanceFacts<'a> {
    pub key: &'a LrpKey,
    pub desired: Option<&'a DesiredLrp>,
    /// What is desired cannot be read: its record was set aside.
    pub forgotten: bool,
    pub instance: Option<&'a ActualLrp>,
    pub evacuating: Option<&'a ActualLrp>,
    /// Of the domain of the instance or, where there is none, of the DesiredLRP.
    pub domain: Option<&'a Freshness>,
    /// Cells that are there or that this leader still waits for.
    pub present: &'a BTreeSet<CellId>,
    /// What the cells that are there say of themselves.
    pub cells: &'a [CellPresence],
    pub due: Due,
}

/// Which of all the things that can be said of an instance holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Case {
    /// Neither desired nor there.
    Nothing,
    /// Nobody knows whether it is desired.
    Forgotten,
    Missing,
    OnLostCell,
    /// Only its evacuating twin is left, and it is not desired.
    Leaving,
    /// Somebody scaled down or deleted.
    GivenUp,
    Undesired(Fresh),
    Waits,
    Unplaced,
    /// There is room, and too much is starting already.
    InFlight,
    Starts,
    Runs,
    Crashed {
        restart: Option<Timestamp>,
    },
}

/// Whether a domain is fresh when convergence looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fresh {
    Yes,
    /// Now, and no longer then.
    Ends,
    No,
}

/// Explains one index of a process.
pub fn instance(about: &InstanceFacts<'_>, now: Timestamp, settings: &Settings) -> Explained {
    let case = about.case(now, settings);
    Explained {
        summary: format!("{} {}", about.key, about.summary(case, now)),
        rule: about.rule(case, settings),
        facts: about.facts(now, settings),
        inputs: about.inputs(case, now, settings),
        remedies: about.remedies(case),
        next_try_at: about.next_try_at(case, settings),
    }
}

impl InstanceFacts<'_> {
    fn wanted(&self) -> bool {
        self.desired.is_some_and(|desired| match self.instance.or(self.evacuating) {
            Some(lrp) => desired.wants_this(lrp),
            None => desired.wants(self.key.index),
        })
    }

    fn case(&self, now: Timestamp, settings: &Settings) -> Case {
        let wanted = self.wanted();
        if self.instance.or(self.evacuating).is_some_and(|lrp| self.is_lost(lrp)) {
            return Case::OnLostCell;
        }
        if self.forgotten && self.desired.is_none() {
            return Case::Forgotten;
        }
        if !wanted {
            return self.unwanted(now);
        }
        let Some(lrp) = self.instance else { return Case::Missing };
        match lrp.state {
            ActualState::Unclaimed => match &lrp.placement_error {
                Some(error) if error.starts_with(IN_FLIGHT) => Case::InFlight,
                Some(_) => Case::Unplaced,
                None => Case::Waits,
            },
            ActualState::Claimed => Case::Starts,
            ActualState::Running => Case::Runs,
            ActualState::Crashed => Case::Crashed { restart: crash::restart_at(lrp, settings) },
        }
    }

    fn unwanted(&self, now: Timestamp) -> Case {
        if self.instance.or(self.evacuating).is_none() {
            return Case::Nothing;
        }
        if self.desired.is_some_and(|desired| desired.retiring) {
            return Case::GivenUp;
        }
        if self.instance.is_none() {
            return Case::Leaving;
        }
        Case::Undesired(match self.domain {
            Some(fresh) if fresh.is_fresh(now.max(self.due.pass)) => Fresh::Yes,
            Some(fresh) if fresh.is_fresh(now) => Fresh::Ends,
            Some(_) | None => Fresh::No,
        })
    }

    fn is_lost(&self, lrp: &ActualLrp) -> bool {
        lrp.cell_id.as_ref().is_some_and(|cell| !self.present.contains(cell))
    }

    /// The cell of the instance or, where there is none, of its evacuating twin.
    fn cell(&self) -> &str {
        name_of(self.instance.or(self.evacuating).and_then(|lrp| lrp.cell_id.as_ref()))
    }

    fn crashes(&self) -> u32 {
        self.instance.map_or(0, |lrp| lrp.crash_count)
    }

    fn inputs(&self, case: Case, now: Timestamp, settings: &Settings) -> Vec<Input> {
        let mut all = vec![
            input("desired_instances", &self.desired.map_or(0, |lrp| lrp.instances)),
            input("index", &self.key.index),
        ];
        if let Some(lrp) = self.instance {
            all.push(input("state", &lrp.state.name()));
            all.push(input("state_for", &span(now.since(lrp.since))));
            all.extend(lrp.cell_id.as_ref().map(|cell| input("cell", cell)));
        }
        match case {
            Case::Nothing | Case::Forgotten | Case::GivenUp | Case::Starts | Case::Runs => {}
            Case::Missing => all.push(input("converge_every", &span(settings.converge_every))),
            Case::OnLostCell => all.push(input("presence_ttl", &span(settings.presence_ttl))),
            Case::Leaving => {
                all.push(input("evacuation_timeout", &span(settings.evacuation)));
            }
            Case::Undesired(fresh) => {
                all.push(input("domain_is_fresh", &(fresh != Fresh::No)));
                all.push(input("fresh_when_looked_at", &(fresh == Fresh::Yes)));
            }
            Case::Waits | Case::Unplaced | Case::InFlight => {
                all.extend(self.desired.map(wants).unwrap_or_default());
                all.push(input("cells", &self.cells.len()));
                let most = settings.in_flight_starts;
                all.extend(most.map(|most| input("in_flight_starts", &most)));
                all.push(input("stale_unclaimed", &span(settings.stale_unclaimed)));
                let error = self.instance.and_then(|lrp| lrp.placement_error.as_ref());
                all.extend(error.map(|error| input("placement_error", error)));
            }
            Case::Crashed { restart } => {
                all.push(input("crash_count", &self.crashes()));
                all.push(input("restarts_at_once", &settings.immediate_restarts));
                all.push(input("most_crashes", &settings.most_crashes));
                let since = self.instance.map(|lrp| lrp.since);
                let wait = restart.zip(since).map(|(at, since)| span(at.since(since)));
                all.push(input("wait", &wait.as_deref().unwrap_or("for ever")));
                let reason = self.instance.and_then(|lrp| lrp.crash_reason.as_ref());
                all.extend(reason.map(|reason| input("crash_reason", reason)));
            }
        }
        all
    }

    fn next_try_at(&self, case: Case, settings: &Settings) -> Option<Timestamp> {
        match case {
            Case::Nothing
            | Case::Forgotten
            | Case::Starts
            | Case::Runs
            | Case::Undesired(Fresh::Ends | Fresh::No) => None,
            Case::Missing | Case::GivenUp | Case::OnLostCell | Case::Undesired(Fresh::Yes) => {
                Some(self.due.pass)
            }
            Case::Leaving => self.evacuating.and_then(|twin| twin.expires_at),
            Case::Waits | Case::Unplaced | Case::InFlight => self
                .instance
                .map(|lrp| self.due.placement(lrp.since.after(settings.stale_unclaimed))),
            Case::Crashed { restart } => restart,
        }
    }
}

/// What it asks of a cell.
fn wants(lrp: &DesiredLrp) -> Vec<Input> {
    let mut all = vec![input("memory_mb", &lrp.memory_mb), input("disk_mb", &lrp.disk_mb)];
    all.extend(lrp.rootfs.as_ref().map(|rootfs| input("rootfs", rootfs)));
    if !lrp.placement_tags.is_empty() {
        all.push(input("placement_tags", &lrp.placement_tags.join(", ")));
    }
    all
}
