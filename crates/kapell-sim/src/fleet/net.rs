//! The network: every message takes time, and may be lost, doubled or late on its way.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use kapell_core::board::{LrpKey, Task};
use kapell_core::seams::Clock as _;
use kapell_store::Bell;
use kapell_store::model::Key;

use super::checks::Violation;
use super::fact::{Fact, Unit};
use super::jobs::yard::YardAsk;
use super::links::cell_id;
use super::mail::{Answer, Answered, Ask, Failed, Mail, Party, ReplyTo};
use super::program::{serve_cell, serve_host};
use super::seat::{Role, Seat};
use super::timing::{LATEST, LEASE};
use super::world::{Event, World};
use crate::parts::link::{self, Call, Letter};

/// What is on its way, who watches what, and what was never answered.
#[derive(Debug, Default)]
pub(super) struct Net {
    /// Calls under way: who waits for an answer.
    calls: BTreeMap<u64, Waiting>,
    numbers: u64,
    watches: Vec<Option<Watching>>,
    /// Nobody will answer these, and nobody says so.
    limbo: Vec<link::ReplyTo>,
    /// Between whom nothing gets through, this way, and until when.
    apart: BTreeMap<(Party, Party), Duration>,
}

#[derive(Debug)]
struct Waiting {
    from: (usize, u32),
    to: Party,
    reply: ReplyTo,
}

#[derive(Debug)]
struct Watching {
    seat: usize,
    key: Key,
    bell: Bell,
}

impl Net {
    fn number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    /// Closes all watches of a host.
    pub(super) fn forget(&mut self, seat: usize) {
        for watch in &mut self.watches {
            watch.take_if(|it| it.seat == seat);
        }
        self.calls.retain(|_, waiting| waiting.from.0 != seat);
    }

    pub(super) fn part(&mut self, from: Party, to: Party, until: Duration) {
        let end = self.apart.entry((from, to)).or_default();
        *end = until.max(*end);
    }

    pub(super) fn heal(&mut self) {
        self.apart.clear();
    }

    pub(super) fn ring(&mut self, watch: usize) -> Option<usize> {
        let watching = self.watches.get(watch)?.as_ref()?;
        watching.bell.ring();
        Some(watching.seat)
    }
}

impl World {
    fn gets_through(&mut self, from: Party, to: Party) -> bool {
        let apart = self.net.apart.get(&(from, to)).is_some_and(|until| self.time.now() < *until);
        !apart && !self.chance.permille(self.weather.lost)
    }

    fn delay(&mut self) -> Duration {
        let (least, most) = self.weather.delay;
        let late = if self.chance.permille(self.weather.late) {
            let left = self.plan.busy_for.saturating_sub(self.time.now());
            self.chance.between(Duration::ZERO, LATEST).min(left)
        } else {
            Duration::ZERO
        };
        self.chance.between(least, most) + late
    }

    /// Where nothing gets through, some of it waits on the way and arrives when it can, as with TCP.
    /// How long, if so. Those who want something do not wait for as long.
    fn held_up(&mut self, from: Party, to: Party) -> Option<Duration> {
        let until = self.net.apart.get(&(from, to)).copied()?;
        let end = until.min(self.plan.busy_for);
        let wait = end.checked_sub(self.time.now()).filter(|_| from != Party::Client)?;
        self.chance.permille(400).then(|| wait + self.delay())
    }

    /// How long the second of two equal messages takes: the sender may have gone on to other things.
    fn astray(&mut self) -> Duration {
        let left = self.plan.busy_for.saturating_sub(self.time.now());
        self.delay() + self.chance.between(Duration::ZERO, LATEST * 2).min(left)
    }

    /// Puts what a process sends on its way.
    pub(super) fn dispatch(&mut self, seat: usize, mail: Mail) -> Result<(), Violation> {
        let from = self.seats[seat].party;
        match mail {
            Mail::Store(letter) => self.dispatch_letter(seat, letter),
            Mail::Ask { to: Party::Yard(host), ask: Ask::Yard(ask), reply } => {
                return self.ask_yard(seat, host, ask, reply);
            }
            Mail::Ask { to, ask, reply } => {
                let number = self.net.number();
                self.note(format_args!("{from} -> {to} #{number} {ask}"));
                self.tell_sent(seat, to, &ask)?;
                let boot = self.seats[seat].boots;
                self.net.calls.insert(number, Waiting { from: (seat, boot), to, reply });
                self.dispatch_ask(from, to, number, ask);
            }
            Mail::Answer { call: None, .. } => {}
            Mail::Answer { call: Some(call), answer } => self.dispatch_answer(from, call, answer),
        }
        Ok(())
    }

