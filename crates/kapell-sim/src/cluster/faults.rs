use std::time::Duration;

use super::checks::Violation;
use super::host::Freeze;
use super::log::What;
use super::weather::Fault;
use super::world::{Event, World};

impl World {
    /// Something goes wrong, and the next thing that will is planned.
    pub(super) fn fault(&mut self) -> Result<(), Violation> {
        let (least, most) = self.weather.gap;
        let wait = self.chance.between(least, most);
        if self.now() + wait < self.calm.since {
            self.plan_in(wait, Event::Fault);
        }
        let fault = self.chance.pick(&self.weather.faults.clone());
        let victim = self.victim();
        self.note(victim, What::Fault(fault));
        match (fault, victim) {
            (Fault::StoreDown, _) => {
                self.store_down = true;
                let wait = self.for_a_while(self.plan.lease);
                self.plan_in(wait, Event::StoreUp);
            }
            (Fault::StoreRestart, _) => {
                self.post.forget_all();
                self.store_down = true;
                let wait = self.for_a_while(self.plan.lease / 6);
                self.plan_in(wait, Event::StoreUp);
            }
            (fault, Some(host)) => self.strike(fault, host)?,
            (_, None) => {}
        }
        Ok(())
    }

    fn strike(&mut self, fault: Fault, host: usize) -> Result<(), Violation> {
        match fault {
            Fault::Crash => self.end_process(host, What::Crashed),
            Fault::Stop => self.freeze(host, Freeze::Stopped),
            Fault::Suspend => self.freeze(host, Freeze::Suspended),
            Fault::Block => self.freeze(host, Freeze::Blocked),
            Fault::Slow => self.hosts[host].slow_until = self.until(),
            Fault::Partition => self.hosts[host].apart_until = self.until(),
            Fault::Cut => {
                self.post.forget(host);
                self.run_host(host)?;
            }
            Fault::Deafen => self.hosts[host].deaf_until = self.until(),
            Fault::HandOff => {
                if let Some(process) = &self.hosts[host].process {
                    process.told.cancel();
                }
                self.run_host(host)?;
            }
            Fault::StoreDown | Fault::StoreRestart => {}
        }
        Ok(())
    }

    /// Whom it strikes: more often than not, whoever leads.
    fn victim(&mut self) -> Option<usize> {
        let leaders = (0..self.hosts.len()).filter(|at| self.hosts[*at].acts_for().is_some());
        let leaders: Vec<_> = leaders.collect();
        if !leaders.is_empty() && self.chance.permille(600) {
            return Some(self.chance.pick(&leaders));
        }
        let up: Vec<_> = (0..self.hosts.len()).filter(|at| self.hosts[*at].is_up()).collect();
        if up.is_empty() { None } else { Some(self.chance.pick(&up)) }
    }

    fn for_a_while(&mut self, most: Duration) -> Duration {
        self.chance.between(self.plan.lease / 20, most)
    }

    /// Up to three leases from now.
    fn until(&mut self) -> Duration {
        self.now() + self.for_a_while(self.plan.lease * 3)
    }

    fn freeze(&mut self, host: usize, how: Freeze) {
        let wait = self.for_a_while(self.plan.lease * 3);
        let boot = self.hosts[host].boots;
        if let Some(process) = self.hosts[host].process.as_mut().filter(|it| it.frozen.is_none()) {
            process.frozen = Some(how);
            self.plan_in(wait, Event::Thaw(host, boot));
        }
    }
}
