use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use kapell_backend::containers::Exit;
use kapell_core::board::{Resources, Settings};
use kapell_core::seams::Moment;
use kapell_node::conductor::Step;
use kapell_node::scheduler;
use kapell_node::scheduler::backend::Attempt;
use kapell_store::Error;
use tokio_util::sync::CancellationToken;

use super::checks::{self, Check, Violation};
use super::client::MEMORY_MB;
use super::desk::Seen;
use super::fact::Fact;
use super::jobs::ground::yards;
use super::jobs::yard::Yard;
use super::links::cell_id;
use super::log::Log;
use super::machine::{Machine, News};
use super::mail::{Answered, Ask, Mail, Party};
use super::net::Net;
use super::plan::{Fault, Plan};
use super::seat::Seat;
use super::timing;
use super::truth::{Tally, Truth, WALL_MS};
use super::view;
use super::weather::Weather;
use super::witness::Witness;
use super::{Report, store::Store};
use crate::parts::chance::Chance;
use crate::parts::clock::{Drifting, TrueTime};
use crate::parts::link;

/// Before it is looked again whether all runs have ended.
const MORE: Duration = Duration::from_secs(5);
/// Clients are answered within this time once nothing goes wrong any more.
const ANSWERED: Duration = Duration::from_secs(120);

/// Everything there is in a simulation, and what is going to happen.
pub(super) struct World {
    pub(super) plan: Plan,
    pub(super) time: TrueTime,
    pub(super) chance: Chance,
    pub(super) weather: Weather,
    pub(super) seats: Vec<Seat>,
    pub(super) machines: Vec<Ground>,
    /// The machines of hosts.
    pub(super) yards: Vec<Arc<Yard>>,
    pub(super) net: Net,
    pub(super) store: Store,
    pub(super) log: Log,
    pub(super) truth: Truth,
    pub(super) calm: bool,
    pub(super) faults: BTreeMap<Fault, u64>,
    pub(super) stop_clients: CancellationToken,
    pub(super) clients_done: bool,
    pub(super) most_instances: u32,
    /// There is hardly more room than is asked for.
    pub(super) tight: bool,
    pub(super) settings: Settings,
    pub(super) checks: Vec<Box<dyn Check>>,
    witness: Witness,
    agenda: BTreeMap<(Duration, u64), Event>,
    planned: u64,
    /// How often a leader has exchanged something with the outside.
    exchanges: u64,
    pub(super) tally: Tally,
}

/// A machine, and how often it was started.
#[derive(Debug)]
pub(super) struct Ground {
    pub(super) machine: Arc<Machine>,
    pub(super) lives: u32,
}

/// Something that is going to happen. A process is named by its seat and how many there were
/// before, so that what was meant for a former one does not reach its successor.
#[derive(Debug)]
pub(super) enum Event {
    Boot(usize),
    /// A process gets the processor.
    Turn(usize, u32),
    Thaw(usize, u32),
    Kill(usize, u32, Moment),
    Arrive {
        from: Party,
        to: Party,
        number: Option<u64>,
        ask: Ask,
    },
    Answered {
        number: u64,
        answer: Answered,
    },
    StoreArrive {
        from: (usize, u32),
        number: u64,
        letter: link::Letter,
    },
    StoreAnswer {
        to: (usize, u32),
        number: u64,
        reply: link::ReplyTo,
        answer: Result<link::Reply, Error>,
    },
    Ring(usize),
    /// A program on a machine ends, if it has not yet.
    Ends {
        cell: usize,
        life: u32,
        guid: String,
        exit: Exit,
    },
    /// Work of a run on the machine of a host ends, if it has not yet.
    WorkEnds {
        host: usize,
        machine: u32,
        attempt: Attempt,
        code: i32,
    },
    /// A leader hears late of work on its machine.
    WorkNews {
        host: usize,
        news: scheduler::backend::News,
    },
    MachineUp(usize),
    Fault,
    Calm,
    Unanswered,
    End,
}

