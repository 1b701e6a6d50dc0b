use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use kapell_core::seams::{Clock as _, Moment};
use kapell_core::seat::Seat;
use kapell_node::conductor::Step;
use kapell_store::Error;
use kapell_store::model::Shard;

use super::checks::{Calm, Checks, Violation, one_leader, one_stage, resigned, shut_down};
use super::desk::Seen;
use super::host::{Freeze, Host};
use super::log::{Log, What};
use super::post::Post;
use super::process::Make;
use super::server::Server;
use super::weather::Weather;
use super::{Flaw, Plan, Report};
use crate::parts::chance::Chance;
use crate::parts::clock::{Drifting, TrueTime};
use crate::parts::link::{Letter, Reply, ReplyTo};

/// Everything there is in a simulation: hosts, a store, what is on its way between them, and
/// what is going to happen.
pub(super) struct World {
    pub(super) plan: Plan,
    pub(super) time: TrueTime,
    pub(super) chance: Chance,
    pub(super) weather: Weather,
    pub(super) hosts: Vec<Host>,
    pub(super) server: Server,
    pub(super) store_down: bool,
    pub(super) post: Post,
    pub(super) checks: Checks,
    pub(super) log: Log,
    pub(super) calm: Calm,
    is_calm: Arc<AtomicBool>,
    is_closing: bool,
    agenda: BTreeMap<(Duration, u64), Event>,
    planned: u64,
    faults: u64,
    kills: u64,
    losses: u64,
}

/// Something that is going to happen. A process is named by its host and how many there were
/// before, so that what was meant for a former one does not reach its successor.
#[derive(Debug)]
pub(super) enum Event {
    Boot(usize),
    /// A host gets the processor.
    Turn(usize, u32),
    Thaw(usize, u32),
    Kill(usize, u32, Moment),
    Arrive {
        from: (usize, u32),
        number: u64,
        letter: Letter,
    },
    Answer {
        to: (usize, u32),
        number: u64,
        reply: ReplyTo,
        answer: Result<Reply, Error>,
    },
    Ring(usize),
    Fault,
    StoreUp,
    Calm,
    Bound,
    Close,
    End,
}

impl World {
    pub(super) fn new(plan: Plan) -> Self {
        let mut chance = Chance::new(plan.seed);
        let time = TrueTime::default();
        let weather = Weather::draw(&mut chance, plan.lease);
        let is_calm = Arc::new(AtomicBool::new(false));
        let hosts = (0..plan.hosts).map(|index| {
            let mut clock = Drifting::new(&time, &mut chance);
            if index == 0 && plan.flaw == Flaw::SlowClock {
                clock = clock.at_rate(500_000);
            }
            let make = Make {
                clock: Arc::new(clock),
                lease: plan.lease,
                seats: plan.seats,
                // One address for all: it must not matter.
                address: "10.0.0.1:7070".to_owned(),
                endless: plan.flaw == Flaw::Endless,
                calm: Arc::clone(&is_calm),
            };
            Host::new(make, chance.fork())
        });
        let hosts = hosts.collect();
        let server = Server::new(Arc::new(Drifting::new(&time, &mut chance)), plan.flaw);
        let calm = Calm { since: plan.faulty_for, lease: plan.lease };
        Self {
            plan,
            time,
            chance,
            weather,
            hosts,
            server,
            store_down: false,
            post: Post::default(),
            checks: Checks::default(),
            log: Log::new(),
            calm,
            is_calm,
            is_closing: false,
            agenda: BTreeMap::new(),
            planned: 0,
            faults: 0,
            kills: 0,
            losses: 0,
        }
    }

