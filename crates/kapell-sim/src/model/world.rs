use std::hash::{Hash, Hasher};
use std::time::Duration;

use kapell_core::election::{Answer, Ask, Effect, Event, Holder, Loss, Notice, Ticket};
use kapell_core::seat::{Epoch, Seat};
use rustc_hash::FxHasher;

use super::host::{End, Host, OTHER, OWN, Process, Reign, Stage, State, Work, record, ticks};
use super::store::{Change, Fence, Store};
use super::wire::{Body, Message, Reply, Request, Who};
use super::{Elections, Faults, Mutant};

/// Everything at one moment.
#[derive(Debug, Clone)]
pub struct World {
    pub now: u8,
    pub store: Store,
    pub hosts: Vec<Host>,
    pub wire: Vec<Message>,
    pub left: Faults,
    /// The last epoch that a host was told it has.
    pub led: u8,
    pub breach: Option<Breach>,
    /// What the last step was an example of. Tells no two worlds apart.
    pub deeds: Vec<Deed>,
}

/// A rule that was broken on the way here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Breach {
    LateCommit,
    EpochAgain,
    LoserDeletes,
    DeletedUnderLeader,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deed {
    Succeeded,
    SucceededCrashed,
    SucceededPaused,
    SucceededReleased,
    SucceededKilled,
    InsertFoundAsOurs,
    OldCommitFenced,
    Committed,
    LostByDeadline,
}

impl PartialEq for World {
    fn eq(&self, other: &Self) -> bool {
        self.now == other.now
            && self.store == other.store
            && self.hosts == other.hosts
            && self.wire == other.wire
            && self.left == other.left
            && self.led == other.led
            && self.breach == other.breach
    }
}

impl Eq for World {}

impl Hash for World {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let Self { now, store, hosts, wire, left, led, breach, deeds: _ } = self;
        (now, store, hosts, wire, left, led, breach).hash(state);
    }
}

impl World {
    pub fn new(model: &Elections) -> Self {
        let mut world = Self {
            now: 0,
            store: Store::default(),
            hosts: Vec::new(),
            wire: Vec::new(),
            left: model.faults,
            led: 0,
            breach: None,
            deeds: Vec::new(),
        };
        for slot in 0..model.bounds.hosts {
            world.hosts.push(Host { life: 0, state: State::Gone { how: End::Left, led: None } });
            world.start(slot, model);
        }
        world.settle(model);
        world
    }

    pub fn host(&self, slot: u8) -> &Host {
        &self.hosts[usize::from(slot)]
    }

    pub fn host_mut(&mut self, slot: u8) -> &mut Host {
        &mut self.hosts[usize::from(slot)]
    }

    pub fn processes(&self) -> impl Iterator<Item = (Who, &Process)> {
        (0..)
            .zip(&self.hosts)
            .filter_map(|(slot, host)| Some((Who { slot, life: host.life }, host.process()?)))
    }

    /// Those that may act now.
    pub fn leaders(&self) -> impl Iterator<Item = (Who, &Process)> {
        self.processes().filter(|(_, process)| process.may_act(self.now))
    }

    pub fn start(&mut self, slot: u8, model: &Elections) {
        let (process, effects) = Process::start(&model.bounds, self.now);
        let host = self.host_mut(slot);
        host.life += 1;
        host.state = State::Up(process);
        self.perform(slot, effects, false);
    }

    pub fn tick(&mut self, model: &Elections) {
        self.now += 1;
        self.store.expire(self.now);
        for process in self.hosts.iter_mut().filter_map(Host::process_mut) {
            if model.mutant == Some(Mutant::CountsFromAnswer) && !process.calls.is_empty() {
                process.lag += 1;
            }
        }
        if model.bounds.calm == Some(self.now) {
            self.wire.retain(|message| !message.late);
        }
    }

    /// Something happens to the process of a host.
    pub fn step(&mut self, slot: u8, event: Event) {
        let now = self.now;
        let Some(process) = self.host_mut(slot).process_mut() else { return };
        if event == Event::Resign {
            process.calls.clear();
            if process.stage != Stage::Lost {
                process.stage = Stage::Leaving;
            }
        }
        let by_read = matches!(event, Event::Answered(_, Answer::Seen { .. }));
        if let Event::Answered(ticket, _) = &event {
            process.calls.retain(|(call, _)| call != &ticket.0);
        }
        let effects = process.step(event, now);
        self.perform(slot, effects, by_read);
    }

    fn perform(&mut self, slot: u8, effects: Vec<Effect>, by_read: bool) {
        for effect in effects {
            match effect {
                Effect::Send { ticket, ask, within, .. } => self.send(slot, ticket, &ask, within),
                Effect::Tell(notice) => self.tell(slot, &notice, by_read),
            }
        }
    }

