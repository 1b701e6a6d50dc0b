//! What is said of an instance.

use super::super::{SETTLED, clock, counted, in_flight_rule, name_of, ordinal, span};
use super::{Case, Fresh, InstanceFacts};
use crate::board::duty::Duty;
use crate::board::placement::{self, Want};
use crate::board::settings::Settings;
use crate::seams::Timestamp;

/// Why nothing is stopped of what cannot be read.
const UNREADABLE: &str = "what is desired of it cannot be read, and nothing of it is stopped";

impl InstanceFacts<'_> {
    pub(super) fn summary(&self, case: Case, now: Timestamp) -> String {
        let cell = self.cell();
        match case {
            Case::Nothing => "is neither desired nor there".to_owned(),
            Case::Forgotten if self.instance.or(self.evacuating).is_none() => {
                format!("is not there: {UNREADABLE}")
            }
            Case::Forgotten if cell == "-" => format!("is on no cell: {UNREADABLE}"),
            Case::Forgotten => format!("is on cell `{cell}`: {UNREADABLE}"),
            Case::Missing => match self.moving() {
                Some(moving) => format!("{moving}; the next convergence has it started elsewhere"),
                None => "is desired and not there: the next convergence creates it".to_owned(),
            },
            Case::OnLostCell => {
                let next = if self.wanted() { "started elsewhere" } else { "forgotten" };
                format!("is on cell `{cell}`, which is gone: it is about to be {next}")
            }
            Case::Leaving => {
                format!("{}, and is not desired any more", self.moving().unwrap_or_default())
            }
            Case::GivenUp | Case::Undesired(Fresh::Yes) => {
                self.not_desired("it is about to be stopped")
            }
            Case::Undesired(Fresh::Ends) => self.not_desired(
                "its domain is not fresh any more when convergence looks next, which then leaves it",
            ),
            Case::Undesired(Fresh::No) => {
                self.not_desired("convergence leaves it until its domain is fresh")
            }
            Case::Waits | Case::Unplaced | Case::InFlight => self.waits(),
            Case::Starts => match self.moving() {
                Some(moving) => format!("is being started on cell `{cell}`; until then it {moving}"),
                None => format!("is being started on cell `{cell}`"),
            },
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

    /// Where it runs meanwhile, if its evacuating twin does.
    fn moving(&self) -> Option<String> {
        let twin = self.evacuating.filter(|twin| !self.is_lost(twin))?;
        let cell = name_of(twin.cell_id.as_ref());
        let end = twin.expires_at.map_or_else(String::new, |at| format!(", until {}", clock(at)));
        Some(format!("still runs on cell `{cell}`, which is being evacuated{end}"))
    }

    fn waits(&self) -> String {
        let error = self.instance.and_then(|lrp| lrp.placement_error.as_deref());
        match (self.moving(), error) {
            (Some(moving), Some(error)) => format!("{moving}, and waits for another cell: {error}"),
            (Some(moving), None) => format!("{moving}, and is being placed elsewhere"),
            (None, Some(error)) => format!("waits for a cell: {error}"),
            (None, None) => "waits for a cell: it is being placed".to_owned(),
        }
    }

    fn not_desired(&self, how: &str) -> String {
        match self.cell() {
            "-" => format!("is not desired any more: {how}"),
            cell => format!("is on cell `{cell}` and not desired any more: {how}"),
        }
    }

    pub(super) fn rule(&self, case: Case, settings: &Settings) -> String {
        let moving = self.evacuating.map(|twin| name_of(twin.cell_id.as_ref()));
        match case {
            Case::Nothing => "no desired LRP has this index, and nothing of it is there".to_owned(),
            Case::Forgotten => {
                format!("{}, held back because nobody knows what is desired", Duty::StopExtra)
            }
            Case::Missing => Duty::StartMissing.to_string(),
            Case::OnLostCell => Duty::RescueInstance.to_string(),
            Case::Leaving => Duty::ExpireTwin.to_string(),
            Case::GivenUp => "scaling down and deleting stop instances at once".to_owned(),
            Case::Undesired(Fresh::Yes) => Duty::StopExtra.to_string(),
            Case::Undesired(Fresh::Ends | Fresh::No) => {
                format!("{}, held back because its domain is not fresh", Duty::StopExtra)
            }
            Case::InFlight => in_flight_rule(settings),
            Case::Waits | Case::Unplaced | Case::Starts if moving.is_some() => format!(
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

    pub(super) fn remedies(&self, case: Case) -> Vec<String> {
        let guid = &self.key.process_guid;
        match case {
            Case::Nothing => vec![match self.desired.filter(|lrp| !lrp.removing) {
                Some(_) => format!("scale it up: kapell lrp scale {guid} {}", self.enough()),
                None => format!("desire `{guid}`: kapell apply -f FILE"),
            }],
            Case::Forgotten => vec![format!("apply `{guid}` again: kapell apply -f FILE")],
            Case::OnLostCell => vec![format!("start cell `{}` again", self.cell())],
            Case::Leaving | Case::Undesired(Fresh::Yes) => vec![self.desire_again()],
            Case::Undesired(Fresh::Ends | Fresh::No) => {
                let domain = self.instance.map_or("", |lrp| lrp.domain.as_str());
                vec![
                    format!("set its domain fresh to have it stopped: kapell domain set {domain}"),
                    self.desire_again(),
                ]
            }
            Case::Waits if self.cells.is_empty() => vec!["start a cell".to_owned()],
            Case::Missing | Case::Waits | Case::Starts | Case::Runs | Case::GivenUp => Vec::new(),
            Case::Unplaced | Case::InFlight => {
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

    /// So many instances have this one among them.
    const fn enough(&self) -> u32 {
        self.key.index.saturating_add(1)
    }

    fn desire_again(&self) -> String {
        let guid = &self.key.process_guid;
        let apply = "desire it again: kapell apply -f FILE";
        match self.desired.filter(|lrp| !lrp.removing) {
            Some(_) => format!("{apply}, or kapell lrp scale {guid} {}", self.enough()),
            None => apply.to_owned(),
        }
    }
}