    /// Lets everything happen, in the one order that the seed gives.
    pub(super) fn run(&mut self) -> Result<Report, Violation> {
        for host in 0..self.hosts.len() {
            let wait = self.chance.between(Duration::ZERO, self.plan.lease / 4);
            self.plan_in(wait, Event::Boot(host));
        }
        self.plan_in(self.plan.lease / 4, Event::Fault);
        self.plan_in(self.calm.since, Event::Calm);
        self.plan_in(self.calm.bound(), Event::Bound);
        self.plan_in(self.calm.end(), Event::Close);
        self.plan_in(self.calm.end() + self.plan.lease, Event::End);
        while let Some(((at, _), event)) = self.agenda.pop_first() {
            self.time.set(at);
            if matches!(event, Event::End) {
                break;
            }
            self.happen(event)?;
        }
        let running: Vec<_> = (0..self.hosts.len()).filter(|at| self.hosts[*at].is_up()).collect();
        Calm::at_end(&running)?;
        self.checks.counters.at_end(|shard: Shard| self.server.counter(shard))?;
        Ok(Report {
            hash: self.log.hash(),
            lines: self.log.lines(),
            virtual_time: self.time.now(),
            faults: self.faults,
            kills: self.kills,
            losses: self.losses,
            acquisitions: self.checks.epochs.acquisitions(),
            commits: self.checks.counters.count(),
        })
    }

    pub(super) fn now(&self) -> Duration {
        self.time.now()
    }

    pub(super) fn note(&mut self, host: Option<usize>, what: What) {
        self.log.note(self.time.now(), host, what);
    }

    pub(super) fn plan_in(&mut self, wait: Duration, event: Event) {
        self.agenda.insert((self.time.now() + wait, self.planned), event);
        self.planned += 1;
    }

    fn happen(&mut self, event: Event) -> Result<(), Violation> {
        match event {
            Event::Boot(host) => self.boot(host)?,
            Event::Turn(host, boot) => {
                if self.is_same(host, boot) {
                    self.plan_turn(host);
                    self.run_host(host)?;
                }
            }
            Event::Thaw(host, boot) => {
                if self.is_same(host, boot) {
                    self.thaw(host)?;
                }
            }
            Event::Kill(host, boot, at) => {
                if self.is_same(host, boot) {
                    self.kill(host, at);
                }
            }
            Event::Arrive { from, number, letter } => self.arrive(from, number, letter)?,
            Event::Answer { to: (host, boot), number, reply, answer } => {
                let _given_up = reply.send(answer);
                if self.is_same(host, boot) {
                    self.note(Some(host), What::Answered(number));
                    self.run_host(host)?;
                }
            }
            Event::Ring(watch) => {
                if let Some(host) = self.post.ring(watch) {
                    self.note(Some(host), What::Rang);
                    self.run_host(host)?;
                }
            }
            Event::Fault => {
                self.faults += 1;
                self.fault()?;
            }
            Event::StoreUp => {
                self.store_down = false;
                self.note(None, What::StoreUp);
            }
            Event::Calm => self.calm_down()?,
            Event::Bound => {
                let seats: Vec<_> = Seat::all(self.plan.seats).take(self.hosts.len()).collect();
                let led = seats.iter().filter(|seat| self.is_led(**seat)).count();
                self.calm.at_bound(led, seats.len())?;
            }
            Event::Close => self.close()?,
            Event::End => {}
        }
        Ok(())
    }

    fn is_led(&self, seat: Seat) -> bool {
        let leads = |host: &Host| host.acts_for() == Some(seat) && host.is_on_stage(seat);
        self.hosts.iter().any(leads)
    }

    pub(super) fn is_same(&self, host: usize, boot: u32) -> bool {
        self.hosts[host].is_up() && self.hosts[host].boots == boot
    }

    fn boot(&mut self, host: usize) -> Result<(), Violation> {
        if self.is_closing {
            return Ok(());
        }
        self.hosts[host].boot();
        self.note(Some(host), What::Booted(self.hosts[host].boots));
        self.plan_turn(host);
        self.run_host(host)
    }

    fn plan_turn(&mut self, host: usize) {
        let (mut least, mut most) = self.weather.turn;
        if self.now() < self.hosts[host].slow_until {
            (least, most) = (most, self.plan.lease / 3);
        }
        let wait = self.chance.between(least, most);
        self.plan_in(wait, Event::Turn(host, self.hosts[host].boots));
    }