    fn send(&mut self, slot: u8, ticket: Ticket, ask: &Ask, within: Duration) {
        let now = self.now;
        let Some(process) = self.host_mut(slot).process_mut() else { return };
        let until = process.time(now).after(within);
        process.calls.push((ticket.0, until));
        let lost = process.stage == Stage::Lost;
        let request = match ask {
            Ask::Read => Request::Read,
            Ask::Insert(record) => Request::Insert(short(record.epoch)),
            Ask::Renew(record) => Request::Renew(short(record.epoch)),
            Ask::Delete(record) => Request::Delete(short(record.epoch)),
        };
        if lost && matches!(request, Request::Delete(_)) {
            self.breach = Some(Breach::LoserDeletes);
        }
        self.post(slot, Body::Ask(ticket.0, request));
    }

    fn tell(&mut self, slot: u8, notice: &Notice, by_read: bool) {
        match notice {
            Notice::Acquired { epoch, .. } => {
                let epoch = short(*epoch);
                if epoch <= self.led {
                    self.breach = Some(Breach::EpochAgain);
                }
                self.led = epoch;
                if by_read {
                    self.deeds.push(Deed::InsertFoundAsOurs);
                }
                self.note_succession(slot, epoch);
                if let Some(process) = self.host_mut(slot).process_mut() {
                    process.stage = Stage::Leading;
                    process.reign = Some(Reign::new(epoch));
                }
            }
            Notice::Renewed => {}
            Notice::Lost(why) => {
                if *why == Loss::Deadline {
                    self.deeds.push(Deed::LostByDeadline);
                }
                if let Some(process) = self.host_mut(slot).process_mut() {
                    process.stage = Stage::Lost;
                    process.calls.clear();
                }
            }
            Notice::NotAcquired | Notice::Resigned => self.host_mut(slot).end(End::Left),
        }
    }

    fn note_succession(&mut self, slot: u8, epoch: u8) {
        let others = (0..).zip(&self.hosts).filter(|(other, _)| *other != slot);
        for (_, host) in others {
            let (led, deed) = match &host.state {
                State::Up(process) if process.paused => (process.led(), Deed::SucceededPaused),
                State::Up(process) => (process.led(), Deed::Succeeded),
                State::Gone { how: End::Crashed, led } => (*led, Deed::SucceededCrashed),
                State::Gone { how: End::Left, led } => (*led, Deed::SucceededReleased),
                State::Gone { how: End::Killed, led } => (*led, Deed::SucceededKilled),
            };
            if led.is_some_and(|led| led + 1 == epoch) {
                self.deeds.extend([Deed::Succeeded, deed]);
            }
        }
    }

    pub fn pause(&mut self, slot: u8, paused: bool) {
        if let Some(process) = self.host_mut(slot).process_mut() {
            process.paused = paused;
        }
    }

    pub fn send_raise(&mut self, slot: u8) {
        let Some(reign) = self.reign_mut(slot) else { return };
        let Some(shard) = reign.unraised() else { return };
        reign.shards[usize::from(shard)] = Work::Raising;
        let body = Body::Raise { shard, epoch: reign.epoch };
        self.post(slot, body);
    }

    pub fn send_commit(&mut self, slot: u8, shard: u8) {
        let Some(reign) = self.reign_mut(slot) else { return };
        let Some(seq) = reign.open(shard) else { return };
        reign.shards[usize::from(shard)] = Work::Committing(seq);
        let body = Body::Commit { shard, epoch: reign.epoch, seq };
        self.post(slot, body);
    }

    fn reign_mut(&mut self, slot: u8) -> Option<&mut Reign> {
        self.host_mut(slot).process_mut()?.reign.as_mut()
    }

    fn post(&mut self, slot: u8, body: Body) {
        let who = Who { slot, life: self.host(slot).life };
        self.wire.push(Message { who, late: false, body });
    }

    /// A message arrives where it was sent to.
    pub fn arrive(&mut self, message: Message, model: &Elections) {
        let Message { who, body, late } = message;
        match body {
            Body::Answer(ticket, reply) => {
                self.step(who.slot, Event::Answered(Ticket(ticket), answer(reply)));
            }
            Body::Ask(ticket, request) => self.ask(who, ticket, request, model),
            Body::Raise { shard, epoch } => {
                let work = match self.store.raise(shard, epoch) {
                    Some(seq) => Work::Open(seq),
                    None => Work::Fenced,
                };
                self.work(who, epoch, shard, work);
            }
            Body::Commit { shard, epoch, seq } => {
                let raised = self.store.fences[usize::from(shard)].epoch;
                let landed = self.store.commit(shard, Fence { epoch, seq }, model.mutant);
                if landed && epoch < raised {
                    self.breach = Some(Breach::LateCommit);
                }
                if landed {
                    self.deeds.push(Deed::Committed);
                } else if late && epoch < raised {
                    self.deeds.push(Deed::OldCommitFenced);
                }
                let work = if landed { Work::Open(seq + 1) } else { Work::Fenced };
                self.work(who, epoch, shard, work);
            }
        }
    }

