use std::time::Duration;

use super::checks::Violation;
use super::fact::Fact;
use super::links::cell_id;
use super::mail::Party;
use super::plan::Fault;
use super::timing::{BACK, FAR_JUMP, JUMP, LEASE};
use super::world::{Event, World};

/// A store in which more is garbage has little left to show.
const MOST_CORRUPTED: usize = 3;

impl World {
    /// Something goes wrong, and the next thing that will is planned.
    pub(super) fn fault(&mut self) -> Result<(), Violation> {
        if self.calm {
            return Ok(());
        }
        let (least, most) = self.weather.gap;
        let wait = self.chance.between(least, most);
        self.plan_in(wait, Event::Fault);
        let fault = self.chance.pick(&self.plan.faults.clone());
        if fault == Fault::CorruptRecord && self.truth.corrupted >= MOST_CORRUPTED {
            return Ok(());
        }
        *self.faults.entry(fault).or_default() += 1;
        let name = fault.name();
        self.note(format_args!("fault: {name}"));
        let until = self.time.now() + self.for_a_while(LEASE * 2);
        match fault {
            Fault::CellCrash => {
                let cell = self.some_cell();
                self.crash_machine(cell)
            }
            Fault::AgentCrash => {
                let seat = self.plan.hosts + self.some_cell();
                self.crash_process(seat)
            }
            Fault::HostCrash => {
                let host = self.some_host();
                self.crash_process(host)?;
                if self.plan.jobs && self.chance.permille(250) {
                    self.crash_yard(host)?;
                }
                Ok(())
            }
            Fault::SeatLost => {
                if let Some(key) = self.store.lose_seat() {
                    self.tell_watches(&key, |it| !it.acts());
                }
                Ok(())
            }
            Fault::Pause => {
                self.pause();
                Ok(())
            }
            Fault::Partition | Fault::OneWay => {
                let (one, other) = self.some_pair();
                self.note(format_args!("between {one} and {other} until {until:?}"));
                self.net.part(one, other, until);
                if fault == Fault::Partition {
                    self.net.part(other, one, until);
                }
                Ok(())
            }
            Fault::StoreErrors => {
                self.store.errors_until = self.time.now() + self.for_a_while(LEASE * 2 / 3);
                Ok(())
            }
            Fault::UnknownOutcomes => {
                self.store.silent_until = until;
                Ok(())
            }
            Fault::SlowStore => {
                self.store.slow_until = until;
                Ok(())
            }
            Fault::CorruptRecord => self.corrupt(),
            Fault::ClockJump => {
                self.jump();
                Ok(())
            }
        }
    }

    fn for_a_while(&mut self, most: Duration) -> Duration {
        self.chance.between(Duration::from_millis(200), most)
    }

    fn some_cell(&mut self) -> usize {
        usize::try_from(self.chance.below(self.plan.cells as u64)).unwrap_or(0)
    }

    /// More often than not, whoever leads.
    fn some_host(&mut self) -> usize {
        let leader = (0..self.plan.hosts).find(|at| self.seats[*at].acts());
        match leader {
            Some(leader) if self.chance.permille(600) => leader,
            Some(_) | None => {
                usize::try_from(self.chance.below(self.plan.hosts as u64)).unwrap_or(0)
            }
        }
    }

    /// Two that talk to each other.
    fn some_pair(&mut self) -> (Party, Party) {
        let host = Party::Host(self.some_host());
        let other = match self.chance.below(8) {
            0..=1 => Party::Store,
            2 => Party::Client,
            _ => Party::Cell(self.some_cell()),
        };
        if self.chance.permille(500) { (host, other) } else { (other, host) }
    }

    fn crash_process(&mut self, seat: usize) -> Result<(), Violation> {
        if self.seats[seat].process.is_none() {
            return Ok(());
        }
        self.end_process(seat, "crashes")
    }

    /// The machine of a host dies with all work on it, and is started anew with its host.
    fn crash_yard(&mut self, host: usize) -> Result<(), Violation> {
        let finds_ended = self.chance.permille(500);
        self.yards[host].crash(finds_ended);
        self.note(format_args!("the machine of host{host} is dead"));
        self.hear_yard(host)
    }

    fn crash_machine(&mut self, cell: usize) -> Result<(), Violation> {
        let Some(machine) = self.truth.machines.get_mut(&cell_id(cell)).filter(|it| it.is_up)
        else {
            return Ok(());
        };
        machine.is_up = false;
        self.crash_process(self.plan.hosts + cell)?;
        self.machines[cell].lives += 1;
        let finds_ended = self.chance.permille(300);
        self.machines[cell].machine.crash(finds_ended);
        self.note(format_args!("the machine of cell{cell} is dead"));
        self.hear(cell)?;
        // There is room for what one machine held, not for more.
        if self.chance.permille(250) && self.truth.dead == 0 {
            self.truth.dead += 1;
            self.note(format_args!("and stays so"));
            return Ok(());
        }
        let wait = self.chance.between(Duration::from_millis(500), BACK);
        self.plan_in(wait, Event::MachineUp(cell));
        Ok(())
    }

    fn pause(&mut self) {
        let seat = if self.chance.permille(500) {
            self.some_host()
        } else {
            self.plan.hosts + self.some_cell()
        };
        let wait = self.for_a_while(LEASE * 3 / 2);
        let boot = self.seats[seat].boots;
        let party = self.seats[seat].party;
        if let Some(process) = self.seats[seat].process.as_mut().filter(|it| !it.frozen) {
            process.frozen = true;
            self.plan_in(wait, Event::Thaw(seat, boot));
            self.note(format_args!("{party} stops for {wait:?}"));
        }
    }

    fn jump(&mut self) {
        let seat = usize::try_from(self.chance.below(self.seats.len() as u64)).unwrap_or(0);
        let most = if self.plan.far_clocks { FAR_JUMP } else { JUMP };
        let most = i64::try_from(most.as_millis()).unwrap_or(i64::MAX);
        let by = self.chance.below(2 * most.unsigned_abs()).cast_signed() - most;
        let party = self.seats[seat].party;
        self.note(format_args!("the wall clock of {party} jumps by {by} ms"));
        self.seats[seat].clock.set_right();
        self.seats[seat].clock.jump(by);
    }

    /// Whoever leads dies, and when the next one comes, a record is garbage.
    fn corrupt(&mut self) -> Result<(), Violation> {
        for host in 0..self.plan.hosts {
            if self.seats[host].acts() {
                self.crash_process(host)?;
            }
        }
        let count = self.store.count() as u64;
        if count == 0 {
            return Ok(());
        }
        // What nobody desires any more is the worst of it.
        let desired = self.store.desired();
        let at = if desired.is_empty() || self.chance.permille(600) {
            usize::try_from(self.chance.below(count)).unwrap_or(0)
        } else {
            self.chance.pick(&desired)
        };
        let garbage = match self.chance.below(3) {
            0 => Vec::new(),
            1 => b"\xff\x01garbage".to_vec(),
            _ => b"a\x01{\"process_guid\":".to_vec(),
        };
        self.truth.corrupted += 1;
        let key = self.store.corrupt(at, garbage).and_then(|key| self.truth.ledger.corrupt(&key));
        key.map_or(Ok(()), |key| self.tell(&Fact::Corrupted { key }))
    }
}
