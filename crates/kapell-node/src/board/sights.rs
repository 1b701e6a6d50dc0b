//! How runs stand between what is stored of them, for those who look.
//!
//! Only runs that are further than their records are in here. The scheduler puts them in and takes them out; readers
//! look up one at a time, so that nobody holds up the scheduler for long.

use std::hash::{BuildHasher as _, BuildHasherDefault};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use kapell_core::board::{Change, Event};
use kapell_core::run::{Doing, Run, RunId, RunState, Sight, Timeline};
use kapell_core::seams::Timestamp;
use rustc_hash::{FxHashMap, FxHasher};

use super::handle::Board;

/// So many parts are locked apart from each other.
const PARTS: usize = 64;
/// What an event weighs besides the texts that are in it.
const WEIGHT: usize = 1_024;

type Part = FxHashMap<RunId, Sight>;

/// All runs that are further than their records.
#[derive(Debug)]
pub struct Sights {
    parts: [RwLock<Part>; PARTS],
}

impl Default for Sights {
    fn default() -> Self {
        Self { parts: std::array::from_fn(|_| RwLock::default()) }
    }
}

impl Sights {
    fn part(&self, run_id: &RunId) -> &RwLock<Part> {
        let hash = BuildHasherDefault::<FxHasher>::default().hash_one(run_id);
        // The upper bits are the good ones.
        &self.parts[usize::try_from(hash >> 58).unwrap_or(0) % PARTS]
    }

    fn read(&self, run_id: &RunId) -> RwLockReadGuard<'_, Part> {
        self.part(run_id).read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self, run_id: &RunId) -> RwLockWriteGuard<'_, Part> {
        self.part(run_id).write().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn get(&self, run_id: &RunId) -> Option<Sight> {
        self.read(run_id).get(run_id).cloned()
    }

    /// The state that a run is in, whatever its record says.
    pub fn state_of(&self, run: &Run) -> RunState {
        let part = self.read(&run.run_id);
        let seen = part.get(&run.run_id).filter(|sight| sight.is_ahead_of(run));
        seen.map_or(run.state, |sight| sight.state)
    }

    /// How many are in here.
    pub fn len(&self) -> usize {
        let of = |part: &RwLock<Part>| part.read().unwrap_or_else(PoisonError::into_inner).len();
        self.parts.iter().map(of).sum()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What was there before. What is being done for a run is so until its state changes.
    pub fn put(&self, run_id: &RunId, mut sight: Sight) -> Option<Sight> {
        let mut part = self.write(run_id);
        let Some(there) = part.get_mut(run_id) else {
            part.insert(run_id.clone(), sight);
            return None;
        };
        if (there.state, there.attempt, there.since) == (sight.state, sight.attempt, sight.since) {
            sight.doing = there.doing.take();
        }
        Some(std::mem::replace(there, sight))
    }

    pub fn remove(&self, run_id: &RunId) {
        self.write(run_id).remove(run_id);
    }

    /// Notes what is being done for a run, as long as it stands as it does. Before, and after.
    fn doing(&self, run_id: &RunId, doing: Doing) -> Option<(Sight, Sight)> {
        let mut part = self.write(run_id);
        let sight = part.get_mut(run_id)?;
        let before = sight.clone();
        sight.doing = Some(Box::new(doing));
        Some((before, sight.clone()))
    }
}

/// What the scheduler shows.
impl Board {
    /// A run has come to a state that is not stored. Those who watch are told.
    pub(crate) fn show_run(&self, run_id: &RunId, sight: &Sight) {
        let before = self.sights().put(run_id, sight.clone());
        let same = |before: &Sight| {
            (before.state, before.attempt, &before.why) == (sight.state, sight.attempt, &sight.why)
        };
        if !before.as_ref().is_some_and(same) {
            self.tell_of_run(run_id, before.as_ref(), sight);
        }
    }

    /// Whether a run is still further than its record; if not, it is not shown so any more.
    pub(crate) fn is_still_shown(&self, run_id: &RunId) -> bool {
        let ahead = self.sights().get(run_id).is_some_and(|sight| {
            self.look(run_id.job(), |records| {
                records.runs.get(run_id).is_some_and(|run| sight.is_ahead_of(run))
            })
        });
        if !ahead {
            self.hide_run(run_id);
        }
        ahead
    }

    /// What is stored of a run is all that there is to say.
    pub(crate) fn hide_run(&self, run_id: &RunId) {
        self.sights().remove(run_id);
    }

    /// Something is being done for a run that takes its time.
    pub(crate) fn show_doing(&self, run_id: &RunId, what: String, at: Timestamp) {
        let doing = Doing { what, since: at };
        if let Some((before, after)) = self.sights().doing(run_id, doing) {
            self.tell_of_run(run_id, Some(&before), &after);
        }
    }

    /// Without timelines, which would be most of it: whoever wants them asks for the run.
    fn tell_of_run(&self, run_id: &RunId, before: Option<&Sight>, after: &Sight) {
        let stored = self.look(run_id.job(), |records| {
            let run = records.runs.get(run_id)?;
            Some(Run { timeline: Timeline::new(), ..(**run).clone() })
        });
        let Some(mut was) = stored else { return };
        let mut is = was.clone();
        if !after.put_over(&mut is) {
            return;
        }
        if let Some(before) = before {
            before.put_over(&mut was);
        }
        let weight = WEIGHT + was.reason.len() + is.reason.len();
        let change = Change { before: Some(Arc::new(was)), after: Some(Arc::new(is)) };
        self.publish(Event::Run(change), weight);
    }
}
