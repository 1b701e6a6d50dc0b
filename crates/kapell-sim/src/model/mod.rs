//! Three hosts, one seat, two shards: every order of events, late messages, pauses, crashes and
//! releases within bounds, with the very rule that runs in production.
//!
//! Hosts on time are on time: the clock moves on only when everything due has happened and every
//! message that nobody held up has arrived. What is not on time costs one of a few faults.

mod host;
mod properties;
mod store;
#[cfg(test)]
mod tests;
mod wire;
mod world;

use kapell_core::election::{Answer, Event};
use stateright::{Model, Property};

pub use host::{Brain, End, Host, Process, Reign, Stage, State, Work};
pub use properties::{
    AFTER_CRASH, AFTER_KILL, AFTER_PAUSE, AFTER_RELEASE, COMMITTED, DEADLINE, EPOCHS, FENCED,
    FOUND, KEPT, KILLER, LATE_COMMIT, LOSER, ONE_LEADER, SERVICES, SOMEONE, STANDS, SUCCESSION,
};
use properties::{examples, rules};
pub use store::{Change, Entry, Fence, Store};
pub use wire::{Body, Message, Reply, Request, Sight, Who};
pub use world::{Breach, Deed, World};

/// The model: how large the world is, how much may go wrong, and which rule is broken on purpose.
#[derive(Debug, Clone)]
pub struct Elections {
    pub bounds: Bounds,
    pub faults: Faults,
    pub mutant: Option<Mutant>,
}

/// All times in ticks.
#[derive(Debug, Clone)]
pub struct Bounds {
    pub hosts: u8,
    pub lease: u8,
    pub poll: u8,
    pub horizon: u8,
    /// Seekers and leaders are told of inserts and deletions.
    pub watch: bool,
    /// From here on nothing goes wrong any more, and someone must lead at the horizon.
    pub calm: Option<u8>,
}

/// How often each thing may still happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Faults {
    /// Of the next four together.
    pub any: u8,
    /// Messages held up, or lost if they never arrive.
    pub delays: u8,
    pub pauses: u8,
    pub crashes: u8,
    pub resigns: u8,
    /// Of a new process where one is gone.
    pub starts: u8,
    pub commits: u8,
}

/// A rule broken on purpose, to show that the model sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mutant {
    /// A host counts its lease from when the answer arrives: its clock stands while it waits.
    CountsFromAnswer,
    /// The store lets every commit in.
    NoFence,
    /// The store inserts whatever the generation is.
    NoGeneration,
    /// Records hold an address only, and all hosts have the same.
    NoOwner,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    Tick,
    /// A message arrives, by its place in the wire.
    Arrive(usize),
    HoldUp(usize),
    Due(u8),
    TimeOut(u8),
    Raise(u8),
    Commit(u8, u8),
    Kill(u8),
    Crash(u8),
    Pause(u8),
    Resume(u8),
    Resign(u8),
    Start(u8),
}

impl Elections {
    fn is_calm(&self, world: &World) -> bool {
        self.bounds.calm.is_some_and(|calm| world.now >= calm)
    }

    /// Whether one more fault of a kind may happen of which so many are left.
    fn may(&self, world: &World, left: u8) -> bool {
        left > 0 && world.left.any > 0 && !self.is_calm(world)
    }

    /// What a host must do before anything else happens, with all that may happen instead.
    ///
    /// Steps of different hosts do not depend on each other until the store hears of them, so
    /// one order of hosts stands for all.
    fn urgent(&self, world: &World, slot: u8, actions: &mut Vec<Action>) {
        let Some(process) = world.host(slot).running() else { return };
        let now = world.now;
        if process.may_act(now) && process.reign.as_ref().is_some_and(|it| it.unraised().is_some())
        {
            actions.push(Action::Raise(slot));
            return;
        }
        let answers = || {
            let to_it = |message: &Message| message.is_answer() && message.who.slot == slot;
            world.wire.iter().enumerate().filter(move |(_, message)| to_it(message))
        };
        for (at, _) in answers().filter(|(_, message)| !message.late) {
            actions.push(Action::Arrive(at));
            if self.may(world, world.left.delays) {
                actions.push(Action::HoldUp(at));
            }
        }
        if process.is_to_be_killed(now) {
            actions.push(Action::Kill(slot));
        }
        if process.timed_out(now).is_some() {
            actions.push(Action::TimeOut(slot));
        }
        if process.is_due(now) {
            actions.push(Action::Due(slot));
        }
        if !actions.is_empty() {
            let late = answers().filter(|(_, message)| message.late);
            actions.extend(late.map(|(at, _)| Action::Arrive(at)));
        }
    }