    /// A machine does what its host asks for at once; its host hears of it a little later.
    fn ask_yard(
        &mut self,
        seat: usize,
        host: usize,
        ask: YardAsk,
        reply: ReplyTo,
    ) -> Result<(), Violation> {
        let number = self.net.number();
        self.note(format_args!("host{host} -> machine #{number} {ask:?}"));
        let boot = self.seats[seat].boots;
        self.net.calls.insert(number, Waiting { from: (seat, boot), to: Party::Yard(host), reply });
        let leads = self.seats[seat].acts();
        let mut answer = Ok(Answer::Nothing);
        match ask {
            YardAsk::Launch { attempt, told } => {
                if self.yards[host].begin(&attempt, &told) {
                    self.tell(&Fact::WorkBegan { host, attempt, leads })?;
                } else {
                    answer = Err(Failed::Unreachable);
                }
            }
            YardAsk::Stop { attempt, kind } => self.yards[host].stop(&attempt, kind),
            YardAsk::Release { attempt } => self.yards[host].release(&attempt),
        }
        self.hear_yard(host)?;
        let wait = self.chance.between(Duration::from_micros(100), Duration::from_millis(100));
        self.plan_in(wait, Event::Answered { number, answer });
        Ok(())
    }

    fn dispatch_ask(&mut self, from: Party, to: Party, number: u64, ask: Ask) {
        if self.chance.permille(self.weather.duplicated) {
            // What clients ask twice is answered once both are decided, as if a proxy had done so.
            let wait = if from == Party::Client { self.weather.delay.0 } else { self.astray() };
            let ask = ask.clone();
            self.plan_in(wait, Event::Arrive { from, to, number: None, ask });
        }
        if let Some(wait) = self.held_up(from, to) {
            self.note(format_args!("#{number} is held up"));
            self.plan_in(wait, Event::Arrive { from, to, number: Some(number), ask });
            return;
        }
        if !self.gets_through(from, to) {
            self.note(format_args!("#{number} is lost"));
            if self.chance.permille(500) {
                let wait = self.delay();
                self.plan_in(wait, Event::Answered { number, answer: Err(Failed::Broken) });
            }
            return;
        }
        let wait = self.delay();
        self.plan_in(wait, Event::Arrive { from, to, number: Some(number), ask });
    }

    /// What a rule may be about is seen when it is sent.
    fn tell_sent(&mut self, seat: usize, to: Party, ask: &Ask) -> Result<(), Violation> {
        if let Ask::Request(request) = ask {
            return self.tell(&Fact::Asked { request: (**request).clone() });
        }
        let Party::Host(host) = self.seats[seat].party else { return Ok(()) };
        if let Ask::Call(body) = ask {
            let task = called(body);
            let (container, version) = (task.instance_guid.clone(), task.version);
            let task = task.guid().clone();
            return self.tell(&Fact::Calling { host, task, container, version });
        }
        let Party::Cell(cell) = to else { return Ok(()) };
        let cell = cell_id(cell);
        if let Ask::Stop(_, stop) = ask {
            let (key, container) = (stop.key.clone(), stop.instance_guid.clone());
            let wall = self.seats[seat].clock.wall();
            return self.tell(&Fact::StopSent { host, cell, key, container, wall });
        }
        let Ask::Work(_, work) = ask else { return Ok(()) };
        for lrp in &work.lrps {
            let process_guid = lrp.desired.process_guid.clone();
            let unit = Unit::Lrp(LrpKey { process_guid, index: lrp.index });
            self.tell(&Fact::WorkSent { host, cell: cell.clone(), unit })?;
        }
        for task in &work.tasks {
            let unit = Unit::Task(task.definition.task_guid.clone());
            self.tell(&Fact::WorkSent { host, cell: cell.clone(), unit })?;
        }
        Ok(())
    }

    /// A message is there: whoever it is for takes it up, or nobody is there.
    pub(super) fn arrive(
        &mut self,
        (from, to): (Party, Party),
        number: Option<u64>,
        ask: Ask,
    ) -> Result<(), Violation> {
        let again = if number.is_none() { " again" } else { "" };
        let shown = number.unwrap_or(0);
        self.note(format_args!("{to} got{again} #{shown} of {from}"));
        if let (Party::Receiver, Ask::Call(body)) = (to, &ask) {
            return self.take_call(number, body);
        }
        let Some(seat) = self.seat_of(to) else { return Ok(()) };
        let Some(process) = &self.seats[seat].process else {
            if let Some(number) = number {
                let wait = self.weather.delay.1;
                self.plan_in(wait, Event::Answered { number, answer: Err(Failed::Unreachable) });
            }
            return Ok(());
        };
        let desk = Arc::clone(&process.desk);
        match process.role.clone() {
            Role::Host(slot) => process.stepper.spawn(async move {
                let answer = serve_host(seat, slot, &desk, ask).await;
                desk.post(Mail::Answer { call: number, answer });
            }),
            Role::Agent(slot) => process.stepper.spawn(async move {
                let answer = serve_cell(&slot, &desk, ask);
                desk.post(Mail::Answer { call: number, answer });
            }),
            Role::Client => {}
        }
        self.run_seat(seat)
    }

