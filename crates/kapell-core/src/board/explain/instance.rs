use std::collections::BTreeSet;

use super::{Explained, Input, SETTLED, clock, counted, input, name_of, ordinal, span};
use crate::board::actual::{ActualLrp, ActualState, LrpKey};
use crate::board::cell::CellPresence;
use crate::board::crash;
use crate::board::desired::DesiredLrp;
use crate::board::domain::Freshness;
use crate::board::duty::Duty;
use crate::board::ids::CellId;
use crate::board::placement::{self, Want};
use crate::board::settings::Settings;
use crate::seams::Timestamp;

/// All that is known of one index of a process.
#[derive(Debug, Clone, Copy)]
pub struct InstanceFacts<'a> {
    pub key: &'a LrpKey,
    pub desired: Option<&'a DesiredLrp>,
    pub instance: Option<&'a ActualLrp>,
    pub evacuating: Option<&'a ActualLrp>,
    /// Of the domain of the instance or, where there is none, of the DesiredLRP.
    pub domain: Option<&'a Freshness>,
    /// Cells that are there or that this leader still waits for.
    pub present: &'a BTreeSet<CellId>,
    /// What the cells that are there say of themselves.
    pub cells: &'a [CellPresence],
}

/// Which of all the things that can be said of an instance holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Case {
    /// Neither desired nor there.
    Nothing,
    Missing,
    OnLostCell,
    /// Somebody scaled down or deleted.
    GivenUp,
    Undesired {
        fresh: bool,
    },
    Waits,
    Unplaced,
    Starts,
    Runs,
    Crashed {
        restart: Option<Timestamp>,
    },
}

