use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use kapell_core::election::{Candidate, Effect, Event, Lease, Setup, Ticket};
use kapell_core::seams::{Moment, Timestamp};
use kapell_core::seat::{Epoch, Owner, Record, Seat};
use rustc_hash::FxHasher;

use super::Bounds;

/// What every candidate is called among its own. Who is meant is added on the wire, so that hosts
/// in the same state are the same state.
pub(super) const OWN: Owner = Owner(0);
pub(super) const OTHER: Owner = Owner(1);

/// A place where a process runs, ran or may run again.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Host {
    pub life: u8,
    pub state: State,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum State {
    Up(Process),
    Gone { how: End, led: Option<u8> },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum End {
    Crashed,
    Killed,
    Left,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Process {
    pub paused: bool,
    pub brain: Brain,
    /// Calls that the process waits for, and until when it does.
    pub calls: Vec<(u64, Moment)>,
    pub stage: Stage,
    /// The seat it won, if it did.
    pub reign: Option<Reign>,
    /// By how much its clock is behind; only a mutant's is.
    pub lag: u8,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stage {
    Seeking,
    Leading,
    Lost,
    Leaving,
}

/// What a leader does with its epoch.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Reign {
    pub epoch: u8,
    pub shards: [Work; 2],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Work {
    Untouched,
    Raising,
    Open(u8),
    Committing(u8),
    Fenced,
}

/// The rule itself. Shared between states and hashed once.
#[derive(Debug, Clone)]
pub struct Brain {
    pub rule: Arc<Candidate>,
    hash: u64,
}

impl Brain {
    fn new(rule: Candidate) -> Self {
        let mut hasher = FxHasher::default();
        rule.hash(&mut hasher);
        Self { rule: Arc::new(rule), hash: hasher.finish() }
    }
}

impl PartialEq for Brain {
    fn eq(&self, other: &Self) -> bool {
        self.hash == other.hash && self.rule == other.rule
    }
}

impl Eq for Brain {}

impl Hash for Brain {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}

impl Reign {
    pub const fn new(epoch: u8) -> Self {
        Self { epoch, shards: [Work::Untouched; 2] }
    }

    /// The next shard to raise: one after the other.
    pub fn unraised(&self) -> Option<u8> {
        match self.shards {
            [Work::Untouched, _] => Some(0),
            [Work::Open(_) | Work::Committing(_), Work::Untouched] => Some(1),
            [..] => None,
        }
    }

    /// Where the next commit to a shard goes, if one may be sent.
    pub fn open(&self, shard: u8) -> Option<u8> {
        let is_raised = |work: &Work| matches!(work, Work::Open(_) | Work::Committing(_));
        match self.shards[usize::from(shard)] {
            Work::Open(seq) if self.shards.iter().all(is_raised) => Some(seq),
            Work::Open(_)
            | Work::Untouched
            | Work::Raising
            | Work::Committing(_)
            | Work::Fenced => None,
        }
    }
}

impl Process {
    pub fn start(bounds: &Bounds, now: u8) -> (Self, Vec<Effect>) {
        let setup = Setup {
            owner: OWN,
            address: String::new(),
            since: Timestamp(0),
            seats: vec![Seat::FIRST],
            lease: Lease::new(ticks(bounds.lease)),
            window: None,
            poll: ticks(bounds.poll),
        };
        let (rule, effects) = Candidate::new(setup, moment(now));
        let process = Self {
            paused: false,
            brain: Brain::new(rule),
            calls: Vec::new(),
            stage: Stage::Seeking,
            reign: None,
            lag: 0,
        };
        (process, effects)
    }

    pub fn step(&mut self, event: Event, now: u8) -> Vec<Effect> {
        let mut rule = Candidate::clone(&self.brain.rule);
        let effects = rule.step(event, self.time(now));
        self.brain = Brain::new(rule);
        effects
    }

    /// What its clock says.
    pub fn time(&self, now: u8) -> Moment {
        moment(now - self.lag)
    }

    pub fn may_act(&self, now: u8) -> bool {
        self.brain.rule.may_act(self.time(now))
    }

    pub fn is_due(&self, now: u8) -> bool {
        self.brain.rule.due().is_some_and(|due| due <= self.time(now))
    }

    pub fn is_to_be_killed(&self, now: u8) -> bool {
        self.brain.rule.kill_at().is_some_and(|at| at <= self.time(now))
    }

    /// The first call whose time is up.
    pub fn timed_out(&self, now: u8) -> Option<Ticket> {
        let time = self.time(now);
        self.calls.iter().find(|(_, until)| *until <= time).map(|(ticket, _)| Ticket(*ticket))
    }

    /// Whether its services may be up: from when it leads until it resigns or is killed.
    pub fn serves(&self, now: u8) -> bool {
        matches!(self.stage, Stage::Leading | Stage::Lost) && !self.is_to_be_killed(now)
    }

    pub fn led(&self) -> Option<u8> {
        self.reign.as_ref().map(|reign| reign.epoch)
    }
}

impl Host {
    pub fn process(&self) -> Option<&Process> {
        match &self.state {
            State::Up(process) => Some(process),
            State::Gone { .. } => None,
        }
    }

    pub fn process_mut(&mut self) -> Option<&mut Process> {
        match &mut self.state {
            State::Up(process) => Some(process),
            State::Gone { .. } => None,
        }
    }

    /// The process, if it gets time to run.
    pub fn running(&self) -> Option<&Process> {
        self.process().filter(|process| !process.paused)
    }

    pub fn end(&mut self, how: End) {
        if let State::Up(process) = &self.state {
            self.state = State::Gone { how, led: process.led() };
        }
    }
}

/// One tick is a millisecond, the shortest wait of the rule.
pub(super) fn ticks(count: u8) -> Duration {
    Duration::from_millis(u64::from(count))
}

pub(super) fn moment(tick: u8) -> Moment {
    Moment::from_origin(ticks(tick))
}

pub(super) fn record(epoch: u8, owner: Owner) -> Record {
    Record { epoch: Epoch(u64::from(epoch)), owner, address: String::new(), since: Timestamp(0) }
}
