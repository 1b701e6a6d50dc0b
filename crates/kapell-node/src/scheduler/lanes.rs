//! What is to be done for runs, so much of each kind at a time.

use std::collections::VecDeque;

use kapell_core::run::{StopKind, WorkEnd};

use super::backend::Attempt;
use super::slab::Key;

/// How much of each kind may be under way at once.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    pub checks: usize,
    pub actions: usize,
    pub launches: usize,
    pub stops: usize,
    pub finds: usize,
    pub releases: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { checks: 256, actions: 1_024, launches: 128, stops: 256, finds: 64, releases: 16 }
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
    Launch,
    Stop,
    Find,
    Release,
}

impl Deed {
    pub(super) const fn kind(&self) -> Kind {
        match self {
            Self::Check => Kind::Check,
            Self::Act | Self::CheckPost { .. } => Kind::Action,
            Self::Launch => Kind::Launch,
            Self::Find => Kind::Find,
            Self::Stop { .. } => Kind::Stop,
        }
    }
}

#[derive(Debug)]
struct Lane<T> {
    waiting: VecDeque<T>,
    busy: usize,
    most: usize,
}

impl<T> Lane<T> {
    const fn new(most: usize) -> Self {
        Self { waiting: VecDeque::new(), busy: 0, most }
    }

    fn take(&mut self) -> Option<T> {
        if self.busy >= self.most {
            return None;
        }
        let next = self.waiting.pop_front()?;
        self.busy += 1;
        Some(next)
    }
}

/// An errand that waits here costs no task, and its run is not stuck.
#[derive(Debug)]
pub(super) struct Lanes {
    checks: Lane<Errand>,
    actions: Lane<Errand>,
    launches: Lane<Errand>,
    stops: Lane<Errand>,
    finds: Lane<Errand>,
    releases: Lane<Discharge>,
}

impl Lanes {
    pub(super) const fn new(limits: &Limits) -> Self {
        Self {
            checks: Lane::new(limits.checks),
            actions: Lane::new(limits.actions),
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
    pub(super) const fn ended(&mut self, kind: Kind) {
        let busy = match kind {
            Kind::Check => &mut self.checks.busy,
            Kind::Action => &mut self.actions.busy,
            Kind::Launch => &mut self.launches.busy,
            Kind::Stop => &mut self.stops.busy,
            Kind::Find => &mut self.finds.busy,
            Kind::Release => &mut self.releases.busy,
        };
        *busy = busy.saturating_sub(1);
    }
}
