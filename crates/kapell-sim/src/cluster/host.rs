use std::sync::Arc;
use std::time::Duration;

use kapell_core::seams::{Clock as _, Moment};
use kapell_core::seat::Seat;
use tokio_util::sync::CancellationToken;

use super::desk::Desk;
use super::process::{Make, live};
use crate::parts::chance::Chance;
use crate::parts::clock::Drifting;
use crate::parts::stepper::Stepper;

/// A machine that runs one process after the other.
#[derive(Debug)]
pub(super) struct Host {
    pub(super) make: Make,
    chance: Chance,
    /// How many processes there were.
    pub(super) boots: u32,
    pub(super) process: Option<Process>,
    pub(super) slow_until: Duration,
    pub(super) apart_until: Duration,
    pub(super) deaf_until: Duration,
}

/// A program that runs, or could.
#[derive(Debug)]
pub(super) struct Process {
    stepper: Stepper,
    pub(super) desk: Arc<Desk>,
    pub(super) told: CancellationToken,
    /// What its clock said when it last ran.
    ran: Moment,
    pub(super) frozen: Option<Freeze>,
    /// The killer's time that the simulator knows of.
    pub(super) doomed: Option<Moment>,
}

/// Why a process does not run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Freeze {
    /// All its threads are stopped.
    Stopped,
    /// The machine sleeps, and its timers with it.
    Suspended,
    /// Only the killer's thread runs.
    Blocked,
}

impl Host {
    pub(super) fn new(make: Make, chance: Chance) -> Self {
        let (slow_until, apart_until, deaf_until) = Default::default();
        Self { make, chance, boots: 0, process: None, slow_until, apart_until, deaf_until }
    }

    pub(super) fn clock(&self) -> &Drifting {
        &self.make.clock
    }

    pub(super) fn boot(&mut self) {
        self.boots += 1;
        let (stepper, desk) = (Stepper::new(), Arc::new(Desk::default()));
        let told = CancellationToken::new();
        let chance = self.chance.fork();
        stepper.spawn(live(self.make.clone(), Arc::clone(&desk), told.clone(), chance));
        let ran = self.clock().now();
        self.process = Some(Process { stepper, desk, told, ran, frozen: None, doomed: None });
    }

    /// Runs what can run now. False if nothing can.
    pub(super) fn run(&mut self) -> bool {
        let now = self.make.clock.now();
        let Some(process) = self.process.as_mut().filter(|it| it.frozen.is_none()) else {
            return false;
        };
        process.stepper.step(now.since(process.ran));
        process.ran = now;
        true
    }

    /// Wakes it. False if its killer would have had it by now.
    pub(super) fn thaw(&mut self) -> bool {
        let now = self.make.clock.now();
        let Some(process) = &mut self.process else { return true };
        if process.frozen.take() == Some(Freeze::Suspended) {
            process.ran = now;
        }
        process.desk.kill_at().is_none_or(|at| now < at)
    }

    pub(super) fn is_up(&self) -> bool {
        self.process.is_some()
    }

    pub(super) fn acts_for(&self) -> Option<Seat> {
        self.process.as_ref()?.desk.acts_for()
    }

    /// Whether anything of its services can happen.
    pub(super) fn is_on_stage(&self, seat: Seat) -> bool {
        let now = self.make.clock.now();
        self.process.as_ref().is_some_and(|process| {
            let runs = !matches!(process.frozen, Some(Freeze::Stopped | Freeze::Suspended));
            let lives = process.desk.kill_at().is_none_or(|at| now < at);
            runs && lives && process.desk.is_staged(seat)
        })
    }
}
