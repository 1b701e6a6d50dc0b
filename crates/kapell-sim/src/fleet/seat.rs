use std::sync::Arc;
use std::time::Duration;

use kapell_core::seams::{Clock as _, Moment};
use kapell_node::board::BoardSlot;

use super::desk::Desk;
use super::mail::Party;
use super::program::CellSlot;
use crate::parts::chance::Chance;
use crate::parts::clock::Drifting;
use crate::parts::stepper::Stepper;

/// Where one process runs after the other: a host, an agent, or all clients together.
#[derive(Debug)]
pub(super) struct Seat {
    pub(super) party: Party,
    pub(super) clock: Arc<Drifting>,
    pub(super) chance: Chance,
    /// How many processes there were.
    pub(super) boots: u32,
    pub(super) process: Option<Running>,
}

/// A program that runs, or could.
#[derive(Debug)]
pub(super) struct Running {
    pub(super) stepper: Stepper,
    pub(super) desk: Arc<Desk>,
    pub(super) role: Role,
    /// What its clock said when it last ran.
    ran: Moment,
    pub(super) frozen: bool,
    /// The killer's time that the simulator knows of.
    pub(super) doomed: Option<Moment>,
}

/// Where those who ask a process find what answers.
#[derive(Debug, Clone)]
pub(super) enum Role {
    Host(BoardSlot),
    Agent(CellSlot),
    Client,
}

impl Seat {
    pub(super) const fn new(party: Party, clock: Arc<Drifting>, chance: Chance) -> Self {
        Self { party, clock, chance, boots: 0, process: None }
    }

    pub(super) fn boot(&mut self, desk: Arc<Desk>, role: Role, stepper: Stepper) {
        self.boots += 1;
        let ran = self.clock.now();
        self.process = Some(Running { stepper, desk, role, ran, frozen: false, doomed: None });
    }

    /// Runs what can run now. False if nothing can.
    pub(super) fn run(&mut self) -> bool {
        let now = self.clock.now();
        let Some(process) = self.process.as_mut().filter(|it| !it.frozen) else { return false };
        process.stepper.step(now.since(process.ran));
        process.ran = now;
        true
    }

    /// Wakes it. False if its killer would have had it by now.
    pub(super) fn thaw(&mut self) -> bool {
        let now = self.clock.now();
        let Some(process) = &mut self.process else { return true };
        process.frozen = false;
        process.desk.kill_at().is_none_or(|at| now < at)
    }

    pub(super) fn acts(&self) -> bool {
        self.process.as_ref().is_some_and(|it| it.desk.acts())
    }

    /// For how long its killer waits yet.
    pub(super) fn true_wait(&self, at: Moment, now: Duration) -> Duration {
        self.clock.true_at(at).saturating_sub(now)
    }
}
