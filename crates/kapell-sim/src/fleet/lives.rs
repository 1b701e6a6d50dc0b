//! How processes and machines begin and end.

use std::sync::Arc;
use std::time::Duration;

use kapell_core::seams::Moment;
use kapell_node::board::BoardSlot;

use super::checks::Violation;
use super::client::{Wishes, clients};
use super::desk::Desk;
use super::fact::Fact;
use super::links::cell_id;
use super::machine::Driver;
use super::mail::Party;
use super::program::{AgentParts, CellSlot, HostParts, agent, host};
use super::seat::Role;
use super::timing::{BACK, bound};
use super::weather::Weather;
use super::world::{Event, World};
use crate::parts::stepper::Stepper;

impl World {
    pub(super) fn boot(&mut self, seat: usize) -> Result<(), Violation> {
        if self.seats[seat].process.is_some()
            || (self.clients_done && self.seats[seat].party == Party::Client)
        {
            return Ok(());
        }
        let desk = Arc::new(Desk::default());
        let stepper = Stepper::new();
        let chance = self.seats[seat].chance.fork();
        let clock = Arc::clone(&self.seats[seat].clock);
        let planted = self.plan.planted;
        let role = match self.seats[seat].party {
            Party::Host(_) => {
                let slot = BoardSlot::default();
                let (shared, yard) = (Arc::clone(&desk), Arc::clone(&self.yards[seat]));
                let parts = HostParts { clock, desk: shared, slot: slot.clone(), yard, planted };
                stepper.spawn(host(parts, chance));
                Role::Host(slot)
            }
            Party::Cell(at) => {
                let id = cell_id(at);
                let Some(machine) = self.truth.machines.get_mut(&id).filter(|it| it.is_up) else {
                    return Ok(());
                };
                (machine.has_agent, machine.evacuating) = (true, false);
                let slot = CellSlot::default();
                let (zone, capacity) = (machine.zone.clone(), machine.capacity);
                let driver = Driver(Arc::clone(&self.machines[at].machine));
                let (hosts, shared) = (self.plan.hosts, Arc::clone(&desk));
                let parts = AgentParts {
                    at,
                    id,
                    zone,
                    capacity,
                    clock,
                    desk: shared,
                    slot: Arc::clone(&slot),
                    driver,
                    hosts,
                    planted,
                };
                stepper.spawn(agent(parts, chance));
                Role::Agent(slot)
            }
            Party::Client | Party::Receiver | Party::Store | Party::Yard(_) => {
                let stop = self.stop_clients.clone();
                let (most_instances, tight) = (self.most_instances, self.tight);
                let plan = self.plan.clone();
                let wishes = Wishes { plan, most_instances, tight, stop, clock };
                stepper.spawn(clients(Arc::clone(&desk), wishes, chance));
                Role::Client
            }
        };
        self.seats[seat].boot(desk, role, stepper);
        let party = self.seats[seat].party;
        let boot = self.seats[seat].boots;
        self.note(format_args!("{party} boots, {boot}"));
        self.plan_turn(seat);
        self.run_seat(seat)
    }

    /// The process is gone. What it has sent is on its way all the same.
    pub(super) fn end_process(&mut self, seat: usize, how: &str) -> Result<(), Violation> {
        let party = self.seats[seat].party;
        self.note(format_args!("{party} {how}"));
        self.seats[seat].process = None;
        self.net.forget(seat);
        let mut back = BACK / 2;
        match party {
            Party::Cell(at) => {
                if let Some(machine) = self.truth.machines.get_mut(&cell_id(at)) {
                    machine.has_agent = false;
                }
                // A start that was under way may have got as far as the machine.
                self.hear(at)?;
            }
            Party::Client => {
                self.clients_done = true;
                self.truth.calm_since = Some(self.time.now());
                self.plan_in(bound(&self.plan), Event::End);
                return Ok(());
            }
            Party::Host(_) => back = BACK,
            Party::Receiver | Party::Store | Party::Yard(_) => {}
        }
        let wait = self.chance.between(Duration::from_millis(200), back);
        self.plan_in(wait, Event::Boot(seat));
        Ok(())
    }

    pub(super) fn kill(&mut self, seat: usize, at: Moment) -> Result<(), Violation> {
        let Some(process) = &self.seats[seat].process else { return Ok(()) };
        if process.desk.kill_at() == Some(at) && !process.frozen {
            return self.end_process(seat, "is killed");
        }
        Ok(())
    }

    pub(super) fn thaw(&mut self, seat: usize) -> Result<(), Violation> {
        let lives = self.seats[seat].thaw();
        let party = self.seats[seat].party;
        self.note(format_args!("{party} goes on"));
        // The killer and the runtime wake together; either may be faster.
        if lives || self.chance.permille(500) {
            self.run_seat(seat)?;
        }
        if !lives && self.seats[seat].process.is_some() {
            self.end_process(seat, "is killed")?;
        }
        Ok(())
    }

    pub(super) fn machine_up(&mut self, cell: usize) -> Result<(), Violation> {
        if let Some(machine) = self.truth.machines.get_mut(&cell_id(cell)) {
            machine.is_up = true;
        }
        self.boot(self.plan.hosts + cell)
    }

    pub(super) fn calm_down(&mut self) -> Result<(), Violation> {
        self.calm = true;
        self.weather = Weather::calm();
        self.store.heal();
        self.net.heal();
        for ground in &self.machines {
            ground.machine.calm_down();
        }
        for yard in &self.yards {
            yard.calm_down();
        }
        for seat in 0..self.seats.len() {
            self.seats[seat].clock.set_right();
            if self.seats[seat].process.as_ref().is_some_and(|it| it.frozen) {
                self.thaw(seat)?;
            }
        }
        self.tell(&Fact::FaultsOver)?;
        self.stop_clients.cancel();
        match self.seat_of(Party::Client) {
            Some(client) => self.run_seat(client),
            None => Ok(()),
        }
    }
}