impl World {
    pub(super) fn new(plan: Plan, whole_trace: bool) -> Self {
        let mut chance = Chance::new(plan.seed);
        let time = TrueTime::default();
        let clock = |chance: &mut Chance| {
            let skew = chance.below(400).cast_signed();
            Arc::new(Drifting::new(&time, chance).at_wall(WALL_MS + skew))
        };
        let hosts = (0..plan.hosts).map(Party::Host);
        let parties = hosts.chain((0..plan.cells).map(Party::Cell)).chain([Party::Client]);
        let seats: Vec<_> = parties
            .map(|party| {
                let clock = clock(&mut chance);
                Seat::new(party, clock, chance.fork())
            })
            .collect();
        let tight = chance.permille(250) && !plan.evacuations;
        let cells = u32::try_from(plan.cells).unwrap_or(1);
        // Where there is little room, machines are of different sizes.
        let slots: Vec<u32> =
            (0..cells).map(|_| if tight { chance.pick(&[2, 3, 5]) } else { 10 }).collect();
        let all: u32 = slots.iter().sum();
        let most_instances = if tight { all.saturating_sub(3) } else { (cells - 1) * 5 };
        let mut truth = Truth::default();
        let mut machines = Vec::new();
        for (at, slots) in slots.into_iter().enumerate() {
            let memory_mb = slots * MEMORY_MB;
            let capacity = Resources { memory_mb, disk_mb: 1000, containers: slots };
            let zone = format!("z{}", at % 2);
            let machine =
                view::Machine { capacity, zone, is_up: true, has_agent: false, evacuating: false };
            truth.machines.insert(cell_id(at), machine);
            let machine = Arc::new(Machine::new(cell_id(at), chance.fork()));
            machines.push(Ground { machine, lives: 0 });
        }
        let store = Store::new(clock(&mut chance));
        let planted = plan.planted;
        let yards = yards(&plan, &seats);
        Self {
            weather: Weather::draw(&mut chance, &plan),
            plan,
            time,
            chance,
            seats,
            machines,
            yards,
            net: Net::default(),
            store,
            log: Log::new(whole_trace),
            truth,
            calm: false,
            faults: BTreeMap::new(),
            stop_clients: CancellationToken::new(),
            clients_done: false,
            most_instances,
            tight,
            settings: timing::board(planted),
            checks: checks::all(),
            witness: Witness::default(),
            agenda: BTreeMap::new(),
            planned: 0,
            exchanges: 0,
            tally: Tally::default(),
        }
    }

    /// Lets everything happen, in the one order that the seed gives.
    pub(super) fn run(&mut self) -> Result<Report, Violation> {
        let _hears = self.witness.listen();
        for seat in 0..self.seats.len() {
            let wait = self.chance.between(Duration::ZERO, Duration::from_secs(1));
            self.plan_in(wait, Event::Boot(seat));
        }
        if !self.plan.faults.is_empty() {
            self.plan_in(Duration::from_secs(3), Event::Fault);
        }
        self.plan_in(self.plan.busy_for, Event::Calm);
        self.plan_in(self.plan.busy_for + ANSWERED, Event::Unanswered);
        while let Some(((at, _), event)) = self.agenda.pop_first() {
            self.time.set(at);
            if matches!(event, Event::End) && !self.waits_for_runs() {
                break;
            }
            self.happen(event)?;
        }
        self.check(|check, view| check.at_end(view))?;
        Ok(Report {
            hash: self.log.hash(),
            lines: self.log.lines(),
            virtual_time: self.time.now(),
            faults: self.faults.clone(),
            processes: self.tally.began,
            commits: self.tally.commits,
            acknowledged: self.tally.acknowledged,
            takeovers: self.tally.takeovers,
            inconceivable: self.tally.inconceivable,
            exchanges: self.exchanges,
            launches: self.tally.launches,
            runs: self.tally.runs,
        })
    }

    pub(super) fn note(&mut self, what: fmt::Arguments<'_>) {
        self.log.note(self.time.now(), what);
    }

    pub(super) fn plan_in(&mut self, wait: Duration, event: Event) {
        self.agenda.insert((self.time.now() + wait, self.planned), event);
        self.planned += 1;
    }

    pub(super) fn seat_of(&self, party: Party) -> Option<usize> {
        self.seats.iter().position(|seat| seat.party == party)
    }

    pub(super) fn is_same(&self, seat: usize, boot: u32) -> bool {
        self.seats[seat].process.is_some() && self.seats[seat].boots == boot
    }

    fn happen(&mut self, event: Event) -> Result<(), Violation> {
        match event {
            Event::Boot(seat) => self.boot(seat),
            Event::Turn(seat, boot) if self.is_same(seat, boot) => {
                self.plan_turn(seat);
                self.run_seat(seat)
            }
            Event::Thaw(seat, boot) if self.is_same(seat, boot) => self.thaw(seat),
            Event::Kill(seat, boot, at) if self.is_same(seat, boot) => self.kill(seat, at),
            Event::End => {
                self.plan_in(MORE, Event::End);
                Ok(())
            }
            Event::Turn(..) | Event::Thaw(..) | Event::Kill(..) => Ok(()),
            Event::Arrive { from, to, number, ask } => self.arrive((from, to), number, ask),
            Event::Answered { number, answer } => self.answered(number, answer),
            Event::StoreArrive { from, number, letter } => self.store_arrive(from, number, letter),
            Event::StoreAnswer { to: (seat, boot), number, reply, answer } => {
                let _given_up = reply.send(answer);
                if !self.is_same(seat, boot) {
                    return Ok(());
                }
                self.note(format_args!("the store has answered #{number}"));
                self.run_seat(seat)
            }
            Event::Ring(watch) => match self.net.ring(watch) {
                Some(seat) => self.run_seat(seat),
                None => Ok(()),
            },
            Event::Ends { cell, life, guid, exit } => {
                if self.machines[cell].lives == life {
                    self.machines[cell].machine.end(&guid, exit);
                    self.hear(cell)?;
                    self.run_seat(self.plan.hosts + cell)?;
                }
                Ok(())
            }
            Event::WorkEnds { host, machine, attempt, code } => {
                if self.yards[host].boot() == machine {
                    self.yards[host].end(&attempt, code);
                    self.hear_yard(host)?;
                    self.run_seat(host)?;
                }
                Ok(())
            }
            Event::WorkNews { host, news } => {
                self.yards[host].deliver(news);
                self.run_seat(host)
            }
            Event::MachineUp(cell) => self.machine_up(cell),
            Event::Fault => self.fault(),
            Event::Calm => self.calm_down(),
            Event::Unanswered if self.clients_done => Ok(()),
            Event::Unanswered => {
                let wanted: Vec<_> = self.truth.wanted.values().collect();
                let how = format!("clients still wait for an answer: {wanted:?}");
                Err(Violation { rule: "clients are answered", at: self.time.now(), how })
            }
        }
    }

