//! What is to be done for runs, so much of each kind at a time.

use std::collections::VecDeque;

use kapell_core::run::{StopKind, WorkEnd};

use super::backend::Attempt;
use super::slab::Key;
use crate::constraint::Slots;

/// How much of each kind may be under way at once.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    pub checks: usize,
    pub actions: usize,
    /// Checks after the work, with their actions.
    pub posts: usize,
    pub launches: usize,
    pub stops: usize,
    pub finds: usize,
    pub releases: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            checks: 256,
            actions: 1_024,
            posts: 1_024,
            launches: 128,
            stops: 256,
            finds: 64,
            releases: 16,
        }
    }
}

/// What is to be done for one run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Deed {
    Check,
    Act,
    CheckPost { work: WorkEnd },
    Launch,
    Find,
    Stop { kind: StopKind },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Errand {
    pub(super) key: Key,
    pub(super) ticket: u32,
    pub(super) attempt: u32,
    pub(super) deed: Deed,
}

/// Attempts that nobody needs any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Discharge {
    pub(super) backend: usize,
    pub(super) attempts: Vec<Attempt>,
    /// Whatever there is of them is ended first.
    pub(super) stop: bool,
}

/// The kinds of deeds that have a limit of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Check,
    Action,
    Post,
    Launch,
    Stop,
    Find,
    Release,
}

impl Deed {
    pub(super) const fn kind(&self) -> Kind {
        match self {
            Self::Check => Kind::Check,
            Self::Act => Kind::Action,
            Self::CheckPost { .. } => Kind::Post,
            Self::Launch => Kind::Launch,
            Self::Find => Kind::Find,
            Self::Stop { .. } => Kind::Stop,
        }
    }
}

#[derive(Debug)]
struct Lane<T> {
    waiting: VecDeque<T>,
    busy: Slots,
    most: usize,
}

impl<T> Lane<T> {
    fn new(most: usize) -> Self {
        Self { waiting: VecDeque::new(), busy: Slots::default(), most }
    }

    fn take(&mut self) -> Option<T> {
        if self.busy.taken() >= self.most {
            return None;
        }
        let next = self.waiting.pop_front()?;
        self.busy.take();
        let_go(&mut self.waiting);
        Some(next)
    }
}

/// So many slots of an empty queue are kept.
const KEPT: usize = 4_096;

/// What a rush needed is not kept when it is over.
pub(super) fn let_go<T>(queue: &mut VecDeque<T>) {
    if queue.is_empty() && queue.capacity() > KEPT {
        *queue = VecDeque::new();
    }
}

/// An errand that waits here costs no task, and its run is not stuck.
#[derive(Debug)]
pub(super) struct Lanes {
    checks: Lane<Errand>,
    actions: Lane<Errand>,
    posts: Lane<Errand>,
    launches: Lane<Errand>,
    stops: Lane<Errand>,
    finds: Lane<Errand>,
    releases: Lane<Discharge>,
}

impl Lanes {
    pub(super) fn new(limits: &Limits) -> Self {
        Self {
            checks: Lane::new(limits.checks),
            actions: Lane::new(limits.actions),
            posts: Lane::new(limits.posts),
            launches: Lane::new(limits.launches),
            stops: Lane::new(limits.stops),
            finds: Lane::new(limits.finds),
            releases: Lane::new(limits.releases),
        }
    }

    pub(super) fn add(&mut self, errand: Errand) {
        let lane = match errand.deed.kind() {
            Kind::Check => &mut self.checks,
            Kind::Action => &mut self.actions,
            Kind::Post => &mut self.posts,
            Kind::Launch => &mut self.launches,
            Kind::Stop => &mut self.stops,
            Kind::Find => &mut self.finds,
            Kind::Release => return,
        };
        lane.waiting.push_back(errand);
    }

    pub(super) fn discharge(&mut self, discharge: Discharge) {
        self.releases.waiting.push_back(discharge);
    }

    /// The next errand that may begin: what ends goes before what begins.
    pub(super) fn take(&mut self) -> Option<Errand> {
        let lanes = [
            &mut self.stops,
            &mut self.finds,
            &mut self.posts,
            &mut self.actions,
            &mut self.checks,
            &mut self.launches,
        ];
        lanes.into_iter().find_map(Lane::take)
    }

    pub(super) fn take_discharge(&mut self) -> Option<Discharge> {
        self.releases.take()
    }

    /// One of this kind has ended, or was not begun after all.
    pub(super) fn ended(&self, kind: Kind) {
        self.slots(kind).give_back();
    }

    /// Those of a kind, for whoever is to rest and let others have one meanwhile.
    pub(super) const fn slots(&self, kind: Kind) -> &Slots {
        match kind {
            Kind::Check => &self.checks.busy,
            Kind::Action => &self.actions.busy,
            Kind::Post => &self.posts.busy,
            Kind::Launch => &self.launches.busy,
            Kind::Stop => &self.stops.busy,
            Kind::Find => &self.finds.busy,
            Kind::Release => &self.releases.busy,
        }
    }
}
