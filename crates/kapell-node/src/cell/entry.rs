use std::collections::VecDeque;
use std::sync::Arc;

use kapell_core::board::ReservationId;
use kapell_core::board::reasons;
use kapell_core::board::request::Report;
use kapell_core::rep::Action;
use kapell_core::rep::container::{Ending, Life, RunResult, State};

use super::LogOf as Key;
use super::judge::Known;
use super::tag::Tag;

/// What is under way for a container. Until it is over, nothing else is decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Busy {
    Reporting,
    Deleting,
}

/// A container that this cell has.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(super) struct Entry {
    pub(super) tag: Arc<Tag>,
    pub(super) life: Life,
    /// What the board is believed to have; none until it was asked.
    pub(super) known: Option<Known>,
    /// What is still to be done of what was decided last.
    pub(super) steps: VecDeque<Action>,
    pub(super) busy: Option<Busy>,
    /// Somebody wants it to end.
    pub(super) stop_asked: bool,
    /// In whose name the board is asked to let a task start.
    pub(super) reservation: Option<ReservationId>,
    /// The board was asked that, and nobody knows what it answered.
    pub(super) start_unheard: bool,
    /// Its task was cancelled.
    pub(super) cancelled: bool,
    /// It has no time to stop.
    pub(super) at_once: bool,
    /// It is to be deleted as soon as it has ended.
    pub(super) doomed: bool,
    /// The driver has deleted it, and there is more to do about its records.
    pub(super) gone: bool,
    /// It was told to stop.
    pub(super) stop_sent: bool,
    /// Why it is being stopped, if it is not well.
    pub(super) unhealthy: Option<String>,
    /// Whether it is ready, once that is known.
    pub(super) ready: Option<bool>,
    /// What the board was told of that.
    pub(super) ready_told: Option<bool>,
    /// It did not stop in time, and is ended by force.
    pub(super) killed: bool,
    /// The steps go on whatever the board answers.
    pub(super) forced: bool,
    /// Refusals since the last report that was accepted.
    pub(super) refusals: u32,
    /// The row that cannot be and was told of last, so that it is told of once.
    pub(super) odd: Option<(State, Known)>,
    /// Grows with every change.
    pub(super) revision: u64,
}

impl Entry {
    pub(super) fn new(tag: Arc<Tag>, life: Life) -> Self {
        Self {
            tag,
            life,
            known: None,
            steps: VecDeque::new(),
            busy: None,
            stop_asked: false,
            reservation: None,
            start_unheard: false,
            cancelled: false,
            at_once: false,
            doomed: false,
            gone: false,
            stop_sent: false,
            unhealthy: None,
            ready: None,
            ready_told: None,
            killed: false,
            forced: false,
            refusals: 0,
            odd: None,
            revision: 0,
        }
    }

    /// Whether somebody asked for its end before anything of it was there.
    pub(super) fn is_called_off(&self) -> bool {
        self.stop_asked && self.life.state() == State::Reserved
    }

    pub(super) fn is_idle(&self) -> bool {
        self.busy.is_none() && self.steps.is_empty()
    }

    /// What to tell the board for a step; none for what is done here.
    pub(super) fn report(&self, step: Action) -> Option<Report> {
        match &self.tag.key {
            Key::Lrp(_) => self.lrp_report(step),
            Key::Task(_) => self.task_report(step),
        }
    }

    fn lrp_report(&self, step: Action) -> Option<Report> {
        let Key::Lrp(key) = self.tag.key.clone() else { return None };
        let instance_guid = self.tag.instance_guid.clone();
        let domain = self.tag.domain.clone();
        let incarnation = self.tag.incarnation;
        match step {
            Action::Claim => Some(Report::Claim { key, instance_guid, incarnation }),
            Action::MarkRunning => {
                let net = self.tag.net();
                let ready = self.ready.unwrap_or(false);
                Some(Report::Running { key, instance_guid, domain, incarnation, net, ready })
            }
            Action::NoteCrash => {
                let result = self.life.result();
                let reason = result.map(RunResult::failure_reason).unwrap_or_default().to_owned();
                Some(Report::Crashed { key, instance_guid, domain, incarnation, reason })
            }
            Action::DropRecord => Some(Report::Remove { key, instance_guid }),
            Action::DropTwin => Some(Report::RemoveEvacuating { key, instance_guid }),
            Action::MakeTwin => {
                let net = self.tag.net();
                Some(Report::Evacuate { key, instance_guid, domain, incarnation, net })
            }
            Action::Unclaim => Some(Report::Unclaim { key, instance_guid }),
            Action::StartTask
            | Action::CompleteTask
            | Action::FailTask
            | Action::RunContainer
            | Action::DeleteContainer => None,
        }
    }

    fn task_report(&self, step: Action) -> Option<Report> {
        let Key::Task(task_guid) = self.tag.key.clone() else { return None };
        let instance_guid = self.tag.instance_guid.clone();
        match step {
            Action::StartTask => {
                let reservation = self.reservation.clone();
                Some(Report::StartTask { task_guid, instance_guid, reservation })
            }
            Action::CompleteTask => {
                let result = self.life.result().cloned();
                let result =
                    result.unwrap_or_else(|| RunResult::failed(reasons::STOPPED_BEFORE_START));
                let (failed, failure_reason) = match result.ending {
                    Ending::Done => (false, String::new()),
                    Ending::Failed(reason) => (true, reason),
                    Ending::Stopped => (true, reasons::STOPPED_BEFORE_END.to_owned()),
                };
                Some(Report::CompleteTask {
                    task_guid,
                    instance_guid,
                    failed,
                    failure_reason,
                    result: result.result,
                    exit_code: result.exit_code,
                })
            }
            Action::FailTask => Some(Report::CompleteTask {
                task_guid,
                instance_guid,
                failed: true,
                failure_reason: reasons::EVACUATION_TIMED_OUT.to_owned(),
                result: String::new(),
                exit_code: None,
            }),
            Action::Claim
            | Action::MarkRunning
            | Action::NoteCrash
            | Action::DropRecord
            | Action::DropTwin
            | Action::MakeTwin
            | Action::Unclaim
            | Action::RunContainer
            | Action::DeleteContainer => None,
        }
    }
}