    fn ask(&mut self, who: Who, ticket: u64, request: Request, model: &Elections) {
        let last = self.store.generation;
        let until = self.now + model.bounds.lease;
        let (reply, change) = self.store.ask(who, request, until, self.now, model.mutant);
        match (change, request) {
            (Change::Inserted, Request::Insert(epoch)) if epoch <= last => {
                self.breach = Some(Breach::EpochAgain);
            }
            (Change::Deleted(entry), _) => {
                let is_leader = self.leaders().any(|(who, _)| who == entry.who);
                if is_leader {
                    self.breach = Some(Breach::DeletedUnderLeader);
                }
            }
            (Change::None | Change::Inserted | Change::Renewed, _) => {}
        }
        if self.waits(who, ticket) {
            self.wire.push(Message { who, late: false, body: Body::Answer(ticket, reply) });
        }
        if model.bounds.watch && matches!(change, Change::Inserted | Change::Deleted(_)) {
            for slot in 0..model.bounds.hosts {
                if self.host(slot).running().is_some() {
                    self.step(slot, Event::Changed(Seat::FIRST));
                }
            }
        }
    }

    /// A leader learns what became of its raise or commit.
    fn work(&mut self, who: Who, epoch: u8, shard: u8, work: Work) {
        let host = self.host_mut(who.slot);
        if host.life == who.life
            && let Some(process) = host.process_mut()
            && let Some(reign) = process.reign.as_mut().filter(|reign| reign.epoch == epoch)
        {
            reign.shards[usize::from(shard)] = work;
        }
    }

    fn waits(&self, who: Who, ticket: u64) -> bool {
        let host = self.host(who.slot);
        let mut calls = host.process().into_iter().flat_map(|process| &process.calls);
        host.life == who.life && calls.any(|(call, _)| *call == ticket)
    }

    /// Brings the world into the form that all worlds have which differ in nothing that matters:
    /// messages without effect are gone, and hosts stand in an order of their own.
    pub fn settle(&mut self, model: &Elections) {
        let wire = std::mem::take(&mut self.wire);
        self.wire = wire.into_iter().filter(|message| self.matters(message, model)).collect();
        self.wire.sort_unstable();
        let mut order: Vec<(u64, u8)> = Vec::new();
        for slot in 0..model.bounds.hosts {
            order.push((self.look_of(slot), slot));
        }
        if order.is_sorted() {
            return;
        }
        order.sort_unstable();
        let old = std::mem::take(&mut self.hosts);
        let mut moved = vec![0; old.len()];
        for ((_, from), to) in order.iter().zip(0..) {
            moved[usize::from(*from)] = to;
            self.hosts.push(old[usize::from(*from)].clone());
        }
        let rename = |who: &mut Who| who.slot = moved[usize::from(who.slot)];
        self.wire.iter_mut().for_each(|message| rename(&mut message.who));
        self.wire.sort_unstable();
        self.store.entry.iter_mut().for_each(|entry| rename(&mut entry.who));
    }

    fn matters(&self, message: &Message, model: &Elections) -> bool {
        let who = message.who;
        match message.body {
            Body::Answer(ticket, _) => self.waits(who, ticket),
            Body::Ask(ticket, request) => {
                let is_moot = match model.mutant {
                    None => self.store.is_moot(who, request),
                    Some(_) => request == Request::Read,
                };
                !is_moot || self.waits(who, ticket)
            }
            Body::Raise { .. } | Body::Commit { .. } => true,
        }
    }

    /// What there is of a host without its place.
    fn look_of(&self, slot: u8) -> u64 {
        let mut hasher = FxHasher::default();
        let host = self.host(slot);
        host.hash(&mut hasher);
        let entry = self.store.entry.filter(|entry| entry.who.slot == slot);
        entry.map(|entry| entry.who.life).hash(&mut hasher);
        for message in self.wire.iter().filter(|message| message.who.slot == slot) {
            (message.who.life, message.late, message.body).hash(&mut hasher);
        }
        hasher.finish()
    }
}

fn short(epoch: Epoch) -> u8 {
    u8::try_from(epoch.0).unwrap_or(u8::MAX)
}

fn answer(reply: Reply) -> Answer {
    match reply {
        Reply::Seen { last, holder } => Answer::Seen {
            last: Epoch(u64::from(last)),
            holder: holder.map(|sight| Holder {
                record: Some(record(sight.epoch, if sight.is_own { OWN } else { OTHER })),
                remaining: Some(ticks(sight.remaining)),
            }),
        },
        Reply::Done => Answer::Done,
        Reply::Lost => Answer::Lost,
    }
}