/// Explains one index of a process.
pub fn instance(about: &InstanceFacts<'_>, now: Timestamp, settings: &Settings) -> Explained {
    let case = about.case(now, settings);
    Explained {
        summary: format!("{} {}", about.key, about.summary(case, now)),
        rule: about.rule(case),
        facts: about.facts(now, settings),
        inputs: about.inputs(case, now, settings),
        remedies: about.remedies(case),
        next_try_at: about.next_try_at(case, now, settings),
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
        let Some(lrp) = self.instance else {
            return if wanted { Case::Missing } else { Case::Nothing };
        };
        if lrp.cell_id.as_ref().is_some_and(|cell| !self.present.contains(cell)) {
            return Case::OnLostCell;
        }
        if !wanted {
            return if self.desired.is_some_and(|desired| desired.retiring) {
                Case::GivenUp
            } else {
                Case::Undesired { fresh: self.domain.is_some_and(|it| it.is_fresh(now)) }
            };
        }
        match lrp.state {
            ActualState::Unclaimed if lrp.placement_error.is_some() => Case::Unplaced,
            ActualState::Unclaimed => Case::Waits,
            ActualState::Claimed => Case::Starts,
            ActualState::Running => Case::Runs,
            ActualState::Crashed => Case::Crashed { restart: crash::restart_at(lrp, settings) },
        }
    }

    fn cell(&self) -> &str {
        name_of(self.instance.and_then(|lrp| lrp.cell_id.as_ref()))
    }

    fn crashes(&self) -> u32 {
        self.instance.map_or(0, |lrp| lrp.crash_count)
    }

    fn summary(&self, case: Case, now: Timestamp) -> String {
        let cell = self.cell();
        let given_up = |how: &str| match cell {
            "-" => format!("is not desired any more: {how}"),
            cell => format!("is on cell `{cell}` and not desired any more: {how}"),
        };
        match case {
            Case::Nothing => "is neither desired nor there".to_owned(),
            Case::Missing => "is desired and not there: the next convergence creates it".to_owned(),
            Case::OnLostCell => {
                let next = if self.wanted() { "started elsewhere" } else { "forgotten" };
                format!("is on cell `{cell}`, which is gone: it is about to be {next}")
            }
            Case::GivenUp | Case::Undesired { fresh: true } => {
                given_up("it is about to be stopped")
            }
            Case::Undesired { fresh: false } => {
                given_up("convergence leaves it until its domain is fresh")
            }
            Case::Waits => "waits for a cell: it is being placed".to_owned(),
            Case::Unplaced => {
                let error = self.instance.and_then(|lrp| lrp.placement_error.as_deref());
                format!("waits for a cell: {}", error.unwrap_or_default())
            }
            Case::Starts => format!("is being started on cell `{cell}`"),
            Case::Runs => format!("runs on cell `{cell}`"),
            Case::Crashed { restart: None } => format!(
                "crashed {} and is not restarted any more: delete and desire it again",
                counted(self.crashes(), "time")
            ),
            Case::Crashed { restart: Some(at) } if at <= now => {
                "crashed and is about to be restarted".to_owned()
            }
            Case::Crashed { restart: Some(at) } => format!(
                "crashed {} and is restarted in {}",
                counted(self.crashes(), "time"),
                span(at.since(now))
            ),
        }
    }

    fn rule(&self, case: Case) -> String {
        let moving = self.evacuating.map(|twin| name_of(twin.cell_id.as_ref()));
        match case {
            Case::Nothing => "no desired LRP has this index, and nothing of it is there".to_owned(),
            Case::Missing => Duty::StartMissing.to_string(),
            Case::OnLostCell => Duty::RescueInstance.to_string(),
            Case::GivenUp => "scaling down and deleting stop instances at once".to_owned(),
            Case::Undesired { fresh: true } => Duty::StopExtra.to_string(),
            Case::Undesired { fresh: false } => {
                format!("{}, held back because its domain is not fresh", Duty::StopExtra)
            }
            Case::Waits | Case::Starts if moving.is_some() => format!(
                "evacuation: it runs on cell `{}` until another cell runs it",
                moving.unwrap_or("-")
            ),
            Case::Waits => "auction: it is placed with the next batch".to_owned(),
            Case::Unplaced => {
                "auction: what fits on no cell is carried over to the next batch".to_owned()
            }
            Case::Starts => {
                "start: the cell that won the auction claims it, then runs it".to_owned()
            }
            Case::Runs => SETTLED.to_owned(),
            Case::Crashed { .. } => format!("crash dance: {} crash", ordinal(self.crashes())),
        }
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
            Case::Nothing | Case::GivenUp | Case::Starts | Case::Runs => {}
            Case::Missing => all.push(input("converge_every", &span(settings.converge_every))),
            Case::OnLostCell => all.push(input("presence_ttl", &span(settings.presence_ttl))),
            Case::Undesired { fresh } => all.push(input("domain_is_fresh", &fresh)),
            Case::Waits | Case::Unplaced => {
                all.extend(self.desired.map(wants).unwrap_or_default());
                all.push(input("cells", &self.cells.len()));
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

    fn remedies(&self, case: Case) -> Vec<String> {
        let guid = &self.key.process_guid;
        let more = self.key.index.saturating_add(1);
        match case {
            Case::Nothing => vec![match self.desired.filter(|lrp| !lrp.removing) {
                Some(_) => format!("scale it up: kapell lrp scale {guid} {more}"),
                None => format!("desire `{guid}`: kapell apply -f FILE"),
            }],
            Case::OnLostCell => vec![format!("start cell `{}` again", self.cell())],
            Case::Undesired { fresh: true } => {
                vec![format!(
                    "desire it again: kapell apply -f FILE, or kapell lrp scale {guid} {more}"
                )]
            }
            Case::Undesired { fresh: false } => {
                let domain = self.instance.map_or("", |lrp| lrp.domain.as_str());
                vec![
                    format!("set its domain fresh, which stops it: kapell domain set {domain}"),
                    format!(
                        "desire it again: kapell apply -f FILE, or kapell lrp scale {guid} {more}"
                    ),
                ]
            }
            Case::Waits if self.cells.is_empty() => vec!["start a cell".to_owned()],
            Case::Missing | Case::Waits | Case::Starts | Case::Runs | Case::GivenUp => Vec::new(),
            Case::Unplaced => {
                let error = self.instance.and_then(|lrp| lrp.placement_error.as_deref());
                error.zip(self.desired).map_or_else(Vec::new, |(error, lrp)| {
                    placement::remedies(error, &Want::of_lrp(lrp), self.cells)
                })
            }
            Case::Crashed { restart } => {
                let log = format!("see why it ends: kapell logs {}", self.key);
                let again = format!("delete `{guid}` and desire it again, which starts it at once");
                match restart {
                    Some(at) => vec![format!("wait until {}", clock(at)), log, again],
                    None => vec![log, again],
                }
            }
        }
    }

    fn next_try_at(&self, case: Case, now: Timestamp, settings: &Settings) -> Option<Timestamp> {
        match case {
            Case::Nothing | Case::Starts | Case::Runs | Case::Undesired { fresh: false } => None,
            Case::Missing | Case::GivenUp | Case::Undesired { fresh: true } => {
                Some(now.after(settings.converge_every))
            }
            Case::OnLostCell => Some(now),
            Case::Waits | Case::Unplaced => {
                self.instance.map(|lrp| now.max(lrp.since.after(settings.stale_unclaimed)))
            }
            Case::Crashed { restart } => restart,
        }
    }

    fn facts(&self, now: Timestamp, settings: &Settings) -> Vec<String> {
        let mut facts = vec![self.desired_fact()];
        facts.extend(self.domain_fact(now));
        facts.extend(self.evacuating.map(|twin| twin_fact(twin, now)));
        let Some(lrp) = self.instance else { return facts };
        facts.push(format!("it is {} for {}", lrp.state.name(), span(now.since(lrp.since))));
        facts.extend(cell_fact(lrp.cell_id.as_ref(), self.present));
        facts.extend(crash_fact(lrp, settings));
        facts.extend(lrp.placement_error.as_ref().map(|error| format!("last placement: {error}")));
        facts
    }

    fn desired_fact(&self) -> String {
        let key = self.key;
        match self.desired {
            None => format!("there is no desired LRP `{}`", key.process_guid),
            Some(lrp) if lrp.removing => {
                format!(
                    "`{}` was deleted, and what is left of it is being stopped",
                    key.process_guid
                )
            }
            Some(lrp) if self.instance.is_some_and(|it| it.incarnation != lrp.incarnation) => {
                format!("it belongs to an earlier `{}`, which was deleted", key.process_guid)
            }
            Some(lrp) if key.index < lrp.instances => {
                let instances = counted(lrp.instances, "instance");
                format!("desired: {instances}, index {} is one of them", key.index)
            }
            Some(lrp) => {
                let instances = counted(lrp.instances, "instance");
                format!("desired: only {instances}, index {} is beyond", key.index)
            }
        }
    }

    fn domain_fact(&self, now: Timestamp) -> Option<String> {
        let domain = self
            .instance
            .map(|lrp| &lrp.domain)
            .or_else(|| self.desired.map(|desired| &desired.domain))?;
        let state = match self.domain {
            None => "was never set: it is not fresh".to_owned(),
            Some(fresh) => match fresh.expires_at {
                None => "is fresh for ever".to_owned(),
                Some(at) if now < at => format!("is fresh for another {}", span(at.since(now))),
                Some(at) => format!("has not been fresh for {}", span(now.since(at))),
            },
        };
        Some(format!("domain `{domain}` {state}"))
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

fn twin_fact(twin: &ActualLrp, now: Timestamp) -> String {
    let cell = name_of(twin.cell_id.as_ref());
    let end = twin
        .expires_at
        .map_or_else(String::new, |at| format!(", for {} at most", span(at.since(now))));
    format!("cell `{cell}` is being evacuated and still runs it{end}")
}

pub(super) fn cell_fact(cell: Option<&CellId>, present: &BTreeSet<CellId>) -> Option<String> {
    cell.map(|cell| {
        let state = if present.contains(cell) { "present" } else { "gone" };
        format!("cell `{cell}` is {state}")
    })
}

fn crash_fact(lrp: &ActualLrp, settings: &Settings) -> Option<String> {
    (lrp.crash_count > 0).then(|| {
        let reason = lrp.crash_reason.as_deref().unwrap_or("unknown");
        let end = if lrp.crash_count > settings.most_crashes { ", too often to go on" } else { "" };
        format!("it crashed {}{end}, last: {reason}", counted(lrp.crash_count, "time"))
    })
}