    fn messages(&self, world: &World, actions: &mut Vec<Action>) {
        for (at, message) in world.wire.iter().enumerate() {
            if message.is_answer() && world.host(message.who.slot).running().is_none() {
                continue;
            }
            actions.push(Action::Arrive(at));
            if !message.late && self.may(world, world.left.delays) {
                actions.push(Action::HoldUp(at));
            }
        }
    }

    /// What a host may do or suffer. One that waits for nothing may wait with it until the store
    /// has done what it was asked for: it makes no difference.
    fn freedoms(&self, world: &World, slot: u8, actions: &mut Vec<Action>) {
        let left = &world.left;
        let Some(process) = world.host(slot).process() else {
            if left.starts > 0 && !self.is_calm(world) {
                actions.push(Action::Start(slot));
            }
            return;
        };
        if process.paused {
            actions.push(Action::Resume(slot));
            return;
        }
        let mut requests = world.wire.iter().filter(|message| message.is_fresh_request());
        if !self.may_tick(world) && requests.all(|message| message.who.slot != slot) {
            return;
        }
        for shard in 0..2 {
            let open = process.reign.as_ref().and_then(|reign| reign.open(shard));
            if left.commits > 0 && open.is_some() && process.may_act(world.now) {
                actions.push(Action::Commit(slot, shard));
            }
        }
        if self.may(world, left.crashes) {
            actions.push(Action::Crash(slot));
        }
        if self.may(world, left.pauses) {
            actions.push(Action::Pause(slot));
        }
        let is_free = matches!(process.stage, Stage::Seeking | Stage::Leading);
        if self.may(world, left.resigns) && is_free {
            actions.push(Action::Resign(slot));
        }
    }

    fn may_tick(&self, world: &World) -> bool {
        let next = world.now + 1;
        let mut processes = world.processes();
        let all_awake = self.bounds.calm.is_none_or(|calm| next < calm)
            || processes.all(|(_, process)| !process.paused);
        world.now < self.bounds.horizon
            && all_awake
            && !world.wire.iter().any(Message::is_fresh_request)
    }

    fn act(&self, world: &mut World, action: Action) {
        match action {
            Action::Tick => world.tick(self),
            Action::Arrive(at) => {
                let message = world.wire.remove(at);
                world.arrive(message, self);
            }
            Action::HoldUp(at) => {
                world.wire[at].late = true;
                world.left.delays -= 1;
                world.left.any -= 1;
            }
            Action::Due(slot) => world.step(slot, Event::Due),
            Action::TimeOut(slot) => {
                let process = world.host(slot).process();
                if let Some(ticket) = process.and_then(|it| it.timed_out(world.now)) {
                    world.step(slot, Event::Answered(ticket, Answer::Unknown));
                }
            }
            Action::Raise(slot) => world.send_raise(slot),
            Action::Commit(slot, shard) => {
                world.left.commits -= 1;
                world.send_commit(slot, shard);
            }
            Action::Kill(slot) => world.host_mut(slot).end(End::Killed),
            Action::Crash(slot) => {
                world.left.crashes -= 1;
                world.left.any -= 1;
                world.host_mut(slot).end(End::Crashed);
            }
            Action::Pause(slot) => {
                world.left.pauses -= 1;
                world.left.any -= 1;
                world.pause(slot, true);
            }
            Action::Resume(slot) => world.pause(slot, false),
            Action::Resign(slot) => {
                world.left.resigns -= 1;
                world.left.any -= 1;
                world.step(slot, Event::Resign);
            }
            Action::Start(slot) => {
                world.left.starts -= 1;
                world.start(slot, self);
            }
        }
    }
}

impl Model for Elections {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        vec![World::new(self)]
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        if world.breach.is_some() {
            return;
        }
        for slot in 0..self.bounds.hosts {
            self.urgent(world, slot, actions);
            if !actions.is_empty() {
                return;
            }
        }
        self.messages(world, actions);
        for slot in 0..self.bounds.hosts {
            self.freedoms(world, slot, actions);
        }
        if self.may_tick(world) {
            actions.push(Action::Tick);
        }
    }

    fn next_state(&self, last: &World, action: Action) -> Option<World> {
        let mut world = last.clone();
        world.deeds.clear();
        self.act(&mut world, action);
        world.settle(self);
        Some(world)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        rules().into_iter().chain(examples()).collect()
    }
}