    /// The receiver of callbacks answers, says that it is not there, or says nothing.
    fn take_call(&mut self, number: Option<u64>, body: &[u8]) -> Result<(), Violation> {
        let task = called(body);
        let (guid, container) = (task.guid().clone(), task.instance_guid.clone());
        self.tell(&Fact::Called { task: guid, container })?;
        let moody = !self.calm && !self.plan.is_without_faults();
        let status = match if moody { self.chance.below(10) } else { 9 } {
            0 => None,
            1 => Some(503),
            2 => Some(500),
            _ => Some(200),
        };
        let (Some(call), Some(status)) = (number, status) else { return Ok(()) };
        self.dispatch_answer(Party::Receiver, call, Ok(Answer::Status(status)));
        Ok(())
    }

    fn dispatch_answer(&mut self, from: Party, call: u64, answer: Answered) {
        let Some(waiting) = self.net.calls.get(&call) else { return };
        let to = self.seats[waiting.from.0].party;
        match &answer {
            Ok(_) => self.note(format_args!("{from} answers #{call}")),
            Err(why) => self.note(format_args!("{from} answers #{call}: {why:?}")),
        }
        if !self.gets_through(from, to) {
            self.note(format_args!("the answer to #{call} is lost"));
            return;
        }
        let wait = self.delay();
        self.plan_in(wait, Event::Answered { number: call, answer });
    }

    pub(super) fn answered(&mut self, number: u64, answer: Answered) -> Result<(), Violation> {
        let Some(waiting) = self.net.calls.remove(&number) else { return Ok(()) };
        let (seat, boot) = waiting.from;
        let party = self.seats[seat].party;
        self.note(format_args!("{party} hears from {} about #{number}", waiting.to));
        let _given_up = waiting.reply.send(answer);
        if self.is_same(seat, boot) { self.run_seat(seat) } else { Ok(()) }
    }
}

/// The task that a callback tells of.
fn called(body: &[u8]) -> Task {
    serde_json::from_slice(body).expect("a callback carries a task")
}

/// To and from the store.
impl World {
    fn dispatch_letter(&mut self, seat: usize, letter: Letter) {
        let number = self.net.number();
        let from = self.seats[seat].party;
        self.note(format_args!("{from} -> store #{number} {}", letter.call.name()));
        let who = (seat, self.seats[seat].boots);
        if !self.gets_through(from, Party::Store) {
            self.note(format_args!("#{number} is lost"));
            self.fail_letter(who, number, letter);
            return;
        }
        let mut wait = self.delay();
        if self.time.now() < self.store.slow_until {
            wait += self.chance.between(Duration::ZERO, LEASE / 4);
        }
        self.plan_in(wait, Event::StoreArrive { from: who, number, letter });
    }

    /// The caller hears of an error that says nothing, or does not hear at all.
    fn fail_letter(&mut self, to: (usize, u32), number: u64, letter: Letter) {
        if self.chance.permille(500) {
            self.net.limbo.push(letter.reply);
        } else {
            let wait = self.delay();
            let answer = Err(link::failed(letter.call.name(), "the connection broke"));
            self.plan_in(wait, Event::StoreAnswer { to, number, reply: letter.reply, answer });
        }
    }

    pub(super) fn store_arrive(
        &mut self,
        from: (usize, u32),
        number: u64,
        letter: Letter,
    ) -> Result<(), Violation> {
        let now = self.time.now();
        if now < self.store.errors_until {
            self.note(format_args!("the store refuses #{number}"));
            self.fail_letter(from, number, letter);
            return Ok(());
        }
        let applied = self.store.server.apply(&letter.call);
        self.note(format_args!("the store does #{number}: {}", applied.took));
        if let (Call::Commit { shard, at, ops }, true) = (&letter.call, applied.took) {
            self.committed(from.0, *shard, *at, ops)?;
        }
        if let Some(key) = applied.changed {
            self.tell_watches(&key, |_| true);
        }
        let party = self.seats[from.0].party;
        let silent = now < self.store.silent_until && self.chance.permille(500);
        if silent || !self.gets_through(Party::Store, party) {
            self.note(format_args!("the answer to #{number} is lost"));
            self.fail_letter(from, number, letter);
            return Ok(());
        }
        if let Some((key, bell)) = applied.bell.filter(|_| self.is_same(from.0, from.1)) {
            self.net.watches.push(Some(Watching { seat: from.0, key, bell }));
        }
        let wait = self.delay();
        let (reply, answer) = (letter.reply, Ok(applied.reply));
        self.plan_in(wait, Event::StoreAnswer { to: from, number, reply, answer });
        Ok(())
    }

    pub(super) fn tell_watches(&mut self, key: &Key, hears: impl Fn(&Seat) -> bool) {
        for watch in 0..self.net.watches.len() {
            let Some(it) = &self.net.watches[watch] else { continue };
            let party = self.seats[it.seat].party;
            let hears = hears(&self.seats[it.seat]);
            if it.key == *key && hears && self.gets_through(Party::Store, party) {
                let wait = self.delay();
                self.plan_in(wait, Event::Ring(watch));
            }
        }
    }
}