    /// Lets a host do what it can, takes what it sends, and looks whether all is well.
    pub(super) fn run_host(&mut self, host: usize) -> Result<(), Violation> {
        if !self.hosts[host].run() {
            return Ok(());
        }
        let Some(process) = &mut self.hosts[host].process else { return Ok(()) };
        let (letters, seen) = (process.desk.take_outbox(), process.desk.take_seen());
        let (fired, over) = (process.desk.is_fired(), process.desk.is_over());
        let doomed = process.desk.kill_at();
        let is_news = doomed != std::mem::replace(&mut process.doomed, doomed);
        if let Some(at) = doomed.filter(|_| is_news) {
            let wait = self.hosts[host].clock().true_at(at).saturating_sub(self.now());
            self.plan_in(wait, Event::Kill(host, self.hosts[host].boots, at));
        }
        for each in seen {
            self.see(host, each)?;
        }
        for letter in letters {
            self.dispatch(host, letter);
        }
        self.look()?;
        if fired {
            self.end_process(host, What::Killed);
        } else if over {
            self.end_process(host, What::Exited);
        }
        Ok(())
    }

    fn look(&self) -> Result<(), Violation> {
        let hosts = || self.hosts.iter().enumerate();
        one_leader(hosts().filter_map(|(index, host)| Some((index, host.acts_for()?))))?;
        for seat in Seat::all(self.plan.seats) {
            let up = hosts().filter(|(_, host)| host.is_on_stage(seat));
            one_stage(up.map(|(index, _)| (index, seat)))?;
        }
        Ok(())
    }

    fn see(&mut self, host: usize, seen: Seen) -> Result<(), Violation> {
        match seen {
            Seen::Step(step) => {
                self.note(Some(host), What::Step(step));
                if step == Step::LeadershipLost {
                    self.losses += 1;
                    self.calm.lost(self.now(), host)?;
                }
                Ok(())
            }
            Seen::Acquired { seat, epoch } => {
                self.note(Some(host), What::Acquired { seat, epoch });
                self.checks.epochs.acquired(seat, epoch)
            }
            Seen::Acknowledged { shard, at } => {
                self.note(Some(host), What::Acknowledged { shard, at });
                self.checks.counters.acknowledged(shard, at)
            }
            Seen::Resigned { seat, epoch, staged, lost } => resigned(seat, epoch, staged, lost),
            Seen::ShutDown { leftover } => shut_down(host, leftover),
            Seen::Odd(how) => Err(Violation::new("fenced", how)),
        }
    }

    /// The process is gone. What it has sent is on its way all the same.
    pub(super) fn end_process(&mut self, host: usize, how: What) {
        self.kills += u64::from(how == What::Killed);
        self.note(Some(host), how);
        self.hosts[host].process = None;
        self.post.forget(host);
        let wait = self.chance.between(self.plan.lease / 20, self.plan.lease / 2);
        self.plan_in(wait, Event::Boot(host));
    }

    fn kill(&mut self, host: usize, at: Moment) {
        let now = self.hosts[host].clock().now();
        let Some(process) = &self.hosts[host].process else { return };
        let asleep = matches!(process.frozen, Some(Freeze::Stopped | Freeze::Suspended));
        if process.desk.kill_at() == Some(at) && now >= at && !asleep {
            self.end_process(host, What::Killed);
        }
    }

    pub(super) fn thaw(&mut self, host: usize) -> Result<(), Violation> {
        let lives = self.hosts[host].thaw();
        self.note(Some(host), What::Thawed);
        if lives {
            return self.run_host(host);
        }
        // The killer and the runtime wake together; either may be faster.
        if self.chance.permille(500) {
            self.run_host(host)?;
        }
        if self.hosts[host].is_up() {
            self.end_process(host, What::Killed);
        }
        Ok(())
    }

    fn calm_down(&mut self) -> Result<(), Violation> {
        self.note(None, What::Calm);
        self.is_calm.store(true, Ordering::Relaxed);
        self.weather = Weather::calm(self.plan.lease);
        self.store_down = false;
        for host in 0..self.hosts.len() {
            let now = self.now();
            let it = &mut self.hosts[host];
            (it.slow_until, it.apart_until, it.deaf_until) = (now, now, now);
            if it.process.as_ref().is_some_and(|process| process.frozen.is_some()) {
                self.thaw(host)?;
            }
        }
        Ok(())
    }

    fn close(&mut self) -> Result<(), Violation> {
        self.note(None, What::Closing);
        self.is_closing = true;
        for host in 0..self.hosts.len() {
            if let Some(process) = &self.hosts[host].process {
                process.told.cancel();
            }
            self.run_host(host)?;
        }
        Ok(())
    }
}