    pub(super) fn plan_turn(&mut self, seat: usize) {
        let (least, most) = self.weather.turn;
        let wait = self.chance.between(least, most);
        self.plan_in(wait, Event::Turn(seat, self.seats[seat].boots));
    }

    /// Lets a process do what it can, takes what it sends, and tells the rules.
    pub(super) fn run_seat(&mut self, seat: usize) -> Result<(), Violation> {
        if !self.seats[seat].run() {
            return Ok(());
        }
        let Some(process) = &mut self.seats[seat].process else { return Ok(()) };
        let desk = Arc::clone(&process.desk);
        let doomed = desk.kill_at();
        let is_news = doomed != std::mem::replace(&mut process.doomed, doomed);
        if let Some(at) = doomed.filter(|_| is_news) {
            let wait = self.seats[seat].true_wait(at, self.time.now());
            self.plan_in(wait, Event::Kill(seat, self.seats[seat].boots, at));
        }
        if let Party::Cell(at) = self.seats[seat].party {
            for text in self.witness.take() {
                self.tell(&Fact::Inconceivable { cell: cell_id(at), text })?;
            }
            self.hear(at)?;
        }
        if let Party::Host(at) = self.seats[seat].party {
            self.hear_yard(at)?;
        }
        let (mail, seen) = desk.take();
        for each in seen {
            self.see(seat, each)?;
        }
        for each in mail {
            if self.exchange(seat, each)? {
                return Ok(());
            }
        }
        if desk.is_fired() {
            self.end_process(seat, "is killed")?;
        } else if desk.is_over() {
            self.end_process(seat, "exits")?;
        }
        Ok(())
    }

    /// Sends one thing. True if the sender was to die of it.
    fn exchange(&mut self, seat: usize, mail: Mail) -> Result<bool, Violation> {
        let is_host = matches!(self.seats[seat].party, Party::Host(_));
        let counts = is_host && !self.calm && self.seats[seat].acts();
        if !counts {
            self.dispatch(seat, mail)?;
            return Ok(false);
        }
        self.exchanges += 1;
        let dies = self.plan.crash_at.is_some_and(|at| at / 2 == self.exchanges - 1);
        let before = self.plan.crash_at.is_some_and(|at| at % 2 == 0);
        if !(dies && before) {
            self.dispatch(seat, mail)?;
        }
        if dies {
            self.end_process(seat, "dies at this exchange")?;
        }
        Ok(dies)
    }

    fn see(&mut self, seat: usize, seen: Seen) -> Result<(), Violation> {
        let party = self.seats[seat].party;
        match seen {
            Seen::Step(step, epoch) => {
                self.note(format_args!("{party} {step:?}"));
                match (step, epoch, party) {
                    (Step::ServicesStarted, Some(epoch), Party::Host(host)) => {
                        self.tell(&Fact::TookOver { host, epoch })
                    }
                    _ => Ok(()),
                }
            }
            Seen::Fact(fact) => self.tell(&fact),
            Seen::Wants(number, request) => {
                self.truth.wanted.insert(number, request);
                Ok(())
            }
            Seen::Knows(number) => {
                self.truth.wanted.remove(&number);
                Ok(())
            }
            Seen::Note(text) => {
                self.note(format_args!("{party} {text}"));
                Ok(())
            }
        }
    }

    /// What happened on a machine.
    pub(super) fn hear(&mut self, cell: usize) -> Result<(), Violation> {
        for news in self.machines[cell].machine.take_news() {
            match news {
                News::Began(process) => self.tell(&Fact::Began(process))?,
                News::Over(process) => self.tell(&Fact::Over(process))?,
                News::EndsIn { guid, wait, exit } => {
                    let life = self.machines[cell].lives;
                    self.plan_in(wait, Event::Ends { cell, life, guid, exit });
                }
            }
        }
        Ok(())
    }
}
